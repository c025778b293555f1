/* Tells from its type what memory may hold. */
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallBitVector.h>
#include <llvm/IR/DataLayout.h>

namespace pmcc
{

/** Visit a type at an offset. If the visitor returns true, visit the type's fields or elements, too. */
void visit_parts(llvm::Type *type, uint64_t offset, const llvm::DataLayout &layout,
                 llvm::function_ref<bool(llvm::Type *, uint64_t)> visit);

/**
 * The words of [from, from + size) that may hold a pointer. Empty if `from` does not lie in a variable of
 * known type: on the stack, global, or passed by value.
 *
 * A copy of a struct copies its padding, too. On the stack the padding often holds the upper half of an
 * old address. Together with an int before it, the word looks like a pointer. The type says that it is
 * no pointer.
 */
llvm::SmallBitVector pointer_words(const llvm::Value *from, uint64_t size,
                                   const llvm::DataLayout &layout);

} // namespace pmcc

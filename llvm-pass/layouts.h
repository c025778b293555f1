/* Tells from its type what memory may hold. */
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallBitVector.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/IntrinsicInst.h>

namespace pmcc
{

/** Visit a type at an offset. If the visitor returns true, visit the type's fields or elements, too. */
void visit_parts(llvm::Type *type, uint64_t offset, const llvm::DataLayout &layout,
                 llvm::function_ref<bool(llvm::Type *, uint64_t)> visit);

/**
 * The words that may hold a pointer, of the `size` bytes that are copied. Empty if the source lies in no
 * variable (on the stack, global, or passed by value), or nobody knows the fields.
 *
 * A copy of a struct copies its padding, too. On the stack the padding often holds the upper half of an
 * old address. Together with an int before it, the word looks like a pointer. The type says that it is
 * no pointer.
 */
llvm::SmallBitVector pointer_words(const llvm::AnyMemTransferInst &copy, uint64_t size);

} // namespace pmcc

/* What memory may hold, by its type. */
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallBitVector.h>
#include <llvm/IR/DataLayout.h>

namespace pmcc
{

/** Visit a type at an offset and, where the visitor returns true, the fields or elements in it. */
void visit_parts(llvm::Type *type, uint64_t offset, const llvm::DataLayout &layout,
                 llvm::function_ref<bool(llvm::Type *, uint64_t)> visit);

/**
 * The words of [from, from + size) that may hold a pointer, if `from` lies in a variable whose type
 * is known: on the stack, global, or passed by value. Empty if not.
 *
 * A copy of a struct copies its padding too, in which a stack has left whatever was there, often the
 * upper half of an address: with an int before it that looks like a pointer by its value. The type
 * says that it is none.
 */
llvm::SmallBitVector pointer_words(const llvm::Value *from, uint64_t size,
                                   const llvm::DataLayout &layout);

} // namespace pmcc

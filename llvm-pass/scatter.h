/*
 * Lanes that are scattered to where they were read. AVX-512 makes that of a loop which sets or clears bits of
 * part of each word: it loads whole words, and stores every other lane.
 */
#pragma once

#include <llvm/IR/InstrTypes.h>

namespace pmcc
{

/** The load that has read all lanes from where `store` puts them, with bits set or cleared since. NULL if
 * there is none. `pointers` is the vector of their addresses. */
const llvm::Instruction *load_of_scattered(const llvm::CallBase &store, const llvm::Value *pointers,
                                           const llvm::Value *lanes);

} // namespace pmcc

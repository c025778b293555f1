/*
 * Lanes that are scattered to where they were read. With AVX-512 clang makes that of a loop which sets or
 * clears bits of part of each word. It loads whole words, and stores some lanes, together or one by one.
 */
#pragma once

#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <optional>

namespace pmcc
{

/** Let the vectoriser make no scatters, but store lanes one by one. For example a loop stores pointers in two
 * halves. A scatter would store the low halves of several words, and the next one the high halves. Then
 * nobody would see that the halves make pointers. */
void forbid_scatters(llvm::Module &module);

/** The load that has read all lanes from where `store` puts them, with bits set or cleared since. NULL if
 * there is none. `pointers` is the vector of their addresses. */
const llvm::Instruction *load_of_scattered(const llvm::CallBase &store, const llvm::Value *pointers,
                                           const llvm::Value *lanes);

/** How many bytes the address `to` lies behind `from`. Both must be one address, and behind it an index from
 * a lane of one vector. */
std::optional<int64_t> bytes_between_lanes(const llvm::Value *from, const llvm::Value *to,
                                           const llvm::DataLayout &layout);

} // namespace pmcc

/*
 * Lanes of a vector that a loop stores one by one, to places which are not neighbours. For example the loop
 * sets or clears bits of part of each word. With AVX-512 clang may load whole words then, and store some
 * lanes.
 */
#pragma once

#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

#include <optional>

namespace pmcc
{

/** Let the vectoriser make no scatters and no gathers, but store and load lanes one by one. For example a
 * loop stores pointers in two halves. A scatter would store the low halves of several words, and the next one
 * the high halves. Then nobody would see that the halves make pointers. */
void forbid_scatters(llvm::Module &module);

/** How many bytes the address `to` lies behind `from`. Both must be one address, and behind it an index from
 * a lane of one vector. */
std::optional<int64_t> bytes_between_lanes(const llvm::Value *from, const llvm::Value *to,
                                           const llvm::DataLayout &layout);

} // namespace pmcc

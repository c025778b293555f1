/*
 * Drops marks that earlier marks make needless, and joins marks of neighbours.
 *
 * A *span* is an interval of bytes off one base pointer. Two rules, both between barriers only:
 *
 *  - If a larger or equal span was marked on every path to here since the last barrier, a span needs
 *    no mark.
 *  - If spans of one block fit together into a line's length, one test of the first and the last byte
 *    marks them all. Every byte between lies in one of these two lines. The test stands where the first
 *    of the stores stands.
 *
 * Kinds are told where the stores stand, whichever mark covers the store. But if the kinds are constants
 * and no other store is between, a joined mark tells the kinds of all its words.
 */
#pragma once

#include "writes.h"

namespace pmcc
{

/** Writes that are not constant (is_constant()) stay as they are. */
void merge(llvm::Function &function, llvm::SmallVectorImpl<Write> &writes);

} // namespace pmcc

/*
 * Leaves out marks that others make needless, and joins neighbours.
 *
 * A *span* is an interval of bytes off one base pointer. Two rules, both between barriers only:
 *
 *  - A span inside one that was marked on every path to here since the last barrier needs no mark.
 *  - Spans of one block that fit together into a line's length are marked by one test of the first
 *    and the last byte, where the first of them stands: whatever lies between is in one of those
 *    two lines.
 *
 * Kinds are told where the stores stand, whoever has made the mark; but by a joined mark for all of
 * its words, if they are constants and no other store is between.
 */
#pragma once

#include "writes.h"

namespace pmcc
{

/** Writes that are not constant (is_constant()) stay as they are. */
void merge(llvm::Function &function, llvm::SmallVectorImpl<Write> &writes);

} // namespace pmcc

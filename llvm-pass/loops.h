/*
 * Takes marks out of loops in which no commit can happen and whose every round makes the store:
 * that of a loop-invariant address goes before the loop, those of addresses that march through
 * memory become one mark of the whole range. So a loop that fills an array pays once, and stays
 * as the vectoriser left it.
 */
#pragma once

#include "writes.h"

#include <llvm/IR/PassManager.h>

namespace pmcc
{

/** Move what can be moved: `at`, `pointer` and sizes change, and a range may stand for several. */
void move_out_of_loops(llvm::Function &function, llvm::FunctionAnalysisManager &analyses,
                       llvm::SmallVectorImpl<Write> &writes);

} // namespace pmcc

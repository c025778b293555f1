/*
 * Moves marks out of loops, if no commit can happen in the loop and every round makes the store.
 *
 * The mark of a loop-invariant address goes before the loop. Marks of addresses that march through
 * memory become one mark of the whole range. So a loop that fills an array pays once, and stays as
 * the vectoriser left it.
 */
#pragma once

#include "writes.h"

#include <llvm/IR/PassManager.h>

namespace pmcc
{

/** Move the marks that can move. `at`, `pointer` and sizes of writes change. One range may replace several
 * writes. */
void move_out_of_loops(llvm::Function &function, llvm::FunctionAnalysisManager &analyses,
                       llvm::SmallVectorImpl<Write> &writes);

} // namespace pmcc

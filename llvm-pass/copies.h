/*
 * Gives the copies of inline functions in a marked module names of their own.
 *
 * The compiler puts inline functions, instances of templates, and tables of virtual functions into
 * each object file that needs them. The linker keeps one copy. If it kept a copy without marks, libpm
 * would not see the stores of this copy. So each copy in a marked module is renamed to "name.pm". The
 * linker keeps one copy of "name.pm", too.
 */
#pragma once

#include <llvm/IR/Module.h>

namespace pmcc
{

/** Call it before any optimisation, so that link-time optimisation finds the new names, too. */
void name_copies(llvm::Module &module);

} // namespace pmcc

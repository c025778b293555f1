/*
 * Inline functions, instances of templates, and tables of virtual functions are in each object file
 * that needs them, and the linker keeps one of the copies: it may be that of an object file without
 * marks, whose stores to a container nobody would see. So the copies in a marked module get names of
 * their own, "name.pm", of which the linker keeps one as well.
 */
#pragma once

#include <llvm/IR/Module.h>

namespace pmcc
{

/** Before anything is optimised, so that link-time optimisation finds the names, too. */
void name_copies(llvm::Module &module);

} // namespace pmcc

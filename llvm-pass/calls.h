/*
 * Sends calls of library functions that write through their arguments to the wrappers in
 * src/runtime/, which mark first. The list is src/runtime/wrapped.def.
 */
#pragma once

#include <llvm/IR/Module.h>

namespace pmcc
{

/** Whether `function` is to be left alone: __attribute__((disable_sanitizer_instrumentation)). */
bool is_opted_out(const llvm::Function &function);

/**
 * Replace calls, and addresses taken, of wrapped functions that the module declares with the type
 * that the library's has. With `optnone_only` in functions that are optnone and nowhere else.
 */
bool wrap_calls(llvm::Module &module, bool optnone_only);

} // namespace pmcc

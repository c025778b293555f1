/*
 * Sends calls of library functions to others of the same type: those that write through their
 * arguments to the wrappers in src/runtime/, which mark first. The list is src/runtime/wrapped.def.
 */
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

namespace pmcc
{

/**
 * A library function; pm__name stands for it. The type is a string: first the result, then the
 * parameters; v is void, b a bool, i a 32-bit integer, l a 64-bit integer, d a double, f a float, p a pointer,
 * ? anything else, and a final dot stands for "...".
 */
struct Route {
    const char *name, *type;
};

/** Whether `function` is to be left alone: __attribute__((disable_sanitizer_instrumentation)). */
bool is_opted_out(const llvm::Function &function);

/** Warn at a call: "pmcc does not know " and this. */
void warn_unknown(const llvm::CallBase &call, const llvm::Twine &what);

/**
 * Replace calls, and addresses taken, of functions that the module declares with the type that the
 * route has. With `optnone_only` in functions that are optnone and nowhere else.
 */
bool route_calls(llvm::Module &module, llvm::ArrayRef<Route> routes, bool optnone_only);

/** Have each call follow one of pm__name, which returns nothing. */
bool announce_calls(llvm::Module &module, llvm::ArrayRef<Route> routes, bool optnone_only);

/** Both with the routes of wrapped.def; and the second with those of containers.def. */
bool wrap_calls(llvm::Module &module, bool optnone_only);
bool announce_links(llvm::Module &module, bool optnone_only);

} // namespace pmcc

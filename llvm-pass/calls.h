/*
 * Redirects calls of library functions that write through their arguments. The calls go to wrappers of
 * the same type in src/runtime/, which mark first. The list is src/runtime/wrapped.def.
 */
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Module.h>

namespace pmcc
{

/**
 * A library function, and its type; pm__name takes its calls. The type is a string: a letter for the
 * result, then a letter for each parameter. The letters: v void, b bool, i 32-bit integer,
 * l 64-bit integer, d double, f float, p pointer, ? anything else. A final dot stands for "...".
 */
struct Route {
    const char *name, *type;
};

/**
 * Whether the pass must leave `function` alone: it is naked, or has
 * __attribute__((disable_sanitizer_instrumentation)).
 */
bool is_opted_out(const llvm::Function &function);

/** Warn at a call: "pmcc does not know ", followed by `what`. */
void warn_unknown(const llvm::CallBase &call, const llvm::Twine &what);

/**
 * Replace each route's function by pm__name, in calls and where its address is taken. The module must
 * declare the function with the type of the route. With `optnone_only`, replace in optnone functions
 * only.
 */
bool route_calls(llvm::Module &module, llvm::ArrayRef<Route> routes, bool optnone_only);

/** Put a call of pm__name, which returns nothing, before each call of a route's function. */
bool announce_calls(llvm::Module &module, llvm::ArrayRef<Route> routes, bool optnone_only);

/** wrap_calls() routes and announces the functions of wrapped.def. announce_links() announces the
 * functions of containers.def. */
bool wrap_calls(llvm::Module &module, bool optnone_only);
bool announce_links(llvm::Module &module, bool optnone_only);

} // namespace pmcc

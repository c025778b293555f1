/*
 * Finds each listed function by its name, and compares its type: a function of the program with the same
 * name stays as it is. To route a function, its uses are replaced. To announce it, a call is put before each
 * call of it. The lists are made from wrapped.def by macros, as are the wrappers.
 */
#include "calls.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/IRBuilder.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr Route wrapped[] = {
#define WRAP(result, name, parameters, arguments, type, ...) {#name, type},
#define WRAP_BY_HAND(name, type)                             {#name, type},
#include "runtime/wrapped.def"
};

/* libpm cannot call these functions itself, so it has no wrappers for them. An announcement precedes
 * the call instead. */
constexpr Route announced[] = {
#define WRAP(...)
#define WRAP_BY_HAND(...)
#define ANNOUNCE(name, parameters, type, ...) {#name, type},
#include "runtime/wrapped.def"
};

char letter_of(const Type *type)
{
    if (type->isVoidTy())
        return 'v';
    if (type->isPointerTy())
        return 'p';
    if (type->isIntegerTy(1))
        return 'b';
    if (type->isIntegerTy(32))
        return 'i';
    if (type->isIntegerTy(64))
        return 'l';
    if (type->isDoubleTy())
        return 'd';
    return type->isFloatTy() ? 'f' : '?';
}

std::string spell(const FunctionType &type)
{
    std::string letters(1, letter_of(type.getReturnType()));
    for (const Type *parameter : type.params())
        letters += letter_of(parameter);
    return type.isVarArg() ? letters + '.' : letters;
}

Function *declared(const Module &module, const Route &route)
{
    Function *function = module.getFunction(route.name);
    return function && function->isDeclaration() &&
                   spell(*function->getFunctionType()) == route.type
               ? function
               : nullptr;
}

/* The calls of `function` that the pass may change. */
SmallVector<CallBase *> calls_of(const Function &function, bool optnone_only)
{
    SmallVector<CallBase *> calls;
    for (const Use &use : function.uses()) {
        auto *call = dyn_cast<CallBase>(use.getUser());
        if (call && call->isCallee(&use) && !is_opted_out(*call->getFunction()) &&
            (!optnone_only || call->getFunction()->hasOptNone()))
            calls.push_back(call);
    }
    return calls;
}

/* Whether two spelled types are the same, but for the widths of integers. */
bool is_alike(StringRef a, StringRef b)
{
    auto is_integer = [](char c) { return c == 'i' || c == 'l' || c == '?'; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) {
               return x == y || (is_integer(x) && is_integer(y));
           });
}

/* If a file declares `int read();`, as before C had prototypes, or `int read(int, void *, unsigned);`, its
 * calls cannot go to a wrapper. */
void warn_of_old_declaration(const Module &module, const Route &route, bool optnone_only)
{
    const Function *function = module.getFunction(route.name);
    if (!function || !function->isDeclaration())
        return;
    const std::string type = spell(*function->getFunctionType());
    bool has_none = function->isVarArg() && function->arg_size() == 0;
    if (!has_none && (type == route.type || !is_alike(type, route.type)))
        return;
    for (const CallBase *call : calls_of(*function, optnone_only))
        warn_unknown(*call, Twine("what ") + route.name + "() writes, which is declared " +
                                (has_none ? "without parameters" : "with other integers") +
                                "; declare it as libc does");
}

/* Put a call of pm__function, with the same arguments, before each call of `function`. */
bool announce_calls_of(Module &module, const Function &function, bool optnone_only)
{
    Type *nothing = Type::getVoidTy(module.getContext());
    auto *type = FunctionType::get(nothing, function.getFunctionType()->params(), false);
    FunctionCallee announcer =
        module.getOrInsertFunction(("pm__" + function.getName()).str(), type);
    bool changed = false;
    for (CallBase *call : calls_of(function, optnone_only)) {
        auto *before = dyn_cast_or_null<CallBase>(call->getPrevNode());
        if (before && before->getCalledOperand() == announcer.getCallee())
            continue; /* the compiler announced it in an optnone function; this run is in the linker */
        IRBuilder<>(call).CreateCall(announcer, SmallVector<Value *>(call->args()));
        changed = true;
    }
    return changed;
}

} // namespace

void warn_unknown(const CallBase &call, const Twine &what)
{
    call.getContext().diagnose(DiagnosticInfoUnsupported(
        *call.getFunction(), "pmcc does not know " + what, call.getDebugLoc(), DS_Warning));
}

bool is_opted_out(const Function &function)
{
    return function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) ||
           function.hasFnAttribute(Attribute::Naked);
}

bool route_calls(Module &module, ArrayRef<Route> routes, bool optnone_only)
{
    bool changed = false;
    for (const Route &route : routes) {
        Function *original = declared(module, route);
        if (!original)
            continue;
        auto is_ours = [&](const Use &use) {
            auto *instruction = dyn_cast<Instruction>(use.getUser());
            if (!instruction)
                return !optnone_only; // in an initialiser
            const Function *function = instruction->getFunction();
            return !is_opted_out(*function) && (!optnone_only || function->hasOptNone());
        };
        if (none_of(original->uses(), is_ours))
            continue;
        FunctionCallee substitute =
            module.getOrInsertFunction(std::string("pm__") + route.name,
                                       original->getFunctionType(), original->getAttributes());
        original->replaceUsesWithIf(substitute.getCallee(), is_ours);
        changed = true;
    }
    return changed;
}

bool announce_calls(Module &module, ArrayRef<Route> routes, bool optnone_only)
{
    bool changed = false;
    for (const Route &route : routes)
        if (Function *function = declared(module, route))
            changed |= announce_calls_of(module, *function, optnone_only);
    return changed;
}

bool wrap_calls(Module &module, bool optnone_only)
{
    for (const Route &route : wrapped)
        warn_of_old_declaration(module, route, optnone_only);
    bool changed = route_calls(module, wrapped, optnone_only);
    return announce_calls(module, announced, optnone_only) || changed;
}

} // namespace pmcc

#include "calls.h"

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

} // namespace

bool is_opted_out(const Function &function)
{
    return function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) ||
           function.hasFnAttribute(Attribute::Naked);
}

bool route_calls(Module &module, ArrayRef<Route> routes, bool optnone_only)
{
    bool changed = false;
    for (const Route &route : routes) {
        Function *original = module.getFunction(route.name);
        if (!original || !original->isDeclaration() ||
            spell(*original->getFunctionType()) != route.type)
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

bool wrap_calls(Module &module, bool optnone_only)
{
    return route_calls(module, wrapped, optnone_only);
}

} // namespace pmcc

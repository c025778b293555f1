#include "calls.h"

using namespace llvm;

namespace pmcc
{
namespace
{

/*
 * The type is a string: first the result, then the parameters; v is void, i a 32-bit integer, l a
 * 64-bit integer, d a double, f a float, p a pointer, and a final dot stands for "...".
 */
struct Wrapped {
    const char *name, *type;
};

constexpr Wrapped wrapped[] = {
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

bool wrap_calls(Module &module, bool optnone_only)
{
    bool changed = false;
    for (const Wrapped &entry : wrapped) {
        Function *original = module.getFunction(entry.name);
        if (!original || !original->isDeclaration() ||
            spell(*original->getFunctionType()) != entry.type)
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
        FunctionCallee wrapper =
            module.getOrInsertFunction(std::string("pm__") + entry.name,
                                       original->getFunctionType(), original->getAttributes());
        original->replaceUsesWithIf(wrapper.getCallee(), is_ours);
        changed = true;
    }
    return changed;
}

} // namespace pmcc

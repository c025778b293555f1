/* Redirects allocations to libpm's heap: src/runtime/allocations.def. */
#include "calls.h"
#include "discover.h"

#include <llvm/IR/GlobalAlias.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr char note[] = "pm.discover";

constexpr Route allocations[] = {
#define ALLOCATION(name, type) {#name, type},
#define OPERATOR(name, type)   {#name, type},
#include "runtime/allocations.def"
};

constexpr const char *operators[] = {
#define ALLOCATION(name, type)
#define OPERATOR(name, type) #name,
#include "runtime/allocations.def"
};

/*
 * A program that replaces operator new or delete replaces it for all modules. Their calls go to pm__name,
 * so pm__name becomes an alias of the program's operator. libpm's definition is weak and gives way.
 */
bool replace_operators(Module &module)
{
    bool changed = false;
    for (StringRef name : operators) {
        Function *own = module.getFunction(name);
        std::string routed = ("pm__" + name).str();
        if (!own || !own->isStrongDefinitionForLinker() || module.getNamedAlias(routed))
            continue;
        GlobalAlias *alias = GlobalAlias::create(GlobalValue::ExternalLinkage, routed, own);
        if (GlobalValue *declared = module.getNamedValue(routed); declared != alias) {
            declared->replaceAllUsesWith(alias);
            declared->eraseFromParent();
            alias->setName(routed);
        }
        alias->setVisibility(GlobalValue::HiddenVisibility);
        changed = true;
    }
    return changed;
}

} // namespace

void note_discover(Module &module)
{
    module.getOrInsertNamedMetadata(note);
}

bool is_discovered(const Module &module)
{
    return module.getNamedMetadata(note);
}

bool route_allocations(Module &module, bool optnone_only)
{
    bool changed = route_calls(module, allocations, optnone_only);
    return (!optnone_only && replace_operators(module)) || changed;
}

} // namespace pmcc

/* Where dynamic memory comes from: src/runtime/allocations.def. */
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
 * A program that replaces an operator means all calls, those of other modules too, which are sent
 * to pm__name. The library's is weak.
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

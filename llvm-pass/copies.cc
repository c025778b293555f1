#include "copies.h"

#include <llvm/ADT/SetVector.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr char suffix[] = ".pm";

/* By the C++ ABI: virtual tables, those that are in use while bases are constructed, and their tables.
 * Other data is one object, whoever refers to it. */
bool is_table(const GlobalVariable &variable)
{
    StringRef name = variable.getName();
    return name.starts_with("_ZTV") || name.starts_with("_ZTC") || name.starts_with("_ZTT");
}

bool is_copy(const GlobalValue &value)
{
    if (value.isDeclaration() || !value.hasLinkOnceLinkage())
        return false;
    if (auto *variable = dyn_cast<GlobalVariable>(&value))
        return is_table(*variable);
    return isa_and_nonnull<Function>(value.getAliaseeObject());
}

/* What the linker keeps or drops as one, like a class's two constructors. */
void rename_group(Module &module, const Comdat &group)
{
    SmallVector<GlobalObject *, 4> members(group.getUsers().begin(), group.getUsers().end());
    Comdat *renamed = module.getOrInsertComdat((group.getName() + suffix).str());
    renamed->setSelectionKind(group.getSelectionKind());
    for (GlobalObject *member : members)
        member->setComdat(renamed);
}

} // namespace

void name_copies(Module &module)
{
    SmallVector<GlobalValue *, 16> used; // and so, perhaps, known by name elsewhere
    for (bool by_compiler : {false, true})
        collectUsedGlobalVariables(module, used, by_compiler);
    SmallSetVector<const Comdat *, 16> groups;
    for (GlobalValue &value : module.global_values())
        if (is_copy(value) && !is_contained(used, &value)) {
            if (const Comdat *group = value.getComdat())
                groups.insert(group);
            value.setName(value.getName() + suffix);
        }
    for (const Comdat *group : groups)
        rename_group(module, *group);
}

} // namespace pmcc

/*
 * Renames each definition of linkonce linkage that is a function, an alias of a function, or a table of
 * virtual functions. Comdat groups are renamed with their members. A name in llvm.used or llvm.compiler.used
 * stays, because other code may know it.
 */
#include "copies.h"

#include <llvm/ADT/SetVector.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr char suffix[] = ".pm";

/* The prefixes are from the C++ ABI: virtual tables (ZTV), construction virtual tables (ZTC), and tables
 * of virtual tables (ZTT). Other data must stay one object for all files that refer to it. */
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

/* The linker keeps or drops a comdat group as a whole, like the two constructors of a class. */
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
    SmallVector<GlobalValue *, 16> used; // other code may know these by name, so they keep it
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

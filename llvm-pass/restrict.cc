/*
 * A commit reads all of a container, and a rollback changes it. But the optimiser believes that nobody else
 * reads or changes what a `restrict` parameter leads to, or the place of a result, or the memory that an
 * allocator has returned. So it would move stores from before a commit behind it, or leave them out. This
 * takes the promises back in functions where a commit may happen, before the optimiser runs.
 */
#include "commits.h"

#include "discover.h"
#include "writes.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace pmcc
{

/* Take it back at every call that may commit, for the compiler may inline the function there. Returns whether
 * there is such a call. */
static bool forget_at_calls(Function &function)
{
    bool any = false;
    for (Instruction &instruction : instructions(function))
        if (auto *call = dyn_cast<CallBase>(&instruction); call && may_commit(*call)) {
            any = true;
            for (unsigned i = 0; i < call->arg_size(); i++)
                call->removeParamAttr(i, Attribute::NoAlias);
        }
    return any;
}

void forget_restrict(Module &module)
{
    for (Function &function : module)
        if (forget_at_calls(function))
            for (Argument &argument : function.args())
                argument.removeAttr(Attribute::NoAlias);
}

/* Without --discover, the memory of these is never in a container. outside.cc proves it by their names. */
static bool is_in_no_container(const Function &function)
{
    return !is_discovered(*function.getParent()) &&
           StringSwitch<bool>(function.getName())
               .Cases("malloc", "calloc", "aligned_alloc", "memalign", "valloc", true)
               .Default(false);
}

void forget_allocators(Module &module)
{
    for (Function &function : module) {
        if (function.hasRetAttribute(Attribute::NoAlias) && function.isDeclaration() &&
            !is_in_no_container(function))
            function.addFnAttr(Attribute::NoBuiltin); /* else LTO infers it again, from the name */
        function.removeRetAttr(Attribute::NoAlias);
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                call->removeRetAttr(Attribute::NoAlias);
    }
}

} // namespace pmcc

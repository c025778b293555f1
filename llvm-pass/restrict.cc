/*
 * A commit reads all of a container, and a rollback changes it. But the optimiser believes that nobody else
 * reads or changes what a `restrict` parameter leads to, or the place of a result, or the memory that an
 * allocator has returned. So it would move stores from before a commit behind it, or leave them out. This
 * takes the promises back in functions where a commit may happen, before the optimiser runs.
 */
#include "commits.h"

#include "writes.h"

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

void forget_allocators(Module &module)
{
    for (Function &function : module) {
        function.removeRetAttr(Attribute::NoAlias);
        for (Instruction &instruction : instructions(function))
            if (auto *call = dyn_cast<CallBase>(&instruction))
                call->removeRetAttr(Attribute::NoAlias);
    }
}

} // namespace pmcc

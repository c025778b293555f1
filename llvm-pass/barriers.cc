/*
 * Decides which instructions a mark may not move across, see is_barrier(). An instruction is a barrier
 * unless it is known to be harmless. The pass runs late in the pipeline. So LLVM has already inferred
 * the attributes of functions from their bodies (memory effects, nosync).
 */
#include "writes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>

using namespace llvm;

namespace pmcc
{

/*
 * A function that commits writes libpm's own memory. So a function that only reads cannot commit. Nor
 * can a function that writes only where its arguments point. LLVM counts ordered atomic loads as writes.
 */
static bool call_may_commit(const CallBase &call)
{
    if (call.onlyReadsMemory())
        return false;
    if (isa<IntrinsicInst>(call) && call.hasFnAttr(Attribute::NoCallback))
        return false;
    return !(call.onlyAccessesArgMemory() && call.hasFnAttr(Attribute::NoSync));
}

/* libpm's functions that allocate do not commit. A program's own operator new or delete may commit:
 * calls of the operators go to pm___Z*, which the program may have replaced. */
static bool is_allocation(const CallBase &call)
{
    const Function *callee = call.getCalledFunction();
    return callee && callee->getName().starts_with("pm__") &&
           !callee->getName().starts_with("pm___Z");
}

bool may_commit(const Instruction &instruction)
{
    auto *call = dyn_cast<CallBase>(&instruction);
    return call && !call->isDebugOrPseudoInst() && !call->isInlineAsm() && !is_allocation(*call) &&
           call_may_commit(*call);
}

/* Intrinsics are not calls: the pass tells the kinds of their writes in place, as for any instruction. */
bool may_tell(const Instruction &instruction)
{
    auto *call = dyn_cast<CallBase>(&instruction);
    return call && !isa<IntrinsicInst>(call) && !call->isInlineAsm() && call->mayWriteToMemory();
}

bool is_barrier(const Instruction &instruction)
{
    if (instruction.isDebugOrPseudoInst() || instruction.hasMetadata(anchor_note))
        return false;
    if (auto *call = dyn_cast<CallBase>(&instruction))
        if (call->isInlineAsm() || call_may_commit(*call))
            return true;
    if (instruction.isTerminator())
        return isa<InvokeInst, CallBrInst>(instruction);
    return isa<FenceInst>(instruction) || instruction.isVolatile() ||
           (instruction.isAtomic() && !isa<AnyMemIntrinsic>(instruction)) ||
           !isGuaranteedToTransferExecutionToSuccessor(&instruction);
}

} // namespace pmcc

/*
 * Which instructions a mark may not move across, see is_barrier(). Everything is one unless it is
 * known to be none. Marks stand late in the pipeline, so what was inferred of a function's body
 * (memory effects, nosync) is known here.
 */
#include "writes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IntrinsicInst.h>

using namespace llvm;

namespace pmcc
{

/*
 * A function that commits writes the library's own memory. One that only reads, or writes nothing
 * but what its arguments point to, does not; and ordered atomic loads count as writes.
 */
static bool call_may_commit(const CallBase &call)
{
    if (call.onlyReadsMemory())
        return false;
    if (isa<IntrinsicInst>(call) && call.hasFnAttr(Attribute::NoCallback))
        return false;
    return !(call.onlyAccessesArgMemory() && call.hasFnAttr(Attribute::NoSync));
}

/* Nor do libpm's functions that allocate; a program's own operators may. */
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

/* Intrinsics are not called: what they write is told where they stand, as of all instructions. */
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

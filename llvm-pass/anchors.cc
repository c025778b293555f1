/*
 * Keeps stray pointers from living across a commit, which moves objects (pmcc --discover).
 *
 * A commit redirects each pointer on the stack by the object that the pointer leads into. But
 * optimisers also keep pointers that lead into no object, or into another object. For a[i - 1] in a
 * loop, for example, they compute &a[-1] once, before the loop. After a commit this *stray* pointer
 * would lead nowhere.
 *
 * So no stray pointer lives across a call that may commit. The pass splits the pointer into a base,
 * which is a pointer of the program, and an offset, which is a number. After the call, where the
 * pointer is used, the pass adds the offset to the base. The commit has redirected the base by then.
 *
 * Two kinds of values are stray:
 *
 *  - The result of pointer arithmetic that is not `inbounds`. Nobody knows whether this pointer leads
 *    into the object of its base.
 *  - A phi, select or freeze of stray pointers.
 *
 * Arithmetic of the program itself is inbounds, or the program breaks the rules of the language.
 *
 * If the place before the call is outside of a loop, the code generator would move the addition there
 * all the same. An *anchor* prevents the move: the base passes through an empty inline assembly after
 * the call. (Marks do the same, see emit.cc.)
 *
 * Agesen, Detlefs and Moss keep bases beside pointers (PLDI 1998, on liveness for precise stacks).
 * LLVM's RewriteStatepointsForGC does the same.
 */
#include "commits.h"
#include "discover.h"
#include "writes.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/Utils/Local.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/Transforms/Utils/Local.h>

using namespace llvm;

namespace pmcc
{
namespace
{

bool is_choice(const Value *value)
{
    return isa<PHINode, SelectInst, FreezeInst>(value);
}

Value *anchor(Instruction *place, Value *pointer)
{
    Type *type = pointer->getType();
    auto *nothing = InlineAsm::get(FunctionType::get(type, {type}, false), "", "=r,0", true);
    CallInst *same = IRBuilder<>(place).CreateCall(nothing, {pointer});
    same->setDoesNotThrow();
    same->addFnAttr(Attribute::WillReturn);
    same->setOnlyAccessesInaccessibleMemory();
    same->setMetadata(anchor_note, MDNode::get(type->getContext(), {}));
    return same;
}

class StrayPointers
{
  public:
    StrayPointers(Function &function, FunctionAnalysisManager &analyses)
        : function_(function), layout_(function.getParent()->getDataLayout()),
          loops_(analyses.getResult<LoopAnalysis>(function)),
          libc_(analyses.getResult<TargetLibraryAnalysis>(function)), commits_(function)
    {
    }

    bool run();

  private:
    struct Parts {
        Value *base, *offset;
    };

    void find_stray_pointers();
    Parts parts_of(Value *pointer);
    Instruction *place_before(const Instruction &definition, Instruction &use) const;
    Value *put_together(Instruction &pointer, Instruction &use); // parts_ must have the pointer

    Function &function_;
    const DataLayout &layout_;
    LoopInfo &loops_;
    const TargetLibraryInfo &libc_;
    Commits commits_;
    SmallSetVector<Instruction *, 16> stray_;
    DenseMap<Value *, Parts> parts_;
    DenseMap<std::pair<Instruction *, BasicBlock *>, Instruction *> last_; // newest sum in the block
};

void StrayPointers::find_stray_pointers()
{
    for (BasicBlock &block : function_)
        for (Instruction &instruction : block)
            if (auto *arithmetic = dyn_cast<GetElementPtrInst>(&instruction))
                if (!arithmetic->isInBounds() && arithmetic->getType()->isPointerTy() &&
                    !isa<Constant>(arithmetic->getPointerOperand()) && // then the sum is the pointer
                    !is_outside(arithmetic, libc_))
                    stray_.insert(arithmetic);
    for (size_t i = 0; i < stray_.size(); i++)
        for (User *user : stray_[i]->users())
            if (is_choice(user))
                stray_.insert(cast<Instruction>(user));
}

StrayPointers::Parts StrayPointers::parts_of(Value *pointer)
{
    auto *instruction = dyn_cast<Instruction>(pointer);
    Value *nothing = ConstantInt::get(layout_.getIndexType(pointer->getType()), 0);
    if (!instruction || !stray_.contains(instruction))
        return {pointer, nothing};
    if (auto known = parts_.find(pointer); known != parts_.end())
        return known->second;
    IRBuilder<> builder(instruction);
    Parts parts;
    if (auto *phi = dyn_cast<PHINode>(instruction)) {
        unsigned count = phi->getNumIncomingValues();
        PHINode *bases = builder.CreatePHI(pointer->getType(), count);
        PHINode *offsets = builder.CreatePHI(nothing->getType(), count);
        parts_[pointer] = parts = {bases, offsets}; // before the recursion: a phi may be its own input
        for (unsigned i = 0; i < count; i++) {
            Parts incoming = parts_of(phi->getIncomingValue(i));
            bases->addIncoming(incoming.base, phi->getIncomingBlock(i));
            offsets->addIncoming(incoming.offset, phi->getIncomingBlock(i));
        }
        return parts;
    }
    if (auto *select = dyn_cast<SelectInst>(instruction)) {
        Parts a = parts_of(select->getTrueValue()), b = parts_of(select->getFalseValue());
        Value *condition = select->getCondition();
        parts = {builder.CreateSelect(condition, a.base, b.base),
                 builder.CreateSelect(condition, a.offset, b.offset)};
    } else if (isa<FreezeInst>(instruction)) {
        Parts of = parts_of(instruction->getOperand(0));
        parts = {builder.CreateFreeze(of.base), builder.CreateFreeze(of.offset)};
    } else {
        auto *arithmetic = cast<GetElementPtrInst>(instruction);
        Parts of = parts_of(arithmetic->getPointerOperand());
        Value *offset = emitGEPOffset(&builder, layout_, arithmetic);
        parts = {of.base, builder.CreateAdd(of.offset, offset)};
    }
    return parts_[pointer] = parts;
}

/* Where to add base and offset for `use`: before the outermost loop around it in which nothing commits. */
Instruction *StrayPointers::place_before(const Instruction &definition, Instruction &use) const
{
    Instruction *place = &use;
    for (Loop *loop = loops_.getLoopFor(use.getParent());
         loop && !loop->contains(&definition) && !commits_.in(*loop);
         loop = loop->getParentLoop()) {
        BasicBlock *ahead = loop->getLoopPreheader();
        if (!ahead || may_commit(*ahead->getTerminator()))
            break;
        place = ahead->getTerminator();
    }
    return place;
}

Value *StrayPointers::put_together(Instruction &pointer, Instruction &use)
{
    Parts parts = parts_.at(&pointer);
    Instruction *place = place_before(pointer, use);
    Instruction *&last = last_[{&pointer, place->getParent()}];
    if (last && last->comesBefore(place) && !commits_.in(last->getIterator(), place->getIterator()))
        return last;
    Value *base = anchor(place, parts.base);
    last = cast<Instruction>(IRBuilder<>(place).CreatePtrAdd(base, parts.offset));
    return last;
}

bool StrayPointers::run()
{
    if (!commits_.any())
        return false;
    find_stray_pointers();
    SmallVector<std::pair<Instruction *, Use *>, 16> uses;
    for (Instruction *pointer : stray_)
        for (Use &use : pointer->uses()) {
            auto *user = cast<Instruction>(use.getUser());
            if (!is_choice(user) && (is_choice(pointer) || commits_.between(*pointer, *user)))
                uses.emplace_back(pointer, &use);
        }
    if (uses.empty())
        return false;
    for (auto [pointer, use] : uses)
        parts_of(pointer); // first, while all uses still have their old values
    for (auto [pointer, use] : uses)
        use->set(put_together(*pointer, *cast<Instruction>(use->getUser())));
    SmallVector<WeakTrackingVH, 16> left(stray_.begin(), stray_.end());
    for (WeakTrackingVH &value : left)
        if (auto *phi = dyn_cast_or_null<PHINode>(value))
            RecursivelyDeleteDeadPHINode(phi);
    RecursivelyDeleteTriviallyDeadInstructionsPermissive(left);
    return true;
}

} // namespace

bool anchor_pointers(Function &function, FunctionAnalysisManager &analyses)
{
    return StrayPointers(function, analyses).run();
}

} // namespace pmcc

/*
 * Treats inner loops first, since a mark that leaves one loop may leave the next. For each loop:
 *
 *   1  Marks of addresses that do not change move before the loop.
 *   2  Stores with the same step and constant distances form a group. Scalar evolution gives the range of
 *      bytes that the group covers.
 *   3  The range gets one mark before the loop. Two conditions: it is cheap to compute, and it has no line
 *      without a store.
 *
 * Kinds are told in the loop as before, unless all stores of the loop store data.
 */
#include "loops.h"

#include "base/marks.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr int64_t line_size = int64_t(1) << MARKS_LINE_SHIFT;

/* Simple instructions that computing a range may cost, each time the loop is entered. */
constexpr unsigned range_budget = 16;

/* A store whose address is `start + offset + step * round`. */
struct Marching {
    size_t write; // index in the list of writes
    const SCEV *start;
    int64_t offset; // from the `start` of the group's first store
    int64_t size;
};

class LoopMover
{
  public:
    LoopMover(Loop &loop, FunctionAnalysisManager &analyses, Function &function)
        : loop_(loop), loops_(analyses.getResult<LoopAnalysis>(function)),
          dominators_(analyses.getResult<DominatorTreeAnalysis>(function)),
          evolution_(analyses.getResult<ScalarEvolutionAnalysis>(function)),
          target_(analyses.getResult<TargetIRAnalysis>(function)),
          layout_(function.getParent()->getDataLayout())
    {
    }

    void run(SmallVectorImpl<Write> &writes);

  private:
    bool is_free_of_barriers() const;
    bool is_in_every_round(const Write &write) const;
    bool tells_alike(ArrayRef<Write> writes) const;
    bool move_invariant(Write &write);
    void move_marching(SmallVectorImpl<Write> &writes);
    bool range_of(SmallVectorImpl<Marching> &group, int64_t step, Write &range, bool &is_dense);
    Instruction *entry() const { return loop_.getLoopPreheader()->getTerminator(); }

    Loop &loop_;
    LoopInfo &loops_;
    DominatorTree &dominators_;
    ScalarEvolution &evolution_;
    const TargetTransformInfo &target_;
    const DataLayout &layout_;
};

bool LoopMover::is_free_of_barriers() const
{
    return none_of(loop_.blocks(), [](const BasicBlock *block) {
        return any_of(*block, [](const Instruction &i) { return is_barrier(i); });
    });
}

/* Whether every round makes the store: no exit of the loop comes before the store. The loop is entered
 * through its preheader, so at least one round runs. */
bool LoopMover::is_in_every_round(const Write &write) const
{
    SmallVector<BasicBlock *, 4> exiting;
    loop_.getExitingBlocks(exiting);
    BasicBlock *latch = loop_.getLoopLatch(), *home = write.at->getParent();
    return latch && dominators_.dominates(home, latch) &&
           all_of(exiting, [&](BasicBlock *block) { return dominators_.dominates(home, block); });
}

/* Whether all writes of the loop store data, or all of them store pieces. Then the order in which kinds are
 * told does not matter, and the kinds leave the loop with the marks. Data makes a word forget its pieces, so
 * both together stay. The loop must not call functions, which may tell other kinds. Nor may a write ask for
 * the kind of a loaded word: the answer depends on earlier rounds. */
bool LoopMover::tells_alike(ArrayRef<Write> writes) const
{
    bool stores_data = false, stores_pieces = false;
    if (any_of(loop_.blocks(), [](const BasicBlock *block) { return any_of(*block, may_tell); }))
        return false;
    for (const Write &write : writes) {
        const bool is_inside = loop_.contains(write.at);
        if (!write.tells)
            continue;
        if ((write.loaded && loop_.contains(write.loaded)) || (is_inside && !write.is_plain()))
            return false;
        stores_pieces |= is_inside && write.pieces;
        stores_data |= is_inside && !write.pieces;
    }
    return !stores_data || !stores_pieces;
}

bool LoopMover::move_invariant(Write &write)
{
    bool changed = false;
    if (write.length && !loop_.isLoopInvariant(write.length))
        return false;
    if (!loop_.makeLoopInvariant(write.pointer, changed, entry(), nullptr, &evolution_))
        return false;
    write.at = entry();
    return true;
}

/*
 * Compute the range of bytes that a group of stores marching in step covers. Returns false in two cases:
 * the range has whole lines that no store touches, which must not be marked; or computing it is not cheap.
 */
bool LoopMover::range_of(SmallVectorImpl<Marching> &group, int64_t step, Write &range,
                         bool &is_dense)
{
    llvm::sort(group, [](const Marching &a, const Marching &b) { return a.offset < b.offset; });
    int64_t first = group.front().offset, end = first;
    is_dense = true;
    for (const Marching &store : group) {
        if (store.offset - end >= line_size)
            return false;
        is_dense &= store.offset <= end;
        end = std::max(end, store.offset + store.size);
    }
    if (first + std::abs(step) - end >= line_size)
        return false;
    is_dense &= first + std::abs(step) <= end;

    const SCEV *rounds = evolution_.getBackedgeTakenCount(&loop_);
    Type *i64 = Type::getInt64Ty(range.at->getContext());
    if (isa<SCEVCouldNotCompute>(rounds) || evolution_.getTypeSizeInBits(rounds->getType()) > 64)
        return false;
    rounds = evolution_.getNoopOrZeroExtend(rounds, i64);
    const SCEV *travel = evolution_.getMulExpr(rounds, evolution_.getConstant(i64, step, true));
    const SCEV *low = group.front().start;
    if (step < 0)
        low = evolution_.getAddExpr(low, travel);
    const SCEV *length = evolution_.getAddExpr(
        evolution_.getMulExpr(rounds, evolution_.getConstant(i64, std::abs(step))),
        evolution_.getConstant(i64, end - first));

    SCEVExpander expander(evolution_, layout_, "pm.range");
    if (expander.isHighCostExpansion({low, length}, &loop_, range_budget, &target_, entry()) ||
        !expander.isSafeToExpandAt(low, entry()) || !expander.isSafeToExpandAt(length, entry()))
        return false;
    range.pointer = expander.expandCodeFor(low, range.pointer->getType(), entry());
    range.size = 0;
    range.length = expander.expandCodeFor(length, i64, entry());
    if (auto *constant = dyn_cast<ConstantInt>(range.length)) {
        range.size = constant->getZExtValue();
        range.length = nullptr;
    }
    range.align = Align(1);
    range.at = entry();
    return true;
}

void LoopMover::move_marching(SmallVectorImpl<Write> &writes)
{
    /* Stores with the same step and a constant distance march together. */
    SmallVector<std::pair<int64_t, SmallVector<Marching, 8>>, 4> groups;
    for (size_t i = 0; i < writes.size(); i++) {
        Write &write = writes[i];
        if (loops_.getLoopFor(write.at->getParent()) != &loop_ || !write.is_constant() ||
            !write.marks || !is_in_every_round(write))
            continue;
        auto *march = dyn_cast<SCEVAddRecExpr>(evolution_.getSCEV(write.pointer));
        if (!march || march->getLoop() != &loop_ || !march->isAffine())
            continue;
        auto *step = dyn_cast<SCEVConstant>(march->getStepRecurrence(evolution_));
        if (!step || step->getAPInt().getSignificantBits() > 32 || write.size > INT32_MAX)
            continue;
        Marching store = {i, march->getStart(), 0, static_cast<int64_t>(write.size)};
        auto group = find_if(groups, [&](auto &candidate) {
            if (candidate.first != step->getAPInt().getSExtValue())
                return false;
            auto *distance = dyn_cast<SCEVConstant>(
                evolution_.getMinusSCEV(store.start, candidate.second.front().start));
            if (!distance || distance->getAPInt().getSignificantBits() > 32)
                return false;
            store.offset = distance->getAPInt().getSExtValue();
            return true;
        });
        if (group == groups.end())
            groups.push_back({step->getAPInt().getSExtValue(), {store}});
        else
            group->second.push_back(store);
    }

    SmallVector<size_t, 8> moved;
    bool is_alike = tells_alike(writes);
    for (auto &[step, group] : groups) {
        Write range = writes[group.front().write];
        bool is_dense;
        if (!range_of(group, step, range, is_dense))
            continue;
        range.tells &= is_alike && is_dense;
        range.loaded = nullptr;
        range.updates = false;
        for (const Marching &store : group) {
            range.pieces |= writes[store.write].pieces;
            moved.push_back(store.write);
            if (!range.tells && writes[store.write].tells)
                writes.push_back(writes[store.write].without_mark());
        }
        writes.push_back(range);
    }
    llvm::sort(moved, std::greater<>());
    for (size_t index : moved)
        writes.erase(writes.begin() + index);
}

void LoopMover::run(SmallVectorImpl<Write> &writes)
{
    if (!loop_.getLoopPreheader() || !is_free_of_barriers())
        return;
    bool is_alike = tells_alike(writes);
    for (size_t i = 0, n = writes.size(); i < n; i++) {
        Write write = writes[i];
        if (loops_.getLoopFor(write.at->getParent()) != &loop_ || write.shape != Write::Bytes ||
            write.from || !write.marks || !is_in_every_round(write) || !move_invariant(write))
            continue;
        if (write.tells && !is_alike) {
            writes.push_back(writes[i].without_mark());
            write.tells = false;
        }
        writes[i] = write;
    }
    move_marching(writes);
}

} // namespace

void move_out_of_loops(Function &function, FunctionAnalysisManager &analyses,
                       SmallVectorImpl<Write> &writes)
{
    /* Inner loops first: what left one may leave the next. */
    auto order = analyses.getResult<LoopAnalysis>(function).getLoopsInPreorder();
    for (Loop *loop : reverse(order))
        LoopMover(*loop, analyses, function).run(writes);
}

} // namespace pmcc

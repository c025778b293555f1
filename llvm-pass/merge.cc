/*
 * First a data-flow analysis finds the spans that are marked on every path to a block. It repeats until no
 * block changes. A function with more than 2000 writes is spared this analysis.
 *
 * Then each block is cut at its barriers. In each stretch the spans that need a mark are sorted by base and
 * offset, and neighbours are joined. If a joined mark stands before its lowest pointer is computed, the pass
 * computes this pointer from the base.
 */
#include "merge.h"

#include "base/marks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <map>
#include <set>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr int64_t line_size = int64_t(1) << MARKS_LINE_SHIFT;

/* If a function has more marks than this, each block is treated alone, to save compile time. */
constexpr size_t flow_limit = 2000;

struct Span {
    Value *base;
    int64_t start, end; // offsets from base

    bool contains(const Span &other) const
    {
        return base == other.base && start <= other.start && other.end <= end;
    }
    auto operator<=>(const Span &) const = default;
};

Span span_of(const Write &write, const DataLayout &layout)
{
    APInt offset(64, 0);
    Value *base = write.pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    int64_t start = offset.getSExtValue();
    return {base, start, start + static_cast<int64_t>(write.size)};
}

using Spans = std::set<Span>; // ordered by base, then start

bool is_marked(const Spans &marked, const Span &span)
{
    for (auto i = marked.lower_bound({span.base, INT64_MIN, INT64_MIN});
         i != marked.end() && i->base == span.base && i->start <= span.start; ++i)
        if (i->contains(span))
            return true;
    return false;
}

class Merger
{
  public:
    Merger(Function &function, SmallVectorImpl<Write> &writes);
    void run();

  private:
    struct Member {
        const Write *write;
        Span span;
    };

    Spans at_entry(const BasicBlock &block) const;
    template <class Visit> void walk(BasicBlock &block, Spans &marked, Visit &&visit);
    bool tells_for_all(Write &joined, ArrayRef<const Member *> members) const;
    void flush(SmallVectorImpl<Member> &region);

    Function &function_;
    const DataLayout &layout_;
    SmallVectorImpl<Write> &writes_;
    DenseMap<const Instruction *, SmallVector<Member, 2>> members_; // by where the mark stands
    DenseMap<const BasicBlock *, Spans> at_exit_;                   // absent: not visited, all marked
    DenseSet<const Instruction *> tellers_;                         // kinds are told before these
    DenseSet<const Instruction *> asked_;                           // loads whose kinds libpm is asked for
    SmallVector<Write, 32> result_;
};

Merger::Merger(Function &function, SmallVectorImpl<Write> &writes)
    : function_(function), layout_(function.getParent()->getDataLayout()), writes_(writes)
{
    for (const Write &write : writes) {
        tellers_.insert(write.at);
        for (const Instruction *load : std::initializer_list<const Instruction *>{
                 write.loaded, write.completes ? write.completes->load : nullptr})
            if (load && write.tells)
                asked_.insert(load);
    }
    for (const Write &write : writes)
        if (write.is_constant() && write.marks)
            members_[write.at].push_back({&write, span_of(write, layout_)});
        else
            result_.push_back(write);
}

/*
 * Call visit(member, whether it is marked already) for each member in order, and visit(nullptr) at
 * barriers. `marked` has the spans marked at the block's start, and in the end those at its end.
 *
 * In the next round of a loop, a base that is computed anew is another pointer. But no marked span of
 * the old pointer arrives at its definition, since on the path from the function's entry none is marked. */
template <class Visit> void Merger::walk(BasicBlock &block, Spans &marked, Visit &&visit)
{
    for (Instruction &instruction : block) {
        if (auto found = members_.find(&instruction); found != members_.end())
            for (const Member &member : found->second) {
                visit(&member, is_marked(marked, member.span));
                marked.insert(member.span);
            }
        if (is_barrier(instruction)) {
            marked.clear();
            visit(nullptr, false);
        }
    }
}

Spans Merger::at_entry(const BasicBlock &block) const
{
    Spans marked;
    bool is_first = true;
    /* A block not visited yet restricts nothing: it counts as all marked until a visit finds less. */
    for (const BasicBlock *before : predecessors(&block)) {
        auto found = at_exit_.find(before);
        if (found == at_exit_.end())
            continue;
        if (is_first)
            marked = found->second;
        else
            std::erase_if(marked,
                          [&](const Span &span) { return !is_marked(found->second, span); });
        is_first = false;
    }
    return marked;
}

/*
 * Whether the joined mark can tell the kinds of all its members. `members` is in order of address.
 *
 * The members must be whole words side by side, with constant kinds, and none stored in pieces. Between the
 * joined mark and the last member, no other store and no called function may tell a kind. Nor may any load
 * there ask for kinds, since the words still have their old ones.
 */
bool Merger::tells_for_all(Write &joined, ArrayRef<const Member *> members) const
{
    SmallPtrSet<const Instruction *, 8> stores;
    int64_t start = members.front()->span.start, end = start;
    joined.kinds = 0;
    for (const Member *member : members) {
        const Write &write = *member->write;
        if (!write.tells || write.loaded || write.updates || write.updates_when || write.pieces ||
            member->span.start != end || write.size % 8 != 0)
            return false;
        joined.kinds |= write.kinds << (end - start);
        end = member->span.end;
        stores.insert(write.at);
    }
    if (joined.align.value() < 8 || end - start > line_size)
        return false;
    for (const Instruction *i = joined.at; i && !stores.empty(); i = i->getNextNode())
        if (may_tell(*i) || asked_.contains(i) || (tellers_.contains(i) && !stores.erase(i)))
            return false;
    return stores.empty();
}

/* Keep as few marks as possible of `region`, a stretch of one block without barriers. */
void Merger::flush(SmallVectorImpl<Member> &region)
{
    std::map<Span, size_t> sorted; // to the earliest member with that span
    for (size_t i = 0; i < region.size(); i++)
        sorted.try_emplace(region[i].span, i);
    std::map<size_t, Write> joined; // in program order, so that the output is always the same
    SmallVector<Write, 16> told;

    for (auto i = sorted.begin(); i != sorted.end();) {
        Span span = i->first;
        size_t lowest = i->second, earliest = lowest;
        SmallVector<const Member *, 8> members(1, &region[lowest]);
        Align align = region[lowest].write->align; // alignment of base + aligned
        int64_t aligned = span.start;
        for (++i; i != sorted.end() && i->first.base == span.base; ++i) {
            int64_t end = std::max(span.end, i->first.end);
            if (end - span.start > line_size && end != span.end)
                break;
            span.end = end;
            members.push_back(&region[i->second]);
            earliest = std::min(earliest, i->second);
            if (Align other = region[i->second].write->align; other > align) {
                align = other;
                aligned = i->first.start;
            }
        }
        Write write = *region[lowest].write;
        write.at = region[earliest].write->at;
        write.size = span.end - span.start;
        write.align = commonAlignment(align, std::abs(span.start - aligned));
        if (lowest != earliest) { // the program may compute the lowest pointer only later
            IRBuilder<> builder(write.at);
            write.pointer =
                builder.CreateGEP(builder.getInt8Ty(), span.base, builder.getInt64(span.start));
        }
        write.tells = members.size() == 1 ? write.tells : tells_for_all(write, members);
        for (const Member *member : members)
            if (!write.tells && member->write->tells)
                told.push_back(member->write->without_mark());
        joined.emplace(earliest, write);
    }
    for (auto &[position, write] : joined)
        result_.push_back(write);
    result_.append(told);
    region.clear();
}

void Merger::run()
{
    ReversePostOrderTraversal<Function *> order(&function_);
    bool changed = writes_.size() <= flow_limit;
    while (changed) {
        changed = false;
        for (BasicBlock *block : order) {
            Spans marked = at_entry(*block);
            walk(*block, marked, [](const Member *, bool) {});
            auto [found, is_new] = at_exit_.try_emplace(block);
            if (is_new || found->second != marked) {
                found->second = std::move(marked);
                changed = true;
            }
        }
    }
    for (BasicBlock *block : order) {
        SmallVector<Member, 16> region;
        Spans marked = at_entry(*block);
        walk(*block, marked, [&](const Member *member, bool is_needless) {
            if (!member)
                flush(region);
            else if (!is_needless)
                region.push_back(*member);
            else if (member->write->tells)
                result_.push_back(member->write->without_mark());
        });
        flush(region);
    }
    writes_ = result_;
}

} // namespace

void merge(Function &function, SmallVectorImpl<Write> &writes)
{
    Merger(function, writes).run();
}

} // namespace pmcc

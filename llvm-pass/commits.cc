/*
 * Notes the blocks in which a commit may happen. between() goes backwards from the use, block by block,
 * until it has met such a block or has seen all blocks up to the definition.
 */
#include "commits.h"

#include "writes.h"

using namespace llvm;

namespace pmcc
{

Commits::Commits(const Function &function)
{
    for (const BasicBlock &block : function)
        if (in(block.begin(), block.end()))
            blocks_.insert(&block);
}

bool Commits::in(BasicBlock::const_iterator begin, BasicBlock::const_iterator end) const
{
    return std::any_of(begin, end, may_commit);
}

bool Commits::in(const Loop &loop) const
{
    return any_of(loop.blocks(), [&](const BasicBlock *block) { return blocks_.contains(block); });
}

bool Commits::between(const Value &definition, const Instruction &use) const
{
    auto *instruction = dyn_cast<Instruction>(&definition);
    if (!instruction && !isa<Argument>(definition))
        return false; // a constant: commits do not move it
    const BasicBlock *to = use.getParent();
    const BasicBlock *from = instruction ? instruction->getParent() : &to->getParent()->front();
    auto behind = instruction ? std::next(instruction->getIterator()) : from->begin();
    if (from == to)
        return in(behind, use.getIterator());
    if (in(to->begin(), use.getIterator()) || in(behind, from->end()))
        return true;
    SmallPtrSet<const BasicBlock *, 16> seen{from};
    SmallVector<const BasicBlock *, 16> left(predecessors(to));
    while (!left.empty()) {
        const BasicBlock *block = left.pop_back_val();
        if (!seen.insert(block).second)
            continue;
        if (blocks_.contains(block))
            return true;
        append_range(left, predecessors(block));
    }
    return false;
}

} // namespace pmcc

/*
 * Finds the halves of unions that the optimiser keeps in two variables (base/marks.h, P5). It stores the two
 * halves one behind the other: between them there is no call, and no other write to the arena.
 */
#include "writes.h"

#include <llvm/IR/Module.h>

using namespace llvm;

namespace pmcc
{

constexpr int64_t half_size = 4;

/* Where `b` lies, in bytes from `a`; 0 if that is not known. */
static int64_t distance(const Write &a, const Write &b)
{
    const DataLayout &layout = a.at->getModule()->getDataLayout();
    return a.pointer->getType() == b.pointer->getType()
               ? b.pointer->getPointerOffsetFrom(a.pointer, layout).value_or(0)
               : 0;
}

/* Whether only `second` writes to the arena from behind `first` on, and both stand in one block. */
static bool are_neighbours(const Instruction *first, const Instruction *second)
{
    const Instruction *i = first->getNextNode();
    while (i && i != second && !is_barrier(*i) && !may_tell(*i))
        i = i->getNextNode();
    return i && i == second;
}

void pair_halves(MutableArrayRef<Write> writes)
{
    for (size_t i = 1; i < writes.size(); i++) {
        const Write &first = writes[i - 1];
        Write &second = writes[i];
        if (!first.half || first.completes || !second.half)
            continue;
        int64_t at = distance(first, second);
        if (std::abs(at) == half_size && are_neighbours(first.at, second.at)) {
            second.completes = -at;
            second.first_of = first.half_of;
        }
    }
}

} // namespace pmcc

/*
 * Finds words that are stored part by part (base/marks.h, P5). The optimiser may make several variables of a
 * union. A copy of the union then stores the parts of a word one behind the other. Between two parts there is
 * no call, and no other write to the arena.
 */
#include "writes.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace pmcc
{

constexpr int64_t word_size = 8;

static std::optional<int64_t> distance(const Write &a, const Value *from, const Value *to)
{
    if (from->getType() != to->getType())
        return std::nullopt;
    return to->getPointerOffsetFrom(from, a.at->getModule()->getDataLayout());
}

/* Whether only `second` writes to the arena from behind `first` on, and both stand in one block. */
static bool are_neighbours(const Instruction *first, const Instruction *second)
{
    const Instruction *i = first->getNextNode();
    while (i && i != second && !is_barrier(*i) && !may_tell(*i))
        i = i->getNextNode();
    return i && i == second;
}

/* How far `b` is from `a`, in bytes. Parts that were read from two words do not belong together. */
static std::optional<int64_t> distance_of_parts(const Write &a, const Write &b)
{
    if (a.cut_of && b.cut_of && a.cut_of != b.cut_of)
        return std::nullopt;
    auto stored = distance(a, a.pointer, b.pointer);
    if (!stored || !a.part_of || !b.part_of)
        return stored;
    auto read = distance(a, a.part_of->getPointerOperand(), b.part_of->getPointerOperand());
    return read && *read + b.part_at - a.part_at == *stored ? stored : std::nullopt;
}

/* Whether a write copies a known number of bytes, more than `bytes`. */
static bool copies_more(const Write &write, int64_t bytes)
{
    return write.from && !isa<ConstantPointerNull>(write.from) && !write.length &&
           static_cast<int64_t>(write.size) > bytes;
}

/* Cut writes[i], a copy, behind `bytes` bytes. One of both is less than a word: a part. */
static void cut(SmallVectorImpl<Write> &writes, size_t i, int64_t bytes)
{
    Write rest = writes[i];
    IRBuilder<> builder(rest.at);
    rest.pointer = builder.CreateConstGEP1_64(builder.getInt8Ty(), rest.pointer, bytes);
    rest.from = builder.CreateConstGEP1_64(builder.getInt8Ty(), rest.from, bytes);
    rest.size -= bytes;
    rest.align = commonAlignment(rest.align, bytes);
    writes[i].size = bytes;
    writes.insert(writes.begin() + i + 1, rest);
    for (Write *write : {&writes[i], &writes[i + 1]})
        if (write->size < word_size) {
            write->from = nullptr;
            write->pieces = write->is_part = true;
        }
}

void join_parts(SmallVectorImpl<Write> &writes)
{
    size_t first = 0;          // of the parts that lie side by side so far
    int64_t low = 0, high = 0; // their bytes, counted from the first one. None if both are equal
    for (size_t i = 0; i < writes.size(); i++) {
        const int64_t missing = word_size - (high - low);
        const bool begins_a_word = writes[i].align.value() >= word_size;
        if (low != high && !begins_a_word && copies_more(writes[i], missing) &&
            distance(writes[first], writes[first].pointer, writes[i].pointer) == high)
            cut(writes, i, missing);
        Write &write = writes[i];
        const auto size = static_cast<int64_t>(write.size);
        std::optional<int64_t> at;
        if (low != high && write.is_part && are_neighbours(writes[i - 1].at, write.at))
            at = distance_of_parts(writes[first], write);
        if (at && *at + size == low) {
            low = *at;
        } else if (at && *at == high && !begins_a_word) {
            high += size;
        } else {
            first = i;
            at = low = 0;
            high = write.is_part ? size : 0;
        }
        if (!writes[first].part_of) {
            writes[first].part_of = write.part_of;
            writes[first].part_at = write.part_at - *at;
        }
        if (high - low < word_size)
            continue;
        write.completes = low - *at;
        write.part_of = writes[first].part_of;
        low = high;
    }
}

} // namespace pmcc

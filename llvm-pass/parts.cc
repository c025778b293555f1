/*
 * Finds words that are stored part by part (base/marks.h, P5). The optimiser may make several variables of a
 * union or a struct. A copy of it then stores the parts of a word one behind the other. Between two parts
 * there is no call, and no other write to the arena.
 */
#include "agreement.h"
#include "writes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace pmcc
{

constexpr int64_t word_size = 8;
constexpr unsigned loads_apart_max = 64; // instructions between the loads of a word's parts

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

/* Whether a write has a word or more. If it is not aligned, it has parts of words at its ends. */
static bool has_words(const Write &write)
{
    const bool copies = write.from && !isa<ConstantPointerNull>(write.from);
    const bool stores = !write.from && !write.is_data() && !write.pieces && !write.updates;
    return (copies || stores) && write.shape == Write::Bytes && !write.length &&
           static_cast<int64_t>(write.size) >= word_size;
}

/* A write that is a part of a word, or may begin or end with one. */
struct Part {
    Write *write;
    int64_t at; // counted from another part

    int64_t end() const { return at + static_cast<int64_t>(write->size); }
};

/* Whether two parts, or all of one part, belong to one word. A write that has words, too, may have a part of
 * any word. */
struct PartsAgreement {
    bool is_never = false;
    SmallVector<Agreement, 2> depends = {}; // it is so where all of them say so
};

static PartsAgreement agreement(const Part &a, const Part &b)
{
    const Write &one = *a.write, &other = *b.write;
    PartsAgreement result;
    if (!one.is_part || !other.is_part)
        return result;
    const DataLayout &layout = one.at->getModule()->getDataLayout();
    for (const PartStretch &x : stretches_of(*one.at, one.piece))
        for (const PartStretch &y : stretches_of(*other.at, other.piece)) {
            const int64_t apart = b.at + y.at - a.at - x.at;
            if (apart == 0)
                continue; // the same one
            const Agreement found = Agreement::of_bytes(x.from, y.from, apart, layout);
            result.is_never |= found.is_never();
            if (found.depends())
                result.depends.push_back(found);
        }
    return result;
}

/* Where data was chosen instead of a part, the write stores data. Where the parts were chosen from several
 * words, they are no word. */
static void find_paths(Completion &word, ArrayRef<Part> parts, const Part &last)
{
    IRBuilder<> builder(last.write->at);
    SmallVector<Part, 8> all(parts);
    all.push_back(last);
    for (unsigned n = 0; n < all.size(); n++) {
        Write &write = *all[n].write;
        for (unsigned other = 0; other <= n; other++)
            for (Agreement &found : agreement(all[other], all[n]).depends) {
                Value *when = found.emit();
                word.when = word.when ? builder.CreateAnd(word.when, when) : when;
            }
        if (!write.piece || !write.is_part || write.piece_when)
            continue;
        Agreement found = Agreement::of_piece(write.piece, write.at->getModule()->getDataLayout());
        if (found.depends())
            write.piece_when = found.emit();
    }
}

static Value *read_from(Instruction *load)
{
    if (auto *copy = dyn_cast<AnyMemTransferInst>(load))
        return copy->getRawSource();
    return cast<LoadInst>(load)->getPointerOperand();
}

/* What has read the part that a write stores, and how far behind that the part lies. A copy from the stack
 * tells nothing: the optimiser may have made it of anything. */
static Instruction *reader_of(const Write &write, int64_t &at)
{
    at = write.part_of ? write.part_at : 0;
    auto *copy = dyn_cast<AnyMemTransferInst>(write.at);
    const bool tells = copy && copy->getSourceAddressSpace() == 0 &&
                       !isa<AllocaInst>(getUnderlyingObject(copy->getRawSource()));
    if (write.part_of)
        return write.part_of;
    return tells ? static_cast<Instruction *>(copy) : write.loaded;
}

/* Find the first load that has read a part of the word. Before the next one, a swap may have stored to what
 * it reads. A load that begins before the word tells nothing of it. */
static void find_load(Completion &word, const Part &last, ArrayRef<Part> others)
{
    auto find = [&](const Part &part) {
        int64_t at;
        Instruction *load = reader_of(*part.write, at);
        at += last.at - part.at;
        const bool is_first = load && (!word.load || (load->getParent() == word.load->getParent() &&
                                                      load->comesBefore(word.load)));
        if (is_first && at <= word.before) {
            word.load = load;
            word.load_at = at;
        }
    };
    find(last);
    for_each(reverse(others), find);
}

/* Whether `from` lies `at` bytes behind what a load reads. */
static bool is_behind(Instruction *load, const Write &write, Value *from, int64_t at)
{
    return distance(write, read_from(load), from) == at;
}

/* Whether a write stores what lies `at` bytes behind what `load` has read, as it was then. The optimiser may
 * keep a part of a union in a variable, and the pass believes that the variable has what was beside the other
 * part. */
static bool is_read_with(Instruction *load, const Write &write, int64_t at)
{
    if (auto *copy = dyn_cast<AnyMemTransferInst>(write.at))
        return isa<AllocaInst>(getUnderlyingObject(copy->getRawSource())) ||
               is_behind(load, write, copy->getRawSource(), at);
    if (write.loaded)
        return is_behind(load, write, write.loaded->getPointerOperand(), at);
    if (!isa<LoadInst>(load))
        return false;
    const Instruction *i = write.part_of; // if there is one, it was read from the word
    for (unsigned n = 0; i && i != load && !i->mayWriteToMemory() && n < loads_apart_max; n++)
        i = i->getPrevNode();
    return i && i == load;
}

/* Find the bytes of the word that were not read with the load. The optimiser may have dropped a store of
 * theirs to where the load has read. */
static void find_others(Completion &word, const Part &last, ArrayRef<Part> parts)
{
    auto add = [&](const Part &part) {
        for (int64_t at = part.at - last.at; at < part.end() - last.at; at++)
            if (at >= -word_size && at < word_size)
                word.others |= 1u << (at + word_size);
    };
    for (const Part &part : parts)
        if (!is_read_with(word.load, *part.write, word.load_at + part.at - last.at))
            add(part);
    if (!is_read_with(word.load, *last.write, word.load_at))
        add(last);
}

/*
 * memcpy() may begin anywhere in a word, and the optimiser may split it anywhere. So the pass does not know
 * which bytes are one word. Any 8 bytes side by side may be, and the emitted code looks at the address.
 */
void join_parts(MutableArrayRef<Write> writes)
{
    SmallVector<Part, 8> parts; // side by side, and so near that the next one may be of the same word
    int64_t low = 0, high = 0;  // their bytes
    for (Write &write : writes) {
        const bool is_wide = has_words(write);
        const bool is_part = write.is_part && !agreement({&write, 0}, {&write, 0}).is_never;
        if (!is_part && !is_wide) {
            parts.clear();
            continue;
        }
        Part part = {&write, 0};
        const int64_t own = is_wide ? 1 : part.end(); // bytes of the word that it shares, at least
        bool is_above = false, is_below = false;
        if (!parts.empty() && are_neighbours(parts.back().write->at, write.at))
            if (auto at = distance(write, parts.back().write->pointer, write.pointer)) {
                part.at = parts.back().at + *at;
                is_above = part.at == high && write.align.value() < word_size;
                is_below = part.end() == low && !is_wide;
            }
        erase_if(parts, [&](const Part &other) {
            const int64_t between = is_above ? part.at - other.end() : other.at - part.end();
            return between + own >= word_size;
        });
        if ((!is_above && !is_below) ||
            any_of(parts, [&](const Part &other) { return agreement(other, part).is_never; }))
            parts.clear();
        const int64_t others = parts.empty() ? 0 : std::min(high - low, word_size - own);
        if (others > 0 && (is_wide || others + own == word_size)) {
            write.completes = {is_below ? 0 : others};
            find_load(*write.completes, part, parts);
            if (write.completes->load)
                find_others(*write.completes, part, parts);
            find_paths(*write.completes, parts, part);
        }
        low = part.at - (is_below ? 0 : others);
        high = part.end() + (is_below ? others : 0);
        parts.push_back(part);
    }
}

} // namespace pmcc

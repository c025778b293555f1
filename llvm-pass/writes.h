/*
 * Describes what an instruction writes to memory, if it may write to the arena.
 *
 * A write has one of four shapes. The shape says what `pointer` and `mask` mean:
 *
 *     Bytes    [pointer, pointer + size). If `length` is set, it is the size at run time, possibly 0
 *     Lanes    a vector at pointer. Only the lanes set in mask are written
 *     Packed   lanes at pointer, one behind the other, as many as mask has bits set
 *     Scatter  pointer is a vector of addresses. Lanes set in mask are written
 *
 * These fields say which kinds the written words of 8 bytes get:
 *
 *     `kinds`      a constant with a byte for each of at most 8 words; 0 is data. The same for every lane
 *     `loaded`     the words that this load has read, up to 64 bytes. With `changes`, one word whose bits
 *                  have changed since
 *     `unchanged`  nothing between the load and the write stores to what the load has read
 *     `from`       a copy of the memory at `from`. If `from` is NULL, the words go by their values
 *     `pieces`     parts of words, or stores that are not aligned, that may be pieces of pointers
 *     `is_part`    a piece that may be a part of a union, if the optimiser has made several variables of the
 *                  union. `part_of` is the load that has read the part, or NULL. The part lies `part_at`
 *                  bytes behind what the load has read first. `piece` is the stored value, or NULL
 *     `piece_when` an i1. Where it does not hold, data was chosen instead of the piece
 *     `may_finish` a piece that may be the last of a word that was stored half finished
 *     `completes`  the writes before have stored the other parts of the word (parts.cc). A write that has
 *                  whole words, too, may complete its first word
 *     `updates`    part of a word, with bits set or cleared: the word keeps its kind
 *     `brings`     an update that may bring a piece of a pointer. If the word is data, it gets this piece
 *     `updates_when`  an i1. Where it holds, the write `updates`. Elsewhere it is what the others say
 *     none         larger writes without any of these are data
 */
#pragma once

#include "updates.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>
#include <optional>

namespace pmcc
{

/* A word of parts that were stored side by side. `before` bytes of the word come before the last write, or at
 * most so many if this write has whole words, too. `load` has read a part of the word, or is NULL. Its first
 * byte belongs `load_at` bytes before the last write. The kind of what `load` has read tells nothing of the
 * bytes in `others`: bit n is set for the byte at the last write's address - 8 + n. Where `when` does not
 * hold, the parts are not of one word: on this path another value was chosen for some of them. */
struct Completion {
    int64_t before;
    llvm::Instruction *load = nullptr; // or a memcpy() of less than a word
    int64_t load_at = 0;
    uint16_t others = 0;
    llvm::Value *when = nullptr; // an i1, or NULL: always
};

struct Write {
    enum Shape { Bytes, Lanes, Packed, Scatter };

    llvm::Instruction *at; // the mark goes before this instruction: the store, or an earlier one
    llvm::Value *pointer;
    uint64_t size = 0;             // in bytes; the size of one lane, unless the shape is Bytes
    llvm::Value *length = nullptr; // an i64
    llvm::Align align{};           // of pointer
    Shape shape = Bytes;
    llvm::Value *mask = nullptr; // a vector of i1

    uint64_t kinds = 0;
    llvm::LoadInst *loaded = nullptr;
    bool changes = false;
    bool unchanged = false;
    llvm::Value *from = nullptr;
    bool pieces = false;
    bool is_part = false;
    bool may_finish = false;
    llvm::LoadInst *part_of = nullptr;
    int64_t part_at = 0;
    llvm::Value *piece = nullptr;
    llvm::Value *piece_when = nullptr;
    std::optional<Completion> completes = std::nullopt;
    bool updates = false;
    bool brings = false;
    llvm::Value *updates_when = nullptr;
    bool marks = true; // false: another mark covers it
    bool tells = true; // false: other writes tell its kinds

    bool is_constant() const { return shape == Bytes && !length && !from; }
    bool is_data() const { return kinds == 0 && !loaded && !from && !pieces && !updates; }

    /** Whether its words always get the same kind, whatever kind they had and in whatever order kinds are
     * told. */
    bool is_plain() const
    {
        return kinds == 0 && !loaded && !from && !completes && !updates && !updates_when &&
               !piece_when;
    }

    /** The write where `updates_when` holds, or where it does not. */
    Write when(bool holds) const
    {
        Write write = *this;
        write.updates = holds;
        write.pieces = pieces && !holds;
        write.updates_when = nullptr;
        return write;
    }

    /** The write that stays in place when its mark moves elsewhere. It only tells kinds. */
    Write without_mark() const
    {
        Write write = *this;
        write.marks = false;
        return write;
    }
};

/** Bytes of the largest write whose kinds are told word by word: one line. */
constexpr uint64_t kinds_size_max = 64;

/** Whether `pointer` is relative to %fs or %gs: it leads to memory of the thread. Pointers of all other
 * address spaces are plain addresses. */
bool is_in_segment(const llvm::Value *pointer);

/** Whether the memory at `pointer` is certainly not in the arena. */
bool is_outside(const llvm::Value *pointer, const llvm::TargetLibraryInfo &libc);

/**
 * Append to `writes` the writes of `instruction` that may hit the arena. May insert instructions before it
 * that compute addresses. Warns of an intrinsic whose writes are unknown.
 */
void collect_writes(llvm::Instruction &instruction, const llvm::TargetLibraryInfo &libc,
                    const Analyses &analyses, llvm::SmallVectorImpl<Write> &writes);

/** Find the writes of loaded words where memory still has what was loaded. */
void find_unchanged(llvm::MutableArrayRef<Write> writes, llvm::AAResults &aliases);

/** Find the writes that complete a word of several parts. `writes` are in program order. (parts.cc) */
void join_parts(llvm::MutableArrayRef<Write> writes);

/** Whether a commit may happen while `instruction` runs, in this thread. */
bool may_commit(const llvm::Instruction &instruction);

/**
 * Whether a called function, or its wrapper in libpm, may tell kinds of its own. Such a call need not be a
 * barrier. But if the kinds of a later store were told before the call, the call might overwrite them.
 */
bool may_tell(const llvm::Instruction &instruction);

/** Metadata of inline assembly that only copies a register, see anchors.cc. */
constexpr char anchor_note[] = "pm.anchor";

/**
 * Whether `instruction` is a barrier: a commit may happen while it runs, or it may not return. Another
 * thread may commit if the instruction synchronises.
 *
 * No barrier may stand between a mark and its store. A commit takes the marks back. And a mark without
 * its store would name memory that may not exist.
 */
bool is_barrier(const llvm::Instruction &instruction);

} // namespace pmcc

/*
 * What an instruction writes to memory, for those that may write to the arena.
 *
 * A write is one of four shapes, by what `pointer` and `mask` are:
 *
 *   Bytes    [pointer, pointer + size); `length`, when set, is the size at run time, possibly 0
 *   Lanes    a vector at pointer, of which only the lanes set in mask are written
 *   Packed   as many lanes at pointer, one behind the other, as mask has bits set
 *   Scatter  pointer is a vector of addresses; those of lanes set in mask are written
 *
 * What it writes is, by words of 8 bytes,
 *
 *   `kinds`      a constant, a byte a word, of at most 8, and 0 for data; of every lane alike
 *   `loaded`     what that instruction has loaded, up to 64 bytes; if `changes`, a word with other bits
 *   `from`       a copy of the memory there; by its value if that is NULL
 *   `pieces`     parts of words, or what is not aligned, that may be pieces of pointers
 *   `halves`     of those, halves of a union that the optimiser has made two variables of; what `half_of`
 *                has loaded, if that is not NULL
 *   `updates`    part of a word, with bits set or cleared in what was there: the word stays what it is
 *   data         if it is none of these but larger
 */
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace pmcc
{

struct Write {
    enum Shape { Bytes, Lanes, Packed, Scatter };

    llvm::Instruction *at; // its mark stands before this: the store, or what runs before it
    llvm::Value *pointer;
    uint64_t size = 0;             // bytes; of one lane, unless the shape is Bytes
    llvm::Value *length = nullptr; // an i64
    llvm::Align align{};           // of pointer
    Shape shape = Bytes;
    llvm::Value *mask = nullptr; // a vector of i1

    uint64_t kinds = 0;
    llvm::LoadInst *loaded = nullptr;
    bool changes = false;
    llvm::Value *from = nullptr;
    bool pieces = false;
    bool halves = false;
    llvm::LoadInst *half_of = nullptr;
    bool updates = false;
    bool marks = true; // else another mark stands for it
    bool tells = true; // its kinds; else another write does, or several

    bool is_constant() const { return shape == Bytes && !length && !from; }
    bool is_data() const { return kinds == 0 && !loaded && !from && !pieces && !updates; }

    /** Whether all its words have the same kind, whatever they had before and in which order. */
    bool is_plain() const { return kinds == 0 && !loaded && !from && !halves && !updates; }

    /** What is left where it stands, when its mark moves elsewhere. */
    Write without_mark() const
    {
        Write write = *this;
        write.marks = false;
        return write;
    }
};

/** The largest write whose kinds are told one by one: a line's. */
constexpr uint64_t kinds_size_max = 64;

/** Whether the memory at `pointer` is certainly not in the arena. */
bool is_outside(const llvm::Value *pointer, const llvm::TargetLibraryInfo &libc);

/**
 * Append to `writes` what `instruction` may write to the arena. May insert instructions before it
 * that compute addresses. Warns of an intrinsic that writes we do not know what.
 */
void collect_writes(llvm::Instruction &instruction, const llvm::TargetLibraryInfo &libc,
                    llvm::SmallVectorImpl<Write> &writes);

/** Whether a commit may happen while `instruction` runs, in this thread. */
bool may_commit(const llvm::Instruction &instruction);

/**
 * Whether a function that is called, or what stands for it in libpm, may tell kinds of its own. It may be
 * no barrier, and yet what is told of those words before it is then told too early.
 */
bool may_tell(const llvm::Instruction &instruction);

/** Metadata of assembly that only copies a register, see anchors.cc. */
constexpr char anchor_note[] = "pm.anchor";

/**
 * Whether a commit may happen while `instruction` runs, in this thread or, since it synchronises,
 * in another; or it may not return. Between a mark and its store there must be none such: a commit
 * takes the marks back, and a mark without its store would name memory that may not exist.
 */
bool is_barrier(const llvm::Instruction &instruction);

} // namespace pmcc

/*
 * Whether parts of words, which are stored side by side, belong to one word: they were cut out of it, or read
 * from it. Where a part was chosen from several values, that depends on the path.
 */
#pragma once

#include "bytes.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace pmcc
{

/** Where a byte of a stored part comes from. Without a value: nobody knows. */
struct PartByte {
    const llvm::Value *value; // or the memory's address
    uint64_t byte;
    bool is_memory;

    bool operator==(const PartByte &) const = default;
};

/** What a store, an exchange or a copy stores: the first of each stretch of bytes that come from one value.
 * `piece` is the stored value, or NULL. */
struct PartStretch {
    PartByte from;
    int64_t at; // in the part
};
llvm::SmallVector<PartStretch, 4> stretches_of(const llvm::Instruction &write,
                                               const llvm::Value *piece);

class Agreement
{
  public:
    /** Whether two bytes are of one word, in which the second lies `distance` bytes behind the first. */
    static Agreement of_bytes(PartByte a, PartByte b, int64_t distance,
                              const llvm::DataLayout &layout);

    /** Whether a value is a piece, and not data. */
    static Agreement of_piece(const llvm::Value *piece, const llvm::DataLayout &layout);

    static Agreement always() { return {}; }

    bool is_never() const { return answer_ == Never; }
    bool depends() const { return answer_ == Depends; }

    /** If the answer depends on the path: an i1 that is the answer. Inserts instructions before the values
     * that are chosen. */
    llvm::Value *emit();

  private:
    enum Answer { Never, Depends, Always };
    struct Pair {
        PartByte a, b;

        bool operator==(const Pair &) const = default;
    };
    struct Emitted {
        Pair pair;
        llvm::Value *holds;
    };
    struct Choice;

    Answer ask(const Pair &pair, unsigned depth);
    Answer of_leaves(const Pair &pair, unsigned depth);
    Answer of_memory(const Pair &pair) const;
    llvm::Value *emit(const Pair &pair, unsigned depth);
    llvm::Value *emit_choice(const Pair &pair, unsigned depth);
    Choice choice_of(const Pair &pair) const;
    PartByte origin(PartByte part) const;

    Pair pair_ = {};
    int64_t distance_ = 0;
    bool is_piece_asked_ = false;
    const llvm::DataLayout *layout_ = nullptr;
    Answer answer_ = Always;
    unsigned steps_ = 0;
    llvm::SmallVector<Pair, 4> around_ = {}; // what is asked on the way: a loop leads back to it
    llvm::SmallVector<Emitted, 4> emitted_ = {};
};

} // namespace pmcc

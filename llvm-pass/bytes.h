/*
 * Where each byte of a value comes from. The optimiser takes words apart and puts them together again. So it
 * is not enough to look at the operation that computed a stored value.
 */
#pragma once

#include <llvm/IR/Instructions.h>

#include <cstdint>

namespace pmcc
{

/** A byte of a value. Without a value: a zero. */
struct ByteOf {
    const llvm::Value *value;
    uint64_t byte;

    bool operator==(const ByteOf &) const = default;
};

/** Follow a byte back through operations that only move bytes: casts, shifts, masks, lanes, and joined
 * parts. */
ByteOf origin_of_byte(const llvm::Value *value, uint64_t byte, const llvm::DataLayout &layout);

/** The same of `size` bytes from `byte` on: where the first one comes from, if the others lie behind it
 * there. Else, and if they are zeros, without a value. */
ByteOf origin_of_bytes(const llvm::Value *value, uint64_t byte, uint64_t size,
                       const llvm::DataLayout &layout);

/** Whether the bytes of `part` are bytes of `whole`, from `at` on. */
bool is_part_of(const llvm::Value *part, const llvm::Value *whole, uint64_t at,
                const llvm::DataLayout &layout);

/** The load that has read what `part` was cut out of, `at` bytes behind the first one. NULL if that is not
 * known. */
llvm::LoadInst *load_of_part(llvm::Value *part, int64_t &at, const llvm::DataLayout &layout);

} // namespace pmcc

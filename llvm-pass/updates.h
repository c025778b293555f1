/*
 * Which writes are *updates*: they set or clear bits of a word, and the word stays what it is. The tag of a
 * pointer is one, for example in the pointer's first byte (base/marks.h, P2).
 */
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace pmcc
{

/** What LLVM knows of a function. */
struct Analyses {
    const llvm::DominatorTree &dominators;
    llvm::ScalarEvolution &evolution;
};

/** Whether a store to a part of a word is an update. */
struct Update {
    /** On which paths: an i1 at the store. A constant: on all. NULL: on none, or that is not known. */
    llvm::Value *paths = nullptr;

    /** Whether the store may bring a piece of a pointer: the bits that it sets. Or the part may have been
     * overwritten since it was read, and the store puts it back. */
    bool may_bring = false;
};

/** If strict aliasing says that the store is to a field of a struct, it is to no part of a pointer, and is no
 * update: asking libpm would cost. May insert instructions. */
Update find_update(const llvm::StoreInst &store, const Analyses &analyses);

/** A copy of less than a word. */
Update find_update(const llvm::AnyMemTransferInst &copy, const Analyses &analyses);

/** A store of lanes of less than a word, of which only some may be written. `pointer` may be a vector. */
Update find_update(const llvm::CallBase &store, const llvm::Value *pointer,
                   const llvm::Value *lanes, const Analyses &analyses);

/** Whether the word keeps its kind. Either bits of a part are set or cleared. Or a whole word changes: a
 * pointer gets a tag, or a number is counted up. */
bool is_update(const llvm::AtomicRMWInst &update);
Update find_update(const llvm::AtomicCmpXchgInst &exchange, const Analyses &analyses);

} // namespace pmcc

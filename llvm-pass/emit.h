/* Emits marks as src/base/marks.h describes them. */
#pragma once

#include "writes.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/IRBuilder.h>

namespace pmcc
{

class Emitter
{
  public:
    explicit Emitter(llvm::Module &module);

    /**
     * Emit the questions for kinds that cannot wait for the store: the memory that a value was loaded
     * from may have changed by then. Call it with all writes of a function, before emit().
     */
    void prepare(llvm::ArrayRef<Write> writes);

    /** Emit the mark of a write. It changes the control flow around write.at, so analyses are void. */
    void emit(Write write);

    /** Remove those declarations of the constructor that no mark uses. */
    void remove_unused();

  private:
    /* The place for code that runs if `pointer` leads into the arena (and if `when`, unless it is NULL). */
    llvm::Instruction *if_in_arena(llvm::Instruction *at, llvm::Value *pointer, llvm::Value *when);
    llvm::Value *address_of(llvm::IRBuilder<> &builder, llvm::Value *pointer);
    llvm::LoadInst *mark_of(llvm::IRBuilder<> &builder, llvm::Value *address);
    llvm::Value *is_unmarked(llvm::IRBuilder<> &builder, llvm::Value *address);

    /* These emit code before `at`. There the address is known to be in the arena. */
    void mark_line(llvm::Instruction *at, llvm::Value *pointer);
    void mark_ends(llvm::Instruction *at, llvm::Value *pointer, llvm::Value *length);
    llvm::Instruction *if_kinds_wanted(llvm::Instruction *at, llvm::Value *pointer);
    void tell(llvm::Instruction *at, llvm::Value *pointer, const Write &write);
    void tell_wanted(llvm::Instruction *at, llvm::Value *pointer, const Write &write);
    llvm::Instruction *unless_split(llvm::Instruction *at, llvm::Value *pointer, const Write &write,
                                    uint64_t bytes);
    llvm::Value *kind_of_parts(llvm::IRBuilder<> &builder, const Completion &word,
                               llvm::Value *pointer, llvm::Value *before);
    void tell_completed(llvm::Instruction *at, llvm::Value *pointer, const Completion &word);
    void tell_part(llvm::Instruction *at, llvm::Value *pointer, const Write &write);
    llvm::Value *ask(llvm::Instruction *at, llvm::Value *is_asked, llvm::Value *from, uint64_t size,
                     llvm::Value *otherwise);
    llvm::Value *kind_of_torn(llvm::Instruction *part);
    llvm::Value *kinds_of_inner(const Write &write);
    void tell_inner(llvm::IRBuilder<> &builder, llvm::Value *pointer, const Write &write,
                    llvm::Value *kinds);
    llvm::Value *kind_of_whole(llvm::Instruction *at, llvm::LoadInst *word, llvm::Value *otherwise);
    llvm::Value *kinds_of_updated(llvm::Instruction *at, llvm::Value *pointer, const Write &write);
    llvm::Value *kinds_of_loaded(llvm::Instruction *at, llvm::LoadInst *load);

    void mark_lanes(const Write &write);
    void mark_scatter(const Write &write);

    llvm::Function *mark_;                                   // pm__mark
    llvm::Function *range_;                                  // pm__mark_range
    llvm::Function *data_;                                   // pm__mark_data
    llvm::Function *pieces_;                                 // pm__mark_pieces
    llvm::Function *copy_;                                   // pm__mark_copy
    llvm::Function *kinds_;                                  // pm__kinds
    llvm::DenseMap<llvm::LoadInst *, llvm::Value *> loaded_; // kinds of a load, asked for right behind it
    llvm::DenseMap<llvm::LoadInst *, llvm::Value *> inner_;  // of whole words, if it is not aligned
    llvm::DenseMap<llvm::Instruction *, llvm::Value *> torn_; // of its first word, stored in parts
    llvm::DenseMap<llvm::Value *, llvm::Value *> addresses_; // for the mark that is being emitted
    llvm::MDNode *unlikely_;
    bool discovers_; // commits of this code move objects
};

} // namespace pmcc

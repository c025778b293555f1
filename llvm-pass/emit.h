/* Emits marks as src/base/marks.h describes them. */
#pragma once

#include "writes.h"

#include <llvm/IR/IRBuilder.h>

namespace pmcc
{

class Emitter
{
  public:
    explicit Emitter(llvm::Module &module);

    /** Changes the control flow around write.at, so analyses of the function are void. */
    void emit(const Write &write);

    /** Take back the declarations that the constructor made for nothing. */
    void remove_unused();

  private:
    /* Where code goes that runs when `address`, an i64, is in the arena, and `when` unless null. */
    llvm::Instruction *if_in_arena(llvm::Instruction *at, llvm::Value *address, llvm::Value *when);
    llvm::Value *is_unmarked(llvm::IRBuilder<> &builder, llvm::Value *address);

    void mark_line(llvm::Instruction *at, llvm::Value *pointer);
    void mark_ends(llvm::Instruction *at, llvm::Value *pointer, llvm::Value *length,
                   llvm::Value *when);
    void mark_range(llvm::Instruction *at, llvm::Value *pointer, llvm::Value *length,
                    llvm::Value *when);
    void mark_lanes(const Write &write);
    void mark_scatter(const Write &write);

    llvm::Function *mark_;  // pm__mark
    llvm::Function *range_; // pm__mark_range
    llvm::MDNode *unlikely_;
};

} // namespace pmcc

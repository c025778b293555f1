/* Knows where in a function a commit may happen, and keeps the optimiser from moving stores across it. */
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>

namespace pmcc
{

class Commits
{
  public:
    explicit Commits(const llvm::Function &function);

    bool any() const { return !blocks_.empty(); }
    bool in(const llvm::Loop &loop) const;
    bool in(llvm::BasicBlock::const_iterator begin, llvm::BasicBlock::const_iterator end) const;

    /** Whether a commit may happen on any path from `definition`, an instruction or argument, to `use`.
     * `definition` must dominate `use`. Linear in the blocks between. */
    bool between(const llvm::Value &definition, const llvm::Instruction &use) const;

  private:
    llvm::SmallPtrSet<const llvm::BasicBlock *, 16> blocks_;
};

/** Make `restrict` mean nothing where a commit may happen. (restrict.cc) */
void forget_restrict(llvm::Module &module);

/** Make it unknown that allocators return memory to which no other pointer leads. LLVM knows it of malloc
 * and operator new by their names, so this must follow each pass that infers attributes. (restrict.cc) */
void forget_allocators(llvm::Module &module);

} // namespace pmcc

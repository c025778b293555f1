/*
 * What `pmcc --discover` does besides marking stores (src/runtime/heap.h): memory comes from libpm's
 * heap, and tables say where pointers may be that are not in it.
 *
 * A module to be compiled so carries a note. It stays in the module's bitcode, so that the linker
 * knows it too; a module that it merges with others makes them all so.
 */
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace pmcc
{

void note_discover(llvm::Module &module);
bool is_discovered(const llvm::Module &module);

/** Send calls of allocation functions to libpm, in functions that are optnone only or in all. Before
 * stores are marked: this memory is in the arena, malloc's is not. */
bool route_allocations(llvm::Module &module, bool optnone_only);

/** Let no pointer that leads outside of its object live across a commit. May void all analyses but
 * those of the control flow; then it returns true. */
bool anchor_pointers(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);

/** Make the tables of variables and functions; the last thing that is done to a module. */
void add_roots(llvm::Module &module);

} // namespace pmcc

/*
 * The work of `pmcc --discover` besides marking stores (src/runtime/heap.h). The program takes its
 * memory from libpm's heap. Tables list the places outside of this heap that may hold pointers.
 *
 * A module that is compiled with --discover carries a note. The note stays in the module's bitcode, so
 * the linker sees it too. If the linker merges modules and one has the note, the merged module has it.
 */
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace pmcc
{

void note_discover(llvm::Module &module);
bool is_discovered(const llvm::Module &module);

/** Redirect calls of allocation functions to libpm: in all functions, or in optnone functions only. Do
 * so before stores are marked: libpm's memory is in the arena and needs marks, memory of malloc does not. */
bool route_allocations(llvm::Module &module, bool optnone_only);

/** Let no pointer that leads outside of its object live across a commit. Returns true if the function
 * changed. Then all analyses are void, but for those of the control flow. */
bool anchor_pointers(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);

/** Make the tables of variables and functions. This must be the last change to a module. */
void add_roots(llvm::Module &module);

} // namespace pmcc

/*
 * Decides when the pass runs. The pass must make marks late: marks that are made before the vectoriser
 * make a loop nine times slower. So:
 *
 *     plain compilation   The pass runs at the end of the optimiser's pipeline.
 *     -flto, -flto=thin   It runs in the linker, which must load this plugin too. The compiler leaves
 *                         a *guard* in each module that it could not finish: a reference to an
 *                         undefined symbol, whose name says what is wrong. The pass in the linker
 *                         removes the guard. So no linker drops the marks silently.
 *
 * Functions that are not optimised (optnone, all of -O0) are marked at once, even with -flto. Nothing
 * changes them any more, and the linker's pipeline for -O0 calls no plugin.
 *
 * The callback at the pipeline's end is not told whether it runs in the compiler or in the linker. But
 * the pipelines of the linker have no start callback. So the start callback leaves a note, pm.compiling.
 *
 * With `pmcc --discover` (discover.h) allocations are redirected first, since marks depend on where memory
 * comes from. Tables are made last, when it is known which variables and functions are left.
 *
 * A marked instruction carries the metadata pm.marked, so no mark is made twice. If an optimisation
 * loses the metadata, there is one mark too many, which is harmless.
 */
#include "calls.h"
#include "commits.h"
#include "copies.h"
#include "discover.h"
#include "emit.h"
#include "kinds.h"
#include "loops.h"
#include "merge.h"
#include "scatter.h"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr char marked_note[] = "pm.marked";
constexpr char compiling_note[] = "pm.compiling";
constexpr char guard_symbol[] = "pm__not_marked__link_with_lld_and_load_pass_plugin_or_use_pmcc";
constexpr char guard_variable[] = "pm.guard";

/* Clang parses this option before it loads pass plugins. So the option also needs -fplugin= of this file. */
cl::opt<bool> discover("pm-discover", cl::desc("Take memory from libpm's heap, and list what may "
                                               "hold pointers (pmcc --discover)"));

bool mark_function(Function &function, FunctionAnalysisManager &analyses, Emitter &emitter)
{
    auto &libc = analyses.getResult<TargetLibraryAnalysis>(function);
    const Analyses known = {analyses.getResult<DominatorTreeAnalysis>(function),
                            analyses.getResult<ScalarEvolutionAnalysis>(function)};
    SmallVector<Instruction *, 64> instructions;
    for (BasicBlock &block : function)
        for (Instruction &instruction : block)
            if (instruction.mayWriteToMemory() && !instruction.hasMetadata(marked_note))
                instructions.push_back(&instruction);
    SmallVector<Write, 32> writes;
    MDNode *note = MDNode::get(function.getContext(), {});
    for (Instruction *instruction : instructions) {
        size_t before = writes.size();
        collect_writes(*instruction, libc, known, writes);
        if (writes.size() > before)
            instruction->setMetadata(marked_note, note);
    }
    if (writes.empty())
        return false;
    find_unchanged(writes, analyses.getResult<AAManager>(function));
    join_parts(writes);
    if (!function.hasOptNone()) {
        move_out_of_loops(function, analyses, writes);
        merge(function, writes);
    }
    emitter.prepare(writes);
    for (const Write &write : writes)
        emitter.emit(write);
    return true;
}

bool mark_module(Module &module, ModuleAnalysisManager &modules, bool optnone_only)
{
    auto &analyses = modules.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    const bool anchoring = is_discovered(module) && !optnone_only;
    bool changed = false;
    if (is_discovered(module)) {
        changed |= route_allocations(module, optnone_only);
    }
    if (has_types(module))
        module.getOrInsertNamedMetadata(typed_note);
    Emitter emitter(module);
    for (Function &function : module) {
        if (function.isDeclaration() || function.hasAvailableExternallyLinkage() ||
            is_opted_out(function) || (optnone_only && !function.hasOptNone()))
            continue;
        if (anchoring && !function.hasOptNone() && anchor_pointers(function, analyses)) {
            PreservedAnalyses preserved;
            preserved.preserveSet<CFGAnalyses>();
            analyses.invalidate(function, preserved);
            changed = true;
        }
        if (mark_function(function, analyses, emitter)) {
            analyses.invalidate(function, PreservedAnalyses::none());
            changed = true;
        }
    }
    emitter.remove_unused();
    if (NamedMDNode *note = module.getNamedMetadata(typed_note))
        note->eraseFromParent();
    changed |= wrap_calls(module, optnone_only);
    return announce_links(module, optnone_only) || changed;
}

void add_guard(Module &module)
{
    if (module.getNamedGlobal(guard_variable))
        return;
    Type *pointer = PointerType::getUnqual(module.getContext());
    Constant *symbol = module.getOrInsertGlobal(guard_symbol, Type::getInt8Ty(module.getContext()));
    auto *guard = new GlobalVariable(module, pointer, true, GlobalValue::PrivateLinkage, symbol,
                                     guard_variable);
    appendToUsed(module, {guard});
}

/* If the linker merged modules, each has brought a guard: pm.guard, pm.guard.1 and so on. */
void remove_guards(Module &module)
{
    auto is_guard = [](const Constant *constant) {
        auto *variable = dyn_cast<GlobalVariable>(constant->stripPointerCasts());
        return variable && variable->getName().starts_with(guard_variable);
    };
    removeFromUsedLists(module, is_guard);
    for (GlobalVariable &variable : make_early_inc_range(module.globals()))
        if (is_guard(&variable)) {
            variable.eraseFromParent();
        }
    if (GlobalVariable *symbol = module.getNamedGlobal(guard_symbol))
        symbol->eraseFromParent();
}

bool is_for_link_time_optimisation(const Module &module)
{
    return module.getModuleFlag("ThinLTO") || module.getModuleFlag("EnableSplitLTOUnit");
}

/* Whether the linker has work left. With discovery it always has: only the linker makes the tables. */
bool is_unfinished(const Module &module)
{
    return is_discovered(module) || any_of(module, [](const Function &function) {
               return !function.isDeclaration() && !function.hasOptNone() &&
                      !is_opted_out(function);
           });
}

/* Make a function that calls libpm's function `callee`, if the program has libpm. */
Function *add_announcement(Module &module, StringRef name, StringRef callee)
{
    LLVMContext &context = module.getContext();
    auto *type = FunctionType::get(Type::getVoidTy(context), false);
    auto *announce = Function::Create(type, GlobalValue::ExternalWeakLinkage, callee, module);
    auto *function = Function::Create(type, GlobalValue::LinkOnceODRLinkage, name, module);
    function->setVisibility(GlobalValue::HiddenVisibility);
    function->setComdat(module.getOrInsertComdat(name));
    function->addFnAttr(Attribute::DisableSanitizerInstrumentation); // no marks, no table entry
    auto *entry = BasicBlock::Create(context, "", function);
    auto *call = BasicBlock::Create(context, "", function);
    auto *end = BasicBlock::Create(context, "", function);
    IRBuilder<> builder(entry);
    builder.CreateCondBr(builder.CreateIsNotNull(announce), call, end);
    builder.SetInsertPoint(call);
    builder.CreateCall(announce);
    builder.CreateBr(end);
    builder.SetInsertPoint(end);
    builder.CreateRetVoid();
    return function;
}

/* Add a constructor and a destructor, so that libpm can count the loaded programs and shared objects that
 * make marks. All files of a program or shared object share one of each. The constructor runs before the
 * program's own constructors, which may open a container. The destructor runs after the program's own. A
 * program may lack libpm, so the references are weak. */
bool announce_code(Module &module)
{
    constexpr char name[] = "pm.compiled", gone[] = "pm.compiled_gone";
    constexpr int priority = 101;
    if (module.getFunction(name) || all_of(module, [](const Function &function) {
            return function.isDeclarationForLinker();
        }))
        return false;
    Function *constructor = add_announcement(module, name, "pm__compiled");
    appendToGlobalCtors(module, constructor, priority, constructor);
    Function *destructor = add_announcement(module, gone, "pm__compiled_gone");
    appendToGlobalDtors(module, destructor, priority, destructor);
    return true;
}

/* The passes must be required, or LLVM would skip optnone functions. */
template <class Pass> struct RequiredPass : PassInfoMixin<Pass> {
    static bool isRequired() { return true; }
};

struct NoteCompiling : RequiredPass<NoteCompiling> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
    {
        module.getOrInsertNamedMetadata(compiling_note);
        if (discover)
            note_discover(module);
        else /* with discovery, libstdc++ itself must call the program's instances of templates */
            name_copies(module);
        forget_restrict(module);
        forget_allocators(module);
        forbid_scatters(module);
        return PreservedAnalyses::none();
    }
};

struct ForgetAllocators : RequiredPass<ForgetAllocators> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &)
    {
        forget_allocators(module);
        return PreservedAnalyses::none();
    }
};

struct MarkStores : RequiredPass<MarkStores> {
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &modules)
    {
        NamedMDNode *compiling = module.getNamedMetadata(compiling_note);
        bool is_early = compiling && is_for_link_time_optimisation(module);
        if (compiling)
            compiling->eraseFromParent();
        bool changed = mark_module(module, modules, is_early);
        if (!is_early || !is_unfinished(module))
            changed |= announce_code(module);
        if (is_early && is_unfinished(module))
            add_guard(module);
        if (!is_early)
            remove_guards(module);
        if (!is_early && is_discovered(module)) {
            add_roots(module);
            changed = true;
        }
        return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
};

void add_marking(ModulePassManager &passes, OptimizationLevel level)
{
    if (level != OptimizationLevel::O0) // marks can leave a loop only if it has a preheader
        passes.addPass(createModuleToFunctionPassAdaptor(LoopSimplifyPass()));
    passes.addPass(MarkStores());
}

void register_callbacks(PassBuilder &builder)
{
    builder.registerPipelineStartEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(NoteCompiling()); });
    builder.registerPipelineEarlySimplificationEPCallback(
        [](ModulePassManager &passes, OptimizationLevel) {
            passes.addPass(ForgetAllocators());
        });
    builder.registerOptimizerLastEPCallback(add_marking);
    builder.registerFullLinkTimeOptimizationLastEPCallback(add_marking);
    builder.registerPipelineParsingCallback(
        [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
            if (name != "pm-mark")
                return false;
            add_marking(passes, OptimizationLevel::O2);
            return true;
        });
}

} // namespace
} // namespace pmcc

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "pmcc", "1", pmcc::register_callbacks};
}

/*
 * The tables of src/base/roots.h: an entry for each variable that can hold a pointer, and for each
 * function, in a section of its own name. Linkers join the sections and say where they begin and
 * end; src/runtime/register.c hands them to libpm.
 *
 * An entry lives and dies with what it is of: in the same comdat, which linkers keep once, and
 * associated with the same section, which --gc-sections may drop.
 */
#include "calls.h"
#include "discover.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr char globals_section[] = "pm_globals";
constexpr char locals_section[] = "pm_locals";
constexpr char functions_section[] = "pm_functions";
constexpr uint64_t is_main = 1;

/* In the library that every program and shared object has to be linked with. */
constexpr char needed_symbol[] = "pm__registered__link_with_libpm_discover_or_use_pmcc";
constexpr char needed_variable[] = "pm.needs";

/*
 * Small numbers and floating-point ones do not; of them there are large arrays. For all else its words
 * are looked at when it is known what they hold.
 */
bool can_hold_pointer(const GlobalVariable &variable)
{
    Type *type = variable.getValueType();
    if (variable.getParent()->getDataLayout().getTypeAllocSize(type) < 8)
        return false;
    while (type->isArrayTy())
        type = type->getArrayElementType();
    type = type->getScalarType();
    return !type->isFloatingPointTy() && !(type->isIntegerTy() && type->getIntegerBitWidth() < 64);
}

bool is_root(const GlobalVariable &variable)
{
    return !variable.isDeclaration() && !variable.hasAvailableExternallyLinkage() &&
           !variable.isConstant() && !variable.getName().starts_with("llvm.") &&
           variable.getAddressSpace() == 0 && can_hold_pointer(variable);
}

/* Nothing uses it any more, and the passes that follow know. */
bool will_vanish(const GlobalValue &value)
{
    return value.isDiscardableIfUnused() && value.use_empty();
}

class Tables
{
  public:
    explicit Tables(Module &module) : module_(module)
    {
        LLVMContext &context = module.getContext();
        pointer_ = PointerType::getUnqual(context);
        size_ = Type::getInt64Ty(context);
    }

    ~Tables() { appendToCompilerUsed(module_, entries_); }

    void add_variable(GlobalVariable &variable)
    {
        uint64_t bytes = module_.getDataLayout().getTypeAllocSize(variable.getValueType());
        if (variable.isThreadLocal())
            add(locals_section, variable, accessor_of(variable), bytes);
        else
            add(globals_section, variable, &variable, bytes);
    }

    void add_function(Function &function)
    {
        function.addFnAttr("frame-pointer", "all");
        if (!function.hasUWTable()) // whoever has an address finds the function by it
            function.setUWTableKind(UWTableKind::Default);
        bool begins = function.getName() == "main" && !function.hasLocalLinkage();
        if (begins) // its frame is where the walk of the stack ends
            function.addFnAttr("disable-tail-calls", "true");
        add(functions_section, function, own_name_of(function), begins ? is_main : 0);
    }

    void add_needed()
    {
        Constant *symbol = module_.getOrInsertGlobal(needed_symbol, Type::getInt8Ty(context()));
        cast<GlobalVariable>(symbol)->setVisibility(GlobalValue::HiddenVisibility);
        entries_.push_back(new GlobalVariable(module_, pointer_, true, GlobalValue::PrivateLinkage,
                                              symbol, needed_variable));
    }

  private:
    LLVMContext &context() { return module_.getContext(); }

    void add(StringRef section, GlobalObject &of, Constant *what, uint64_t number)
    {
        Constant *fields = ConstantStruct::getAnon({what, ConstantInt::get(size_, number)});
        auto *entry = new GlobalVariable(module_, fields->getType(), false,
                                         GlobalValue::PrivateLinkage, fields, "pm.entry");
        entry->setSection(section);
        entry->setAlignment(Align(8)); // no gaps
        entry->setComdat(of.getComdat());
        if (of.hasCommonLinkage()) // is in no section yet
            appendToUsed(module_, {entry});
        else
            entry->setMetadata(LLVMContext::MD_associated,
                               MDNode::get(context(), ValueAsMetadata::get(&of)));
        entries_.push_back(entry);
    }

    /* The function of this module, even if another module has one of the same name that comes first. */
    Constant *own_name_of(Function &function)
    {
        if (function.hasLocalLinkage())
            return &function;
        return GlobalAlias::create(GlobalValue::PrivateLinkage, "pm.start", &function);
    }

    Function *accessor_of(GlobalVariable &variable)
    {
        Function *function = Function::Create(FunctionType::get(pointer_, false),
                                              GlobalValue::InternalLinkage, "pm.local", module_);
        function->setComdat(variable.getComdat());
        IRBuilder<> builder(BasicBlock::Create(context(), "", function));
        builder.CreateRet(builder.CreateThreadLocalAddress(&variable));
        return function;
    }

    Module &module_;
    Type *pointer_, *size_;
    SmallVector<GlobalValue *, 64> entries_;
};

} // namespace

void add_roots(Module &module)
{
    SmallVector<GlobalVariable *, 32> variables; // beside which those of the tables appear
    for (GlobalVariable &variable : module.globals())
        if (is_root(variable) && !will_vanish(variable))
            variables.push_back(&variable);
    Tables tables(module);
    for (Function &function : module)
        if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
            !is_opted_out(function) && !will_vanish(function))
            tables.add_function(function);
    for (GlobalVariable *variable : variables)
        tables.add_variable(*variable);
    tables.add_needed();
}

} // namespace pmcc

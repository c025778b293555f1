/*
 * Makes the tables of src/base/roots.h: an entry for each variable that can hold a pointer, and for each
 * function. Each table is a section with its own name. Linkers join the sections, and define symbols for
 * their beginning and end. src/runtime/register.c hands the tables to libpm.
 *
 * An entry lives and dies with its variable or function. Both are in the same comdat, which linkers keep
 * once. And the entry is associated with the section of the variable or function, which --gc-sections may
 * drop.
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

/* A symbol of libpm_discover, the library that every program and shared object must be linked with. */
constexpr char needed_symbol[] = "pm__registered__link_with_libpm_discover_or_use_pmcc";
constexpr char needed_variable[] = "pm.needs";

/*
 * Small numbers and floating-point numbers hold no pointers, and large arrays of them are common. The words
 * of any other variable are examined at commit, when their values are known.
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

/* From here on address spaces are segments, or have pointers of other sizes. */
constexpr unsigned spaces_of_x86 = 256;

bool is_root(const GlobalVariable &variable)
{
    return !variable.isDeclaration() && !variable.hasAvailableExternallyLinkage() &&
           !variable.isConstant() && !variable.getName().starts_with("llvm.") &&
           variable.getAddressSpace() < spaces_of_x86 && can_hold_pointer(variable);
}

/* Whether later passes will drop the value, because nothing uses it any more. */
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
        if (!function.hasUWTable()) // the unwind table leads from an address to its function
            function.setUWTableKind(UWTableKind::Default);
        bool begins = function.getName() == "main" && !function.hasLocalLinkage();
        if (begins) // the walk of the stack ends at the frame of main
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
        if (of.hasCommonLinkage()) // such a variable is in no section yet
            appendToUsed(module_, {entry});
        else
            entry->setMetadata(LLVMContext::MD_associated,
                               MDNode::get(context(), ValueAsMetadata::get(&of)));
        entries_.push_back(entry);
    }

    /* A name for the function of this module. Another module may have a function of the same name that
     * the linker prefers. */
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
        Value *address = builder.CreateThreadLocalAddress(&variable);
        builder.CreateRet(builder.CreatePointerBitCastOrAddrSpaceCast(address, pointer_));
        return function;
    }

    Module &module_;
    Type *pointer_, *size_;
    SmallVector<GlobalValue *, 64> entries_;
};

} // namespace

void add_roots(Module &module)
{
    SmallVector<GlobalVariable *, 32> variables; // collected first: the tables add variables of their own
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

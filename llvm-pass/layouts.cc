/*
 * Padding holds no pointer, nor does a field of less than 8 bytes. Any other word may hold one. Two sources
 * say where the fields are:
 *
 *  - Strict aliasing, for an assignment. The whole of a union is one field then.
 *  - The type of the variable, in code without optimisation. A union, an array of numbers and a struct
 *    without a name say nothing of their words. The optimiser does not keep this type: it puts two
 *    variables of one size into one, and the linker takes a union for a struct of the same shape.
 *
 * Variables beyond 4 KiB are not looked at.
 */
#include "layouts.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Module.h>

using namespace llvm;

namespace pmcc
{
namespace
{

constexpr uint64_t word_size = 8;

/* Bytes. The words of larger variables go by their values. */
constexpr uint64_t size_limit = 4096;

/* Whether the type of an aggregate says what its parts are. A union has the type of one member, which says
 * nothing of the other members. An array of numbers may hold anything. */
bool says_what_is_in_it(Type *type)
{
    if (auto *array = dyn_cast<ArrayType>(type))
        return array->getElementType()->isAggregateType();
    auto *record = dyn_cast<StructType>(type);
    return record && record->hasName() && !record->getName().starts_with("union.");
}

StructType *type_of(const Value *variable)
{
    Type *type = nullptr;
    if (auto *local = dyn_cast<AllocaInst>(variable); local && !local->isArrayAllocation())
        type = local->getAllocatedType();
    else if (auto *global = dyn_cast<GlobalVariable>(variable))
        type = global->getValueType();
    else if (auto *argument = dyn_cast<Argument>(variable))
        type = argument->getParamByValType();
    return dyn_cast_or_null<StructType>(type);
}

bool is_variable(const Value *value)
{
    auto *argument = dyn_cast<Argument>(value);
    return isa<AllocaInst, GlobalVariable>(value) || (argument && argument->hasByValAttr());
}

} // namespace

void visit_parts(Type *type, uint64_t offset, const DataLayout &layout,
                 function_ref<bool(Type *, uint64_t)> visit)
{
    if (!visit(type, offset))
        return;
    if (auto *record = dyn_cast<StructType>(type)) {
        const StructLayout *fields = layout.getStructLayout(record);
        for (unsigned i = 0; i < record->getNumElements(); i++)
            visit_parts(record->getElementType(i), offset + fields->getElementOffset(i), layout,
                        visit);
    } else if (auto *array = dyn_cast<ArrayType>(type)) {
        uint64_t step = layout.getTypeAllocSize(array->getElementType());
        for (uint64_t i = 0; i < array->getNumElements(); i++)
            visit_parts(array->getElementType(), offset + i * step, layout, visit);
    }
}

/* Whether a field of `bytes` is a whole number. A field of another type may be a part of a union. */
static bool is_number(const MDNode &access, uint64_t bytes)
{
    auto *type = dyn_cast<MDNode>(access.getOperand(1));
    auto *name = type ? dyn_cast<MDString>(type->getOperand(0)) : nullptr;
    return name && StringSwitch<bool>(name->getString())
                       .Cases("int", "float", bytes == sizeof(int))
                       .Case("short", bytes == sizeof(short))
                       .Default(false);
}

/* The words that an assignment copies, by the fields that strict aliasing knows: an offset, a size and a type
 * for each. Empty if the optimiser has split the assignment within the first or the last field, or not
 * between words. */
static SmallBitVector words_of_fields(const MDNode &fields, uint64_t size)
{
    SmallBitVector words(divideCeil(size, word_size));
    auto number = [&](unsigned i) {
        return mdconst::extract<ConstantInt>(fields.getOperand(i))->getZExtValue();
    };
    for (unsigned i = 0; i + 2 < fields.getNumOperands(); i += 3) {
        uint64_t at = number(i), end = std::min(at + number(i + 1), size);
        if (at >= end)
            continue;
        const uint64_t bytes = end - at;
        const bool may_be_cut = (at == 0 || end == size) && bytes % word_size;
        if (may_be_cut && !is_number(*cast<MDNode>(fields.getOperand(i + 2)), bytes))
            return {};
        if (bytes >= word_size && at % word_size)
            return {};
        if (bytes >= word_size)
            words.set(at / word_size, divideCeil(end, word_size));
    }
    return words;
}

static SmallBitVector words_of_type(const Value *from, uint64_t size, const DataLayout &layout)
{
    APInt offset(64, 0);
    const Value *variable = from->stripAndAccumulateConstantOffsets(layout, offset, true);
    StructType *type = type_of(variable);
    uint64_t start = offset.getZExtValue();
    if (!type || !type->isSized() || type->isScalableTy() || start % word_size)
        return {};
    uint64_t all = layout.getTypeAllocSize(type);
    if (all > size_limit || start > all || size > all - start)
        return {};
    SmallBitVector words(divideCeil(all, word_size));
    visit_parts(type, 0, layout, [&](Type *part, uint64_t at) {
        if (says_what_is_in_it(part))
            return true;
        uint64_t bytes = layout.getTypeAllocSize(part);
        if (bytes >= word_size) // a smaller part holds no pointer
            words.set(at / word_size, divideCeil(at + bytes, word_size));
        return false;
    });
    words >>= start / word_size;
    words.resize(divideCeil(size, word_size));
    return words;
}

SmallBitVector pointer_words(const AnyMemTransferInst &copy, uint64_t size)
{
    const Value *from = copy.getRawSource();
    if (size > size_limit || !is_variable(getUnderlyingObject(from)))
        return {};
    if (const MDNode *fields = copy.getMetadata(LLVMContext::MD_tbaa_struct))
        return words_of_fields(*fields, size);
    if (!copy.getFunction()->hasOptNone())
        return {};
    return words_of_type(from, size, copy.getModule()->getDataLayout());
}

} // namespace pmcc

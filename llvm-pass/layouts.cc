/*
 * Strips constant offsets to find the variable, and walks through the fields of its type. Padding holds no
 * pointer, nor does a field of less than 8 bytes. Any other word may hold one. A union, an array of numbers
 * and a struct without a name say nothing of their words. Variables beyond 4 KiB are not looked at.
 */
#include "layouts.h"

#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Instructions.h>

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

SmallBitVector pointer_words(const Value *from, uint64_t size, const DataLayout &layout)
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

} // namespace pmcc

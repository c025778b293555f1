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

/* Larger variables are looked at by value. */
constexpr uint64_t size_limit = 4096;

/* What is smaller than a pointer is none. Unions have the type of one of their members: of the others
 * nobody knows. */
void add(Type *type, uint64_t offset, const DataLayout &layout, SmallBitVector &words)
{
    uint64_t size = layout.getTypeAllocSize(type);
    auto *record = dyn_cast<StructType>(type);
    auto *array = dyn_cast<ArrayType>(type);
    if (record && record->hasName() && !record->getName().starts_with("union.")) {
        const StructLayout *fields = layout.getStructLayout(record);
        for (unsigned i = 0; i < record->getNumElements(); i++)
            add(record->getElementType(i), offset + fields->getElementOffset(i), layout, words);
    } else if (array && array->getElementType()->isAggregateType()) {
        uint64_t step = layout.getTypeAllocSize(array->getElementType());
        for (uint64_t i = 0; i < array->getNumElements(); i++)
            add(array->getElementType(), offset + i * step, layout, words);
    } else if (size >= word_size) {
        words.set(offset / word_size, divideCeil(offset + size, word_size));
    }
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
    add(type, 0, layout, words);
    words >>= start / word_size;
    words.resize(divideCeil(size, word_size));
    return words;
}

} // namespace pmcc

#include "kinds.h"

#include "base/marks.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/Operator.h>

using namespace llvm;

namespace pmcc
{
namespace
{

/* As far back as is looked. */
constexpr unsigned depth_limit = 12;

class Search
{
  public:
    Origin of(Value *value, unsigned depth = 0);

  private:
    Origin of_arithmetic(Operator &operation, unsigned depth);
    Origin of_alternatives(ArrayRef<Value *> values, unsigned depth);

    SmallPtrSet<Value *, 8> phis_;
};

/* One that may be any of these. */
Origin Search::of_alternatives(ArrayRef<Value *> values, unsigned depth)
{
    Origin result;
    bool is_first = true;
    for (Value *value : values) {
        if (isa<Constant>(value) && !isa<ConstantExpr>(value)) // NULL, or what marks the end
            continue;
        Origin other = of(value, depth + 1);
        if (!is_first && (other.kind != result.kind || other.load != result.load))
            return {Origin::ByValue};
        result = other;
        is_first = false;
    }
    return result;
}

/* add, sub, and, or, xor: what is left of a pointer is one, and so is what makes one. */
Origin Search::of_arithmetic(Operator &operation, unsigned depth)
{
    Origin a = of(operation.getOperand(0), depth + 1), b = of(operation.getOperand(1), depth + 1);
    auto *mask = dyn_cast<ConstantInt>(operation.getOperand(1));
    if (operation.getOpcode() == Instruction::And && mask && mask->getValue().ult(ARENA_HINT))
        return {Origin::Data}; // of a tagged pointer, the tag
    if (b.kind == Origin::Data)
        std::swap(a, b);
    else if (a.kind != Origin::Data)
        return {Origin::ByValue}; // a distance, for instance
    if (b.kind == Origin::Loaded && operation.getType()->isVectorTy())
        return {Origin::Data}; // numbers: tags are not made by the vector
    if (b.kind == Origin::Loaded && !isa<ConstantInt>(operation.getOperand(0)) &&
        !isa<ConstantInt>(operation.getOperand(1)))
        return {Origin::ByValue};
    return b;
}

Origin Search::of(Value *value, unsigned depth)
{
    Type *type = value->getType(), *scalar = type->getScalarType();
    if (scalar->isPointerTy())
        return {Origin::Pointer};
    if (!scalar->isIntegerTy() || scalar->getIntegerBitWidth() < 64)
        return {Origin::Data};
    if (scalar->getIntegerBitWidth() % 64 != 0)
        return {Origin::ByValue};
    if (depth > depth_limit)
        return {Origin::ByValue};
    auto *operation = dyn_cast<Operator>(value);
    if (!operation)
        return {isa<Constant>(value) ? Origin::Data : Origin::ByValue};
    switch (operation->getOpcode()) {
    case Instruction::PtrToInt:
        return {Origin::Pointer};
    case Instruction::Load:
        return {Origin::Loaded, cast<LoadInst>(value)};
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
        return scalar->isIntegerTy(64) ? of_arithmetic(*operation, depth) : Origin{Origin::ByValue};
    case Instruction::Select:
        return of_alternatives({operation->getOperand(1), operation->getOperand(2)}, depth);
    case Instruction::PHI: {
        if (!phis_.insert(value).second)
            return {Origin::ByValue};
        SmallVector<Value *, 4> incoming(cast<PHINode>(value)->incoming_values());
        return of_alternatives(incoming, depth);
    }
    case Instruction::Freeze:
        return of(operation->getOperand(0), depth + 1);
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
        return of_alternatives({operation->getOperand(0), operation->getOperand(1)}, depth).kind ==
                       Origin::Pointer
                   ? Origin{Origin::Pointer}
                   : Origin{Origin::ByValue};
    case Instruction::Mul:
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::FPToSI:
    case Instruction::FPToUI:
        return {Origin::Data};
    case Instruction::Shl:
        return {scalar->isIntegerTy(64) ? Origin::Data : Origin::ByValue};
    case Instruction::ZExt:
    case Instruction::SExt:
        return {scalar->isIntegerTy(64) ? Origin::Data : Origin::ByValue};
    default:
        return {Origin::ByValue};
    }
}

} // namespace

Origin origin_of(Value *value)
{
    Origin origin = Search().of(value);
    /* What the kind of a word is can be asked for what was loaded as it is stored. */
    if (origin.kind == Origin::Loaded && origin.load->getType() != value->getType())
        return {Origin::ByValue};
    return origin;
}

Origin::Kind kind_of_type(const Type *type)
{
    const Type *scalar = type->getScalarType();
    if (scalar->isPointerTy())
        return Origin::Pointer;
    return scalar->isIntegerTy() && scalar->getIntegerBitWidth() >= 64 ? Origin::ByValue
                                                                       : Origin::Data;
}

} // namespace pmcc

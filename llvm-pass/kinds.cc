/*
 * Follows a value backwards through the operations that made it, at most 12 deep. of_operation() has a rule
 * for each operation. Halves of 32 bits and vectors of narrow lanes have searches of their own. If a phi or
 * a select has several origins, they must agree, or the word goes by its value.
 *
 * Where the search ends without an answer, the type decides: pointers are pointers, and other words go by
 * their values. libpm looks at such a value when it is committed.
 */
#include "kinds.h"

#include "base/marks.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{
namespace
{

/* How many steps back the search for an origin goes. */
constexpr unsigned depth_limit = 12;

/* No pointer lies below the first page that a process may have, or above the last. */
constexpr uint64_t small_limit = 4096, address_limit = uint64_t(1) << 47;

bool is_small(const APInt &value)
{
    return value.ult(small_limit) || value.ugt(-small_limit);
}

/* An empty MaybeOrigin, as that of NULL, agrees with every other origin. */
using MaybeOrigin = std::optional<Origin>;

MaybeOrigin join(MaybeOrigin a, MaybeOrigin b)
{
    if (!a || !b)
        return a ? a : b;
    return a->kind == b->kind && a->load == b->load ? a : Origin{Origin::ByValue};
}

/* The origin after lanes have moved, or if only some of them are left. libpm's answer for the load would
 * no longer fit the words, so they go by their values. */
MaybeOrigin without_load(MaybeOrigin origin)
{
    return origin && origin->load ? Origin{Origin::ByValue} : origin;
}

/* The name that strict aliasing gives to the type of the accessed memory. Empty if there is none. */
StringRef accessed_type(const Instruction &access)
{
    const MDNode *tag = access.getMetadata(LLVMContext::MD_tbaa);
    auto *type = tag && tag->getNumOperands() > 1 ? dyn_cast<MDNode>(tag->getOperand(1)) : nullptr;
    auto *name = type ? dyn_cast<MDString>(type->getOperand(0)) : nullptr;
    return name ? name->getString() : StringRef();
}

/* Whether memory may be read by another type than it was written by. The optimiser turns a local union
 * into one variable with the type of one member. */
bool is_of_union(const LoadInst &load)
{
    if (auto *variable = dyn_cast<AllocaInst>(load.getPointerOperand()))
        if (any_of(variable->users(), [&](const User *user) {
                auto *store = dyn_cast<StoreInst>(user);
                return store && store->getValueOperand()->getType() != load.getType();
            }))
            return true;
    return accessed_type(load) == "omnipotent char";
}

/* Whether a load of a pointer may load something else. The optimiser copies words for memcpy() or an
 * assignment as pointers, whatever the words are. The compiler may pass a union as its first member, and
 * loads a pointer then. Without strict aliasing every load of a pointer looks like these. Then the answer
 * is no. */
bool is_copied(const LoadInst &load)
{
    return load.getModule()->getNamedMetadata(typed_note) && !is_typed_pointer(load);
}

class Search
{
  public:
    Origin of(Value *value)
    {
        bool is_pointer = value->getType()->isPtrOrPtrVectorTy();
        return look(value, 0).value_or(Origin{is_pointer ? Origin::Pointer : Origin::Data});
    }

  private:
    MaybeOrigin look(Value *value, unsigned depth);
    MaybeOrigin of_constant(Constant &constant, unsigned depth);
    MaybeOrigin of_phi(Operator &phi, unsigned depth);
    MaybeOrigin of_operation(Operator &operation, unsigned depth);
    MaybeOrigin of_narrow(Operator &operation, unsigned depth);
    Origin of_lanes(iterator_range<User::op_iterator> operands, unsigned depth);
    Origin of_arithmetic(Operator &operation, unsigned depth);
    MaybeOrigin of_alternatives(iterator_range<User::op_iterator> values, unsigned depth);
    Origin of_scaling(Operator &operation, unsigned depth);
    bool is_rounding(Operator &operation, unsigned depth);
    bool is_distance(Value *value, unsigned depth);
    bool may_point(Value *value, unsigned depth);

  public:
    bool may_be_piece(Value *value, unsigned depth);

  private:
    bool any_operand(Operator &operation, function_ref<bool(Value *)> holds);
    bool is_part(Value *value, unsigned depth);
    bool is_of_pieces(Operator &operation, unsigned depth);
    bool is_moved_part(Operator &shift, unsigned depth);

    SmallPtrSet<Value *, 8> phis_;
    SmallDenseMap<Value *, bool, 8> asked_; // whether it is a piece, or a part
};

/* The origin of a value of this type if nobody knows where the value comes from. */
Origin unknown(Type *type)
{
    return {type->isPtrOrPtrVectorTy() ? Origin::Pointer : Origin::ByValue};
}

bool Search::may_point(Value *value, unsigned depth)
{
    MaybeOrigin origin = look(value, depth);
    return origin && origin->kind != Origin::Data;
}

bool is_narrow_number(const Type *type)
{
    const Type *scalar = type->getScalarType();
    bool is_number = scalar->isFloatTy() || scalar->is16bitFPTy() ||
                     (scalar->isIntegerTy() && scalar->getIntegerBitWidth() > 1);
    return is_number && type->getScalarSizeInBits() < 64;
}

/* Whether the condition holds for any operand. Each operation is asked once. A loop leads back to one that
 * is being asked. */
bool Search::any_operand(Operator &operation, function_ref<bool(Value *)> holds)
{
    auto [known, is_new] = asked_.try_emplace(&operation, false);
    if (!is_new)
        return known->second;
    return asked_[&operation] = any_of(operation.operands(), holds);
}

/* The result of arithmetic is no piece. But shifts and bitwise operations move and join pieces. */
bool Search::may_be_piece(Value *value, unsigned depth)
{
    auto *operation = dyn_cast<Operator>(value);
    if (!is_narrow_number(value->getType()) || isa<Constant>(value))
        return false;
    if (!operation || depth > depth_limit)
        return true;
    auto any_is_piece = [&] {
        return any_operand(*operation,
                           [&](Value *operand) { return may_be_piece(operand, depth + 1); });
    };
    switch (operation->getOpcode()) {
    case Instruction::Trunc: {
        Value *whole = operation->getOperand(0), *shifted;
        if (is_narrow_number(whole->getType()))
            return may_be_piece(whole, depth + 1);
        if (may_point(whole, depth + 1))
            return true;
        while (match(whole, m_Shr(m_Value(shifted), m_ConstantInt())))
            whole = shifted;
        return is_part(whole, depth + 1);
    }
    case Instruction::Add: // of parts without common bits
        return match(operation, m_c_Add(m_Shl(m_Value(), m_ConstantInt()), m_Value())) &&
               any_is_piece();
    case Instruction::PtrToInt:
    case Instruction::Load:
    case Instruction::Call:
    case Instruction::Invoke:
    case Instruction::ExtractValue:
    case Instruction::BitCast:
    case Instruction::ExtractElement:
        return !isa<IntrinsicInst>(operation) || any_is_piece();
    case Instruction::AtomicRMW:
        return cast<AtomicRMWInst>(operation)->getOperation() == AtomicRMWInst::Xchg;
    case Instruction::PHI:
    case Instruction::Select:
    case Instruction::Freeze:
    case Instruction::ZExt:
    case Instruction::SExt:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
        return any_is_piece();
    default:
        return false;
    }
}

/* Whether a word has some bytes of another word, in their places. It is a piece, shifted. Or a mask has left
 * these bytes. Or several such words are joined. */
bool Search::is_part(Value *value, unsigned depth)
{
    Value *part, *whole;
    const APInt *mask;
    while (match(value, m_Shl(m_Value(whole), m_ConstantInt())))
        value = whole;
    auto *operation = dyn_cast<Operator>(value);
    if (!operation || depth > depth_limit)
        return false;
    if (match(value, m_ZExtOrSExt(m_Value(part))))
        return may_be_piece(part, depth + 1);
    if (match(value, m_And(m_Value(whole), m_APInt(mask))))
        return mask->getActiveBits() >= 8 &&
               (may_point(whole, depth + 1) || is_part(whole, depth + 1));
    if (isa<PHINode, SelectInst>(value))
        return any_operand(*operation, [&](Value *operand) { return is_part(operand, depth + 1); });
    return is_of_pieces(*operation, depth);
}

/* Whether the operation puts a word together from pieces, as a loop that reads bytes does. */
bool Search::is_of_pieces(Operator &operation, unsigned depth)
{
    bool joins = operation.getOpcode() == Instruction::Or ||
                 operation.getOpcode() == Instruction::Add ||
                 operation.getOpcode() == Instruction::Xor;
    return joins && is_part(operation.getOperand(0), depth + 1) &&
           is_part(operation.getOperand(1), depth + 1);
}

/* Whether bytes of a word were shifted to other bytes of a word. */
bool Search::is_moved_part(Operator &shift, unsigned depth)
{
    uint64_t bits;
    return shift.getType()->isIntegerTy(64) && match(shift.getOperand(1), m_ConstantInt(bits)) &&
           bits % 8 == 0 && match(shift.getOperand(0), m_ZExtOrSExt(m_Value())) &&
           is_part(&shift, depth);
}

MaybeOrigin Search::of_alternatives(iterator_range<User::op_iterator> values, unsigned depth)
{
    MaybeOrigin result;
    for (Value *value : values)
        result = join(result, look(value, depth + 1));
    return result;
}

/* The initial value of a loop's variable decides its origin. But a number may count in the loop, so it goes
 * by its value. If the value was loaded on some paths only, libpm cannot be asked for its kind. */
MaybeOrigin Search::of_phi(Operator &phi, unsigned depth)
{
    if (!phis_.insert(&phi).second)
        return phi.getType()->isIntOrIntVectorTy() ? Origin{Origin::ByValue} : MaybeOrigin();
    MaybeOrigin result;
    bool is_complete = true;
    for (Value *value : phi.operands()) {
        MaybeOrigin origin = look(value, depth + 1);
        is_complete &= origin.has_value();
        result = join(result, origin);
    }
    return is_complete ? result : without_load(result);
}

/* NULL, and small numbers that mark an end, may stand for a pointer or for a number: no origin. */
MaybeOrigin Search::of_constant(Constant &constant, unsigned depth)
{
    const APInt *number;
    if (constant.isNullValue() || isa<UndefValue>(constant) ||
        (match(&constant, m_APInt(number)) && is_small(*number)))
        return {};
    if (isa<ConstantVector>(constant))
        return without_load(of_alternatives(constant.operands(), depth));
    return Origin{constant.getType()->isPtrOrPtrVectorTy() ? Origin::Pointer : Origin::Data};
}

/* Whether both values are the same. Code without optimisation loads a variable again at each use. */
bool is_same(const Value *a, const Value *b)
{
    auto *first = dyn_cast<LoadInst>(a), *second = dyn_cast<LoadInst>(b);
    return a == b || (first && second && first->getPointerOperand() == second->getPointerOperand());
}

/* Whether the product rounds what may be a pointer: x / n * n. The result may be the address of the object
 * that x leads into. */
bool Search::is_rounding(Operator &operation, unsigned depth)
{
    auto rounds = [&](Value *quotient, const Value *by) {
        Value *rounded, *divisor;
        return match(quotient, m_IDiv(m_Value(rounded), m_Value(divisor))) &&
               is_same(divisor, by) && may_point(rounded, depth + 1);
    };
    Value *a = operation.getOperand(0), *b = operation.getOperand(1);
    return rounds(a, b) || rounds(b, a);
}

/*
 * Products, quotients and shifts. If the operand may be an address, or part of an address, the result may
 * be one, too. There are two exceptions:
 *
 *  - A product with a large number or with another variable is a hash.
 *  - The quotient of a distance is a number of elements.
 */
Origin Search::of_scaling(Operator &operation, unsigned depth)
{
    Value *scaled = operation.getOperand(0), *a, *b;
    unsigned opcode = operation.getOpcode();
    const APInt *number;
    bool may_lead;
    if (opcode == Instruction::Mul &&
        !(match(operation.getOperand(1), m_APInt(number)) && is_small(*number)))
        may_lead = is_rounding(operation, depth);
    else if (opcode != Instruction::Mul && opcode != Instruction::Shl &&
             match(scaled, m_Sub(m_Value(a), m_Value(b))))
        may_lead = may_point(a, depth + 2) != may_point(b, depth + 2);
    else
        may_lead = may_point(scaled, depth + 1);
    return {may_lead ? Origin::ByValue : Origin::Data};
}

/* Whether a value beside a pointer is a distance: an index times the size of an element. */
bool Search::is_distance(Value *value, unsigned depth)
{
    Value *index;
    if (!match(value, m_Mul(m_Value(index), m_Value())) &&
        !match(value, m_Shl(m_Value(index), m_Value())))
        return false;
    MaybeOrigin origin = look(index, depth + 1);
    return !origin || origin->kind != Origin::Pointer;
}

/* add, sub, and, or, xor. A pointer stays a pointer if a distance is added or small bits change. */
Origin Search::of_arithmetic(Operator &operation, unsigned depth)
{
    Origin a = look(operation.getOperand(0), depth + 1).value_or(Origin{Origin::Data});
    Origin b = look(operation.getOperand(1), depth + 1).value_or(Origin{Origin::Data});
    if (a.kind == Origin::Pointer && is_distance(operation.getOperand(1), depth + 1))
        b = {Origin::Data};
    else if (b.kind == Origin::Pointer && is_distance(operation.getOperand(0), depth + 1))
        a = {Origin::Data};
    const APInt *number = nullptr;
    bool is_constant = match(operation.getOperand(1), m_APInt(number)) ||
                       match(operation.getOperand(0), m_APInt(number));
    if (operation.getOpcode() == Instruction::And && is_constant && number->ult(ARENA_HINT))
        return {Origin::Data}; // of a tagged pointer only the tag is left
    const bool is_bitwise = Instruction::isBitwiseLogicOp(operation.getOpcode());
    if (is_constant && is_bitwise && (a.kind == Origin::Pieced || b.kind == Origin::Pieced))
        return {Origin::Pieced}; // a tag
    for (Origin *part : {&a, &b})
        if (part->kind == Origin::Pieced)
            *part = {Origin::Data};
    if (a.kind == Origin::Data && b.kind == Origin::Data)
        return {is_of_pieces(operation, depth) ? Origin::Pieced : Origin::Data};
    if (a.kind != Origin::Data && b.kind != Origin::Data)
        return {Origin::ByValue}; // a distance, for instance
    bool is_negated = operation.getOpcode() == Instruction::Sub && a.kind == Origin::Data;
    if (a.kind == Origin::Data)
        a = b;
    if (a.load && is_bitwise && !is_constant && operation.getType()->isIntegerTy())
        return {Origin::Changed, a.load};
    if (a.kind == Origin::Changed)
        return {Origin::ByValue};
    if (is_negated || (a.kind == Origin::Loaded && !is_constant))
        return {Origin::ByValue};
    switch (operation.getOpcode()) {
    case Instruction::And:
        return is_constant ? a : Origin{Origin::ByValue};
    case Instruction::Xor:
        return is_constant && is_small(*number) ? a : Origin{Origin::ByValue};
    case Instruction::Or:
        return !is_constant || is_small(*number) ? a : Origin{Origin::ByValue};
    default:
        return !is_constant || number->abs().ult(address_limit) ? a : Origin{Origin::ByValue};
    }
}

/* Whether an intrinsic is an instruction of one kind of processor. Such instructions compute, permute, blend
 * and load, and the pass does not know which of these. */
bool is_of_processor(const IntrinsicInst *call)
{
    return call && Function::isTargetIntrinsic(call->getIntrinsicID());
}

/* Whether a value is the result of arithmetic, fabs() included. Results of functions and loads are not. */
bool is_computed(const Operator &operation)
{
    auto *instruction = dyn_cast<Instruction>(&operation);
    auto *intrinsic = dyn_cast<IntrinsicInst>(&operation);
    bool is_call = isa<CallBase>(&operation) && (!intrinsic || is_of_processor(intrinsic));
    return !is_call && !isa<ExtractValueInst>(operation) &&
           !(instruction && instruction->mayReadFromMemory());
}

MaybeOrigin Search::of_operation(Operator &operation, unsigned depth)
{
    Type *type = operation.getType(), *scalar = type->getScalarType();
    switch (operation.getOpcode()) {
    case Instruction::PHI:
        return of_phi(operation, depth);
    case Instruction::Select:
        return of_alternatives(drop_begin(operation.operands()), depth);
    case Instruction::Freeze:
        return look(operation.getOperand(0), depth + 1);
    case Instruction::InsertElement:
    case Instruction::ShuffleVector: {
        User::op_iterator first = operation.op_begin();
        return without_load(of_alternatives({first, first + 2}, depth));
    }
    case Instruction::ExtractElement:
        return without_load(look(operation.getOperand(0), depth + 1));
    case Instruction::PtrToInt:
        return scalar->isIntegerTy(64) ? look(operation.getOperand(0), depth + 1)
                                       : Origin{Origin::ByValue};
    case Instruction::IntToPtr:
    case Instruction::BitCast: {
        Type *from = operation.getOperand(0)->getType()->getScalarType();
        if (from->isIntegerTy() && !from->isIntegerTy(64))
            return Origin{Origin::ByValue};
        MaybeOrigin origin = look(operation.getOperand(0), depth + 1);
        bool is_doubtful = scalar->isPointerTy() && origin && origin->kind == Origin::Data;
        return is_doubtful ? Origin{Origin::ByValue} : origin;
    }
    case Instruction::Load:
        if (scalar->isIntegerTy() ||
            (scalar->isPointerTy() && is_copied(cast<LoadInst>(operation))))
            return Origin{Origin::Loaded, &cast<LoadInst>(operation)};
        return is_of_union(cast<LoadInst>(operation)) ? Origin{Origin::ByValue} : unknown(type);
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
        return scalar->isIntegerTy(64) ? of_arithmetic(operation, depth) : unknown(type);
    case Instruction::Shl:
        if (is_moved_part(operation, depth))
            return Origin{Origin::Pieced}; // the rest may follow
        [[fallthrough]];
    case Instruction::Mul:
        return scalar->isIntegerTy(64) ? of_scaling(operation, depth) : unknown(type);
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::LShr:
    case Instruction::AShr:
        return of_scaling(operation, depth);
    case Instruction::URem:
    case Instruction::SRem:
    case Instruction::FPToSI:
    case Instruction::FPToUI:
        return Origin{Origin::Data};
    case Instruction::ZExt:
    case Instruction::SExt: {
        unsigned bits = operation.getOperand(0)->getType()->getScalarSizeInBits();
        return scalar->isIntegerTy(64) && bits <= 32 ? Origin{Origin::Data} : unknown(type);
    }
    case Instruction::ExtractValue:
        return unknown(type);
    default:
        return scalar->isFloatingPointTy() && is_computed(operation) ? Origin{Origin::Data}
                                                                     : unknown(type);
    }
}

/* Whether a type is a vector that may have words in narrower lanes. */
bool is_narrow(const Type *type)
{
    auto *vector = dyn_cast<FixedVectorType>(type);
    unsigned bits = vector ? vector->getScalarSizeInBits() : 0;
    return bits != 0 && bits < 64 && bits * vector->getNumElements() >= 64;
}

/* The origin of a vector of narrow lanes. SIMD code copies and permutes words as such vectors, whatever
 * the words are. Its loads may have any type. For numbers that a loop computes, strict aliasing knows the
 * type. */
MaybeOrigin Search::of_narrow(Operator &operation, unsigned depth)
{
    auto of_load = [](Instruction &load) {
        const bool is_any = is_of_any_type(load);
        auto *whole = dyn_cast<LoadInst>(&load);
        return is_any && whole ? Origin{Origin::Loaded, whole}
                               : Origin{is_any ? Origin::ByValue : Origin::Data};
    };
    switch (operation.getOpcode()) {
    case Instruction::PHI:
    case Instruction::Select:
    case Instruction::Freeze:
    case Instruction::InsertElement:
    case Instruction::ShuffleVector:
        return without_load(of_operation(operation, depth));
    case Instruction::BitCast:
        return without_load(look(operation.getOperand(0), depth + 1));
    case Instruction::Load:
        if (depth == 0) /* copied as it is, whatever its type */
            return Origin{Origin::Loaded, &cast<LoadInst>(operation)};
        return of_load(cast<LoadInst>(operation));
    case Instruction::And: // these choose between lanes, too
    case Instruction::Or:
    case Instruction::Xor:
        return of_lanes(operation.operands(), depth);
    default:
        auto *call = dyn_cast<IntrinsicInst>(&operation);
        if (call && call->mayReadFromMemory())
            return of_load(*call);
        if (is_of_processor(call))
            return of_lanes(call->args(), depth);
        return is_computed(operation) ? Origin{Origin::Data} : Origin{Origin::ByValue};
    }
}

/* The origin of lanes that come from any of the operands. */
Origin Search::of_lanes(iterator_range<User::op_iterator> operands, unsigned depth)
{
    bool may_lead = any_of(operands, [&](Value *operand) {
        return operand->getType()->isVectorTy() && may_point(operand, depth + 1);
    });
    return {may_lead ? Origin::ByValue : Origin::Data};
}

MaybeOrigin Search::look(Value *value, unsigned depth)
{
    Type *type = value->getType(), *scalar = type->getScalarType();
    auto *operation = dyn_cast<Operator>(value);
    if (is_narrow(type) && (operation || !isa<Constant>(value)))
        return operation && depth <= depth_limit ? of_narrow(*operation, depth)
                                                 : Origin{Origin::ByValue};
    if (type->isX86_MMXTy())
        return Origin{Origin::ByValue};
    bool is_word = scalar->isPointerTy() || scalar->isDoubleTy() || scalar->isFP128Ty() ||
                   scalar->isX86_FP80Ty() ||
                   (scalar->isIntegerTy() && scalar->getIntegerBitWidth() >= 64);
    if (!is_word)
        return Origin{Origin::Data};
    if (depth > depth_limit || (scalar->isIntegerTy() && scalar->getIntegerBitWidth() % 64 != 0))
        return unknown(type);
    if (operation)
        return of_operation(*operation, depth);
    auto *constant = dyn_cast<Constant>(value);
    return constant ? of_constant(*constant, depth) : unknown(type);
}

/* How many words of 8 bytes a value of this type has. Only for types whose values can have an origin. */
unsigned words_of(const Type *type)
{
    auto *vector = dyn_cast<FixedVectorType>(type);
    unsigned lanes = vector ? vector->getNumElements() : 1, bits = type->getScalarSizeInBits();
    return bits == 0 ? lanes : lanes * bits / 64; // 0: a pointer
}

} // namespace

Origin origin_of(Value *value)
{
    Origin origin = Search().of(value);
    /* libpm can tell the kinds of loaded words only if as many words are stored as were loaded. */
    if (origin.load && words_of(origin.load->getType()) != words_of(value->getType()))
        return {Origin::ByValue};
    return origin;
}

bool is_typed_pointer(const Instruction &access)
{
    StringRef name = accessed_type(access);
    return name == "any pointer" || name == "vtable pointer" ||
           (name.size() > 1 && name[0] == 'p' && isDigit(name[1])); // -pointer-tbaa: "p1 int"
}

bool is_of_any_type(const Instruction &access)
{
    StringRef name = accessed_type(access);
    return name.empty() || name == "omnipotent char";
}

/* For a field of a struct the tag also names the struct, so its first two operands differ. */
bool is_typed_field(const Instruction &access)
{
    const MDNode *tag = access.getMetadata(LLVMContext::MD_tbaa);
    bool is_byte = tag && accessed_type(access) == "omnipotent char" &&
                   tag->getOperand(0) == tag->getOperand(1);
    return tag && access.getModule()->getNamedMetadata(typed_note) && !is_byte;
}

bool may_be_piece(Value *value)
{
    return Search().may_be_piece(value, 0);
}

bool is_piece(StoreInst &store)
{
    Value *value = store.getValueOperand();
    const MDNode *type = store.getMetadata(LLVMContext::MD_tbaa);
    if (is_typed_field(store)) {
        bool is_number = type && type->getOperand(0) == type->getOperand(1);
        auto *load = dyn_cast<LoadInst>(value);
        if (type ? !is_number || !load || load->getMetadata(LLVMContext::MD_tbaa) != type
                 : isa<BinaryOperator>(value)) // a bit-field
            return false;
    }
    return may_be_piece(value);
}

bool has_types(const Module &module)
{
    return any_of(module, [](const Function &function) {
        return any_of(instructions(function), [](const Instruction &instruction) {
            return instruction.hasMetadata(LLVMContext::MD_tbaa);
        });
    });
}

Origin::Kind kind_of_type(const Type *type)
{
    const Type *scalar = type->getScalarType();
    if (scalar->isPointerTy())
        return Origin::Pointer;
    bool is_word = scalar->isIntegerTy() && scalar->getIntegerBitWidth() >= 64;
    return is_word || is_narrow(type) ? Origin::ByValue : Origin::Data;
}

} // namespace pmcc

/*
 * Follows bytes of values back through operations that only move them (bytes.h).
 */
#include "bytes.h"

#include <llvm/IR/PatternMatch.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{

/* The byte of another vector that an operation moves to a byte of its result, lane by lane. If it moves none,
 * `from` is NULL. */
struct LaneByte {
    const Value *from;
    uint64_t byte;
    bool is_zero;
};

static LaneByte lane_byte(const Value *value, uint64_t byte, const DataLayout &layout)
{
    auto *operation = dyn_cast<Instruction>(value);
    if (!operation || !isa<CastInst, BinaryOperator>(operation) ||
        !isa<FixedVectorType>(value->getType()) ||
        !isa<FixedVectorType>(operation->getOperand(0)->getType()))
        return {};
    const Value *from = operation->getOperand(0);
    auto size = [&](const Value *v) {
        return layout.getTypeSizeInBits(v->getType()->getScalarType()).getFixedValue() / 8;
    };
    const uint64_t lane_size = size(value), from_size = size(from);
    if (lane_size == 0 || from_size == 0 || value->getType()->getScalarSizeInBits() % 8 != 0 ||
        from->getType()->getScalarSizeInBits() % 8 != 0)
        return {};
    const uint64_t lane = byte / lane_size, in_lane = byte % lane_size;
    if (isa<TruncInst, ZExtInst>(operation))
        return {from, lane * from_size + in_lane, in_lane >= from_size};
    const bool is_left = operation->getOpcode() == Instruction::Shl;
    if (!is_left && operation->getOpcode() != Instruction::LShr)
        return {};
    auto *shifts = dyn_cast<Constant>(operation->getOperand(1));
    auto *shift =
        shifts ? dyn_cast_or_null<ConstantInt>(shifts->getAggregateElement(lane)) : nullptr;
    if (!shift || shift->getValue().uge(8 * lane_size) || shift->getZExtValue() % 8 != 0)
        return {};
    const uint64_t bytes = shift->getZExtValue() / 8;
    return {from, is_left ? byte - bytes : byte + bytes,
            is_left ? in_lane < bytes : in_lane + bytes >= lane_size};
}

static ByteOf origin(const Value *value, uint64_t byte, const DataLayout &layout, unsigned depth)
{
    constexpr unsigned depth_limit = 8;
    const Value *a, *b;
    const APInt *mask;
    uint64_t number;
    auto size = [&](const Value *v) {
        return layout.getTypeStoreSize(v->getType()).getFixedValue();
    };
    auto of = [&](const Value *v, uint64_t at) {
        return at < size(v) ? origin(v, at, layout, depth + 1) : ByteOf{nullptr, 0};
    };
    const bool is_vector = value->getType()->isVectorTy();
    auto *constant = dyn_cast<Constant>(value);
    if (constant && constant->isNullValue())
        return {nullptr, 0};
    if (depth > depth_limit || layout.getTypeSizeInBits(value->getType()) % 8 != 0)
        return {value, byte};
    auto *constant_number = dyn_cast<ConstantInt>(value);
    if (constant_number && constant_number->getValue().extractBitsAsZExtValue(8, 8 * byte) == 0)
        return {nullptr, 0};
    if (match(value, m_BitCast(m_Value(a))))
        return of(a, byte);
    if (match(value, m_ExtractElt(m_Value(a), m_ConstantInt(number))))
        return of(a, byte + number * size(value));
    if (match(value, m_InsertElt(m_Value(a), m_Value(b), m_ConstantInt(number)))) {
        const bool is_in_lane = byte / size(b) == number;
        return is_in_lane ? of(b, byte % size(b)) : of(a, byte);
    }
    if (auto *shuffle = dyn_cast<ShuffleVectorInst>(value);
        shuffle && isa<FixedVectorType>(value->getType())) {
        const uint64_t lanes =
            cast<FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements();
        const uint64_t lane_size = size(shuffle->getOperand(0)) / lanes;
        const int lane = shuffle->getMaskValue(byte / lane_size);
        if (lane < 0)
            return {value, byte};
        return of(shuffle->getOperand(lane / lanes), lane % lanes * lane_size + byte % lane_size);
    }
    if (is_vector) {
        const LaneByte lane = lane_byte(value, byte, layout);
        return !lane.from     ? ByteOf{value, byte}
               : lane.is_zero ? ByteOf{nullptr, 0}
                              : of(lane.from, lane.byte);
    }
    if (match(value, m_Trunc(m_Value(a))) || match(value, m_ZExt(m_Value(a))) ||
        match(value, m_PtrToInt(m_Value(a))) || match(value, m_IntToPtr(m_Value(a))))
        return of(a, byte);
    if (match(value, m_LShr(m_Value(a), m_ConstantInt(number))) && number % 8 == 0)
        return of(a, byte + number / 8);
    if (match(value, m_Shl(m_Value(a), m_ConstantInt(number))) && number % 8 == 0)
        return byte < number / 8 ? ByteOf{nullptr, 0} : of(a, byte - number / 8);
    if (match(value, m_And(m_Value(a), m_APInt(mask)))) {
        const uint64_t bits = mask->extractBitsAsZExtValue(8, 8 * byte);
        return bits == 0           ? ByteOf{nullptr, 0}
               : bits == UINT8_MAX ? of(a, byte)
                                   : ByteOf{value, byte};
    }
    if (match(value, m_CombineOr(m_Or(m_Value(a), m_Value(b)), m_Xor(m_Value(a), m_Value(b))))) {
        const ByteOf first = of(a, byte), second = of(b, byte);
        return !first.value ? second : !second.value ? first : ByteOf{value, byte};
    }
    return {value, byte};
}

ByteOf origin_of_byte(const Value *value, uint64_t byte, const DataLayout &layout)
{
    return origin(value, byte, layout, 0);
}

ByteOf origin_of_bytes(const Value *value, uint64_t byte, uint64_t size, const DataLayout &layout)
{
    const ByteOf first = origin_of_byte(value, byte, layout);
    for (uint64_t i = 1; i < size && first.value; i++)
        if (origin_of_byte(value, byte + i, layout) != ByteOf{first.value, first.byte + i})
            return {nullptr, 0};
    return first;
}

bool is_part_of(const Value *part, const Value *whole, uint64_t at, const DataLayout &layout)
{
    const uint64_t size = layout.getTypeStoreSize(part->getType());
    if (at + size > layout.getTypeStoreSize(whole->getType()))
        return false;
    for (uint64_t byte = 0; byte < size; byte++) {
        const ByteOf from = origin_of_byte(part, byte, layout);
        if (!from.value || isa<Constant>(from.value) ||
            from != origin_of_byte(whole, at + byte, layout))
            return false;
    }
    return true;
}

LoadInst *load_of_part(Value *part, int64_t &at, const DataLayout &layout)
{
    const ByteOf first = origin_of_bytes(part, 0, layout.getTypeStoreSize(part->getType()), layout);
    auto *load = dyn_cast_or_null<LoadInst>(first.value);
    if (!load)
        return nullptr;
    at = static_cast<int64_t>(first.byte);
    return const_cast<LoadInst *>(load);
}

} // namespace pmcc

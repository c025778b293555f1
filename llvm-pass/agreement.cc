/*
 * Follows two parts back through the choices that were made of both together, by the same phi or by selects
 * of the same condition. At the ends there are words, memory, and numbers that are no parts of words.
 */
#include "agreement.h"

#include "kinds.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{

constexpr unsigned depth_limit = 6; // choices one behind the other
constexpr unsigned steps_limit = 256;
constexpr unsigned paths_limit = 64; // that meet in one place, as behind a switch

SmallVector<PartStretch, 4> stretches_of(const Instruction &write, const Value *piece)
{
    auto *copy = dyn_cast<AnyMemTransferInst>(&write);
    if (!piece && copy)
        return {{{copy->getRawSource(), 0, true}, 0}};
    if (!piece)
        return {};
    const DataLayout &layout = write.getModule()->getDataLayout();
    SmallVector<PartStretch, 4> result;
    ByteOf last = {nullptr, 0};
    for (uint64_t n = 0; n < layout.getTypeStoreSize(piece->getType()); n++) {
        const ByteOf from = origin_of_byte(piece, n, layout);
        if (from.value && (from.value != last.value || from.byte != last.byte + 1))
            result.push_back({{piece, n, false}, static_cast<int64_t>(n)});
        last = from;
    }
    return result;
}

/* The instruction that chooses, and what on each path. Without an instruction: nothing is chosen. */
struct Agreement::Choice {
    const Instruction *at = nullptr;
    SmallVector<Pair, 4> paths = {};
    bool is_one = true; // choice. Else both parts are chosen, in different places
};

/* Bits of a part may have been set or cleared, see docs/pmcc.md. */
PartByte Agreement::origin(PartByte part) const
{
    constexpr unsigned tags_limit = 8;
    for (unsigned n = 0; n < tags_limit && part.value && !part.is_memory; n++) {
        const Value *whole;
        const ByteOf from = isa<ConstantInt>(part.value)
                                ? ByteOf{part.value, part.byte}
                                : origin_of_byte(part.value, part.byte, *layout_);
        part = {from.value, from.byte, false};
        if (!from.value || (!match(from.value, m_BitwiseLogic(m_Value(whole), m_ConstantInt())) &&
                            !match(from.value, m_Freeze(m_Value(whole)))))
            break;
        part.value = whole;
    }
    if (auto *load = dyn_cast_or_null<LoadInst>(part.value); load && !part.is_memory)
        return {load->getPointerOperand(), part.byte, true};
    return part;
}

static const Instruction *chooser(const PartByte &part)
{
    if (!part.value || part.is_memory)
        return nullptr;
    if (auto *select = dyn_cast<SelectInst>(part.value))
        return select->getCondition()->getType()->isIntegerTy() ? select : nullptr;
    auto *phi = dyn_cast<PHINode>(part.value);
    return phi && phi->getNumIncomingValues() <= paths_limit ? phi : nullptr;
}

static bool choose_together(const Instruction &a, const Instruction &b)
{
    if (auto *select = dyn_cast<SelectInst>(&a))
        return isa<SelectInst>(b) && select->getCondition() == cast<SelectInst>(b).getCondition();
    return isa<PHINode>(b) && a.getParent() == b.getParent();
}

/* What a part is on the path of operand `n` of `choice`. */
static PartByte on_path(const PartByte &part, const Instruction &choice, unsigned n)
{
    const Instruction *own = chooser(part);
    if (!own || !choose_together(*own, choice))
        return part;
    const Value *value = own->getOperand(n);
    if (auto *phi = dyn_cast<PHINode>(own))
        value = phi->getIncomingValueForBlock(cast<PHINode>(choice).getIncomingBlock(n));
    return {value, part.byte, false};
}

Agreement::Choice Agreement::choice_of(const Pair &pair) const
{
    const Instruction *a = chooser(pair.a), *b = chooser(pair.b);
    const Instruction *at = a ? a : b;
    if (!at)
        return {};
    Choice result = {at, {}, !a || !b || choose_together(*a, *b)};
    for (unsigned n = isa<SelectInst>(at) ? 1 : 0; n < at->getNumOperands(); n++)
        result.paths.push_back({on_path(pair.a, *at, n), on_path(pair.b, *at, n)});
    return result;
}

/* Parts that were read from memory. A variable of the function may have been split in several, and have parts
 * of any word. */
Agreement::Answer Agreement::of_memory(const Pair &pair) const
{
    auto is_variable = [](const PartByte &part) {
        return part.is_memory && isa<AllocaInst>(getUnderlyingObject(part.value));
    };
    const bool is_any = is_variable(pair.a) || is_variable(pair.b);
    if (!pair.a.is_memory || !pair.b.is_memory ||
        pair.a.value->getType() != pair.b.value->getType())
        return is_any ? Always : Never;
    auto read = pair.b.value->getPointerOffsetFrom(pair.a.value, *layout_);
    if (!read)
        return is_any ? Always : Never;
    const int64_t bytes = static_cast<int64_t>(pair.b.byte) - static_cast<int64_t>(pair.a.byte);
    return *read + bytes == distance_ ? Always : Never;
}

Agreement::Answer Agreement::of_leaves(const Pair &pair, unsigned depth)
{
    const PartByte &a = pair.a, &b = pair.b;
    if (!a.value || !b.value || isa<UndefValue>(a.value) || isa<UndefValue>(b.value))
        return Always; // a byte of zeros beside others
    if (is_piece_asked_) {
        auto *number = dyn_cast<ConstantInt>(a.value);
        const bool is_data = number ? !number->isZero()
                                    : !a.is_memory && !may_be_piece(const_cast<Value *>(a.value));
        return is_data && layout_->getTypeStoreSize(a.value->getType()) < 8 ? Never : Always;
    }
    if (isa<ConstantInt>(a.value) || isa<ConstantInt>(b.value))
        return Never;
    if (a.is_memory || b.is_memory)
        if (of_memory(pair) == Always)
            return Always;
    if (a.is_memory == b.is_memory && a.value == b.value)
        return static_cast<int64_t>(b.byte) - static_cast<int64_t>(a.byte) == distance_ ? Always
                                                                                        : Never;
    const Value *one, *other; // bits that are set or cleared
    if (!a.is_memory && match(a.value, m_BitwiseLogic(m_Value(one), m_Value(other))))
        return std::max(ask({{one, a.byte, false}, b}, depth + 1),
                        ask({{other, a.byte, false}, b}, depth + 1)) == Always
                   ? Always
                   : Never;
    if (!b.is_memory && match(b.value, m_BitwiseLogic(m_Value(one), m_Value(other))))
        return std::max(ask({a, {one, b.byte, false}}, depth + 1),
                        ask({a, {other, b.byte, false}}, depth + 1)) == Always
                   ? Always
                   : Never;
    return Never;
}

Agreement::Answer Agreement::ask(const Pair &asked, unsigned depth)
{
    if (!asked.a.value || !asked.b.value)
        return Always;
    if (depth > depth_limit || ++steps_ > steps_limit)
        return is_piece_asked_ ? Always : Never;
    const Pair pair = {origin(asked.a), origin(asked.b)};
    const Choice choice = choice_of(pair);
    const bool is_same =
        pair.a.value == pair.b.value && !is_piece_asked_ && pair.a.is_memory == pair.b.is_memory;
    if (!choice.at || is_same)
        return of_leaves(pair, depth);
    if (is_contained(around_, pair))
        return Always;
    around_.push_back(pair);
    bool is_always = true, is_never = true;
    for (const Pair &path : choice.paths) {
        const Answer answer = ask(path, depth + 1);
        is_always &= answer == Always;
        is_never &= answer == Never;
    }
    around_.pop_back();
    return is_always ? Always : is_never || !choice.is_one ? Never : Depends;
}

Value *Agreement::emit(const Pair &asked, unsigned depth)
{
    LLVMContext &context = pair_.a.value->getContext();
    if (!asked.a.value || !asked.b.value)
        return ConstantInt::getTrue(context);
    const Pair pair = {origin(asked.a), origin(asked.b)};
    for (const Emitted &known : emitted_)
        if (known.pair == pair)
            return known.holds;
    steps_ = 0;
    const Answer answer = ask(asked, depth);
    if (answer != Depends)
        return ConstantInt::getBool(context, answer == Always);
    around_.push_back(pair);
    Value *result = emit_choice(pair, depth);
    around_.pop_back();
    return result;
}

Value *Agreement::emit_choice(const Pair &pair, unsigned depth)
{
    const Choice choice = choice_of(pair);
    auto *at = const_cast<Instruction *>(choice.at);
    IRBuilder<> builder(at);
    if (auto *select = dyn_cast<SelectInst>(at)) {
        Value *first = emit(choice.paths[0], depth + 1), *second = emit(choice.paths[1], depth + 1);
        return builder.CreateSelect(select->getCondition(), first, second);
    }
    auto *phi = cast<PHINode>(at);
    PHINode *result = builder.CreatePHI(builder.getInt1Ty(), phi->getNumIncomingValues());
    emitted_.push_back({pair, result});
    for (unsigned n = 0; n < phi->getNumIncomingValues(); n++)
        result->addIncoming(emit(choice.paths[n], depth + 1), phi->getIncomingBlock(n));
    return result;
}

Value *Agreement::emit()
{
    return emit(pair_, 0);
}

Agreement Agreement::of_bytes(PartByte a, PartByte b, int64_t distance, const DataLayout &layout)
{
    Agreement result;
    result.pair_ = {a, b};
    result.distance_ = distance;
    result.layout_ = &layout;
    result.answer_ = result.ask(result.pair_, 0);
    return result;
}

Agreement Agreement::of_piece(const Value *piece, const DataLayout &layout)
{
    Agreement result;
    const PartByte part = {piece, 0, false};
    result.pair_ = {part, part};
    result.is_piece_asked_ = true;
    result.layout_ = &layout;
    result.answer_ = result.ask(result.pair_, 0);
    return result;
}

} // namespace pmcc

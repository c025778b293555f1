/*
 * Collects the writes of instructions, intrinsics and inline assembly. Library functions are not here:
 * calls.cc redirects them to wrappers, which make their marks themselves.
 *
 * The origin of a stored value tells the kinds of its words (kinds.h). A copy of a variable has kinds by the
 * variable's type (layouts.h). At the end all writes that cannot hit the arena are dropped (outside.cc). An
 * intrinsic whose writes are unknown gets a warning.
 */
#include "writes.h"

#include "base/marks.h"
#include "calls.h"
#include "kinds.h"
#include "layouts.h"

#include <csetjmp>
#include <llvm/ADT/Sequence.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <ucontext.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{

static bool may_be_tag(const AnyMemTransferInst &copy);
static bool is_update(const AtomicCmpXchgInst &exchange);

namespace
{

constexpr uint64_t va_list_size = 24;
constexpr uint64_t jump_buffer_size = 40; // bytes that __builtin_setjmp writes: five words

void warn_unseen(const CallBase &call, const Twine &what)
{
    warn_unknown(call, what + " writes; if it is in a container, call pm_dirty() before");
}

/* A byte of a value. Without a value: a zero. */
struct ByteOf {
    const Value *value;
    uint64_t byte;

    bool operator==(const ByteOf &) const = default;
};

/* Follow a byte back through operations that only move bytes: casts, shifts, masks, lanes, and joined
 * parts. */
ByteOf origin_of_byte(const Value *value, uint64_t byte, const DataLayout &layout,
                      unsigned depth = 0)
{
    constexpr unsigned depth_limit = 8;
    const Value *a, *b;
    const APInt *mask;
    uint64_t number;
    auto size = [&](const Value *v) {
        return layout.getTypeStoreSize(v->getType()).getFixedValue();
    };
    auto of = [&](const Value *v, uint64_t at) {
        return at < size(v) ? origin_of_byte(v, at, layout, depth + 1) : ByteOf{nullptr, 0};
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
    if (is_vector)
        return {value, byte};
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

/* Whether the bytes of `part` are bytes of `whole`, from `at` on. */
bool is_part_of(const Value *part, const Value *whole, uint64_t at, const DataLayout &layout)
{
    const uint64_t size = layout.getTypeStoreSize(part->getType());
    if (at + size > layout.getTypeStoreSize(whole->getType()))
        return false;
    for (uint64_t byte = 0; byte < size; byte++) {
        const ByteOf origin = origin_of_byte(part, byte, layout);
        if (!origin.value || isa<Constant>(origin.value) ||
            origin != origin_of_byte(whole, at + byte, layout))
            return false;
    }
    return true;
}

/* The load that has read what `part` was cut out of, `at` bytes behind the first one. NULL if that is not
 * known. */
LoadInst *load_of_part(Value *part, int64_t &at, const DataLayout &layout)
{
    const ByteOf first = origin_of_byte(part, 0, layout);
    auto *load = dyn_cast_or_null<LoadInst>(first.value);
    if (!load || !is_part_of(part, load, first.byte, layout))
        return nullptr;
    at = static_cast<int64_t>(first.byte);
    return const_cast<LoadInst *>(load);
}

class Collector
{
  public:
    Collector(Instruction &instruction, SmallVectorImpl<Write> &writes)
        : at_(instruction), layout_(instruction.getModule()->getDataLayout()), writes_(writes)
    {
    }

    void bytes(Value *pointer, uint64_t size, Align align = Align(1))
    {
        writes_.push_back({&at_, pointer, size, nullptr, align});
    }

    /* A value of `type`. Each part gets its kind by its type. */
    void bytes(Value *pointer, Type *type, Align align)
    {
        bytes(pointer, layout_.getTypeStoreSize(type), align);
        if (writes_.back().size > kinds_size_max)
            return;
        visit_parts(type, 0, layout_, [&](Type *part, uint64_t at) {
            if (!part->isAggregateType() && at % 8 == 0)
                writes_.back().kinds |= repeat(kind_of_type(part), layout_.getTypeStoreSize(part))
                                        << at;
            return part->isAggregateType();
        });
    }

    void value(Value *pointer, Value *value, Align align)
    {
        if (value->getType()->isAggregateType())
            return bytes(pointer, value->getType(), align);
        Origin origin = origin_of(value);
        if (origin.kind == Origin::Loaded && value->getType()->isPointerTy() &&
            is_typed_pointer(at_))
            origin = {Origin::Pointer};
        uint64_t size = layout_.getTypeStoreSize(value->getType());
        if ((size > kinds_size_max || (size > 8 && size % 8 != 0)) && origin.kind != Origin::Data)
            return by_lines(pointer, size, align, [&](uint64_t) { return origin.kind; });
        bytes(pointer, size, align);
        if (origin.kind == Origin::Data)
            return;
        writes_.back().kinds = repeat(origin.kind, size);
        writes_.back().loaded = origin.load;
        writes_.back().changes = origin.kind == Origin::Changed;
    }

    /* The exchange may fail, and leave the old word. So pieces cannot be told: the word goes by its value. */
    void exchange(AtomicCmpXchgInst &exchange)
    {
        Value *value = exchange.getNewValOperand();
        bytes(exchange.getPointerOperand(), value->getType(), exchange.getAlign());
        if (writes_.back().size >= 8)
            return;
        if (is_update(exchange) || !may_be_piece(value))
            updates();
        else
            writes_.back().kinds = KIND_BY_VALUE;
    }

    /* The newest write only sets or clears bits of the word. */
    void updates()
    {
        writes_.back().updates = writes_.back().is_data() || writes_.back().size == 8;
        writes_.back().kinds = 0;
    }

    /* The newest write may store a piece of a pointer. */
    void pieces(Value *piece = nullptr)
    {
        Write &write = writes_.back();
        if (!write.is_data())
            return;
        write.pieces = true;
        write.is_part = write.size < 8;
        write.part_of = piece ? load_of_part(piece, write.part_at, layout_) : nullptr;
        if (write.part_at >= 8) // libpm is asked for the load's first word
            write.part_of = nullptr;
        if (piece && !write.part_of) {
            const Value *origin = origin_of_byte(piece, 0, layout_).value;
            write.cut_of =
                origin && layout_.getTypeStoreSize(origin->getType()) >= 8 ? origin : nullptr;
        }
    }

    void bytes(Value *pointer, Value *length, Align align)
    {
        if (auto *constant = dyn_cast<ConstantInt>(length)) {
            if (!constant->isZero())
                bytes(pointer, constant->getZExtValue(), align);
            return;
        }
        IRBuilder<> builder(&at_);
        length = builder.CreateZExtOrTrunc(length, builder.getInt64Ty());
        writes_.push_back({&at_, pointer, 0, length, align});
    }

    void copy(const AnyMemTransferInst &transfer)
    {
        Value *pointer = transfer.getRawDest(), *length = transfer.getLength();
        const Align align = transfer.getDestAlign().valueOrOne();
        auto *constant = dyn_cast<ConstantInt>(length);
        const bool is_part = constant && constant->getZExtValue() < 8;
        if (constant && !is_part && copy_variable(transfer, constant->getZExtValue(), align))
            return;
        size_t count = writes_.size();
        bytes(pointer, length, align);
        if (writes_.size() == count)
            return;
        if (is_part && may_be_tag(transfer))
            updates();
        else if (is_part)
            pieces();
        else
            writes_.back().from = transfer.getRawSource();
    }

    void lanes(Write::Shape shape, Value *pointer, Value *mask, Value *data, Align align = Align(1))
    {
        uint64_t lane = layout_.getTypeStoreSize(data->getType()->getScalarType());
        Origin::Kind origin = origin_of(data).kind;
        bool are_pieces = lane < 8 && origin != Origin::Data;
        uint64_t kinds = are_pieces ? 0 : repeat(origin, lane);
        writes_.push_back({&at_, pointer, lane, nullptr, align, shape, mask, kinds});
        writes_.back().pieces = are_pieces;
    }

    bool intrinsic(IntrinsicInst &call);
    void assembly(CallBase &call);
    void returns_twice(CallBase &call);
    void result(CallBase &call);

  private:
    static uint64_t repeat(Origin::Kind origin, uint64_t size)
    {
        uint64_t kind = origin == Origin::Pointer ? KIND_POINTER
                        : origin == Origin::Data  ? 0
                        : origin == Origin::Pieced ? KIND_PIECED
                                                  : KIND_BY_VALUE;
        uint64_t kinds = 0;
        for (uint64_t word = 0; word < divideCeil(size, 8); word++)
            kinds |= kind << 8 * word;
        return kinds;
    }

    void by_lines(Value *pointer, uint64_t size, Align align,
                  function_ref<Origin::Kind(uint64_t word)> kind_of);
    bool copy_variable(const AnyMemTransferInst &transfer, uint64_t size, Align align);
    bool x86_intrinsic(IntrinsicInst &call);
    Value *sign_bits(Value *vector);
    void x86_scatter(IntrinsicInst &call);

    Instruction &at_;
    const DataLayout &layout_;
    SmallVectorImpl<Write> &writes_;
};

/* Split a write into writes of at most kinds_size_max, so that the kind of each word can be told. A rest of
 * less than a word may be a piece. */
void Collector::by_lines(Value *pointer, uint64_t size, Align align,
                         function_ref<Origin::Kind(uint64_t word)> kind_of)
{
    for (uint64_t done = 0, part_size; done < size; done += part_size) {
        Value *part = pointer;
        if (done > 0)
            part = IRBuilder<>(&at_).CreateConstGEP1_64(Type::getInt8Ty(at_.getContext()), pointer,
                                                        done);
        part_size = std::min(size - done, kinds_size_max);
        if (part_size > 8)
            part_size -= part_size % 8;
        bytes(part, part_size, commonAlignment(align, done));
        for (uint64_t word = 0; word < part_size / 8; word++)
            writes_.back().kinds |= repeat(kind_of(done / 8 + word), 8) << 8 * word;
        if (part_size < 8 && kind_of(done / 8) != Origin::Data)
            pieces();
    }
}

/* Collect a copy from a variable. The variable is not in the arena, so libpm knows no kinds of its words. */
bool Collector::copy_variable(const AnyMemTransferInst &transfer, uint64_t size, Align align)
{
    SmallBitVector words = pointer_words(transfer, size);
    if (words.empty())
        return false;
    by_lines(transfer.getRawDest(), size, align,
             [&](uint64_t word) { return words[word] ? Origin::ByValue : Origin::Data; });
    return true;
}

/* AVX's masks are the sign bits of the lanes. */
Value *Collector::sign_bits(Value *vector)
{
    IRBuilder<> builder(&at_);
    auto *integers = VectorType::getInteger(cast<VectorType>(vector->getType()));
    return builder.CreateIsNeg(builder.CreateBitCast(vector, integers));
}

/* scatter(base, <N x i1> mask, <M x int> index, <K x any> data, scale). The shortest vector gives the
 * number of lanes. */
void Collector::x86_scatter(IntrinsicInst &call)
{
    IRBuilder<> builder(&call);
    Value *mask = call.getArgOperand(1), *index = call.getArgOperand(2);
    auto lanes_of = [](Value *v) { return cast<FixedVectorType>(v->getType())->getNumElements(); };
    unsigned count = std::min({lanes_of(mask), lanes_of(index), lanes_of(call.getArgOperand(3))});
    auto first = to_vector(seq<int>(0, count));
    mask = builder.CreateShuffleVector(mask, first);
    index = builder.CreateShuffleVector(index, first);
    index = builder.CreateSExt(index, FixedVectorType::get(builder.getInt64Ty(), count));
    Value *scale = builder.CreateZExt(call.getArgOperand(4), builder.getInt64Ty());
    index = builder.CreateMul(index, builder.CreateVectorSplat(count, scale));
    Value *pointers = builder.CreateGEP(builder.getInt8Ty(), call.getArgOperand(0), index);
    lanes(Write::Scatter, pointers, mask, call.getArgOperand(3));
}

bool Collector::x86_intrinsic(IntrinsicInst &call)
{
    StringRef name = call.getCalledFunction()->getName();
    if (!name.consume_front("llvm.x86."))
        return false;
    if (name.starts_with("avx.maskstore.") || name.starts_with("avx2.maskstore.")) {
        Value *mask = call.getArgOperand(1);
        lanes(Write::Lanes, call.getArgOperand(0), sign_bits(mask), call.getArgOperand(2));
    } else if (name == "sse2.maskmov.dqu") {
        Value *mask = call.getArgOperand(1);
        lanes(Write::Lanes, call.getArgOperand(2), sign_bits(mask), call.getArgOperand(0));
    } else if (name.starts_with("avx512.mask.scatter")) {
        x86_scatter(call);
    } else if (name == "clzero") {
        IRBuilder<> builder(&call); // clzero clears the whole line of the address
        Value *line = builder.CreateIntrinsic(
            Intrinsic::ptrmask, {call.getArgOperand(0)->getType(), builder.getInt64Ty()},
            {call.getArgOperand(0), builder.getInt64(-64)});
        bytes(line, 64, Align(64));
    } else {
        return name.contains("clflush") || name == "clwb" || name == "cldemote";
    }
    return true;
}

bool Collector::intrinsic(IntrinsicInst &call)
{
    if (auto *transfer = dyn_cast<AnyMemTransferInst>(&call)) {
        copy(*transfer);
        return true;
    }
    if (auto *set = dyn_cast<AnyMemIntrinsic>(&call)) {
        bytes(set->getRawDest(), set->getLength(), set->getDestAlign().valueOrOne());
        return true;
    }
    switch (call.getIntrinsicID()) {
    case Intrinsic::masked_store:
        lanes(Write::Lanes, call.getArgOperand(1), call.getArgOperand(3), call.getArgOperand(0));
        return true;
    case Intrinsic::masked_compressstore:
        lanes(Write::Packed, call.getArgOperand(1), call.getArgOperand(2), call.getArgOperand(0));
        return true;
    case Intrinsic::masked_scatter:
        lanes(Write::Scatter, call.getArgOperand(1), call.getArgOperand(3), call.getArgOperand(0));
        return true;
    case Intrinsic::vastart:
    case Intrinsic::vacopy:
        bytes(call.getArgOperand(0), va_list_size);
        return true;
    case Intrinsic::eh_sjlj_setjmp:
        bytes(call.getArgOperand(0), jump_buffer_size);
        return true;
    case Intrinsic::prefetch:
    case Intrinsic::vaend:
    case Intrinsic::invariant_start:
    case Intrinsic::invariant_end:
    case Intrinsic::lifetime_start:
    case Intrinsic::lifetime_end:
    case Intrinsic::launder_invariant_group:
    case Intrinsic::var_annotation:
    case Intrinsic::ptr_annotation:
    case Intrinsic::clear_cache:
    case Intrinsic::stacksave:
    case Intrinsic::stackrestore:
        return true;
    default:
        return x86_intrinsic(call);
    }
}

/* Collect the outputs "=m" of inline assembly. Its writes through registers cannot be seen. A struct or an
 * array in such an output only names memory of its size, and may be a union of any type. So its words go by
 * their values, like those of a copy from outside the arena. */
void Collector::assembly(CallBase &call)
{
    auto *text = cast<InlineAsm>(call.getCalledOperand());
    unsigned argument = 0;
    for (const InlineAsm::ConstraintInfo &constraint : text->ParseConstraints()) {
        if (!constraint.hasArg())
            continue;
        if (constraint.Type == InlineAsm::isOutput && constraint.isIndirect) {
            Type *type = call.getParamElementType(argument);
            Value *output = call.getArgOperand(argument);
            if (layout_.getTypeStoreSize(type) == 0) { // an array without a length
                warn_unseen(call, "how much inline assembly");
            } else if (type->isAggregateType()) {
                bytes(output, layout_.getTypeStoreSize(type));
                writes_.back().from = Constant::getNullValue(output->getType());
            } else {
                bytes(output, type, Align(1));
                if (layout_.getTypeStoreSize(type) < 8) // perhaps a tag of a pointer
                    updates();
            }
        }
        argument++;
    }
}

/* The names are compared, too: with -fno-builtin the compiler does not set the attribute. */
bool is_returning_twice(const CallBase &call)
{
    static constexpr StringRef names[] = {"setjmp", "_setjmp", "sigsetjmp", "__sigsetjmp",
                                          "getcontext"};
    const Function *callee = call.getCalledFunction();
    return call.hasFnAttr(Attribute::ReturnsTwice) ||
           (callee && callee->isDeclaration() && is_contained(names, callee->getName()));
}

/* Collect the writes of getcontext(), setjmp() and its variants, which no wrapper can replace. They save
 * registers, which may hold pointers. So the words go by their values. */
void Collector::returns_twice(CallBase &call)
{
    if (call.arg_empty() || !call.getArgOperand(0)->getType()->isPointerTy())
        return;
    const Function *callee = call.getCalledFunction();
    bool is_context = callee && callee->getName() == "getcontext";
    bytes(call.getArgOperand(0), is_context ? sizeof(ucontext_t) : sizeof(jmp_buf));
    writes_.back().from = Constant::getNullValue(call.getArgOperand(0)->getType());
}

/* A struct that is returned in memory. If the function was not compiled by pmcc, nobody else tells of it. */
void Collector::result(CallBase &call)
{
    for (unsigned i = 0; i < call.arg_size(); i++)
        if (Type *type = call.getParamStructRetType(i)) {
            bytes(call.getArgOperand(i), layout_.getTypeStoreSize(type));
            writes_.back().from = Constant::getNullValue(call.getArgOperand(i)->getType());
        }
}

} // namespace

static bool is_unknown_write(const IntrinsicInst &call, const TargetLibraryInfo &libc)
{
    return !call.onlyReadsMemory() && !call.onlyAccessesInaccessibleMemory() &&
           any_of(call.args(), [&](const Use &argument) {
               return argument->getType()->isPtrOrPtrVectorTy() && !is_outside(argument, libc);
           });
}

/* The variable that was loaded, in code without optimisation. */
static const Value *variable_of(const Value *value)
{
    auto *load = dyn_cast<LoadInst>(value);
    bool is_of_variable = load && load->getFunction()->hasOptNone();
    return is_of_variable ? dyn_cast<AllocaInst>(load->getPointerOperand()) : nullptr;
}

static bool writes_to(const Instruction &instruction, const Value *variable)
{
    auto *store = dyn_cast<StoreInst>(&instruction);
    auto *other = dyn_cast<AnyMemIntrinsic>(&instruction);
    return (store && store->getPointerOperand() == variable) ||
           (other && other->getRawDest() == variable);
}

/* The writes to a variable of which one is the last before `at`, on any path. */
static SmallVector<const Instruction *, 4> last_writes(const Value *variable, const Instruction &at)
{
    SmallVector<const Instruction *, 4> writes;
    SmallVector<const Instruction *, 8> ends(1, &at); // of the stretches that are left
    SmallPtrSet<const BasicBlock *, 8> seen;
    while (!ends.empty()) {
        const Instruction *end = ends.pop_back_val(), *i = end->getPrevNode();
        while (i && !writes_to(*i, variable))
            i = i->getPrevNode();
        if (i)
            writes.push_back(i);
        else
            for (const BasicBlock *before : predecessors(end->getParent()))
                if (seen.insert(before).second)
                    ends.push_back(before->getTerminator());
    }
    return writes;
}

/* Whether both values are the same. Code without optimisation loads a variable, and computes a value, at
 * each use. */
static bool is_same(const Value *a, const Value *b)
{
    if (a == b)
        return true;
    if (const Value *variable = variable_of(a)) {
        if (variable != variable_of(b))
            return false;
        auto one = last_writes(variable, *cast<Instruction>(a)),
             other = last_writes(variable, *cast<Instruction>(b));
        return std::is_permutation(one.begin(), one.end(), other.begin(), other.end());
    }
    auto *first = dyn_cast<Instruction>(a), *second = dyn_cast<Instruction>(b);
    return first && second && isa<GetElementPtrInst, BinaryOperator, CastInst>(first) &&
           first->isSameOperationAs(second) &&
           all_of_zip(first->operands(), second->operands(), is_same);
}

/* Where a pointer leads: some bytes behind another pointer. Each path may compute it anew. */
struct Place {
    const Value *base;
    uint64_t offset;

    bool operator==(const Place &other) const
    {
        return offset == other.offset && is_same(base, other.base);
    }
};

static Place place_of(const Value *pointer, const DataLayout &layout)
{
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    return {base, offset.getZExtValue()};
}

/* Whether another store than `update` has put `part` at this place, with more bytes. The optimiser uses the
 * value that it knows, instead of loading it again. */
static bool is_stored(const Value *part, const Place &place, const Instruction &update,
                      const DataLayout &layout)
{
    auto size = [&](const Value *value) {
        return layout.getTypeStoreSize(value->getType()).getFixedValue();
    };
    SmallVector<std::pair<const Value *, uint64_t>, 8> pointers(1, {place.base, 0});
    if (isa<Constant>(place.base))
        return false;
    while (!pointers.empty()) {
        auto [pointer, at] = pointers.pop_back_val();
        for (const User *user : pointer->users()) {
            APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), at);
            auto *store = dyn_cast<StoreInst>(user);
            auto *other = dyn_cast<GEPOperator>(user);
            if (store && store != &update && store->getPointerOperand() == pointer &&
                at <= place.offset && size(store->getValueOperand()) > size(part) &&
                is_part_of(part, store->getValueOperand(), place.offset - at, layout) &&
                isPotentiallyReachable(store, &update))
                return true;
            if (other && other->getPointerOperand() == pointer &&
                other->accumulateConstantOffset(layout, offset))
                pointers.push_back({other, offset.getZExtValue()});
        }
    }
    return false;
}

/*
 * Whether a value is the memory at `pointer` with bits set or cleared, or with a bit-field changed. Where
 * paths meet, it must be so on all of them. Without optimisation the value may lie in a variable meanwhile.
 */
class UpdateSearch
{
  public:
    UpdateSearch(const Instruction &update, const Value *pointer)
        : update_(update), layout_(update.getModule()->getDataLayout()),
          place_(place_of(pointer, layout_))
    {
    }

    bool is_update(const Value *value);
    bool is_in_variable(const Value *variable, const Instruction &at);

  private:
    bool is_loaded(const Value *value) const;

    const Instruction &update_;
    const DataLayout &layout_;
    Place place_;
    SmallVector<const Value *, 8> around_; // the values on the way: a loop leads back to them
    SmallPtrSet<const Value *, 8> others_; // no updates: so each is asked once
    SmallPtrSet<const Instruction *, 8> readers_; // of variables: so each is asked once
};

/* Whether a value was loaded from there, perhaps as a part of the word, or by a comparison that failed. If
 * the optimiser has loaded the word already, it cuts the value out. */
bool UpdateSearch::is_loaded(const Value *value) const
{
    if (auto *old = dyn_cast<ExtractValueInst>(value))
        if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(old->getAggregateOperand()))
            return place_of(exchange->getPointerOperand(), layout_) == place_;
    int64_t at = 0;
    const LoadInst *load = load_of_part(const_cast<Value *>(value), at, layout_);
    if (!load)
        return false;
    Place place = place_of(load->getPointerOperand(), layout_);
    place.offset += static_cast<uint64_t>(at);
    return place == place_;
}

/* What a loop of vectors changes in place of one number: the number is in one lane, and the lanes are
 * joined in the end. */
static const Value *joined_lanes(const Value *value)
{
    const Value *lane;
    if (match(value, m_InsertElt(m_Constant(), m_Value(lane), m_ConstantInt())))
        return lane;
    auto *call = dyn_cast<IntrinsicInst>(value);
    switch (call ? call->getIntrinsicID() : Intrinsic::not_intrinsic) {
    case Intrinsic::vector_reduce_or:
    case Intrinsic::vector_reduce_and:
    case Intrinsic::vector_reduce_xor:
        return call->getArgOperand(0);
    default:
        return nullptr;
    }
}

bool UpdateSearch::is_update(const Value *value)
{
    constexpr unsigned depth_limit = 16; // of a loop of vectors, with several of them
    const Value *a, *b;
    if (is_loaded(value) || isa<UndefValue>(value))
        return true;
    if (const Value *variable = variable_of(value))
        return is_in_variable(variable, *cast<Instruction>(value));
    if (isa<PHINode>(value) && is_contained(around_, value))
        return true;
    if (around_.size() > depth_limit || others_.contains(value))
        return false;
    around_.push_back(value);
    auto is = [&](const Value *other) { return is_update(other); };
    bool result;
    if (match(value, m_CombineOr(m_Or(m_Value(a), m_Value(b)), m_And(m_Value(a), m_Value(b)))))
        result = is(a) || is(b);
    else if (value->getType()->isVectorTy() && match(value, m_Xor(m_Value(a), m_Value(b))))
        result = is(a) || is(b);
    else if (const Value *lanes = joined_lanes(value))
        result = is(lanes);
    else if (auto *phi = dyn_cast<PHINode>(value))
        result = all_of(phi->incoming_values(), is);
    else if (match(value, m_Select(m_Value(), m_Value(a), m_Value(b))))
        result = is(a) && is(b);
    else
        result = is_stored(value, place_, update_, layout_) ||
                 ((match(value, m_Trunc(m_Value(a))) || match(value, m_ZExtOrSExt(m_Value(a))) ||
                   match(value, m_BitwiseLogic(m_Value(a), m_ConstantInt()))) &&
                  is(a));
    around_.pop_back();
    if (!result)
        others_.insert(value);
    return result;
}

/* Whether `at` reads an update from the variable, whichever write was the last. */
bool UpdateSearch::is_in_variable(const Value *variable, const Instruction &at)
{
    if (!readers_.insert(&at).second)
        return true;
    SmallVector<const Value *, 8> around;
    around.swap(around_);
    auto writes = last_writes(variable, at);
    bool result = !writes.empty() && all_of(writes, [&](const Instruction *write) {
        if (auto *copy = dyn_cast<AnyMemTransferInst>(write))
            return place_of(copy->getRawSource(), layout_) == place_;
        auto *store = dyn_cast<StoreInst>(write);
        return store && is_update(store->getValueOperand());
    });
    around.swap(around_);
    return result;
}

/* Without optimisation memcpy() may take a part of a pointer to a variable and back. */
static bool may_be_tag(const AnyMemTransferInst &copy)
{
    return copy.getFunction()->hasOptNone() &&
           UpdateSearch(copy, copy.getRawDest()).is_in_variable(copy.getRawSource(), copy);
}

static bool is_bitwise(AtomicRMWInst::BinOp operation)
{
    return operation == AtomicRMWInst::And || operation == AtomicRMWInst::Or ||
           operation == AtomicRMWInst::Xor;
}

/* Whether an access may set the tag of a pointer, for example through the pointer's first byte. If strict
 * aliasing says that the access is to a field of a struct, it is no part of a pointer. Asking libpm would
 * cost. */
static bool may_be_tag(const Instruction &access, const Type *type)
{
    if (!type->isIntegerTy() || type->getIntegerBitWidth() >= 64)
        return false;
    auto *store = dyn_cast<StoreInst>(&access);
    return !store ||
           (UpdateSearch(*store, store->getPointerOperand()).is_update(store->getValueOperand()) &&
            !is_typed_field(access));
}

/* Whether the word keeps its kind. Either bits of a part are set or cleared. Or a whole word changes: a
 * pointer gets a tag, or a number is counted up. */
static bool is_update(const AtomicRMWInst &update)
{
    const Type *type = update.getValOperand()->getType();
    AtomicRMWInst::BinOp operation = update.getOperation();
    if (type->isIntegerTy(64))
        return is_bitwise(operation) || operation == AtomicRMWInst::Add ||
               operation == AtomicRMWInst::Sub;
    return is_bitwise(operation) && may_be_tag(update, type);
}

static bool is_update(const AtomicCmpXchgInst &exchange)
{
    return UpdateSearch(exchange, exchange.getPointerOperand())
        .is_update(exchange.getNewValOperand());
}

void collect_writes(Instruction &instruction, const TargetLibraryInfo &libc,
                    SmallVectorImpl<Write> &writes)
{
    size_t first = writes.size();
    Collector collector(instruction, writes);
    if (auto *store = dyn_cast<StoreInst>(&instruction)) {
        collector.value(store->getPointerOperand(), store->getValueOperand(), store->getAlign());
        if (may_be_tag(*store, store->getValueOperand()->getType()))
            collector.updates();
        else if (is_piece(*store))
            collector.pieces(store->getValueOperand());
    } else if (auto *update = dyn_cast<AtomicRMWInst>(&instruction)) {
        if (update->getOperation() == AtomicRMWInst::Xchg) {
            collector.value(update->getPointerOperand(), update->getValOperand(),
                            update->getAlign());
            if (may_be_piece(update->getValOperand()))
                collector.pieces(update->getValOperand());
        } else
            collector.bytes(update->getPointerOperand(), update->getValOperand()->getType(),
                            update->getAlign());
        if (is_update(*update))
            collector.updates();
    } else if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(&instruction)) {
        collector.exchange(*exchange);
    } else if (auto *call = dyn_cast<IntrinsicInst>(&instruction)) {
        if (!collector.intrinsic(*call) && is_unknown_write(*call, libc))
            warn_unseen(*call, "what " + call->getCalledFunction()->getName());
    } else if (auto *call = dyn_cast<CallBase>(&instruction)) {
        if (call->isInlineAsm())
            collector.assembly(*call);
        else if (is_returning_twice(*call))
            collector.returns_twice(*call);
        else
            collector.result(*call);
    }
    writes.erase(std::remove_if(writes.begin() + first, writes.end(),
                                [&](const Write &w) { return is_outside(w.pointer, libc); }),
                 writes.end());
    for (Write &write : drop_begin(writes, first))
        for (LoadInst **load : {&write.loaded, &write.part_of})
            if (*load && is_outside((*load)->getPointerOperand(), libc))
                *load = nullptr; // libpm knows no kind of it: the word goes by its value
    for (Write &write : drop_begin(writes, first))
        if (write.from && is_in_segment(write.from))
            write.from = Constant::getNullValue(PointerType::getUnqual(instruction.getContext()));
}

} // namespace pmcc

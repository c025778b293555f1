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
#include "bytes.h"
#include "calls.h"
#include "kinds.h"
#include "layouts.h"

#include <csetjmp>
#include <llvm/ADT/Sequence.h>
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

namespace
{

constexpr uint64_t va_list_size = 24;
constexpr uint64_t jump_buffer_size = 40; // bytes that __builtin_setjmp writes: five words

void warn_unseen(const CallBase &call, const Twine &what)
{
    warn_unknown(call, what + " writes; if it is in a container, call pm_dirty() before");
}

class Collector
{
  public:
    Collector(Instruction &instruction, const Analyses &analyses, SmallVectorImpl<Write> &writes)
        : at_(instruction), layout_(instruction.getModule()->getDataLayout()), analyses_(analyses),
          writes_(writes)
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

    /* The exchange may fail, and leave the old word. So pieces cannot be told: the word goes by its value. If
     * other pieces follow, it is pieced. */
    void exchange(AtomicCmpXchgInst &exchange)
    {
        Value *value = exchange.getNewValOperand();
        bytes(exchange.getPointerOperand(), value->getType(), exchange.getAlign());
        if (writes_.back().size >= 8)
            return;
        const Update update = find_update(exchange, analyses_);
        if (update.paths || !may_be_piece(value))
            updates(update.may_bring);
        else
            writes_.back().kinds = KIND_BY_VALUE | KIND_PIECES;
    }

    /* The newest write only sets or clears bits of the word. */
    void updates(bool may_bring = false)
    {
        writes_.back().updates = writes_.back().is_data() || writes_.back().size == 8;
        writes_.back().brings = may_bring;
        writes_.back().kinds = 0;
    }

    /* The same, but only on the update's paths. Elsewhere the write is what it is. */
    void updates_when(const Update &update)
    {
        Write &write = writes_.back();
        if (write.size >= 8 || (!write.is_data() && !write.pieces))
            return;
        write.updates_when = update.paths;
        write.brings = update.may_bring;
    }

    /* The newest write may store a piece of a pointer. */
    void pieces(Value *piece = nullptr)
    {
        Write &write = writes_.back();
        if (!write.is_data())
            return;
        write.pieces = true;
        write.is_part = write.size < 8;
        write.may_finish = is_of_any_type(at_);
        write.part_of = piece ? load_of_part(piece, write.part_at, layout_) : nullptr;
        if (write.part_at >= 8) // libpm is asked for the load's first word
            write.part_of = nullptr;
        write.piece = piece;
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
        const Update update = is_part ? find_update(transfer, analyses_) : Update();
        if (update.paths)
            updates(update.may_bring);
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
        const Update update =
            lane < 8 ? find_update(cast<CallBase>(at_), pointer, data, analyses_) : Update();
        writes_.back().updates = update.paths;
        writes_.back().brings = update.may_bring;
        writes_.back().pieces = are_pieces && !writes_.back().updates;
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
    const Analyses &analyses_;
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
                if (layout_.getTypeStoreSize(type) < 8) // perhaps a tag of a pointer, or a piece
                    updates(true);
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
void collect_writes(Instruction &instruction, const TargetLibraryInfo &libc,
                    const Analyses &analyses, SmallVectorImpl<Write> &writes)
{
    size_t first = writes.size();
    Collector collector(instruction, analyses, writes);
    if (auto *store = dyn_cast<StoreInst>(&instruction)) {
        collector.value(store->getPointerOperand(), store->getValueOperand(), store->getAlign());
        const Update update = find_update(*store, analyses);
        if (isa_and_nonnull<Constant>(update.paths)) {
            collector.updates(update.may_bring);
        } else {
            if (is_piece(*store))
                collector.pieces(store->getValueOperand());
            collector.updates_when(update);
        }
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
            collector.updates(update->getOperation() != AtomicRMWInst::And &&
                              may_be_piece(update->getValOperand()));
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

void find_unchanged(MutableArrayRef<Write> writes, AAResults &aliases)
{
    for (Write &write : writes) {
        if (!write.loaded || write.loaded->getParent() != write.at->getParent())
            continue;
        const MemoryLocation read = MemoryLocation::get(write.loaded);
        const Instruction *i = write.loaded->getNextNode();
        while (i && i != write.at && !isModSet(aliases.getModRefInfo(i, read)))
            i = i->getNextNode();
        write.unchanged = i == write.at;
    }
}

} // namespace pmcc

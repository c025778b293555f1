/*
 * Emits the inline test of a mark. In instructions of x86-64, as LLVM 19 makes them at -O2, it costs
 * (in a loop the two 64-bit constants stay in registers):
 *
 *     outside the arena       movabs mov sub mov shr je               6; 5 in a loop
 *     inside, marked already  the same, then shr movabs cmpb jne     10; 8 in a loop
 *
 * If a store may straddle two lines, the test of the second byte costs 4 more.
 *
 * The call uses the preserve_most convention (src/runtime/mark_entry.S). With the usual convention, values
 * that are live across the call would need registers that the function saves on entry, even if it
 * never calls. An example: for three pushes, a tree's lookup that stores one word through a pointer
 * took 1.6 times as long. The registers of the next lookup came back through memory, after that store.
 */
#include "emit.h"

#include "base/marks.h"
#include "discover.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

using namespace llvm;

namespace pmcc
{

constexpr uint64_t line_size = uint64_t(1) << MARKS_LINE_SHIFT;
constexpr uint64_t word_size = uint64_t(1) << KINDS_WORD_SHIFT;
constexpr int address_shift = 44; // addresses are not below 1 << 44
static_assert(kinds_size_max == line_size);

Emitter::Emitter(Module &module)
{
    LLVMContext &context = module.getContext();
    Type *pointer = PointerType::getUnqual(context), *size = Type::getInt64Ty(context);
    Type *nothing = Type::getVoidTy(context);
    auto declare = [&](StringRef name, Type *result, auto... parameters) {
        auto *function =
            cast<Function>(module.getOrInsertFunction(name, result, parameters...).getCallee());
        function->addFnAttr(Attribute::NoUnwind);
        function->addFnAttr(Attribute::Cold);
        function->setCallingConv(CallingConv::PreserveMost);
        /* Not through the PLT. On the first call the dynamic linker would look the function up, and the
         * look-up preserves only the registers of the usual convention. */
        function->addFnAttr(Attribute::NonLazyBind);
        return function;
    };
    mark_ = declare("pm__mark", nothing, pointer);
    range_ = declare("pm__mark_range", nothing, pointer, size);
    data_ = declare("pm__mark_data", nothing, pointer, size);
    pieces_ = declare("pm__mark_pieces", nothing, pointer, size);
    copy_ = declare("pm__mark_copy", nothing, pointer, pointer, size);
    kinds_ = declare("pm__kinds", size, pointer, size);
    unlikely_ = MDBuilder(context).createUnlikelyBranchWeights();
    discovers_ = is_discovered(module);
}

void Emitter::remove_unused()
{
    for (Function *function : {mark_, range_, data_, pieces_, copy_, kinds_})
        if (function->isDeclaration() && function->use_empty())
            function->eraseFromParent();
}

static Value *is_in_arena(IRBuilder<> &builder, Value *address)
{
    Type *type = address->getType(); // an i64, or a vector of them
    Value *offset = builder.CreateSub(address, ConstantInt::get(type, ARENA_HINT));
    return builder.CreateICmpEQ(builder.CreateLShr(offset, ARENA_SIZE_SHIFT),
                                Constant::getNullValue(type));
}

/* A pointer, or a vector of them, of the address space 0. */
static Value *flat(IRBuilder<> &builder, Value *pointer)
{
    Type *type = pointer->getType(), *plain = builder.getPtrTy();
    if (type->getScalarType() == plain)
        return pointer;
    Type *number = builder.getInt64Ty();
    if (auto *vector = dyn_cast<VectorType>(type)) {
        number = VectorType::get(number, vector->getElementCount());
        plain = VectorType::get(plain, vector->getElementCount());
    }
    return builder.CreateIntToPtr(builder.CreatePtrToInt(pointer, number), plain);
}

/* Whether a value may lead into the arena, or into a module that is not always at the same addresses.
 * Both lie at 16 TiB or above, and below the addresses of the kernel. */
static Value *may_be_address(IRBuilder<> &builder, Value *value)
{
    constexpr int end = 47;
    Type *type = value->getType(); // an i64, or a vector of them
    Value *part = builder.CreateLShr(value, address_shift);
    return builder.CreateICmpULT(builder.CreateSub(part, ConstantInt::get(type, 1)),
                                 ConstantInt::get(type, (1 << (end - address_shift)) - 1));
}

/*
 * Under discovery commits move objects. So no number that is computed from an address may outlive a
 * commit. But the code generator would move the subtraction of the arena's start out of a loop. So
 * the address passes through an empty inline assembly, which stays in place. One such assembly serves
 * a whole mark, since no commit interrupts a mark.
 */
Value *Emitter::address_of(IRBuilder<> &builder, Value *pointer)
{
    if (!discovers_)
        return builder.CreatePtrToInt(pointer, builder.getInt64Ty());
    auto known = addresses_.find(pointer);
    if (known != addresses_.end())
        return known->second;
    auto *type = FunctionType::get(builder.getInt64Ty(), {builder.getPtrTy()}, false);
    CallInst *address = builder.CreateCall(InlineAsm::get(type, "", "=r,0", true), {pointer});
    address->setDoesNotThrow();
    address->addFnAttr(Attribute::WillReturn);
    address->setOnlyAccessesInaccessibleMemory();
    return address;
}

/* The byte for `address` in a table that has one byte for each 2^shift bytes of the arena. */
static Value *in_table(IRBuilder<> &builder, uint64_t table, unsigned shift, Value *address)
{
    Value *offset = builder.CreateSub(address, builder.getInt64(ARENA_HINT));
    Value *index = builder.CreateLShr(offset, shift);
    return builder.CreateIntToPtr(builder.CreateAdd(index, builder.getInt64(table)),
                                  builder.getPtrTy());
}

Instruction *Emitter::if_in_arena(Instruction *at, Value *pointer, Value *when)
{
    IRBuilder<> builder(at);
    Value *address = address_of(builder, pointer);
    addresses_[pointer] = address;
    Value *is_inside = is_in_arena(builder, address);
    if (when)
        is_inside = builder.CreateAnd(is_inside, when);
    return SplitBlockAndInsertIfThen(is_inside, at, false);
}

static CallInst *call(IRBuilder<> &builder, Function *function, ArrayRef<Value *> arguments)
{
    CallInst *result = builder.CreateCall(function, arguments);
    result->setCallingConv(function->getCallingConv());
    return result;
}

LoadInst *Emitter::mark_of(IRBuilder<> &builder, Value *address)
{
    Value *byte = in_table(builder, MARKS_TABLE, MARKS_LINE_SHIFT, address);
    LoadInst *mark = builder.CreateLoad(builder.getInt8Ty(), byte);
    mark->setNoSanitizeMetadata();
    return mark;
}

Value *Emitter::is_unmarked(IRBuilder<> &builder, Value *address)
{
    return builder.CreateICmpEQ(mark_of(builder, address), builder.getInt8(0));
}

void Emitter::mark_line(Instruction *at, Value *pointer)
{
    IRBuilder<> builder(at);
    Value *is_first = is_unmarked(builder, address_of(builder, pointer));
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_first, at, false, unlikely_));
    call(builder, mark_, {pointer});
}

/* `length` is 1 to 64. So only the lines of the first and of the last byte are touched. */
void Emitter::mark_ends(Instruction *at, Value *pointer, Value *length)
{
    IRBuilder<> builder(at);
    Value *address = address_of(builder, pointer);
    Value *last = builder.CreateAdd(address, builder.CreateSub(length, builder.getInt64(1)));
    Value *is_first = builder.CreateOr(is_unmarked(builder, address), is_unmarked(builder, last));
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_first, at, false, unlikely_));
    call(builder, range_, {pointer, length});
}

/* ---- kinds ----------------------------------------------------------------------------------- */

Instruction *Emitter::if_kinds_wanted(Instruction *at, Value *pointer)
{
    IRBuilder<> builder(at);
    Value *mark = mark_of(builder, address_of(builder, pointer));
    Value *wanted = builder.CreateAnd(mark, builder.getInt8(MARK_KINDS));
    return SplitBlockAndInsertIfThen(builder.CreateICmpNE(wanted, builder.getInt8(0)), at, false);
}

/* Emit, before `at`: if `is_asked`, ask libpm for the kinds of the words at `from`; else take `otherwise`. */
Value *Emitter::ask(Instruction *at, Value *is_asked, Value *from, uint64_t size, Value *otherwise)
{
    Instruction *then = SplitBlockAndInsertIfThen(is_asked, at, false, unlikely_);
    IRBuilder<> builder(then);
    Value *known = call(builder, kinds_, {from, builder.getInt64(size)});
    builder.SetInsertPoint(at->getParent(), at->getParent()->begin());
    PHINode *kinds = builder.CreatePHI(builder.getInt64Ty(), 2);
    kinds->addIncoming(known, then->getParent());
    kinds->addIncoming(otherwise, then->getParent()->getSinglePredecessor());
    return kinds;
}

/*
 * Emit, before `at`, the kinds of the words that `load` has read. libpm is asked only if a word may be
 * an address and was read from the arena; any other word goes by its value. Between the load and `at`
 * nothing may change the memory that the load has read.
 */
Value *Emitter::kinds_of_loaded(Instruction *at, LoadInst *load)
{
    IRBuilder<> builder(at);
    const DataLayout &layout = load->getModule()->getDataLayout();
    uint64_t size = layout.getTypeStoreSize(load->getType());
    Type *words = FixedVectorType::get(builder.getInt64Ty(), size / word_size);
    Value *from = flat(builder, load->getPointerOperand()), *value = load;
    if (load->getType()->isPtrOrPtrVectorTy())
        value = builder.CreatePtrToInt(load, layout.getIntPtrType(load->getType()));
    Value *candidates = may_be_address(builder, builder.CreateBitCast(value, words));
    Value *is_asked = builder.CreateAnd(builder.CreateOrReduce(candidates),
                                        is_in_arena(builder, address_of(builder, from)));
    return ask(at, is_asked, from, size, builder.getInt64(KIND_BY_VALUE * KIND_EACH));
}

/* The kind of one word after its bits changed: a word that may be a pointer now goes by its value. */
static Value *with_bits_changed(IRBuilder<> &builder, Value *known,
                                uint64_t by_value = KIND_BY_VALUE)
{
    Value *may_point =
        builder.CreateICmpNE(builder.CreateAnd(known, KIND_MAY_POINT), builder.getInt64(0));
    return builder.CreateSelect(may_point, builder.getInt64(by_value), known);
}

/* Where the word begins that has a part at `pointer`. */
static Value *begin_of_word(IRBuilder<> &builder, Value *pointer)
{
    return builder.CreateIntrinsic(Intrinsic::ptrmask, {pointer->getType(), builder.getInt64Ty()},
                                   {pointer, builder.getInt64(-word_size)});
}

/* The whole word that has a part at `pointer`, before the store. */
static LoadInst *word_at(IRBuilder<> &builder, Value *pointer)
{
    Value *word = begin_of_word(builder, pointer);
    LoadInst *before = builder.CreateAlignedLoad(builder.getInt64Ty(), word, Align(word_size));
    before->setNoSanitizeMetadata();
    return before;
}

/* Whether a word may be the lower part of an address, and a piece that is stored to it the rest. A program
 * that is not relocated has whole addresses that look so. There data is stored over the lower part. If an
 * earlier piece is in the upper part, the word was not stored whole as it is now. */
static Value *may_be_finished(IRBuilder<> &builder, Value *told, Value *word, Value *address,
                              uint64_t size)
{
    Value *before = builder.CreateSub(word, builder.getInt64(1)); // not zero
    Value *is_half = builder.CreateIsNull(builder.CreateLShr(before, address_shift));
    Value *at = builder.CreateAnd(address, word_size - 1);
    const int64_t least = address_shift / 8 + 1 - static_cast<int64_t>(size);
    Value *is_first = builder.CreateIsNull(builder.CreateAnd(told, KIND_PIECE_LAST));
    return builder.CreateAnd(builder.CreateAnd(is_half, is_first),
                             builder.CreateICmpSGE(at, builder.getInt64(least)));
}

/* The kind of a word. libpm is asked only if the word's value may be an address, and few are. */
Value *Emitter::kind_of_whole(Instruction *at, LoadInst *word, Value *otherwise)
{
    IRBuilder<> builder(at);
    return ask(at, may_be_address(builder, word), word->getPointerOperand(), word_size, otherwise);
}

/* The kinds for a piece of `size` bytes. If the piece begins at byte n of a word, byte n of the result is
 * the word's kind. */
static uint64_t kinds_of_pieces(uint64_t size)
{
    uint64_t kinds = 0;
    for (unsigned byte = 0; byte < size; byte++)
        kinds |= KINDS_OF_PIECES >> 8 * byte;
    return kinds;
}

/* The kind that the open transaction has told of the word at `address`. */
static Value *told_kind(IRBuilder<> &builder, Value *address)
{
    Value *byte = in_table(builder, KINDS_TABLE, KINDS_WORD_SHIFT, address);
    LoadInst *kind = builder.CreateAlignedLoad(builder.getInt8Ty(), byte, Align(1));
    kind->setNoSanitizeMetadata();
    return kind;
}

/* The kind that a piece at `address` gives its word, in the lowest byte. */
static Value *pieces_at(IRBuilder<> &builder, Value *address, uint64_t size)
{
    Value *bits = builder.CreateShl(builder.CreateAnd(address, word_size - 1), 3);
    return builder.CreateLShr(builder.getInt64(kinds_of_pieces(size)), bits);
}

/* The kind that a word will have after the bits at `pointer` change. Emitted before the change. Pieces that
 * were stored to the word stay pieces. */
Value *Emitter::kinds_of_updated(Instruction *at, Value *pointer, const Write &write)
{
    IRBuilder<> builder(at);
    LoadInst *word = word_at(builder, pointer);
    if (write.size >= word_size) {
        Value *known = kind_of_whole(at, word, builder.getInt64(KIND_BY_VALUE));
        builder.SetInsertPoint(at);
        return with_bits_changed(builder, known);
    }
    Value *address = address_of(builder, pointer);
    Value *told = builder.CreateZExt(told_kind(builder, address), builder.getInt64Ty());
    Value *data = builder.CreateOr(builder.CreateAnd(told, KIND_PIECES), KIND_DATA);
    if (write.brings)
        data = builder.CreateSelect(may_be_finished(builder, told, word, address, write.size),
                                    builder.getInt64(KIND_PIECED), data);
    Value *known = kind_of_whole(at, word, data);
    builder.SetInsertPoint(at);
    Value *may_point = builder.CreateIsNotNull(builder.CreateAnd(known, KIND_MAY_POINT));
    if (write.brings)
        known = builder.CreateOr(known, pieces_at(builder, address, write.size));
    Value *pieces = builder.CreateAnd(known, KIND_PIECES);
    return builder.CreateSelect(may_point, builder.CreateOr(pieces, KIND_BY_VALUE), known);
}

/* Whether `load` stands in the block of `at`, before it, and no instruction between writes to memory. */
static bool is_just_before(const LoadInst *load, const Instruction *at)
{
    for (const Instruction *i = load->getNextNode(); i; i = i->getNextNode())
        if (i == at)
            return true;
        else if (i->mayWriteToMemory())
            return false;
    return false;
}

/* Whether a byte that is copied stays where it was in its word. */
static Value *stays_in_word(IRBuilder<> &builder, Value *from, Value *to)
{
    Type *number = builder.getInt64Ty();
    Value *apart =
        builder.CreateXor(builder.CreatePtrToInt(from, number), builder.CreatePtrToInt(to, number));
    return builder.CreateIsNull(builder.CreateAnd(apart, word_size - 1));
}

/* The first word that does not begin before `pointer`. */
static Value *first_whole(IRBuilder<> &builder, Value *pointer)
{
    return begin_of_word(builder,
                         builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, word_size - 1));
}

/* What a load, or a copy, reads. */
static Value *read_by(IRBuilder<> &builder, Instruction *part)
{
    auto *copy = dyn_cast<AnyMemTransferInst>(part);
    return flat(builder, copy ? copy->getRawSource() : cast<LoadInst>(part)->getPointerOperand());
}

/* The kind of the word of which `part` reads the first part, before anything changes it. */
Value *Emitter::kind_of_torn(Instruction *part)
{
    Instruction *at = isa<LoadInst>(part) ? part->getNextNode() : part;
    IRBuilder<> builder(at);
    LoadInst *word = word_at(builder, read_by(builder, part));
    return kind_of_whole(at, word, builder.getInt64(KIND_BY_VALUE));
}

void Emitter::prepare(ArrayRef<Write> writes)
{
    for (const Write &write : writes)
        if (write.loaded && write.tells && !is_just_before(write.loaded, write.at) &&
            !loaded_.count(write.loaded))
            loaded_[write.loaded] = kinds_of_loaded(write.loaded->getNextNode(), write.loaded);
    for (const Write &write : writes)
        if (const bool is_split = write.align.value() < word_size && write.size > word_size;
            write.loaded && write.tells && is_split && !write.unchanged && !write.changes &&
            !inner_.count(write.loaded))
            inner_[write.loaded] = kinds_of_inner(write);
    for (const Write &write : writes)
        if (Instruction *part = write.completes ? write.completes->load : nullptr;
            part && write.tells && !torn_.count(part))
            torn_[part] = kind_of_torn(part);
}

/* The kinds of a write as the kinds table has them: in Write::kinds data is 0, in the table KIND_DATA. */
static uint64_t kinds_told(const Write &write)
{
    uint64_t kinds = write.kinds;
    for (unsigned at = 0; at < 64; at += 8)
        if ((kinds >> at & UINT8_MAX) == 0)
            kinds |= uint64_t(KIND_DATA) << at;
    return kinds;
}

/* The whole words of a write that is not aligned. */
static uint64_t inner_words(const Write &write)
{
    return write.size / word_size - 1;
}

/* Their kinds as `load` has read them, asked for behind the load: memory may change before the write. */
Value *Emitter::kinds_of_inner(const Write &write)
{
    Instruction *behind = write.loaded->getNextNode();
    IRBuilder<> builder(behind);
    Value *from = flat(builder, write.loaded->getPointerOperand());
    Value *first = first_whole(builder, from);
    Type *words = FixedVectorType::get(builder.getInt64Ty(), inner_words(write));
    LoadInst *values = builder.CreateAlignedLoad(words, first, Align(word_size));
    values->setNoSanitizeMetadata();
    Value *is_asked = builder.CreateAnd(builder.CreateOrReduce(may_be_address(builder, values)),
                                        is_in_arena(builder, address_of(builder, from)));
    return ask(behind, is_asked, first, inner_words(write) * word_size,
               builder.getInt64(KIND_BY_VALUE * KIND_EACH));
}

/* Tell them. If a byte does not stay where it was in its word, the words go by their values. */
void Emitter::tell_inner(IRBuilder<> &builder, Value *pointer, const Write &write, Value *kinds)
{
    Value *from = flat(builder, write.loaded->getPointerOperand());
    kinds = builder.CreateSelect(stays_in_word(builder, from, pointer), kinds,
                                 builder.getInt64(KIND_BY_VALUE * KIND_EACH));
    Value *bytes = in_table(builder, KINDS_TABLE, KINDS_WORD_SHIFT,
                            address_of(builder, first_whole(builder, pointer)));
    Value *told = builder.CreateTrunc(kinds, builder.getIntNTy(8 * inner_words(write)));
    builder.CreateAlignedStore(told, bytes, Align(1))->setNoSanitizeMetadata();
}

/* If the write begins behind byte `bytes` of its word, call libpm. The call tells that parts of words are
 * pieces, or that all bytes are data. Returns the place for the code of the other case. */
Instruction *Emitter::unless_split(Instruction *at, Value *pointer, const Write &write,
                                   uint64_t bytes)
{
    IRBuilder<> builder(at);
    Value *place = builder.CreateAnd(address_of(builder, pointer), word_size - 1);
    Value *is_split = builder.CreateICmpUGT(place, builder.getInt64(bytes));
    Instruction *split, *whole;
    SplitBlockAndInsertIfThenElse(is_split, at, &split, &whole, unlikely_);
    builder.SetInsertPoint(split);
    Value *size = builder.getInt64(write.size);
    if (write.is_data() || write.size <= word_size)
        call(builder, write.is_data() ? data_ : pieces_, {pointer, size});
    else { /* its whole words are what was loaded, or go by their values */
        Value *from = write.unchanged ? flat(builder, write.loaded->getPointerOperand())
                                      : Constant::getNullValue(pointer->getType());
        call(builder, copy_, {pointer, from, size});
        if (Value *kinds = inner_.lookup(write.loaded))
            tell_inner(builder, pointer, write, kinds);
    }
    if (write.completes && write.size >= word_size)
        tell_completed(split, pointer, *write.completes);
    return whole;
}

/* The kind's bits for those pieces of a word that were not read with the others. */
static Value *pieces_of_others(IRBuilder<> &builder, const Completion &word, Value *before)
{
    uint64_t kinds = 0; // by how many bytes of the word come before the last part
    for (unsigned n = 1; n < word_size; n++)
        for (unsigned byte = 0; byte < word_size; byte++)
            if (word.others >> (word_size - n + byte) & 1)
                kinds |= (KINDS_OF_PIECES >> 8 * byte & KIND_PIECES) << 8 * n;
    if (kinds == 0)
        return builder.getInt64(0);
    Value *kind = builder.CreateLShr(builder.getInt64(kinds), builder.CreateShl(before, 3));
    return builder.CreateAnd(kind, KIND_PIECES);
}

/* The kind of a word of several parts. The last one is at `pointer`, and `before` bytes of the word come
 * before it. What was read tells something only if a byte stays where it was in its word. */
Value *Emitter::kind_of_parts(IRBuilder<> &builder, const Completion &word, Value *pointer,
                              Value *before)
{
    constexpr uint64_t by_value = KIND_BY_VALUE | KIND_PIECES; // more pieces may follow
    Value *kind = builder.getInt64(by_value);
    if (word.load) { // other parts may have been changed
        Value *known = builder.CreateOr(torn_[word.load], pieces_of_others(builder, word, before));
        known = with_bits_changed(builder, known, by_value);
        Value *first =
            builder.CreateConstGEP1_64(builder.getInt8Ty(), pointer, (uint64_t)-word.load_at);
        Value *is_of_word =
            builder.CreateAnd(builder.CreateICmpSGE(before, builder.getInt64(word.load_at)),
                              stays_in_word(builder, read_by(builder, word.load), first));
        kind = builder.CreateSelect(is_of_word, known, kind);
    }
    return builder.CreateTrunc(kind, builder.getInt8Ty());
}

/* The write has told the kinds of its words. If it begins with the last part of a word, tell the kind of this
 * word. */
void Emitter::tell_completed(Instruction *at, Value *pointer, const Completion &word)
{
    at = if_kinds_wanted(at, pointer);
    IRBuilder<> builder(at);
    Value *address = address_of(builder, pointer);
    Value *before = builder.CreateAnd(address, word_size - 1);
    Value *is_whole = builder.CreateICmpULT(builder.CreateSub(before, builder.getInt64(1)),
                                            builder.getInt64(word.before));
    if (word.when)
        is_whole = builder.CreateAnd(is_whole, word.when);
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_whole, at, false));
    Value *byte = in_table(builder, KINDS_TABLE, KINDS_WORD_SHIFT, address);
    builder.CreateAlignedStore(kind_of_parts(builder, word, pointer, before), byte, Align(1))
        ->setNoSanitizeMetadata();
}

/* Tell that pieces or data are stored to a part of one word. The bits of earlier pieces stay, but for those
 * that data overwrites. If the word may be half an address, it may have been stored whole, half finished.
 * Then all its bytes are pieces. */
void Emitter::tell_part(Instruction *at, Value *pointer, const Write &write)
{
    IRBuilder<> builder(at);
    Value *address = address_of(builder, pointer);
    Value *byte = in_table(builder, KINDS_TABLE, KINDS_WORD_SHIFT, address);
    Value *before = told_kind(builder, address);
    Value *stored =
        builder.CreateTrunc(pieces_at(builder, address, write.size), builder.getInt8Ty());
    Value *others = builder.CreateAnd(before, builder.getInt8(KIND_PIECES));
    auto data = [&] {
        return builder.CreateOr(builder.CreateAnd(others, builder.CreateNot(stored)),
                                builder.getInt8(KIND_DATA));
    };
    Value *kind = write.pieces ? builder.CreateOr(others, stored) : data();
    if (write.may_finish)
        kind = builder.CreateSelect(
            may_be_finished(builder, before, word_at(builder, pointer), address, write.size),
            builder.getInt8(KIND_PIECED), kind);
    if (write.pieces && write.piece_when)
        kind = builder.CreateSelect(write.piece_when, kind, data());
    if (write.completes) {
        Value *before = builder.getInt64(write.completes->before);
        Value *is_whole = builder.CreateICmpEQ(builder.CreateAnd(address, word_size - 1), before);
        if (write.completes->when)
            is_whole = builder.CreateAnd(is_whole, write.completes->when);
        Value *whole = kind_of_parts(builder, *write.completes, pointer, before);
        kind = builder.CreateSelect(is_whole, whole, kind);
    }
    builder.CreateAlignedStore(kind, byte, Align(1))->setNoSanitizeMetadata();
}

/* Write a kind for each word that is stored to. If a store is not aligned, the ends of its words are
 * pieces, or data. */
void Emitter::tell(Instruction *at, Value *pointer, const Write &write)
{
    tell_wanted(if_kinds_wanted(at, pointer), pointer, write);
}

void Emitter::tell_wanted(Instruction *at, Value *pointer, const Write &write)
{
    IRBuilder<> builder(at);
    if (write.updates_when) {
        Instruction *then, *otherwise;
        SplitBlockAndInsertIfThenElse(builder.CreateFreeze(write.updates_when), at, &then,
                                      &otherwise);
        tell_wanted(then, pointer, write.when(true));
        tell_wanted(otherwise, pointer, write.when(false));
        return;
    }
    if (write.size > word_size && (write.pieces || (write.is_data() && write.size % word_size))) {
        call(builder, write.pieces ? pieces_ : data_, {pointer, builder.getInt64(write.size)});
        return;
    }
    bool is_part = write.pieces || (write.is_data() && write.size < word_size);
    if (write.align.value() < std::min<uint64_t>(write.size, word_size))
        at =
            unless_split(at, pointer, write, is_part || write.updates ? word_size - write.size : 0);
    if (is_part)
        return tell_part(at, pointer, write);
    builder.SetInsertPoint(at);
    Value *kinds = builder.getInt64(kinds_told(write));
    if (write.loaded) {
        auto known = loaded_.find(write.loaded);
        kinds = known != loaded_.end() ? known->second : kinds_of_loaded(at, write.loaded);
        builder.SetInsertPoint(at);
        if (write.changes)
            kinds = with_bits_changed(builder, kinds);
    } else if (write.updates) {
        kinds = kinds_of_updated(at, pointer, write);
        builder.SetInsertPoint(at);
    }
    unsigned words = divideCeil(write.size, word_size);
    Value *bytes = in_table(builder, KINDS_TABLE, KINDS_WORD_SHIFT, address_of(builder, pointer));
    Value *told = builder.CreateTrunc(kinds, builder.getIntNTy(8 * words));
    builder.CreateAlignedStore(told, bytes, Align(1))->setNoSanitizeMetadata();
}

/* ---- by shapes ------------------------------------------------------------------------------- */

/* Mark from the first lane that is written to the last. The memory of other lanes may not exist. */
void Emitter::mark_lanes(const Write &write)
{
    IRBuilder<> builder(write.at);
    unsigned count = cast<FixedVectorType>(write.mask->getType())->getNumElements();
    Value *lane = builder.getInt64(write.size);
    Value *bits = builder.CreateBitCast(write.mask, builder.getIntNTy(count));
    Value *is_any = builder.CreateICmpNE(bits, builder.getIntN(count, 0));
    auto count_bits = [&](Intrinsic::ID id, auto... arguments) {
        Value *result = builder.CreateIntrinsic(id, bits->getType(), {bits, arguments...});
        return builder.CreateZExtOrTrunc(result, builder.getInt64Ty());
    };
    Value *pointer = write.pointer, *length, *written = bits;
    if (write.shape == Write::Packed) {
        Value *lanes = count_bits(Intrinsic::ctpop);
        length = builder.CreateMul(lanes, lane);
        Value *rest = builder.CreateSub(builder.getInt64(count), lanes); // < count if any lane is written
        written = builder.CreateLShr(builder.CreateNot(builder.getIntN(count, 0)),
                                     builder.CreateZExtOrTrunc(rest, bits->getType()));
    } else {
        Value *before = count_bits(Intrinsic::cttz, builder.getFalse());
        Value *after = count_bits(Intrinsic::ctlz, builder.getFalse());
        pointer = builder.CreateGEP(builder.getInt8Ty(), pointer, builder.CreateMul(before, lane));
        Value *lanes = builder.CreateSub(builder.getInt64(count), builder.CreateAdd(before, after));
        length = builder.CreateMul(lanes, lane);
    }
    Instruction *inside = if_in_arena(write.at, pointer, is_any);
    builder.SetInsertPoint(inside);
    if (count * write.size <= line_size)
        mark_ends(inside, pointer, length);
    else
        call(builder, range_, {pointer, length});
    inside = if_kinds_wanted(inside, pointer);
    for (unsigned i = 0; i < count; i++) {
        builder.SetInsertPoint(inside);
        Value *bit = builder.CreateAnd(written, builder.CreateShl(builder.getIntN(count, 1), i));
        Value *is_written = builder.CreateICmpNE(bit, builder.getIntN(count, 0));
        Value *place =
            builder.CreateConstGEP1_64(builder.getInt8Ty(), write.pointer, i * write.size);
        tell(SplitBlockAndInsertIfThen(is_written, inside, false), place, write);
    }
}

/* One test covers all lanes. Only if a lane is in the arena, each lane is tested. */
void Emitter::mark_scatter(const Write &write)
{
    IRBuilder<> builder(write.at);
    unsigned count = cast<FixedVectorType>(write.mask->getType())->getNumElements();
    auto *vector = FixedVectorType::get(builder.getInt64Ty(), count);
    Value *are_inside = is_in_arena(builder, builder.CreatePtrToInt(write.pointer, vector));
    Value *is_any = builder.CreateOrReduce(builder.CreateAnd(are_inside, write.mask));
    Instruction *inside = SplitBlockAndInsertIfThen(is_any, write.at, false);
    for (unsigned lane = 0; lane < count; lane++) {
        builder.SetInsertPoint(inside);
        Value *pointer = builder.CreateExtractElement(write.pointer, lane);
        Value *is_written = builder.CreateExtractElement(write.mask, lane);
        Instruction *then = if_in_arena(inside, pointer, is_written);
        mark_ends(then, pointer, builder.getInt64(write.size));
        tell(then, pointer, write);
    }
}

void Emitter::emit(Write write)
{
    addresses_.clear();
    IRBuilder<> before(write.at);
    write.pointer = flat(before, write.pointer);
    if (write.from)
        write.from = flat(before, write.from);
    if (write.shape == Write::Scatter)
        return mark_scatter(write);
    if (write.shape != Write::Bytes)
        return mark_lanes(write);
    Instruction *inside = if_in_arena(write.at, write.pointer, nullptr);
    IRBuilder<> builder(inside);
    Value *length = write.length ? write.length : builder.getInt64(write.size);
    if (write.from) {
        call(builder, copy_, {write.pointer, write.from, length});
        if (write.completes)
            tell_completed(inside, write.pointer, *write.completes);
    } else if (write.length || write.size > kinds_size_max) {
        Function *mark = write.pieces ? pieces_ : data_;
        call(builder, write.tells ? mark : range_, {write.pointer, length});
    } else {
        if (write.marks && write.size <= write.align.value())
            mark_line(inside, write.pointer);
        else if (write.marks)
            mark_ends(inside, write.pointer, length);
        if (write.tells)
            tell(inside, write.pointer, write);
    }
}

} // namespace pmcc

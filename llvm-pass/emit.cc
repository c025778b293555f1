/*
 * The inline test, in instructions of x86-64 as LLVM 19 makes them at -O2 (in a loop the two
 * 64-bit constants stay in registers):
 *
 *   outside the arena       movabs mov sub mov shr je               6; 5 in a loop
 *   inside, marked already  the same, then shr movabs cmpb jne     10; 8 in a loop
 *
 * A second byte to test, of a store that may straddle two lines, is 4 more. The call is by the
 * preserve_most convention (src/runtime/mark_entry.S): otherwise what is live across it would sit
 * in registers that the function has to save on entry, marked or not. (A tree's lookup, which
 * stores one word through a pointer, was 1.6 times as slow for three pushes: the next lookup's
 * registers came back through memory, after that store.)
 */
#include "emit.h"

#include "base/marks.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

using namespace llvm;

namespace pmcc
{

constexpr uint64_t line_size = uint64_t(1) << MARKS_LINE_SHIFT;

Emitter::Emitter(Module &module)
{
    LLVMContext &context = module.getContext();
    Type *pointer = PointerType::getUnqual(context), *nothing = Type::getVoidTy(context);
    auto declare = [&](StringRef name, auto... parameters) {
        auto *function =
            cast<Function>(module.getOrInsertFunction(name, nothing, parameters...).getCallee());
        function->addFnAttr(Attribute::NoUnwind);
        function->addFnAttr(Attribute::Cold);
        function->setCallingConv(CallingConv::PreserveMost);
        /* Not through the PLT: on the first call of a function the dynamic linker would look it up,
         * and that keeps only the registers of the usual convention. */
        function->addFnAttr(Attribute::NonLazyBind);
        return function;
    };
    mark_ = declare("pm__mark", pointer);
    range_ = declare("pm__mark_range", pointer, Type::getInt64Ty(context));
    unlikely_ = MDBuilder(context).createUnlikelyBranchWeights();
}

void Emitter::remove_unused()
{
    for (Function *function : {mark_, range_})
        if (function->isDeclaration() && function->use_empty())
            function->eraseFromParent();
}

Instruction *Emitter::if_in_arena(Instruction *at, Value *address, Value *when)
{
    IRBuilder<> builder(at);
    Value *offset = builder.CreateSub(address, builder.getInt64(ARENA_HINT));
    Value *is_inside =
        builder.CreateICmpEQ(builder.CreateLShr(offset, ARENA_SIZE_SHIFT), builder.getInt64(0));
    if (when)
        is_inside = builder.CreateAnd(is_inside, when);
    return SplitBlockAndInsertIfThen(is_inside, at, false);
}

static void call(IRBuilder<> &builder, Function *function, ArrayRef<Value *> arguments)
{
    builder.CreateCall(function, arguments)->setCallingConv(function->getCallingConv());
}

Value *Emitter::is_unmarked(IRBuilder<> &builder, Value *address)
{
    Value *offset = builder.CreateSub(address, builder.getInt64(ARENA_HINT));
    Value *line = builder.CreateLShr(offset, MARKS_LINE_SHIFT);
    Value *byte = builder.CreateIntToPtr(builder.CreateAdd(line, builder.getInt64(MARKS_TABLE)),
                                         builder.getPtrTy());
    LoadInst *mark = builder.CreateLoad(builder.getInt8Ty(), byte);
    mark->setNoSanitizeMetadata();
    return builder.CreateICmpEQ(mark, builder.getInt8(0));
}

void Emitter::mark_line(Instruction *at, Value *pointer)
{
    IRBuilder<> builder(at);
    Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
    Instruction *inside = if_in_arena(at, address, nullptr);
    builder.SetInsertPoint(inside);
    Value *is_first = is_unmarked(builder, address);
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_first, inside, false, unlikely_));
    call(builder, mark_, {pointer});
}

/* `length` is 1 to 64, so that there are no lines but those of the first and of the last byte. */
void Emitter::mark_ends(Instruction *at, Value *pointer, Value *length, Value *when)
{
    IRBuilder<> builder(at);
    Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
    Instruction *inside = if_in_arena(at, address, when);
    builder.SetInsertPoint(inside);
    Value *last = builder.CreateAdd(address, builder.CreateSub(length, builder.getInt64(1)));
    Value *is_first = builder.CreateOr(is_unmarked(builder, address), is_unmarked(builder, last));
    builder.SetInsertPoint(SplitBlockAndInsertIfThen(is_first, inside, false, unlikely_));
    call(builder, range_, {pointer, length});
}

void Emitter::mark_range(Instruction *at, Value *pointer, Value *length, Value *when)
{
    IRBuilder<> builder(at);
    Value *address = builder.CreatePtrToInt(pointer, builder.getInt64Ty());
    builder.SetInsertPoint(if_in_arena(at, address, when));
    call(builder, range_, {pointer, length});
}

/* From the first lane that is written to the last; memory beyond may not exist. */
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
    Value *pointer = write.pointer, *length;
    if (write.shape == Write::Packed) {
        length = builder.CreateMul(count_bits(Intrinsic::ctpop), lane);
    } else {
        Value *before = count_bits(Intrinsic::cttz, builder.getFalse());
        Value *after = count_bits(Intrinsic::ctlz, builder.getFalse());
        pointer = builder.CreateGEP(builder.getInt8Ty(), pointer, builder.CreateMul(before, lane));
        Value *lanes = builder.CreateSub(builder.getInt64(count), builder.CreateAdd(before, after));
        length = builder.CreateMul(lanes, lane);
    }
    if (count * write.size <= line_size)
        mark_ends(write.at, pointer, length, is_any);
    else
        mark_range(write.at, pointer, length, is_any);
}

/* One test for all lanes; only if one of them is in the arena, one for each. */
void Emitter::mark_scatter(const Write &write)
{
    IRBuilder<> builder(write.at);
    unsigned count = cast<FixedVectorType>(write.mask->getType())->getNumElements();
    auto *vector = FixedVectorType::get(builder.getInt64Ty(), count);
    auto splat = [&](uint64_t x) { return builder.CreateVectorSplat(count, builder.getInt64(x)); };
    Value *addresses = builder.CreatePtrToInt(write.pointer, vector);
    Value *offsets = builder.CreateSub(addresses, splat(ARENA_HINT));
    Value *are_inside =
        builder.CreateICmpEQ(builder.CreateLShr(offsets, splat(ARENA_SIZE_SHIFT)), splat(0));
    Value *is_any = builder.CreateOrReduce(builder.CreateAnd(are_inside, write.mask));
    Instruction *inside = SplitBlockAndInsertIfThen(is_any, write.at, false);
    for (unsigned lane = 0; lane < count; lane++) {
        builder.SetInsertPoint(inside);
        Value *pointer = builder.CreateExtractElement(write.pointer, lane);
        Value *is_written = builder.CreateExtractElement(write.mask, lane);
        mark_ends(inside, pointer, builder.getInt64(write.size), is_written);
    }
}

void Emitter::emit(const Write &write)
{
    if (write.shape == Write::Scatter)
        return mark_scatter(write);
    if (write.shape != Write::Bytes)
        return mark_lanes(write);
    if (write.length)
        return mark_range(write.at, write.pointer, write.length, nullptr);
    Value *length = ConstantInt::get(Type::getInt64Ty(write.at->getContext()), write.size);
    if (write.size > line_size)
        mark_range(write.at, write.pointer, length, nullptr);
    else if (write.size <= write.align.value())
        mark_line(write.at, write.pointer);
    else
        mark_ends(write.at, write.pointer, length, nullptr);
}

} // namespace pmcc

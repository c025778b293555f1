/*
 * Proves that a store cannot hit the arena. libpm alone reserves the arena. So the arena has no stack, no
 * globals, no thread-locals, and no memory of malloc().
 *
 * There is no proof for two kinds of results, since they may lead to memory of a container:
 *
 *  - operator new: a program may replace it by one that calls pm_malloc().
 *  - realloc(), strdup() and their kin: a program may have its own in another file. It resizes or copies
 *    what is in a container. For malloc() that is no use: libc and libpm would get such memory, too.
 *
 * Nor is a constant address a proof, if a number that is not constant is added: the number may be the whole
 * address, and the constant NULL.
 */
#include "base/marks.h"
#include "writes.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Operator.h>

using namespace llvm;

namespace pmcc
{

static bool is_fresh_from_malloc(const Value *object, const TargetLibraryInfo &libc)
{
    auto *call = dyn_cast<CallBase>(object);
    LibFunc function;
    if (!call || call->isNoBuiltin() || !libc.getLibFunc(*call, function) || !libc.has(function) ||
        !call->getCalledFunction()->isDeclaration())
        return false;
    switch (function) {
    case LibFunc_malloc:
    case LibFunc_calloc:
    case LibFunc_aligned_alloc:
    case LibFunc_memalign:
    case LibFunc_valloc:
        return true;
    default:
        return false;
    }
}

static bool is_outside_object(const Value *object, const TargetLibraryInfo &libc)
{
    if (isa<AllocaInst, UndefValue>(object))
        return true;
    if (auto *global = dyn_cast<GlobalValue>(object))
        return !global->hasExternalWeakLinkage(); // it may be missing, and its address NULL
    if (auto *argument = dyn_cast<Argument>(object))
        return argument->hasByValAttr() || argument->hasInAllocaAttr();
    return is_fresh_from_malloc(object, libc);
}

static bool is_constant_outside(const Value *pointer)
{
    if (Operator::getOpcode(pointer) != Instruction::IntToPtr)
        return isa<ConstantPointerNull>(pointer);
    auto *address = dyn_cast<ConstantInt>(cast<Operator>(pointer)->getOperand(0));
    return address && address->getZExtValue() - ARENA_HINT >= ARENA_SIZE;
}

bool is_in_segment(const Value *pointer)
{
    constexpr unsigned gs = 256, fs = 257; // %ss is 258, and begins at 0
    unsigned space = pointer->getType()->getScalarType()->getPointerAddressSpace();
    return space == gs || space == fs;
}

/* Below 4 GiB, or among the addresses of the kernel. */
static bool has_32_bits(const Value *pointer)
{
    constexpr unsigned with_sign = 270, without_sign = 271;
    unsigned space = pointer->getType()->getScalarType()->getPointerAddressSpace();
    return space == with_sign || space == without_sign;
}

bool is_outside(const Value *pointer, const TargetLibraryInfo &libc)
{
    if (is_in_segment(pointer) || has_32_bits(pointer) || is_constant_outside(pointer))
        return true;
    SmallVector<const Value *, 4> objects;
    getUnderlyingObjects(pointer, objects, nullptr, 0);
    return all_of(objects, [&](const Value *object) { return is_outside_object(object, libc); });
}

} // namespace pmcc

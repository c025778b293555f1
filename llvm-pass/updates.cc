/*
 * Finds the stores that only set or clear bits of what they overwrite. Such a store loads the memory first,
 * or knows what is there. The value may have come along several paths, and may have changed on each.
 */
#include "updates.h"

#include "bytes.h"
#include "kinds.h"
#include "scatter.h"

#include <llvm/ADT/Sequence.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{

namespace
{

/* The variable that was loaded, in code without optimisation. */
const Value *variable_of(const Value *value)
{
    auto *load = dyn_cast<LoadInst>(value);
    bool is_of_variable = load && load->getFunction()->hasOptNone();
    return is_of_variable ? dyn_cast<AllocaInst>(load->getPointerOperand()) : nullptr;
}

bool writes_to(const Instruction &instruction, const Value *variable)
{
    auto *store = dyn_cast<StoreInst>(&instruction);
    auto *other = dyn_cast<AnyMemIntrinsic>(&instruction);
    return (store && store->getPointerOperand() == variable) ||
           (other && other->getRawDest() == variable);
}

/* The writes to a variable of which one is the last before `at`, on any path. */
SmallVector<const Instruction *, 4> last_writes(const Value *variable, const Instruction &at)
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
bool is_same(const Value *a, const Value *b)
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

/* Whether a pointer is the same wherever the function computes it, in code without optimisation: its
 * variables are written once, at the beginning. */
bool is_fixed(const Value *pointer)
{
    if (const Value *variable = variable_of(pointer)) {
        const BasicBlock &entry = cast<Instruction>(variable)->getFunction()->getEntryBlock();
        unsigned writes = 0;
        for (const User *user : variable->users())
            if (auto *i = cast<Instruction>(user); !isa<LoadInst>(i))
                writes += isa<StoreInst>(i) && i->getParent() == &entry ? 1 : 2;
        return writes == 1;
    }
    auto *instruction = dyn_cast<Instruction>(pointer);
    return !instruction || isa<AllocaInst>(instruction) ||
           (isa<GetElementPtrInst, BinaryOperator, CastInst>(instruction) &&
            all_of(instruction->operands(), is_fixed));
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

Place place_of(const Value *pointer, const DataLayout &layout)
{
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    return {base, offset.getZExtValue()};
}

/* A store over a place. So many of its bytes come before the place. */
struct Covering {
    const StoreInst *store;
    uint64_t before;
};

/* Where an update stores: `behind` bytes behind a pointer. Where paths meet, the pointer may differ between
 * them. */
struct Target {
    const Value *pointer;
    uint64_t behind;
    Place place;
    Place given; // as the code has it: perhaps a phi of one address, computed on several paths
    std::optional<SmallVector<Covering, 4>> stores = std::nullopt; // over the place
};

Target target_at(const Value *pointer, uint64_t behind, const DataLayout &layout)
{
    constexpr unsigned phis_limit = 8; // in a row
    Place place = place_of(pointer, layout), given = place;
    given.offset += behind;
    for (unsigned n = 0; n < phis_limit; n++) {
        auto *phi = dyn_cast<PHINode>(place.base);
        if (!phi || !all_of(phi->incoming_values(), [&](const Value *other) {
                return place_of(other, layout) == place_of(phi->getIncomingValue(0), layout);
            }))
            break;
        pointer = phi->getIncomingValue(0);
        behind += place.offset;
        place = place_of(pointer, layout);
    }
    place.offset += behind;
    return {pointer, behind, place, given};
}

constexpr uint64_t word_size = 8; // an update stores a part of a word

/* How far before an update it is looked for other stores, in instructions. */
constexpr unsigned distance_limit = 64;

/* The stores over a place, but for `update`. */
SmallVector<Covering, 4> stores_over(const Place &place, const Instruction &update,
                                     const DataLayout &layout)
{
    SmallVector<Covering, 4> found;
    SmallVector<std::pair<const Value *, uint64_t>, 8> pointers;
    if (!isa<Constant>(place.base))
        pointers.push_back({place.base, 0});
    while (!pointers.empty()) {
        auto [pointer, at] = pointers.pop_back_val();
        for (const User *user : pointer->users()) {
            APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), at);
            auto *store = dyn_cast<StoreInst>(user);
            auto *other = dyn_cast<GEPOperator>(user);
            if (store && store != &update && store->getPointerOperand() == pointer &&
                place.offset - at < layout.getTypeStoreSize(store->getValueOperand()->getType()))
                found.push_back({store, place.offset - at});
            if (other && other->getPointerOperand() == pointer &&
                other->accumulateConstantOffset(layout, offset))
                pointers.push_back({other, offset.getZExtValue()});
        }
    }
    return found;
}

/*
 * Whether a value is the memory at `pointer` with bits set or cleared, or with a bit-field changed. Where
 * paths meet, it must be so on all of them, or on any of them if that is asked. Without optimisation the
 * value may lie in a variable meanwhile.
 */
class UpdateSearch
{
  public:
    enum Paths { All, Any };

    UpdateSearch(const Instruction &update, const Value *pointer, const Analyses &analyses,
                 Paths paths = All)
        : update_(update), layout_(update.getModule()->getDataLayout()), analyses_(analyses),
          target_(target_at(pointer, 0, layout_)), paths_(paths)
    {
    }

    bool is_update(const Value *value)
    {
        steps_ = 0;
        others_.clear(); // what is none on the way around a loop may be one by itself
        readers_.clear();
        lanes_.clear();
        return search(value);
    }
    bool is_in_variable(const Value *variable, const Instruction &at);
    bool is_written(const Instruction &write);
    bool may_bring() const { return may_bring_; }

    /* A value together with where it is to be stored. */
    using Asked = std::pair<const Value *, std::pair<const Value *, uint64_t>>;
    Asked asked(const Value *value) const { return {value, {target_.pointer, target_.behind}}; }

    /* Calls `ask` with the target as it was where paths met, in operand `n` of the phi or select `choice`. */
    template <typename Ask> auto on_path(const Instruction &choice, unsigned n, Ask ask)
    {
        const Value *pointer = pointer_on_path(choice, n);
        return pointer ? with_target(target_at(pointer, target_.place.offset, layout_), ask)
                       : ask();
    }

  private:
    template <typename Ask> auto with_target(Target target, Ask ask)
    {
        std::swap(target, target_);
        auto result = ask();
        std::swap(target, target_);
        return result;
    }

    bool search(const Value *value);
    bool search_paths(const Instruction &choice);
    const Value *pointer_on_path(const Instruction &choice, unsigned n) const;
    bool is_loaded(const Value *value);
    bool is_known(const Instruction &known);
    bool is_replaced(const Instruction &known);
    bool is_elsewhere(const Instruction &write) const;
    bool is_current(const Instruction &known) const;
    bool is_at(const LoadInst &load, uint64_t byte) const;
    bool is_changed_by(const Value *bits);
    std::optional<APInt> distance_to_place(const Value *pointer) const;
    bool is_lane(const Value *value, uint64_t byte, uint64_t size);
    bool is_stored(const Value *value);
    bool is_cut_out(const Value *value);
    bool may_have_moved(const PHINode &phi) const;
    ArrayRef<Covering> stores();

    const Instruction &update_;
    const DataLayout &layout_;
    const Analyses &analyses_;
    Target target_;
    Paths paths_;
    unsigned steps_ = 0;
    bool is_asking_stores_ = false;  // whether each store over the place is an update, too
    bool may_bring_ = false;         // a piece of a pointer, see Update
    SmallVector<Asked, 8> around_;   // what is asked on the way: a loop leads back to it
    SmallDenseSet<Asked, 8> others_; // no updates: so each is asked once
    SmallPtrSet<const Instruction *, 8> readers_; // of variables: so each is asked once
    SmallDenseSet<Asked, 8> lanes_;               // of which byte of a vector: likewise
};

/* The pointer on a path, if it is chosen together with the value. Else NULL. */
const Value *UpdateSearch::pointer_on_path(const Instruction &choice, unsigned n) const
{
    if (auto *phi = dyn_cast<PHINode>(&choice)) {
        auto *pointers = dyn_cast<PHINode>(target_.place.base);
        if (!pointers || pointers->getParent() != phi->getParent())
            return nullptr;
        const BasicBlock *from = phi->getIncomingBlock(n); // the same in all phis, in most cases
        return pointers->getIncomingBlock(n) == from ? pointers->getIncomingValue(n)
                                                     : pointers->getIncomingValueForBlock(from);
    }
    auto *pointers = dyn_cast<SelectInst>(target_.place.base);
    return pointers && pointers->getCondition() == cast<SelectInst>(choice).getCondition()
               ? pointers->getOperand(n)
               : nullptr;
}

/* How many bytes the place lies behind a pointer. A loop of vectors computes the address of each lane anew,
 * so the addresses are subtracted. */
std::optional<APInt> UpdateSearch::distance_to_place(const Value *pointer) const
{
    if (pointer->getType() != target_.pointer->getType() || !pointer->getType()->isPointerTy())
        return std::nullopt;
    ScalarEvolution &evolution = analyses_.evolution;
    const Target other = target_at(pointer, 0, layout_);
    const SCEV *from = evolution.getSCEV(const_cast<Value *>(other.pointer)),
               *to = evolution.getSCEV(const_cast<Value *>(target_.pointer));
    std::optional<APInt> apart;
    if (auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(to, from)))
        apart = distance->getAPInt();
    else if (auto lanes = bytes_between_lanes(other.pointer, target_.pointer, layout_))
        apart = APInt(64, static_cast<uint64_t>(*lanes), true);
    if (apart)
        *apart += target_.behind - other.behind;
    return apart;
}

/* Whether a byte that was loaded is the first one of the place. */
bool UpdateSearch::is_at(const LoadInst &load, uint64_t byte) const
{
    auto distance = distance_to_place(load.getPointerOperand());
    return distance && *distance == byte;
}

/* Whether a write leaves the place as it is. A variable of the function is no place in the arena. */
bool UpdateSearch::is_elsewhere(const Instruction &write) const
{
    auto *call = dyn_cast<IntrinsicInst>(&write);
    auto *store = dyn_cast<StoreInst>(&write);
    if (!store)
        return call && call->isAssumeLikeIntrinsic();
    if (isa<AllocaInst>(getUnderlyingObject(store->getPointerOperand())))
        return true;
    auto distance = distance_to_place(store->getPointerOperand());
    return distance &&
           (distance->sge(layout_.getTypeStoreSize(store->getValueOperand()->getType())) ||
            distance->sle(-static_cast<int64_t>(word_size)));
}

/* Whether the place is certainly as it was at `known`. */
bool UpdateSearch::is_current(const Instruction &known) const
{
    const Instruction *i = update_.getPrevNode();
    for (unsigned n = 0; i && i != &known && n < distance_limit; n++, i = i->getPrevNode())
        if (i->mayWriteToMemory() && !is_elsewhere(*i))
            return false;
    return i == &known;
}

/* Whether a value was loaded from there, perhaps as a part of the word, or by a comparison that failed. If
 * the optimiser has loaded the word already, it cuts the value out. */
bool UpdateSearch::is_loaded(const Value *value)
{
    if (auto *old = dyn_cast<ExtractValueInst>(value))
        if (auto *exchange = dyn_cast<AtomicCmpXchgInst>(old->getAggregateOperand()))
            return target_at(exchange->getPointerOperand(), 0, layout_).place == target_.place &&
                   is_known(*exchange);
    if (auto *call = dyn_cast<IntrinsicInst>(value);
        call && call->onlyReadsMemory() && call->mayReadFromMemory()) // of lanes
        return any_of(call->args(), [&](const Use &argument) {
            return argument->getType() == target_.pointer->getType() &&
                   target_at(argument, 0, layout_).place == target_.place && is_known(*call);
        });
    int64_t at = 0;
    const LoadInst *load = load_of_part(const_cast<Value *>(value), at, layout_);
    if (!load)
        return false;
    Place place = target_at(load->getPointerOperand(), 0, layout_).place;
    const auto place_byte = static_cast<uint64_t>(at);
    place.offset += place_byte;
    return (place == target_.place || is_at(*load, place_byte)) && !is_replaced(*load) &&
           is_known(*load);
}

/* True. Notes whether the place may have been overwritten since `known` read or wrote it. */
bool UpdateSearch::is_known(const Instruction &known)
{
    may_bring_ |= !is_current(known);
    return true;
}

/* The stores over the place. Those shortly before may have computed the address in another way. */
ArrayRef<Covering> UpdateSearch::stores()
{
    auto &found = target_.stores;
    if (found)
        return *found;
    found = stores_over(target_.place, update_, layout_);
    if (target_.given.base != target_.place.base)
        found->append(stores_over(target_.given, update_, layout_));
    const Instruction *i = update_.getPrevNode();
    for (unsigned n = 0; i && n < distance_limit; n++, i = i->getPrevNode()) {
        auto *store = dyn_cast<StoreInst>(i);
        auto distance = store ? distance_to_place(store->getPointerOperand()) : std::nullopt;
        const bool is_known = any_of(*found, [&](const Covering &c) { return c.store == store; });
        if (distance && !is_known &&
            distance->ult(layout_.getTypeStoreSize(store->getValueOperand()->getType())))
            found->push_back({store, distance->getZExtValue()});
    }
    return *found;
}

/* Whether another store has replaced what was known of the place. Then the update puts it back, like a second
 * swap. Only stores of the same block count. For others see Update::may_bring. */
bool UpdateSearch::is_replaced(const Instruction &known)
{
    if (is_asking_stores_)
        return false; // or the question might never end
    SmallVector<Asked, 8> around;
    around.swap(around_);
    is_asking_stores_ = true;
    bool result = any_of(stores(), [&](const Covering &c) {
        const BasicBlock *block = c.store->getParent();
        return block == known.getParent() && block == update_.getParent() &&
               known.comesBefore(c.store) && c.store->comesBefore(&update_) &&
               !search(c.store->getValueOperand());
    });
    is_asking_stores_ = false;
    around.swap(around_);
    return result;
}

/* Whether some bytes of a vector were loaded from there, and bits were set or cleared. A loop of vectors
 * stores the lanes one by one, unless they stand side by side. */
bool UpdateSearch::is_lane(const Value *value, uint64_t byte, uint64_t size)
{
    const ByteOf first = origin_of_bytes(value, byte, size, layout_);
    if (!first.value || !lanes_.insert({first.value, {target_.pointer, first.byte}}).second)
        return false;
    const Value *a, *b;
    if (first.value->getType()->isVectorTy() &&
        match(first.value, m_BitwiseLogic(m_Value(a), m_Value(b))))
        return is_lane(a, first.byte, size) || is_lane(b, first.byte, size);
    auto *load = dyn_cast<LoadInst>(first.value);
    return load && is_at(*load, first.byte) && is_known(*load);
}

/* Whether another store has put the value there, with more bytes than the update has. The optimiser uses the
 * value that it knows, instead of loading it again. Or it knows that what the program has read elsewhere is
 * the same: then the update brings a piece. */
bool UpdateSearch::is_stored(const Value *value)
{
    const uint64_t size = layout_.getTypeStoreSize(value->getType());
    const bool is_word = size >= word_size;
    const bool result = any_of(stores(), [&](const Covering &c) {
        const Value *whole = c.store->getValueOperand();
        return (is_word || layout_.getTypeStoreSize(whole->getType()) > size) &&
               is_part_of(value, whole, c.before, layout_) &&
               isPotentiallyReachable(c.store, &update_) && !is_replaced(*c.store) &&
               is_known(*c.store);
    });
    may_bring_ |= result && (is_word || may_be_piece(const_cast<Value *>(value)));
    return result;
}

/* Whether a value was cut out of one that paths have chosen, and the whole one would be an update, too. It
 * begins before the place. */
bool UpdateSearch::is_cut_out(const Value *value)
{
    const uint64_t size = layout_.getTypeStoreSize(value->getType());
    const ByteOf first = origin_of_bytes(value, 0, size, layout_);
    if (first.value == value || !isa_and_nonnull<PHINode, SelectInst>(first.value))
        return false;
    may_bring_ = true; // other bytes of the whole one may differ
    return with_target(target_at(target_.pointer, target_.behind - first.byte, layout_),
                       [&] { return search(first.value); });
}

/* What a loop of vectors changes in place of one number: the number is in one lane, and the lanes are
 * joined in the end. */
const Value *joined_lanes(const Value *value)
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

/* One of two numbers: the optimiser has joined two stores. */
bool is_choice(const Value *value)
{
    return match(value, m_Select(m_Value(), m_ConstantInt(), m_ConstantInt()));
}

/* Whether a value may differ from what it was where the paths of a phi meet. A computation from older values
 * yields the same wherever it stands. */
bool is_computed_since(const Value *value, const PHINode &phi, const DominatorTree &dominators,
                       unsigned depth)
{
    constexpr unsigned depth_limit = 4;
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || dominators.properlyDominates(instruction->getParent(), phi.getParent()))
        return false;
    return depth == depth_limit || !isa<GetElementPtrInst, BinaryOperator, CastInst>(instruction) ||
           any_of(instruction->operands(), [&](const Value *operand) {
               return is_computed_since(operand, phi, dominators, depth + 1);
           });
}

/* Whether a loop may have moved the place since paths met: what was loaded there is of another word. */
bool UpdateSearch::may_have_moved(const PHINode &phi) const
{
    return is_computed_since(target_.place.base, phi, analyses_.dominators, 0);
}

/* True. Notes whether the bits that are set may be a piece. */
bool UpdateSearch::is_changed_by(const Value *bits)
{
    may_bring_ |= may_be_piece(const_cast<Value *>(bits));
    return true;
}

/* Whether a phi or a select chooses between updates. */
bool UpdateSearch::search_paths(const Instruction &choice)
{
    auto *phi = dyn_cast<PHINode>(&choice);
    auto is = [&](unsigned n) {
        const Value *value = choice.getOperand(n);
        return (!phi && search(value)) || on_path(choice, n, [&] { return search(value); });
    };
    if (phi) {
        may_bring_ = true; // the value may be of an earlier round of a loop
        if (!pointer_on_path(*phi, 0) && may_have_moved(*phi))
            return false;
    }
    auto values = seq<unsigned>(phi ? 0 : 1, choice.getNumOperands());
    return paths_ == All ? all_of(values, is) : any_of(values, is);
}

bool UpdateSearch::search(const Value *value)
{
    constexpr unsigned depth_limit = 16; // of a loop of vectors, with several of them
    constexpr unsigned steps_limit = 4096;
    const Value *a, *b;
    if (is_loaded(value) || isa<UndefValue>(value))
        return true;
    if (const Value *variable = variable_of(value))
        return (paths_ == All || is_fixed(target_.place.base)) &&
               is_in_variable(variable, *cast<Instruction>(value));
    if (isa<PHINode>(value) && is_contained(around_, asked(value)))
        return paths_ == All;
    if (around_.size() > depth_limit || others_.contains(asked(value)) || ++steps_ > steps_limit)
        return false;
    around_.push_back(asked(value));
    auto is = [&](const Value *other) { return search(other); };
    bool result;
    if (match(value, m_And(m_Value(a), m_Value(b))))
        result = is(a) || is(b);
    else if (match(value, m_Or(m_Value(a), m_Value(b))) ||
             (match(value, m_Xor(m_Value(a), m_Value(b))) &&
              (value->getType()->isVectorTy() || is_choice(a) || is_choice(b))))
        result = is(a) ? is_changed_by(b) : is(b) && is_changed_by(a);
    else if (const Value *lanes = joined_lanes(value))
        result = is(lanes);
    else if (isa<ExtractElementInst>(value))
        result = is_stored(value) || is_cut_out(value) ||
                 is_lane(value, 0, layout_.getTypeStoreSize(value->getType()));
    else if (isa<PHINode, SelectInst>(value))
        result = search_paths(*cast<Instruction>(value));
    else
        result = is_stored(value) || is_cut_out(value) ||
                 ((match(value, m_Trunc(m_Value(a))) || match(value, m_ZExtOrSExt(m_Value(a))) ||
                   match(value, m_BitwiseLogic(m_Value(a), m_ConstantInt()))) &&
                  is(a));
    around_.pop_back();
    if (!result)
        others_.insert(asked(value));
    return result;
}

/* Whether a write to a variable puts an update there. */
bool UpdateSearch::is_written(const Instruction &write)
{
    if (auto *copy = dyn_cast<AnyMemTransferInst>(&write))
        return target_at(copy->getRawSource(), 0, layout_).place == target_.place;
    auto *store = dyn_cast<StoreInst>(&write);
    return store && search(store->getValueOperand());
}

/* Whether `at` reads an update from the variable, whichever write was the last, or for one of them. */
bool UpdateSearch::is_in_variable(const Value *variable, const Instruction &at)
{
    if (!readers_.insert(&at).second)
        return paths_ == All;
    may_bring_ = true;
    SmallVector<Asked, 8> around;
    around.swap(around_);
    auto writes = last_writes(variable, at);
    auto is = [&](const Instruction *write) { return is_written(*write); };
    bool result = paths_ == All ? !writes.empty() && all_of(writes, is) : any_of(writes, is);
    around.swap(around_);
    return result;
}

/* Computes on which paths a stored value is an update. The optimiser makes stores that are one on some only:
 * it joins a tag and a store of another value. And if a word is put together of its own parts, it stores only
 * the parts that may have changed. */
class UpdatePaths
{
  public:
    UpdatePaths(const StoreInst &store, const Analyses &analyses)
        : store_(store), all_(store, store.getPointerOperand(), analyses),
          any_(store, store.getPointerOperand(), analyses, UpdateSearch::Any)
    {
    }

    Update find();

  private:
    Value *of(Value *value);
    Value *of_path(Instruction &choice, unsigned n);
    Value *of_operands(Instruction &operation);
    Value *of_variable(const Value *variable, Instruction &reader);

    const StoreInst &store_;
    UpdateSearch all_, any_;
    SmallDenseMap<UpdateSearch::Asked, Value *> known_;
};

Update UpdatePaths::find()
{
    constexpr size_t blocks_limit = 256; // a switch of thousands of cases would take minutes
    Value *value = const_cast<Value *>(store_.getValueOperand());
    if (all_.is_update(value))
        return {ConstantInt::getTrue(value->getContext()), all_.may_bring()};
    if (store_.getFunction()->size() > blocks_limit || !any_.is_update(value))
        return {};
    Value *paths = of(value);
    if (isa<Constant>(paths)) // vectors are not followed
        return {};
    return {paths, all_.may_bring() || any_.may_bring()};
}

Value *UpdatePaths::of_operands(Instruction &operation)
{
    IRBuilder<> builder(&operation);
    Value *result = builder.getFalse();
    for (Value *operand : operation.operands())
        result = builder.CreateOr(result, of(operand));
    return result;
}

/* In code without optimisation a variable of its own says whether `reader` reads an update. */
Value *UpdatePaths::of_variable(const Value *variable, Instruction &reader)
{
    IRBuilder<> builder(&*reader.getFunction()->getEntryBlock().getFirstInsertionPt());
    AllocaInst *holds = builder.CreateAlloca(builder.getInt1Ty());
    builder.CreateStore(builder.getFalse(), holds);
    builder.SetInsertPoint(&reader);
    Value *result = known_[all_.asked(&reader)] = builder.CreateLoad(builder.getInt1Ty(), holds);
    for (const Instruction *write : last_writes(variable, reader)) {
        auto *store = dyn_cast<StoreInst>(write);
        Value *written = store ? of(const_cast<Value *>(store->getValueOperand()))
                               : builder.getInt1(all_.is_written(*write));
        builder.SetInsertPoint(const_cast<Instruction *>(write->getNextNode()));
        builder.CreateStore(written, holds);
    }
    return result;
}

Value *UpdatePaths::of_path(Instruction &choice, unsigned n)
{
    Value *value = choice.getOperand(n);
    if (isa<SelectInst>(choice) && any_.is_update(value))
        return of(value);
    return all_.on_path(choice, n,
                        [&] { return any_.on_path(choice, n, [&] { return of(value); }); });
}

Value *UpdatePaths::of(Value *value)
{
    LLVMContext &context = value->getContext();
    if (all_.is_update(value))
        return ConstantInt::getTrue(context);
    auto *instruction = dyn_cast<Instruction>(value);
    if (!instruction || !any_.is_update(value))
        return ConstantInt::getFalse(context);
    const UpdateSearch::Asked asked = all_.asked(value);
    if (Value *known = known_.lookup(asked))
        return known;
    if (const Value *variable = variable_of(value))
        return of_variable(variable, *instruction);
    Value *result = ConstantInt::getFalse(context);
    if (auto *phi = dyn_cast<PHINode>(value)) {
        auto *paths = PHINode::Create(Type::getInt1Ty(context), phi->getNumIncomingValues(), "",
                                      phi->getIterator());
        known_[asked] = paths; // a loop leads back to it
        for (unsigned i = 0; i < phi->getNumIncomingValues(); i++)
            paths->addIncoming(of_path(*phi, i), phi->getIncomingBlock(i));
        return paths;
    }
    if (auto *select = dyn_cast<SelectInst>(value))
        result = IRBuilder<>(select).CreateSelect(select->getCondition(), of_path(*select, 1),
                                                  of_path(*select, 2));
    else if (isa<BinaryOperator, CastInst>(instruction) && !value->getType()->isVectorTy())
        result = of_operands(*instruction);
    return known_[asked] = result;
}

bool is_bitwise(AtomicRMWInst::BinOp operation)
{
    return operation == AtomicRMWInst::And || operation == AtomicRMWInst::Or ||
           operation == AtomicRMWInst::Xor;
}

/* Whether a part of a word of this type may have the tag of a pointer, for example the first byte. */
bool may_have_tag(const Type *type)
{
    return type->isIntegerTy() && type->getIntegerBitWidth() < 64;
}

} // namespace

static Update on_all_paths(const Instruction &update, bool is_update, const UpdateSearch &search)
{
    if (!is_update)
        return {};
    return {ConstantInt::getTrue(update.getContext()), search.may_bring()};
}

/* Without optimisation memcpy() may take a part of a pointer to a variable and back. */
Update find_update(const AnyMemTransferInst &copy, const Analyses &analyses)
{
    UpdateSearch search(copy, copy.getRawDest(), analyses);
    return on_all_paths(
        copy, copy.getFunction()->hasOptNone() && search.is_in_variable(copy.getRawSource(), copy),
        search);
}

Update find_update(const CallBase &store, const Value *pointer, const Value *lanes,
                   const Analyses &analyses)
{
    UpdateSearch search(store, pointer, analyses);
    return on_all_paths(store, search.is_update(lanes), search);
}

Update find_update(const StoreInst &store, const Analyses &analyses)
{
    if (!may_have_tag(store.getValueOperand()->getType()) || is_typed_field(store))
        return {};
    return UpdatePaths(store, analyses).find();
}

bool is_update(const AtomicRMWInst &update)
{
    const Type *type = update.getValOperand()->getType();
    AtomicRMWInst::BinOp operation = update.getOperation();
    if (type->isIntegerTy(64))
        return is_bitwise(operation) || operation == AtomicRMWInst::Add ||
               operation == AtomicRMWInst::Sub;
    return is_bitwise(operation) && may_have_tag(type);
}

Update find_update(const AtomicCmpXchgInst &exchange, const Analyses &analyses)
{
    UpdateSearch search(exchange, exchange.getPointerOperand(), analyses);
    return on_all_paths(exchange, search.is_update(exchange.getNewValOperand()), search);
}

} // namespace pmcc

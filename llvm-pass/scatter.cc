/*
 * The addresses of lanes are a base and a vector of indices, which a loop counts up together. So lane n is so
 * many bytes behind lane 0 in each round as in the first.
 */
#include "scatter.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace pmcc
{

constexpr unsigned depth_limit = 6;

/* The vectoriser asks what the function's target prefers. */
void forbid_scatters(Module &module)
{
    constexpr char features[] = "target-features";
    for (Function &function : module)
        if (Attribute known = function.getFnAttribute(features); known.isStringAttribute())
            function.addFnAttr(
                features,
                (known.getValueAsString() + ",+prefer-no-gather,+prefer-no-scatter").str());
}

/* By how much the index of a lane is larger than that of lane 0. */
class Indices
{
  public:
    explicit Indices(unsigned lane) : lane_(lane) {}

    std::optional<int64_t> distance(const Value *indices, unsigned depth = 0)
    {
        const Value *a, *b;
        const APInt *factor;
        if (depth > depth_limit)
            return std::nullopt;
        if (auto *constant = dyn_cast<Constant>(indices))
            return of_constant(*constant);
        if (getSplatValue(indices))
            return 0;
        if (indices == phi_)
            return of_phi_;
        if (auto *phi = dyn_cast<PHINode>(indices))
            return phi_ ? std::nullopt : of_loop(*phi, depth);
        if (match(indices, m_Shl(m_Value(a), m_APInt(factor))) && factor->ult(64))
            return scaled(distance(a, depth + 1), uint64_t{1} << factor->getZExtValue());
        if (match(indices, m_Mul(m_Value(a), m_APInt(factor))))
            return scaled(distance(a, depth + 1), factor->getZExtValue());
        if (!match(indices, m_Add(m_Value(a), m_Value(b))))
            return std::nullopt;
        auto of_a = distance(a, depth + 1), of_b = distance(b, depth + 1);
        return of_a && of_b ? std::optional(*of_a + *of_b) : std::nullopt;
    }

  private:
    /* Addresses wrap around, and so does this. */
    static std::optional<int64_t> scaled(std::optional<int64_t> distance, uint64_t factor)
    {
        return distance
                   ? std::optional(static_cast<int64_t>(static_cast<uint64_t>(*distance) * factor))
                   : std::nullopt;
    }

    std::optional<int64_t> of_constant(const Constant &indices) const
    {
        auto *first = dyn_cast_or_null<ConstantInt>(indices.getAggregateElement(0u));
        auto *own = dyn_cast_or_null<ConstantInt>(indices.getAggregateElement(lane_));
        return first && own ? std::optional(own->getSExtValue() - first->getSExtValue())
                            : std::nullopt;
    }

    /* The first value comes from outside. If the others have the same distance as the phi, it stays. */
    std::optional<int64_t> of_loop(const PHINode &phi, unsigned depth)
    {
        std::optional<int64_t> begin;
        for (const Value *incoming : phi.incoming_values())
            if (!begin)
                begin = distance(incoming, depth + 1);
        if (!begin)
            return std::nullopt;
        phi_ = &phi;
        of_phi_ = *begin;
        bool stays = all_of(phi.incoming_values(), [&](const Value *incoming) {
            return distance(incoming, depth + 1) == begin;
        });
        phi_ = nullptr;
        return stays ? begin : std::nullopt;
    }

    const unsigned lane_;
    const PHINode *phi_ = nullptr;
    int64_t of_phi_ = 0;
};

/* The index of a lane's address: which lane of which vector. NULL: it is none. The index has as many bits as
 * the address, so nothing overflows in one and not in the other. */
static const Value *vector_of_index(const GetElementPtrInst &address, uint64_t &lane)
{
    const Value *indices;
    return address.getNumIndices() == 1 && address.getOperand(1)->getType()->isIntegerTy(64) &&
                   match(address.getOperand(1), m_ExtractElt(m_Value(indices), m_ConstantInt(lane)))
               ? indices
               : nullptr;
}

std::optional<int64_t> bytes_between_lanes(const Value *from, const Value *to,
                                           const DataLayout &layout)
{
    auto *first = dyn_cast<GetElementPtrInst>(from), *second = dyn_cast<GetElementPtrInst>(to);
    if (!first || !second || first->getPointerOperand() != second->getPointerOperand() ||
        first->getSourceElementType() != second->getSourceElementType())
        return std::nullopt;
    uint64_t lane = 0, other = 0;
    const Value *indices = vector_of_index(*first, lane);
    if (!indices || indices != vector_of_index(*second, other))
        return std::nullopt;
    auto a = Indices(static_cast<unsigned>(lane)).distance(indices),
         b = Indices(static_cast<unsigned>(other)).distance(indices);
    const auto stride =
        static_cast<int64_t>(layout.getTypeAllocSize(first->getSourceElementType()));
    return a && b ? std::optional((*b - *a) * stride) : std::nullopt;
}

} // namespace pmcc

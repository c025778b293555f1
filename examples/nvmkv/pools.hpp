// Which pools a store has: a sector each in region 0, and what is known of them in memory.
#ifndef EXAMPLES_NVMKV_POOLS_HPP
#define EXAMPLES_NVMKV_POOLS_HPP

#include "nvmkv/ftl.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nvmkv
{

/// Whether a pool is there may be asked by any thread; all else needs the store's lock.
class Pools
{
  public:
    /// `count` pools at most. Reads what the store has; throws EBADMSG if that is none.
    Pools(Ftl &ftl, uint32_t count);

    bool live(uint32_t pool) const { return pool < count_ && generation(pool) % 2 == 1; }
    /// Another number each time that the pool is made or deleted.
    uint32_t generation(uint32_t pool) const { return generations_[pool].load(); }

    std::optional<uint32_t> find(std::string_view name) const;
    const std::map<std::string, uint32_t, std::less<>> &names() const { return names_; }
    /// Those whose deletion is under way.
    const std::vector<uint32_t> &doomed() const { return doomed_; }

    // Each makes one change of the address space, which is to be waited for.
    std::optional<uint32_t> free_number() const;
    Ftl::Ticket create(uint32_t pool, std::string_view name);
    Ftl::Ticket doom(uint32_t pool);
    Ftl::Ticket forget(uint32_t pool); // a doomed one that has no pairs any more

  private:
    enum State : uint32_t { alive = 1, deleting = 2 };
    Ftl::Ticket record(uint32_t pool, State state, std::string_view name);

    Ftl &ftl_;
    uint32_t count_;
    std::unique_ptr<std::atomic<uint32_t>[]> generations_; // odd: it is there
    std::map<std::string, uint32_t, std::less<>> names_;   // of all but the default pool
    std::vector<uint32_t> doomed_;
};

} // namespace nvmkv

#endif

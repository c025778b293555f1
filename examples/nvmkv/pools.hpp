// The pools of a store. Each has a sector in region 0, and an entry in memory.
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

/// Any thread may call live() and generation(). All other functions need the store's lock.
class Pools
{
  public:
    /// Reads the store's pools, `count` at most. Throws EBADMSG if a sector is no pool.
    Pools(Ftl &ftl, uint32_t count);

    bool live(uint32_t pool) const { return pool < count_ && generation(pool) % 2 == 1; }
    /// A number that changes each time the pool is created or deleted. Odd: the pool exists.
    uint32_t generation(uint32_t pool) const { return generations_[pool].load(); }

    std::optional<uint32_t> find(std::string_view name) const;
    const std::map<std::string, uint32_t, std::less<>> &names() const { return names_; }
    /// The pools whose deletion is under way.
    const std::vector<uint32_t> &doomed() const { return doomed_; }

    // Each function that returns a ticket makes one change of the address space. The caller must wait for
    // the ticket.
    std::optional<uint32_t> free_number() const;
    Ftl::Ticket create(uint32_t pool, std::string_view name);
    Ftl::Ticket doom(uint32_t pool);
    Ftl::Ticket forget(uint32_t pool); // a doomed pool that has no pairs any more

  private:
    enum State : uint32_t { alive = 1, deleting = 2 };
    Ftl::Ticket record(uint32_t pool, State state, std::string_view name);

    Ftl &ftl_;
    uint32_t count_;
    std::unique_ptr<std::atomic<uint32_t>[]> generations_; // odd: the pool exists
    std::map<std::string, uint32_t, std::less<>> names_;   // of all but the default pool
    std::vector<uint32_t> doomed_;
};

} // namespace nvmkv

#endif

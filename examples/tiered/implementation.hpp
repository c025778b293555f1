// The inside of a store. What lies in the container comes first, then what this run has.
#ifndef EXAMPLES_TIERED_IMPLEMENTATION_HPP
#define EXAMPLES_TIERED_IMPLEMENTATION_HPP

#include "tiered/store.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace tiered
{

/// What is in the directory of a store, and of a backup.
constexpr const char *container_name = "container.pm", *values_name = "values",
                     *identity_name = "identity";

struct type_state {
    string text; // schema::text()
    records objects{};
};

struct name_state {
    string kind; // the collection's C++ type
    void *object;
};

struct store_root {
    explicit store_root() : extents(in<uint64_t>()), types(in<int>()), names(in<int>()) {}

    struct tier_state {
        char name[32];
        uint64_t used;     // bytes of values
        uint64_t lost_end; // of a volatile tier: values of extents below went with their process
    } tiers[tiers_max]{};
    uint64_t identity = 0;           // the directory of value files has the same
    map<uint64_t, uint64_t> extents; // by tier << 32 | extent: bytes of values to which slots lead
    map<string, type_state> types;
    map<string, name_state> names;

    template <class T> allocator<T> in() { return allocator<T>(this); }
};

inline uint64_t extent_key(uint8_t tier, uint64_t place)
{
    return uint64_t(tier) << 32 | extent_of(place);
}

/// A short value in the container needs no room, and never moves.
constexpr bool lies_in_slot(uint32_t tier, size_t length)
{
    return tier == tier_pm && length <= slot_inline_max;
}

/// What a value counts for in the use of a tier.
constexpr uint64_t bytes_in(uint32_t tier, size_t length)
{
    return lies_in_slot(tier, length) ? 0 : length;
}

uint32_t sum_of(bytes value); // the low half of its XXH3

/// Values that may go elsewhere leave an eighth of a budget to those that may not.
constexpr uint64_t high_water(uint64_t budget)
{
    return budget - budget / 8;
}

/// A copy of the value of a slot, which was `before` and has not changed since.
struct prepared {
    slot before;
    slot after;                   // where the copy is, unless its tier is pm
    std::vector<std::byte> value; // if it is
};

class store::implementation
{
  public:
    implementation(const std::filesystem::path &directory, const options &options);
    ~implementation();

    void *allocate(size_t bytes); // in the container; ENOSPC
    bool has(const void *address) const { return pm_contains(container.get(), address); }
    size_t commit(); // returns how many values have moved
    void rollback();
    void set(slot &to, bytes value, const schema &type, unsigned field);
    void drop(slot &old) { pm_free(forget_value(old)); } // and make it empty
    bool read(const slot &from, std::span<std::byte> value, const schema &type,
              unsigned field) const;
    type_state &state_of(const schema &type) const;
    void demand_record(const void *record,
                       const schema &type) const; // EINVAL: it is none of this type
    uint8_t tier_id(std::string_view name) const; // EINVAL: unknown
    std::string usage_text(uint8_t tier) const;
    void settle();
    void backup(const std::filesystem::path &to);
    void set_budget(uint8_t tier, uint64_t bytes);

    const std::filesystem::path directory;
    pm::container container;
    store_root *root = nullptr;
    std::shared_ptr<tier> tiers[tiers_max];
    uint64_t budgets[tiers_max];
    mutable std::mutex lock; // of the slots, and of what follows

  private:
    struct location {
        uint32_t tier;
        uint64_t place;
    };
    // A value to be moved to a tier, as it was found.
    struct candidate {
        candidate(slot &at, uint8_t tier);
        slot *at;
        uint8_t tier;
        slot before;
        std::vector<std::byte> value; // if it is in the container
    };

    void open_root();
    void check_directory(const std::filesystem::path &container_path);
    void open_tiers(const options &options);
    std::set<uint32_t> extents_to_keep(uint8_t tier);
    void check_types();
    bool has_room(uint8_t tier, const slot &old, uint64_t bytes, bool may_move) const;
    slot place(uint8_t tier, bytes value);
    // By how much a new value makes the use of a tier grow.
    uint64_t growth(uint8_t tier, const slot &old, size_t length) const
    {
        const uint64_t bytes = bytes_in(tier, length);
        const bool counts = old.tier == tier && !is_lost(old);
        return bytes - std::min(bytes, counts ? bytes_in(tier, old.length) : 0);
    }
    void *replace(slot &to, const slot &made);
    void count_live(uint8_t tier, uint64_t place, int64_t bytes);
    bool is_lost(const slot &at) const
    {
        return extent_of(at.where) < root->tiers[at.tier].lost_end;
    }
    void *install(slot &to, const slot &made);
    void *forget_value(slot &from);
    void free_values();
    void forget_copy(const slot &copy);
    void forget_prepared(slot *at);
    size_t publish(); // returns how many values have moved
    void discard_unneeded();

    void set_pending(const slot &from, uint8_t to, int sign);
    bool is_sparse(uint64_t key, uint64_t live) const;
    void look_for_work();
    uint64_t use_to_be(uint8_t tier) const;
    uint8_t target_of(const slot &at, const field &of,
                      bool is_full) const; // tier_none: it may stay
    bool make_room(uint8_t tier, uint64_t bytes);
    void move_now(slot &at, const field &of);
    bool find_candidates(std::vector<candidate> &found);
    bool copy_value(candidate &one, slot &after);
    void prepare(candidate &one);
    bool prepare_some();
    bool has_enough();
    void run_background();

    // Those that the program had when it opened the store; the list changes no more.
    std::vector<std::pair<const schema *, type_state *>> types_;
    std::vector<location> dropped_, set_; // of this transaction
    std::vector<location> to_free_;       // of transactions before, and not during a backup
    std::vector<void *> moved_out_; // of the container in this transaction; a getter may show it
    std::set<uint64_t> emptied_;    // of this transaction: extents
    std::set<uint64_t> unneeded_;   // extents to discard
    unsigned backups_ = 0;          // nothing is discarded meanwhile

    std::unordered_map<slot *, prepared> prepared_;
    std::unordered_set<slot *> in_flight_; // candidates that nobody has changed since
    size_t preparing_ = 0;                 // candidates; a copy of one may lie in any extent
    uint64_t prepared_bytes_ = 0;
    int64_t pending_[tiers_max]{}; // bytes that moves under way will add to a tier's use
    std::mutex moving_;            // who has it may prepare moves
    size_t cursor_type_ = 0;
    void *cursor_ = nullptr;
    uint64_t used_then_[tiers_max]{}; // when the last walk began
    std::condition_variable changed_;
    bool closing_ = false, has_work_ = false;
    std::thread background_;
};

} // namespace tiered

#endif

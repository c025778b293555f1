/*
 * libpm in the mode that this program is built for: the B-tree of examples/, since the others keep
 * their keys in order too. A value of 8 bytes is in the tree itself, a longer one in an object of
 * its own, whose address is in the tree; an update stores over it in place.
 *
 * One lock keeps the threads apart while they change the tree. A single commit is inside of it; a
 * group commit waits for the medium outside, so that another thread can commit meanwhile.
 */
#include "btree/btree.h"
#include "file/database.h"
#include "harness/mode.h"

#include <cstring>
#include <mutex>
#include <stdexcept>

namespace bench
{
namespace
{

template <class Result> Result check(Result result)
{
    if (!result)
        throw std::runtime_error(std::string("libpm: ") + pm_errormsg());
    return result;
}

class Libpm : public Database
{
  public:
    explicit Libpm(const DatabaseOptions &options)
        : value_size_(options.value_size), group_(options.group)
    {
        pm_options ours = mode_options();
        c_ = check(pm_open((options.directory + "/container").c_str(), &ours));
        if (strcmp(stats().medium, "file") != 0)
            throw std::runtime_error("libpm takes the file for persistent memory");
        map_ = static_cast<btree *>(pm_getroot(c_));
        if (!map_) {
            map_ = check(btree_create(c_));
            check(pm_setroot(c_, map_, 0) == 0);
            check(pm_commit(c_) == 0);
        }
    }
    ~Libpm() override { pm_close(c_); }

    void put(std::span<const Put> puts) override
    {
        pm_ticket ticket;
        {
            std::scoped_lock lock(mutex_);
            for (const Put &put : puts)
                change(put);
            if (!group_) {
                check(pm_commit(c_) == 0);
                return;
            }
            ticket = pm_commit_async(c_);
            check(ticket.container);
        }
        check(pm_wait(ticket) == 0);
    }

    bool get(uint64_t key, char *value) override
    {
        uint64_t word;
        if (!btree_lookup(map_, key, &word))
            return false;
        memcpy(value, inlined() ? reinterpret_cast<char *>(&word) : address(word), value_size_);
        return true;
    }

    uint64_t size() override { return btree_size(map_); }

    std::optional<uint64_t> rounds() override { return stats().rounds; }

  private:
    struct pm_stats stats() const
    {
        struct pm_stats stats{};
        stats.size = sizeof stats;
        check(pm_stats(c_, &stats) == 0);
        return stats;
    }

    bool inlined() const { return value_size_ == sizeof(uint64_t); }
    static char *address(uint64_t word) { return reinterpret_cast<char *>(word); }

    void change(const Put &put)
    {
        uint64_t word;
        if (inlined()) {
            memcpy(&word, put.value, sizeof word);
            check(btree_insert(c_, map_, put.key, word) >= 0);
        } else if (btree_lookup(map_, put.key, &word)) {
            memcpy(address(word), put.value, value_size_);
        } else {
            void *object = check(pm_malloc(c_, value_size_));
            memcpy(object, put.value, value_size_);
            check(btree_insert(c_, map_, put.key, reinterpret_cast<uint64_t>(object)) >= 0);
        }
    }

    size_t value_size_;
    bool group_;
    std::mutex mutex_; // the tree's and the open transaction's
    pm_container *c_;
    btree *map_;
};

} // namespace

const char *const database_name = BENCH_MODE;

std::unique_ptr<Database> open_database(const DatabaseOptions &options)
{
    return std::make_unique<Libpm>(options);
}

} // namespace bench

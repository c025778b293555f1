// A container that is nearly full: its child processes (full_worker.cpp), and the memory that they share with
// their parent (full.cpp).
#ifndef TESTS_CRASH_FULL_HPP
#define TESTS_CRASH_FULL_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace full
{

// What is chosen when a container is created.
struct Life {
    uint64_t segment, file_max, object_max, slots; // the first three in bytes
    uint32_t granularity;

    explicit Life(uint64_t seed);
};

// The first words of each object. The others follow from them.
struct Header {
    uint32_t slot, bytes; // bytes is 0: there is no such object
    uint32_t seed, touches;

    bool operator==(const Header &) const = default;
};

// The objects after some transaction.
class Model
{
  public:
    explicit Model(uint64_t slots) : objects_(slots)
    {
        for (uint32_t i = 0; i < slots; i++)
            objects_[i].slot = i;
    }
    void set(const Header &h)
    {
        bytes_ += h.bytes;
        bytes_ -= objects_[h.slot].bytes;
        objects_[h.slot] = h;
    }
    const Header &at(uint32_t slot) const { return objects_[slot]; }
    uint64_t slots() const { return objects_.size(); }
    uint64_t bytes() const { return bytes_; }

  private:
    std::vector<Header> objects_;
    uint64_t bytes_ = 0;
};

// Memory of the parent and its children. A child tells there what it does, for it may die at any moment.
struct Shared {
    std::atomic<uint64_t> begun;   // the transaction of the last commit that has begun
    std::atomic<uint64_t> awaited; // and of the last one that is known to be durable
    std::atomic<uint64_t> changes; // in `change`, since the last judgement
    uint64_t found;                // the transaction that the judge has found
    char violation[1000];

    std::atomic<uint64_t> commits, commits_at_70, rollbacks, full, openings, compactions, copies;
    std::atomic<uint64_t> least, most; // in use at a commit, in percent, once it was filled
    std::atomic<bool> was_filled;

    static constexpr uint64_t CHANGES = 1 << 20;
    struct {
        uint64_t transaction;
        Header now;
    } change[CHANGES];

    bool has_room() const { return changes < CHANGES - 10000; }
    void add(uint64_t transaction, const Header &now)
    {
        change[changes] = {transaction, now};
        changes++;
    }
    // Bring the model from the last judgement to this transaction.
    void replay(Model &model, uint64_t transaction) const
    {
        for (uint64_t i = 0; i < changes && change[i].transaction <= transaction; i++)
            model.set(change[i].now);
    }
    void note_commit(uint64_t in_use, uint64_t of)
    {
        const uint64_t percent = in_use * 100 / of;
        commits++;
        commits_at_70 += percent >= 70;
        was_filled = was_filled || percent >= 70;
        most = std::max(most.load(), percent);
        least = was_filled ? std::min(least.load(), percent) : least.load();
    }
};

constexpr int VIOLATION = 99; // the exit status of a child that has told one

// In a child: open the container, and do at random what a program may do.
void work(Shared &shared, const std::string &path, const Life &life, const Model &model,
          uint64_t seed);

// In a child, after a kill: open the container, and compare it with the model. The model is as after the last
// judgement, and `shared` has the commits since.
void judge(Shared &shared, const std::string &path, const Life &life, const Model &model,
           uint64_t seed);

} // namespace full

#endif

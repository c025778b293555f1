// Runs a subject, crashes it everywhere, runs it again on the state that the crash left, and crashes this
// run too.
//
//   run the subject once, recorded
//     at every event, for every fate and several seeds:
//       load the state that the crash leaves  each state only once
//       run the subject on it: it recovers, is checked, and perhaps goes on for some transactions
//         at some events of this run, or at all: crash again, and so on
//
// Everything follows from the arguments. So the crashes that led to a violation repeat it.
#ifndef PM_SIM_EXPLORER_HPP
#define PM_SIM_EXPLORER_HPP

#include "sim/device.hpp"

#include <functional>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

namespace sim
{

// The promise of libpm is broken.
struct Violation : std::runtime_error {
    using runtime_error::runtime_error;
};

// One run of a subject: from opening to closing, or to the moment that counts as its death.
class Session
{
  public:
    Session(Device &device, std::vector<Bounds> bounds, uint64_t more, bool close)
        : more(more), close(close), device_(device), bounds_(std::move(bounds))
    {
    }

    // A container was found in the state after this many commits. Throws Violation if this cannot be.
    void found(uint32_t container, uint64_t commits);
    // This many commits of a container have begun, and have returned. Threads may report these numbers in
    // another order.
    void begun(uint32_t container, uint64_t commits);
    void returned(uint32_t container, uint64_t commits);
    // Let time pass, in which caches may evict.
    void tick() { device_.tick(); }
    void fail_writes(std::optional<Random> random) { device_.fail_writes(random); }
    const std::vector<std::string> &paths() const { return device_.paths(); }
    // Events after this call do not count.
    void end();

    const uint64_t more; // transactions to run
    const bool close;    // then close the containers; otherwise the end of the run is not checked

  private:
    void set(uint32_t container, Bounds bounds);

    Device &device_;
    std::vector<Bounds> bounds_;
};

class Subject
{
  public:
    virtual ~Subject() = default;
    // Open the containers at the session's paths, check everything, run transactions, close. Throws
    // Violation. Must leave nothing open, even if it throws.
    virtual void run(Session &session) = 0;
};

struct Plan {
    uint64_t transactions;
    uint64_t seeds;  // seeds of Fate::SOME at each event
    uint64_t nested; // crashes in each recovery; UINT64_MAX: at each of its events, as in the first run
    uint64_t depth;  // crashes in a row, at most
};

struct Counts {
    uint64_t events = 0;  // events of the first run
    uint64_t crashes = 0; // crashes examined; many leave a state that another crash has left
    uint64_t states = 0;  // distinct contents of the files after a power failure, new to States
    uint64_t deaths = 0;  // deaths of the process, with distinct states of caches and medium
    uint64_t recoveries = 0;
    void operator+=(const Counts &other);
};

// Hashes of the files' contents after power failures.
using States = std::unordered_set<uint64_t>;

class Explorer
{
  public:
    // The explorer adds to `states`; several explorations may share it.
    Explorer(Device &device, Subject &subject, const Plan &plan, States &states);

    // The first run, and everything that follows from it. Throws Violation.
    void explore();
    // The first run, then these crashes in a row. If a crash is at an event that does not exist,
    // std::out_of_range: it was found in another program.
    void repeat(const std::vector<Crash> &crashes);
    const Counts &counts() const { return counts_; }
    // The crashes that led to the present state.
    const std::vector<Crash> &path() const { return path_; }

  private:
    struct Level {
        Recording recording;
        Memory memory;
        Image image;
    };

    void run_first();
    void visit_all(size_t depth, std::vector<Bounds> bounds);
    void visit_some(size_t depth, std::vector<Bounds> bounds);
    void visit_event(Cursor &cursor, uint32_t event, size_t depth);
    bool strike(Cursor &cursor, const Crash &crash, size_t depth, bool record);
    bool is_news(const Cursor &cursor, const Crash &crash, size_t depth);
    uint64_t path_hash() const;
    Level &level(size_t depth);
    bool is_exhaustive() const { return plan_.nested == UINT64_MAX; }

    Device &device_;
    Subject &subject_;
    Plan plan_;
    Counts counts_;
    std::vector<std::unique_ptr<Level>> levels_;
    std::vector<Crash> path_;
    States &states_;
    std::unordered_map<uint64_t, size_t> visited_; // hash of state and bounds; depth
};

} // namespace sim

#endif

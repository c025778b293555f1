// A program under simulation: containers with a workload each, opened as an option list says.
#ifndef TESTS_SIMULATION_SUBJECT_HPP
#define TESTS_SIMULATION_SUBJECT_HPP

#include "sim/explorer.hpp"
#include "simulation/workload.hpp"

#include <functional>

namespace simulation
{

struct Setup {
    std::string structure = "rbtree", profile = "small", mode = "undo";
    sim::Kind medium = sim::Kind::PMEM;
    uint64_t seed = 1;
    unsigned containers = 1;
    unsigned async = 0;      // commits that are waited for together; 0: each by itself
    bool concurrent = false; // options.concurrent_stores
    bool full = false;      // now and then the disk is full during a commit, which is then repeated
    unsigned threads = 1;   // that run transactions in turn, and wait for commits together
    bool moved = false;     // see moving.hpp; structure and profile mean nothing then
    bool elsewhere = false; // so too
    bool compacted = false; // see compacting.hpp; likewise
    bool discovered = false; // see discovering.hpp; likewise, and the mode
    uint64_t checkpoints =
        0; // options.checkpoint_bytes: the log engine's checkpoints, none of which is refused
    bool bounded = false; // options.private_max, as little as there can be
    bool cleans = false;  // the log engine's cleaner works at each commit
};

class Program : public sim::Subject
{
  public:
    explicit Program(const Setup &setup);
    uint64_t checks() const { return checks_; }

  protected:
    struct Closer {
        void operator()(pm_container *c) const { pm_close(c); }
    };
    using Container = std::unique_ptr<pm_container, Closer>;

    // That a call of libpm has not failed.
    static void require(bool good, const char *what);
    // Open one. It is not read without a checkpoint that it has. Each fourth writer wants none.
    Container open(const std::string &path) const;
    // That a container is whole: for libpm, as `structure` sees it, which throws what is wrong, and
    // that nothing in it is lost.
    void require_whole(pm_container *c, uint64_t commits, const std::function<void()> &structure);

    const Setup setup_;
    pm_options options_{};
    uint64_t checks_ = 0;
};

// A program that changes one container and commits it, again and again.
class Repeating : public Program
{
  public:
    using Program::Program;
    void run(sim::Session &session) override;

  protected:
    // That the container is whole. How many commits it has.
    virtual uint64_t check(pm_container *c) = 0;
    virtual void change(pm_container *c, uint64_t commits) = 0;
    virtual void commit(pm_container *c, uint64_t commits);
};

class Subject : public Program
{
  public:
    explicit Subject(const Setup &setup);
    void run(sim::Session &session) override;

  private:
    uint64_t check(pm_container *c, uint32_t number);
    void transact(sim::Session &session, pm_container *c, uint32_t number, uint64_t transaction);
    void transact_all(sim::Session &session, const std::vector<Container> &open,
                      std::vector<uint64_t> &commits);
    void transact_in_threads(sim::Session &session, pm_container *c, uint64_t &commits);
    void change_after_failure(sim::Session &session, pm_container *c, uint32_t number,
                              uint64_t transaction);
    pm_ticket commit(sim::Session &session, pm_container *c, uint32_t number, uint64_t transaction);
    void wait_for_all(sim::Session &session, uint32_t number, uint64_t commits);

    std::vector<Workload> workloads_; // one a container
    std::vector<pm_ticket> tickets_;  // the newest of each container
};

} // namespace simulation

#endif

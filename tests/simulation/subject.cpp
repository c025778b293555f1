#include "simulation/subject.hpp"

#include "common/mode.hpp"

#include "sim/random.hpp"
#include "sim/threads.hpp"
#include "simulation/reach.hpp"

extern "C" {
#include "container/format.h"

extern bool log_cleans_always; // txn/log/log.h
}

#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <stdexcept>

namespace simulation
{

using sim::Violation;

void Program::require(bool good, const char *what)
{
    if (!good)
        throw Violation(std::string(what) + ": " + pm_errormsg());
}

void Program::require_whole(pm_container *c, uint64_t commits,
                            const std::function<void()> &structure)
{
    checks_++;
    try {
        require(pm_check(c) == 0, "pm_check");
        structure();
    } catch (const std::runtime_error &e) {
        throw Violation("after commit " + std::to_string(commits) + ": " + e.what());
    }
    std::string wrong = check_reach(c);
    if (!wrong.empty())
        throw Violation("after commit " + std::to_string(commits) + ": " + wrong);
}

Program::Program(const Setup &setup) : setup_(setup)
{
    options_.size = sizeof options_;
    options_.flags = PM_CREATE;
    test::set_mode(options_, setup.mode);
    const bool puts = profile_by_name(setup.profile).puts;
    options_.segment_size = (puts ? 256 : 64) << 10; // boundaries are near, files small
    options_.max_size = puts ? 16 << 20 : 4 << 20;
    options_.concurrent_stores = setup.concurrent;
    options_.checkpoint_bytes = setup.checkpoints;
    options_.private_max = setup.bounded;
    log_cleans_always = setup.cleans;
}

// How often the container was opened for writing.
static uint64_t openings(const std::string &path)
{
    uint64_t word = 0;
    std::ifstream file(path, std::ios::binary);
    file.seekg(FORMAT_STATE + offsetof(format_state, incarnation));
    file.read(reinterpret_cast<char *>(&word), sizeof word);
    return seal_payload(word);
}

Program::Container Program::open(const std::string &path) const
{
    pm_options options = options_;
    if (setup_.checkpoints && openings(path) % 4 == 3)
        options.checkpoint_bytes = options.private_max = 0;
    Container c(pm_open(path.c_str(), &options));
    require(c != nullptr, "pm_open");
    if (setup_.checkpoints && strstr(pm_errormsg(), "so all of the log is read"))
        throw Violation(std::string("pm_open: ") + pm_errormsg());
    return c;
}

void Repeating::commit(pm_container *c, uint64_t)
{
    require(pm_commit(c) == 0, "pm_commit");
}

void Repeating::run(sim::Session &session)
{
    Container c = open(session.paths()[0]);
    uint64_t commits = check(c.get());
    session.found(0, commits);
    for (uint64_t n = 0; n < session.more; n++) {
        change(c.get(), commits);
        session.tick();
        session.begun(0, commits + 1);
        commit(c.get(), commits);
        session.returned(0, ++commits);
    }
    if (session.more > 0)
        check(c.get());
    if (!session.close)
        session.end();
    else
        require(pm_close(c.release()) == 0, "pm_close");
}

Subject::Subject(const Setup &setup) : Program(setup), tickets_(setup.containers)
{
    for (unsigned i = 0; i < setup.containers; i++)
        workloads_.emplace_back(structure_by_name(setup.structure), profile_by_name(setup.profile),
                                sim::mix(setup.seed) + i);
}

// All that can be said of the container: how many commits it has.
uint64_t Subject::check(pm_container *c, uint32_t number)
{
    uint64_t transactions = Workload::transactions(c);
    require_whole(c, transactions, [&] {
        std::string wrong = workloads_[number].compare(c, transactions);
        if (!wrong.empty())
            throw std::runtime_error(wrong);
    });
    return transactions;
}

void Subject::wait_for_all(sim::Session &session, uint32_t number, uint64_t commits)
{
    require(pm_wait(tickets_[number]) == 0, "pm_wait");
    session.returned(number, commits);
}

// After a commit that failed: commit more, or less. Under less, parts of the failed record may lie untouched.
void Subject::change_after_failure(sim::Session &session, pm_container *c, uint32_t number,
                                   uint64_t transaction)
{
    if (transaction % 2) {
        require(pm_rollback(c) == 0, "pm_rollback");
        workloads_[number].run(c, transaction, [&] { session.tick(); });
    } else {
        Workload::stamp(c);
        session.tick();
    }
}

pm_ticket Subject::commit(sim::Session &session, pm_container *c, uint32_t number,
                          uint64_t transaction)
{
    if (setup_.full) {
        Workload::stamp(c);
        session.fail_writes(sim::Random(sim::mix(setup_.seed) + transaction));
    }
    pm_ticket ticket = pm_commit_async(c);
    session.fail_writes(std::nullopt);
    if (!ticket.container && setup_.full && errno == ENOSPC) {
        change_after_failure(session, c, number, transaction);
        ticket = pm_commit_async(c);
    }
    require(ticket.container, "pm_commit_async");
    return ticket;
}

void Subject::transact(sim::Session &session, pm_container *c, uint32_t number,
                       uint64_t transaction)
{
    workloads_[number].run(c, transaction, [&] { session.tick(); });
    session.begun(number, transaction + 1);
    if (setup_.async == 0 && !setup_.full) {
        require(pm_commit(c) == 0, "pm_commit");
        session.returned(number, transaction + 1);
        return;
    }
    tickets_[number] = commit(session, c, number, transaction);
    if (setup_.async == 0 || (transaction + 1) % setup_.async == 0)
        wait_for_all(session, number, transaction + 1);
}

// Group commit: while one thread waits for its commit others go on with theirs.
void Subject::transact_in_threads(sim::Session &session, pm_container *c, uint64_t &commits)
{
    std::mutex mutex; // one transaction at a time
    uint64_t end = commits + session.more;
    sim::run_threads(setup_.threads, sim::mix(setup_.seed) + commits, [&](unsigned) {
        for (;;) {
            pm_ticket ticket;
            uint64_t commit;
            {
                std::lock_guard lock(mutex);
                if (commits == end)
                    return;
                workloads_[0].run(c, commits, [&] { session.tick(); });
                commit = ++commits;
                session.begun(0, commit);
                ticket = pm_commit_async(c);
                require(ticket.container, "pm_commit_async");
            }
            sim::yield();
            require(pm_wait(ticket) == 0, "pm_wait");
            session.returned(0, commit);
        }
    });
}

void Subject::transact_all(sim::Session &session, const std::vector<Container> &open,
                           std::vector<uint64_t> &commits)
{
    if (setup_.threads > 1) {
        transact_in_threads(session, open[0].get(), commits[0]);
        return;
    }
    for (uint64_t n = 0; n < session.more; n++)
        for (uint32_t i = 0; i < setup_.containers; i++)
            transact(session, open[i].get(), i, commits[i]++);
}

void Subject::run(sim::Session &session)
{
    std::vector<Container> open;
    std::vector<uint64_t> commits;
    for (uint32_t i = 0; i < setup_.containers; i++) {
        open.push_back(Program::open(session.paths()[i]));
        commits.push_back(check(open[i].get(), i));
        session.found(i, commits[i]);
    }
    transact_all(session, open, commits);
    for (uint32_t i = 0; i < setup_.containers && session.more > 0; i++)
        check(open[i].get(), i);
    if (!session.close) {
        session.end();
        return;
    }
    for (uint32_t i = 0; i < setup_.containers; i++) {
        require(pm_close(open[i].release()) == 0, "pm_close");
        session.returned(i, commits[i]);
    }
}

} // namespace simulation

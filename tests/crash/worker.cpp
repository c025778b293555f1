// Runs transactions until it is killed. Writes to standard output a line with the number of
// transactions it found, then one byte for each commit that returned: `worker FILE STRUCTURE SEED
// [MODE...]`. It goes on where the container says the last one stopped. Modes:
//
//   concurrent   threads may store during commits     file    accept an ordinary file under undo
//   rollback     now and then                         check   pm_check() after each commit
//   async        wait for every fourth commit only    large   several transactions in one
//   tight        a small container                    image   FILE is a crash's, put there by a test
#include "common/mode.hpp"
#include "crash/workload.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <unistd.h>

int main(int argc, char **argv)
try {
    alarm(60); // a structure that is broken may well be endless
    if (argc < 4)
        throw std::invalid_argument("worker FILE STRUCTURE SEED [MODE...]");
    const map_ops &ops = crash::ops_by_name(argv[2]);
    uint64_t seed = std::stoull(argv[3]);
    std::set<std::string> modes(argv + 4, argv + argc);

    pm_options options{};
    options.size = sizeof options;
    options.flags = (unsigned)PM_CREATE | (modes.count("file") ? (unsigned)PM_UNSAFE_POWER : 0u) |
                    (modes.count("image") ? (unsigned)PM_ACCEPT_COPY : 0u);
    options.segment_size = 64 << 10; // many segments come and go
    options.max_size = modes.count("tight") ? 16 << 20 : 256 << 20;
    test::set_mode(options);
    options.concurrent_stores = modes.count("concurrent") != 0;
    pm_container *c = pm_open(argv[1], &options);
    if (!c)
        throw std::runtime_error(pm_errormsg());
    auto *root = static_cast<crash::Root *>(pm_getroot(c));
    if (!root) {
        root = static_cast<crash::Root *>(pm_calloc(c, 1, sizeof *root));
        if (!root || pm_setroot(c, root, sizeof *root) != 0 || !(root->map = ops.create(c)) ||
            pm_commit(c) != 0)
            throw std::runtime_error(pm_errormsg());
    }
    // Ready: from now on the parent may kill us.
    std::string ready = std::to_string(root->transactions) + "\n";
    if (write(STDOUT_FILENO, ready.data(), ready.size()) != (ssize_t)ready.size())
        return 1;
    const unsigned together = modes.count("large") ? crash::LARGE_TRANSACTIONS : 1;
    std::string waiting; // a byte for each commit that nobody has waited for
    for (;;) {
        uint64_t number = root->transactions;
        if (modes.count("rollback") && number % 3 == 0) {
            crash::run_transaction(ops, c, root, seed + 1, number); // any other
            if (pm_rollback(c) != 0)
                throw std::runtime_error(pm_errormsg());
        }
        for (unsigned i = 0; i < together; i++)
            crash::run_transaction(ops, c, root, seed, number + i);
        pm_ticket ticket = {c, 0};
        if (modes.count("async"))
            ticket = pm_commit_async(c);
        else if (pm_commit(c) != 0)
            ticket.container = nullptr;
        if (!ticket.container)
            throw std::runtime_error(pm_errormsg());
        waiting.append(together, 'c');
        if (modes.count("async")) {
            if (waiting.size() < crash::ASYNC_COMMITS)
                continue;
            if (pm_wait(ticket) != 0)
                throw std::runtime_error(pm_errormsg());
        }
        if (modes.count("check") && pm_check(c) != 0)
            throw std::runtime_error(pm_errormsg());
        if (write(STDOUT_FILENO, waiting.data(), waiting.size()) != (ssize_t)waiting.size())
            return 1;
        waiting.clear();
    }
} catch (const std::exception &e) {
    fprintf(stderr, "worker: %s\n", e.what());
    return 1;
}

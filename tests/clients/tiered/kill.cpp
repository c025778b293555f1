// The tiered store beside SIGKILL. A child changes accounts, and dies just before its n-th event: a write of a
// value, a sync, a deletion of a file, a commit. So it dies within sets, moves between tiers, and openings.
#include "clients/dying.hpp"
#include "common/process.hpp"
#include "crash/spawn.hpp"

#include "types.durable.hpp"

#include "remote.hpp"

#include <random>
#include <unistd.h>

using Account = durable::account;

EVENT(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))
EVENT(int, fdatasync, (int fd), (fd))
EVENT(int, unlink, (const char *path), (path))
EVENT(int, pm_commit, (pm_container * c), (c))

namespace
{

constexpr size_t accounts = 40;

tiered::options options()
{
    tiered::options options;
    options.max_size = 256 << 20;
    options.engine = test::engine_option();
    options.tiers["remote"] = std::make_shared<Remote>();
    options.budgets["pm"] = 8000;
    return options;
}

std::string owner_of(uint64_t step)
{
    return "owner " + std::to_string(step) + std::string(step * 31 % 900, 'o');
}

std::string statement_of(uint64_t step)
{
    return "statement " + std::to_string(step) + std::string(step * 17 % 3000, 's');
}

// Transaction `step` sets one account whole, and another one's statement. Each 10th is a new object.
struct Model {
    uint64_t balance[accounts]{}, statement[accounts]{}; // the last step that set it

    void make(uint64_t step)
    {
        balance[step % accounts] = step;
        statement[step % accounts] = statement[step * 7 % accounts] = step;
    }
};

using All = tiered::vector<Account>;

void make(tiered::store &store, All &all, uint64_t step)
{
    Account &one = all[step % accounts];
    if (step % 10 == 0) {
        store.destroy(one);
        one = store.make<Account>();
    }
    one.set_balance(step);
    one.set_owner(owner_of(step));
    one.set_statement(statement_of(step));
    all[step * 7 % accounts].set_statement(statement_of(step));
}

void require_equal(All &all, const Model &model)
{
    for (size_t i = 0; i < accounts; i++) {
        REQUIRE(all[i].balance() == model.balance[i]);
        REQUIRE(all[i].owner() == (model.balance[i] ? owner_of(model.balance[i]) : ""));
        REQUIRE(all[i].statement() == (model.statement[i] ? statement_of(model.statement[i]) : ""));
    }
}

} // namespace

// arguments: directory, event to die at
CHILD_PROCESS(sets_and_dies)
{
    events_left = std::stoull(arguments[1]);
    tiered::store store(arguments[0], options());
    auto &all = store.root<All>("all");
    auto &next = store.root<tiered::vector<uint64_t>>("next");
    if (next.empty()) {
        for (size_t i = 0; i < accounts; i++)
            all.push_back(store.make<Account>());
        next.push_back(1);
        store.commit();
    }
    test::say(std::to_string(next[0] - 1).c_str());
    for (uint64_t step = next[0];; step++) {
        if (step % 16 == 0)
            store.set_budget("pm", step % 32 ? 4000 : 12000);
        make(store, all, step);
        if (step % 13 == 0) {
            store.rollback();
            make(store, all, step);
        }
        next[0] = step + 1;
        store.commit();
        test::say(std::to_string(step).c_str());
    }
}

TEST_CASE("after SIGKILL each object has all old or all new fields")
{
    test::Directory directory;
    const std::string path = directory / "s";
    std::mt19937_64 random(GENERATE(1U, 2U, 3U));
    uint64_t steps = 0;
    for (uint64_t round = 0; round < crash::from_environment("LIBPM_ROUNDS", 20); round++) {
        const uint64_t most = random() % 4 == 0 ? 12 : 400; // often while it opens
        test::Process child("sets_and_dies", {path, std::to_string(1 + random() % most)});
        uint64_t acknowledged = steps;
        for (std::string line; !(line = child.read_line()).empty();)
            acknowledged = std::stoull(line);
        const test::Ended ended = child.wait();
        INFO(ended.errors);
        REQUIRE(test::killed(ended.status, SIGKILL));

        tiered::store store(path, options());
        auto &all = store.root<All>("all");
        auto &next = store.root<tiered::vector<uint64_t>>("next");
        steps = next.empty() ? 0 : next[0] - 1;
        REQUIRE((steps == acknowledged || steps == acknowledged + 1));
        Model model;
        for (uint64_t step = 1; step <= steps; step++)
            model.make(step);
        if (!next.empty())
            require_equal(all, model);
    }
    REQUIRE(steps > 100);
}

// The cleaner of the log engine: the file stays small while parts of its chunks die, on a full disk too, and
// nothing is lost. log_full.cpp has the full disk.
#include "common/fixture.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <vector>

namespace
{

constexpr uint64_t LINE = 64, MiB = 1 << 20;

struct Subject {
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c;
    std::vector<uint64_t> model;

    explicit Subject(uint64_t bytes) : model(bytes / sizeof(uint64_t))
    {
        pm_options how = test::small(PM_CREATE);
        how.max_size = 64 * MiB;
        c = test::open(path, how);
        void *p = pm_malloc(c.get(), bytes);
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        for (uint64_t i = 0; i < model.size(); i++)
            store(i, i + 1);
        REQUIRE_OK(pm_commit(c.get()));
    }
    void store(uint64_t word, uint64_t value)
    {
        static_cast<volatile uint64_t *>(pm_getroot(c.get()))[word] = model[word] = value;
    }
    void holds_in(pm_container *other) const
    {
        const bool same =
            memcmp(pm_getroot(other), model.data(), model.size() * sizeof(uint64_t)) == 0;
        REQUIRE(same);
        REQUIRE_OK(pm_check(other));
    }
    uint64_t file_bytes() const { return std::filesystem::file_size(path); }
};

// What the cleaner logs, in the commit that fails behind it.
uint64_t logged_again;
bool fails;

} // namespace

extern "C" {

struct txn;
struct record_runs;
int __real_log_plan(struct txn *t, struct record_runs *runs);
void __real_log_clean(struct txn *t, uint64_t lines);

static bool cleaning;

void __wrap_log_clean(struct txn *t, uint64_t lines)
{
    cleaning = true;
    __real_log_clean(t, lines);
    cleaning = false;
}

int __wrap_log_plan(struct txn *t, struct record_runs *runs)
{
    logged_again += cleaning;
    return fails && !cleaning ? -ENOMEM : __real_log_plan(t, runs);
}
}

TEST_CASE("a commit that fails behind the cleaner leaves a container that can be closed")
{
    const uint64_t bytes = MiB, lines = bytes / LINE;
    Subject subject(bytes);
    std::mt19937_64 random(1);
    auto change = [&] { subject.store(random() % lines * 8, random()); };
    for (logged_again = 0; logged_again == 0;) {
        change();
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    for (int i = 0; i < 20; i++) {
        change();
        logged_again = 0;
        fails = true;
        REQUIRE(pm_commit(subject.c.get()) == -1);
        fails = false;
        if (logged_again > 0)
            break;
        REQUIRE_OK(pm_commit(subject.c.get()));
    }
    REQUIRE(logged_again > 0);
    const bool commits = GENERATE(false, true);
    if (commits)
        REQUIRE_OK(pm_commit(subject.c.get()));
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    if (commits)
        subject.holds_in(subject.c.get());
    REQUIRE_OK(pm_check(subject.c.get()));
}

TEST_CASE("a file in which lines are stored to at random stays small")
{
    const uint64_t bytes = 4 * MiB, lines = bytes / LINE;
    const uint64_t each = GENERATE(as<uint64_t>(), 1, 30, 2000); // lines of a commit
    const bool reserves = GENERATE(false, true), few = GENERATE(false, true);
    if (reserves && each == 1)
        return; // a reservation is of whole pages
    CAPTURE(each, reserves, few);
    Subject subject(bytes);
    std::mt19937_64 random(each);
    const uint64_t commits = 3 * lines / each;
    for (uint64_t i = 0; i < commits; i++) {
        if (reserves)
            REQUIRE_OK(pm_reserve(subject.c.get(), each * 4096));
        for (uint64_t k = 0; k < each; k++)
            subject.store(random() % (few ? lines / 8 : lines) * 8, random());
        if (pm_commit(subject.c.get()) != 0)
            FAIL(pm_errormsg());
    }
    // A file that grows does so by an eighth. What the last commits have freed cannot be filled yet.
    CHECK(subject.file_bytes() <=
          bytes * 3 + 20 * each * LINE + (reserves ? each * 4096 * 3 / 2 : 0));
    subject.holds_in(subject.c.get());
    subject.c.reset();
    subject.c = test::open(subject.path, test::options());
    subject.holds_in(subject.c.get());
}

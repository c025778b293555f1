// A first commit that is torn before its record: nothing was committed, but images for the epoch
// after it were written ahead. They must never count. And with concurrent stores a store to a page that is
// fresh in a commit waits for it. Linked with --wrap for log_write_record() and sums_after().
#include "common/process.hpp"

#include <atomic>
#include <cstring>
#include <thread>
#include <unistd.h>
#include <utility>

namespace
{

bool die_at_record;

enum { WAITING, COMMITTING, STORED };
std::atomic<int> stage{WAITING}; // of a thread that stores in the middle of a commit
bool in_commit, stored_in_commit;

constexpr unsigned OBJECTS = 100, BYTES = 4096;

struct Root {
    char *objects[OBJECTS];
};

// Allocates objects of fresh pages, `count` of which remain, all holding `letter`.
void fill(pm_container *c, char letter, unsigned count)
{
    auto *root = static_cast<Root *>(pm_calloc(c, 1, sizeof(Root)));
    CHILD_REQUIRE(root && pm_setroot(c, root, 0) == 0);
    for (char *&object : root->objects) {
        object = static_cast<char *>(pm_malloc(c, BYTES));
        CHILD_REQUIRE(object);
        memset(object, letter, BYTES);
    }
    for (unsigned i = 0; i < OBJECTS - count; i++) {
        CHILD_REQUIRE(pm_free(root->objects[i]) == 0);
        root->objects[i] = nullptr;
    }
}

} // namespace

extern "C" {

uint64_t __real_sums_after(const void *t, const void *words, uint64_t count);

uint64_t __wrap_sums_after(const void *t, const void *words, uint64_t count)
{
    if (std::exchange(in_commit, false)) {
        stage = COMMITTING;
        usleep(100000);
        stored_in_commit = stage == STORED;
    }
    return __real_sums_after(t, words, count);
}

struct log;
void __real_log_write_record(struct log *log, unsigned half, const void *record, uint64_t bytes);

void __wrap_log_write_record(struct log *log, unsigned half, const void *record, uint64_t bytes)
{
    if (die_at_record)
        _exit(42);
    __real_log_write_record(log, half, record, bytes);
}
}

CHILD_PROCESS(dies_in_a_first_commit)
{
    test::Container c = test::open(arguments[0], test::options(PM_CREATE));
    fill(c.get(), 'A', OBJECTS);
    die_at_record = true;
    pm_commit(c.get());
}

CHILD_PROCESS(commits_less_and_dies)
{
    test::Container c = test::open(arguments[0], test::options());
    fill(c.get(), 'B', OBJECTS / 2);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE("images that a torn first commit wrote ahead never count")
{
    test::Directory directory;
    std::string path = directory / "c";
    if (GENERATE(false, true)) { // after creation, or after a clean close
        test::Container c = test::open(path, test::options(PM_CREATE));
        REQUIRE(pm_malloc(c.get(), 16));
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(test::exited(test::run("dies_in_a_first_commit", {path}).status, 42));
    REQUIRE_CLEAN(test::run("commits_less_and_dies", {path}));

    test::Container c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    auto *root = static_cast<Root *>(pm_getroot(c.get()));
    REQUIRE(root);
    unsigned changed = 0, found = 0;
    for (char *object : root->objects)
        for (unsigned i = 0; object && i < BYTES; i++, found++)
            changed += object[i] != 'B';
    REQUIRE(found == OBJECTS / 2 * BYTES);
    REQUIRE(changed == 0);
}

TEST_CASE("with concurrent stores a store to a fresh page waits for the commit")
{
    test::Directory directory;
    pm_options how = test::small(PM_CREATE);
    how.concurrent_stores = true;
    const test::Container c = test::open(directory / "c.pm", how);
    auto *page = static_cast<volatile char *>(pm_malloc(c.get(), 20000));
    REQUIRE(page);
    *page = 'a';
    REQUIRE_OK(pm_setroot(c.get(), const_cast<char *>(page), 0));
    std::thread storing([page] {
        while (stage == WAITING)
            usleep(100);
        *page = 'z';
        stage = STORED;
    });
    in_commit = true;
    const int result = pm_commit(c.get());
    storing.join();
    REQUIRE(result == 0);
    REQUIRE_FALSE(in_commit);
    REQUIRE_FALSE(stored_in_commit);
}

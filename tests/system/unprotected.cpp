// The kernel does not let us open or close pages: mprotect(2) fails, as it does when the process
// has too many maps. What is committed is committed, and no store is missed.
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using test::page_word;

static constexpr uint64_t SEGMENT = 64 << 10;

static struct {
    bool to_close;     // a part of a segment, which would split a map
    bool to_open;      // any page
    bool to_open_once; // so that libpm closes others
    bool to_drop;      // private pages, as if they were locked in memory
} refuses;

static int lets_open = -1; // so many times more, if that is limited

extern "C" {

int __real_mprotect(void *address, size_t size, int protection);
int __real_madvise(void *address, size_t size, int advice);

int __wrap_mprotect(void *address, size_t size, int protection)
{
    bool opens = protection == (PROT_READ | PROT_WRITE), once = opens && refuses.to_open_once;
    bool closes = protection == PROT_READ && size % SEGMENT != 0;
    refuses.to_open_once &= !once;
    once |= opens && lets_open == 0; // closes all others
    lets_open -= opens && lets_open > 0;
    errno = once || closes ? ENOMEM : EACCES;
    if (once || (opens && refuses.to_open) || (closes && refuses.to_close))
        return -1;
    return __real_mprotect(address, size, protection);
}

int __wrap_madvise(void *address, size_t size, int advice)
{
    if (advice != MADV_DONTNEED || !refuses.to_drop)
        return __real_madvise(address, size, advice);
    errno = EINVAL;
    return -1;
}
}

namespace
{

constexpr uint64_t PAGES = 40; // more than a segment of the log has images

// With so many segments besides those of the metadata, the pages, and the log as it is made.
pm_options with_room_for(uint64_t segments)
{
    pm_options how = test::small();
    how.max_size = (3 + PAGES * 4096 / SEGMENT + 1 + segments) * SEGMENT;
    return how;
}

void store(pm_container *c, uint64_t pages, uint64_t value)
{
    for (uint64_t page = 0; page < pages; page++)
        page_word(c, page) = value;
}

} // namespace

// arguments: path
CHILD_PROCESS(cools_pages_unprotected)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    store(c, PAGES - 1, 1);
    CHILD_REQUIRE(pm_commit(c) == 0);
    refuses.to_close = true;
    page_word(c, PAGES - 1) = 1; // the others would be closed for not having changed
    CHILD_REQUIRE(pm_commit(c) == 0);
    uint64_t faults = test::stats(c).faults;
    store(c, PAGES - 1, 2);
    CHILD_REQUIRE(test::stats(c).faults == faults);
    CHILD_REQUIRE(pm_commit(c) == 0);
    CHILD_REQUIRE(pm_check(c) == 0);
    _exit(0);
}

TEST_CASE("pages that cannot be closed are logged ahead, or stay listed")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, PAGES, with_room_for(100));
    REQUIRE_CLEAN(test::run("cools_pages_unprotected", {path}));
    test::Container c = test::open(path, test::options());
    for (uint64_t page = 0; page < PAGES - 1; page++)
        REQUIRE(page_word(c.get(), page) == 2);
    REQUIRE_OK(pm_check(c.get()));
}

// arguments: path, whether there is a standard error
CHILD_PROCESS(commits_what_cannot_be_logged)
{
    pm_container *c = test::open(arguments[0], test::options()).release();
    if (arguments[1] == "mute")
        close(STDERR_FILENO);
    page_word(c, 0) = 1;
    CHILD_REQUIRE(pm_commit(c) == 0);
    store(c, 20, 2);
    refuses.to_close = true;
    pm_commit(c);
    test::say("alive");
    _exit(0);
}

TEST_CASE("a page that can neither be closed nor logged ends the process", "[undo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open_with_pages(path, PAGES, with_room_for(1)); // for a second segment of one half
    std::string voice = GENERATE(as<std::string>(), "loud", "mute");
    test::Ended ended = test::run("commits_what_cannot_be_logged", {path, voice});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGABRT));
    REQUIRE(ended.output.empty());
    bool told = ended.errors.find(path) != std::string::npos &&
                ended.errors.find("can neither protect nor log a page") != std::string::npos &&
                ended.errors.find("Raise vm.max_map_count") != std::string::npos;
    REQUIRE(told == (voice == "loud"));
    REQUIRE(ended.errors.find("disk space") == std::string::npos); // of which there is enough
    test::Container c = test::open(path, test::options());
    REQUIRE(page_word(c.get(), 0) == 1);
    for (uint64_t page = 1; page < 20; page++)
        REQUIRE(page_word(c.get(), page) == 0);
    REQUIRE_OK(pm_check(c.get()));
}

// arguments: path, path of a copy that is opened elsewhere. In one transaction each second page is stored to, until
// the kernel lets no more be opened. Others are read, so memory is given back.
CHILD_PROCESS(stores_all_over)
{
    constexpr uint64_t MANY = 80000, WORDS = 4096 / 8;
    pm_options how = test::options(PM_CREATE | PM_MOVABLE | PM_ANNOUNCED);
    how.tracker = PM_TRACKER_STORES; // pages that marks have opened are on no list
    how.private_max = 1;
    how.max_size = 1 << 30;
    test::Container original = test::open(arguments[0], how);
    auto *words = static_cast<uint64_t *>(pm_malloc(original.get(), MANY * 4096));
    CHILD_REQUIRE(words && pm_setroot(original.get(), words, 0) == 0 &&
                  pm_commit(original.get()) == 0);
    CHILD_REQUIRE(pm_copy(original.get(), arguments[1].c_str(), nullptr, nullptr) == 0);
    test::Container c = test::open(arguments[1], how);
    CHILD_REQUIRE(test::stats(c.get()).moved);
    words = static_cast<uint64_t *>(pm_getroot(c.get()));
    uint64_t stored = 0;
    for (; stored < MANY && pm_dirty(&words[stored * WORDS], 8) == 0; stored += 2)
        words[stored * WORDS] = stored + 1;
    CHILD_REQUIRE(stored > 1000 && (stored >= MANY || test::failed_with(ENOMEM, {"pages"})));
    for (uint64_t page = 1; page < MANY; page += 2)
        (void)static_cast<volatile uint64_t *>(words)[page * WORDS];
    for (uint64_t page = 0; page < stored; page += 2)
        CHILD_REQUIRE(words[page * WORDS] == page + 1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
    for (uint64_t page = 0; page < stored; page += 2)
        CHILD_REQUIRE(words[page * WORDS] == page + 1);
    _exit(0);
}

TEST_CASE("where memory is given back, what was stored to stays", "[redo]")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("stores_all_over", {directory / "c.pm", directory / "copy.pm"}));
}

// Fails in this way to roll back, and then to close, which forgets the transaction all the same.
static void require_rollback_fails(test::Container &c, const std::string &path, bool &refusal,
                                   int error)
{
    refusal = true;
    REQUIRE(pm_rollback(c.get()) == -1);
    REQUIRE(test::failed_with(error, {path.c_str(), "a page"}));
    REQUIRE(pm_commit(c.get()) == -1); // of what is half restored
    REQUIRE(test::failed_with(ENOTRECOVERABLE, {path.c_str(), "pm_rollback() again"}));
    if (GENERATE(false, true)) {
        REQUIRE(pm_close(c.release()) == -1);
        REQUIRE(test::failed_with(error, {path.c_str()}));
        refusal = false;
        c = test::open(path, test::options());
    } else {
        refusal = false;
        REQUIRE_OK(pm_rollback(c.get()));
    }
    REQUIRE_OK(pm_check(c.get()));
    for (uint64_t page = 0; page < PAGES; page++)
        REQUIRE(page_word(c.get(), page) == 0);
}

TEST_CASE("a rollback cannot close a page that is free again", "[undo]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options how = with_room_for(100);
    how.concurrent_stores = true; // else such pages need not be closed
    test::Container c = test::open_with_pages(path, PAGES, how);
    page_word(c.get(), 1) = 1;
    auto *fresh = static_cast<volatile char *>(pm_malloc(c.get(), 5000));
    REQUIRE(fresh);
    fresh[0] = 1;
    require_rollback_fails(c, path, refuses.to_close, ENOMEM);
}

TEST_CASE("a rollback cannot open a page to restore it", "[private]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, with_room_for(100));
    store(c.get(), 10, 1);
    refuses.to_open_once = true;
    page_word(c.get(), 20) = 1; // for which all others are closed
    REQUIRE(test::stats(c.get()).pages_evicted >= 10);
    require_rollback_fails(c, path, refuses.to_open, EACCES);
}

TEST_CASE("a compaction that can be neither finished nor undone is not committed", "[private]")
{
    struct Node {
        Node *next;
        uint64_t number, filling[500];
    };
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    std::vector<Node *> gaps;
    for (uint64_t i = 0; i < 160; i++) {
        auto *node = static_cast<Node *>(pm_malloc_typed(c.get(), PM_TYPE(Node, next), 1));
        REQUIRE(node);
        node->number = i;
        if (i % 4) {
            gaps.push_back(node);
        } else {
            node->next = static_cast<Node *>(pm_getroot(c.get()));
            REQUIRE_OK(pm_setroot(c.get(), node, 0));
        }
    }
    REQUIRE_OK(pm_commit(c.get()));
    for (Node *node : gaps)
        REQUIRE_OK(pm_free(node));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset(); // so that all pages are closed
    c = test::open(path, test::options(PM_MOVABLE));
    lets_open = GENERATE(3, 5, 7);
    const int compacted = pm_compact(c.get(), nullptr, nullptr, nullptr), error = errno;
    lets_open = -1;
    REQUIRE((compacted == -1 && error == ENOMEM));
    REQUIRE_THAT(pm_errormsg(), Catch::Contains(path) && Catch::Contains("a page to restore it"));
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(test::failed_with(ENOTRECOVERABLE, {path.c_str()}));
    if (GENERATE(false, true)) {
        REQUIRE_OK(pm_rollback(c.get()));
    } else {
        c.reset();
        c = test::open(path, test::options(PM_MOVABLE));
    }
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE_OK(pm_check(c.get()));
    uint64_t expected = 160;
    for (auto *node = static_cast<Node *>(pm_getroot(c.get())); node; node = node->next)
        REQUIRE(node->number == (expected -= 4));
    REQUIRE(expected == 0);
}

TEST_CASE("memory that is locked, and cannot be opened to show what is there", "[private]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, PAGES, with_room_for(10));
    void *old = pm_malloc(c.get(), SEGMENT);
    REQUIRE(old);
    memset(old, 1, SEGMENT);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(old));
    REQUIRE_OK(pm_commit(c.get()));
    refuses.to_drop = refuses.to_open = true;
    REQUIRE_FALSE(pm_malloc(c.get(), SEGMENT));
    REQUIRE(test::failed_with(EACCES, {path.c_str()}));
    refuses.to_open = false;
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(pm_malloc(c.get(), SEGMENT) == old);
    refuses.to_drop = false;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("a store leaves errno as it is, though the kernel at first refused to open its page")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", PAGES, with_room_for(100));
    page_word(c.get(), 0) = 1;
    volatile uint64_t &word = page_word(c.get(), 20);
    refuses.to_open_once = true;
    errno = 77;
    word = 1; // libpm closes the first page for it
    const int after = errno;
    REQUIRE(after == 77);
    REQUIRE_FALSE(refuses.to_open_once);
    REQUIRE(test::stats(c.get()).pages_evicted > 0);
}

TEST_CASE("the sweep for maps begins within a run of open pages")
{
    constexpr uint64_t MANY = 10000, SWEPT = 8192; // pages, of 4096 runs
    test::Directory directory;
    pm_options how = test::small();
    how.max_size = 256 << 20;
    test::Container c = test::open_with_pages(directory / "c.pm", MANY, how);
    for (uint64_t page = 0; page < MANY; page += 2)
        page_word(c.get(), page) = 1;
    refuses.to_open_once = true;
    page_word(c.get(), 1) = 1;
    uint64_t evicted = test::stats(c.get()).pages_evicted;
    REQUIRE(evicted == SWEPT / 2);
    for (uint64_t page = SWEPT - 100; page < SWEPT + 100; page++) // around where it ended
        page_word(c.get(), page) = 1;
    refuses.to_open_once = true;
    page_word(c.get(), 3) = 1;
    REQUIRE(test::stats(c.get()).pages_evicted > evicted + 200);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

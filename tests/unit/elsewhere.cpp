// Containers that open at other addresses than their pointers mean, and stay on the medium what they
// are: pages get right pointers when they are touched, commits write them as they were.
#include "base/marks.h"
#include "common/fixture.hpp"
#include "common/format.hpp"
#include "common/process.hpp"
#include "unit/linked.hpp"
#include "unit/mapped.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <sys/resource.h>
#include <sys/time.h>
#include <thread>
#include <vector>
#include <sys/wait.h>
#include <unistd.h>

using test::base_of;

namespace
{

// A container, and a copy that is to be opened while the first has its addresses.
struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    test::Container original;

    static pm_options movable(unsigned flags = 0) { return test::small(flags | PM_MOVABLE); }

    Fixture()
    {
        linked::recorded = test::stores();
        original = test::open(path, movable(PM_CREATE));
        linked::build(original.get(), 1000);
        REQUIRE_OK(pm_commit(original.get()));
        take();
    }

    // Make the copy what the original is now.
    void take()
    {
        original.reset();
        std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
        original = test::open(path, movable());
    }

    test::Container elsewhere(pm_options how = movable()) const
    {
        test::Container c = test::open(copy, how);
        REQUIRE(base_of(c.get()) != base_of(original.get()));
        REQUIRE(test::stats(c.get()).pointers_moved == 0);
        return c;
    }

    // Where the copy's own addresses are free.
    test::Container at_home()
    {
        original.reset();
        test::Container c = test::open(copy, movable());
        REQUIRE(test::stats(c.get()).pointers_moved == 0);
        REQUIRE(test::stats(c.get()).touches == 0);
        return c;
    }
};

uint64_t pages(pm_container *c)
{
    return test::stats(c).file_bytes >> PM_PAGE_SHIFT;
}

} // namespace

// A container whose root is zero but for its second word, and that has no map of pointers.
static void create_without_map(const std::string &path, size_t bytes)
{
    test::Container c = test::open(path, Fixture::movable(PM_CREATE));
    auto *o = static_cast<uint64_t *>(pm_calloc(c.get(), 1, bytes));
    REQUIRE(o);
    o[1] = 1;
    REQUIRE_OK(pm_setroot(c.get(), o, 0));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).segments_map == 0);
}

TEST_CASE("a container elsewhere gets its first map of pointers there")
{
    struct Object {
        Object *self;
        uint64_t number;
    };
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    auto is_at_home = [](const test::Container &c) {
        const auto *o = static_cast<Object *>(pm_getroot(c.get()));
        return o->number == 1 && o->self == o;
    };
    create_without_map(path, sizeof(Object));
    std::filesystem::copy_file(path, copy);
    {
        test::Container original = test::open(path, Fixture::movable());
        test::Container c = test::open(copy, Fixture::movable());
        auto *o = static_cast<Object *>(pm_getroot(c.get()));
        REQUIRE(o->number == 1); // the page is there
        o->self = o;
        REQUIRE_OK(pm_mark_pointer(&o->self));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).segments_map == 1);
        o->self = nullptr;
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(is_at_home(c));
    }
    REQUIRE(is_at_home(test::open(copy, Fixture::movable())));
}

// The record of such a commit has other words, too, and they may come last.
TEST_CASE("a container elsewhere gets its first map of pointers beside a new object")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    create_without_map(path, 4 * sizeof(void *));
    std::filesystem::copy_file(path, copy);
    test::Container original = test::open(path, Fixture::movable());
    test::Container c = test::open(copy, Fixture::movable());
    auto **o = static_cast<void **>(pm_getroot(c.get()));
    REQUIRE(o[0] == nullptr); // the page is there, and maps are looked for
    void *first = pm_malloc(c.get(), 4 * sizeof(void *)); // before the map: its words come last
    REQUIRE(first);
    o[0] = first;
    REQUIRE_OK(pm_mark_pointer(o));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).segments_map == 1);
    o[0] = nullptr;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(o[0] == first);
}

TEST_CASE_METHOD(Fixture, "a copy is written beside its original, and goes home again")
{
    const char *home = base_of(original.get());
    {
        test::Container c = elsewhere();
        REQUIRE(std::string(test::stats(c.get()).engine) == (test::engine() == "log" ? "log" : "redo"));
        linked::require(c.get(), 1000);
        REQUIRE(test::stats(c.get()).pointers_moved > 3000);
        for (uint64_t n = 1001; n <= 1200; n++) {
            linked::push(c.get());
            if (n % 3)
                REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE_OK(pm_commit(c.get()));
        linked::require(c.get(), 1200);
        REQUIRE_OK(pm_check(c.get()));
    }
    linked::require(original.get(), 1000);
    {
        test::Container c = elsewhere();
        linked::require(c.get(), 1200);
        linked::push(c.get());
        linked::push(c.get());
        REQUIRE_OK(pm_rollback(c.get()));
        linked::require(c.get(), 1200);
        linked::push(c.get());
        REQUIRE_OK(pm_commit(c.get()));
        linked::push(c.get()); // rolled back by closing
    }
    test::Container c = at_home();
    REQUIRE(base_of(c.get()) == home);
    linked::require(c.get(), 1201);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a child of fork() has no descriptor of it, nor of its view")
{
    auto are_open = [&] {
        int count = 0;
        for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone; // the directory's own
            const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
            count += file.find("libpm view") != std::string::npos || file.starts_with(directory.path());
        }
        return count;
    };
    test::Container c = elsewhere();
    REQUIRE(are_open() >= 2); // the file and its view
    const pid_t child = fork();
    if (child == 0)
        _exit(are_open());
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE_METHOD(Fixture, "a transaction that nobody touched needs no log")
{
    test::Container c = elsewhere();
    linked::require(c.get(), 1000);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).lines_logged == 0);
    // A store of what is there is none.
    linked::Root *root = linked::root(c.get());
    *const_cast<linked::Node *volatile *>(&root->first) = root->first;
    REQUIRE_OK(pm_dirty(root, sizeof *root));
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).lines_logged == 0);
}

TEST_CASE_METHOD(Fixture, "what is mapped or no longer is another word at home")
{
    constexpr int PAGE = 512; // words: each of the three is on a page of its own
    auto integer = [](void **words) { return (uint64_t)words[2 * PAGE]; };
    uint64_t value;
    {
        test::Container c = elsewhere();
        auto **words = static_cast<void **>(pm_calloc(c.get(), 3 * PAGE, sizeof(void *)));
        REQUIRE(words);
        for (int i = 0; i < 3; i++)
            words[i * PAGE] = words + i + 1;
        REQUIRE_OK(pm_mark_data(words, 3 * PAGE * sizeof(void *))); // which the pass may have recorded
        REQUIRE_OK(pm_mark_pointer(words));
        REQUIRE_OK(pm_mark_pointer(words + 2 * PAGE));
        REQUIRE_OK(pm_setroot(c.get(), words, 0));
        REQUIRE_OK(pm_commit(c.get()));
        // Without a store.
        REQUIRE_OK(pm_mark_pointer(words + PAGE));
        REQUIRE_OK(pm_mark_data(words + 2 * PAGE, 8));
        value = integer(words);
        SECTION("committed")
        {
            REQUIRE_OK(pm_commit(c.get()));
        }
        SECTION("rolled back, and done again")
        {
            REQUIRE_OK(pm_rollback(c.get()));
            REQUIRE((words[0] == words + 1 && words[PAGE] == words + 2 && integer(words) == value));
            REQUIRE_OK(pm_mark_pointer(words + PAGE));
            REQUIRE_OK(pm_mark_data(words + 2 * PAGE, 8));
            REQUIRE_OK(pm_commit(c.get()));
        }
    }
    test::Container c = at_home();
    auto **words = static_cast<void **>(pm_getroot(c.get()));
    REQUIRE(words[0] == words + 1);
    REQUIRE(words[PAGE] == words + 2);
    REQUIRE(integer(words) == value);
}

TEST_CASE_METHOD(Fixture, "a pointer over a number of the same value is another word at home",
                 "[stores]")
{
    {
        test::Container c = elsewhere();
        auto **words = static_cast<void **>(pm_calloc(c.get(), 2, sizeof(void *)));
        REQUIRE(words);
        words[0] = words + 1;
        REQUIRE_OK(pm_mark_data(words, sizeof *words));
        REQUIRE_OK(pm_setroot(c.get(), words, 0));
        REQUIRE_OK(pm_commit(c.get()));
        *const_cast<void *volatile *>(words) = words + 1;
        REQUIRE_OK(pm_commit(c.get()));
    }
    test::Container c = at_home();
    auto **words = static_cast<void **>(pm_getroot(c.get()));
    REQUIRE(words[0] == words + 1);
}

TEST_CASE_METHOD(Fixture, "values beside a container's addresses, and one past its end")
{
    uint64_t size = 64 << 20, from = (uintptr_t)base_of(original.get());
    uint64_t values[] = {from, from + 1, from + size, from + size + 1, from - 1, 0};
    {
        pm_options how = movable();
        how.foreign_pointers = PM_FOREIGN_IGNORE;
        original.reset();
        original = test::open(path, how);
        auto *words = static_cast<uint64_t *>(pm_calloc(original.get(), 6, 8));
        memcpy(words, values, sizeof values);
        REQUIRE_OK(pm_mark_pointers(words, 6));
        REQUIRE_OK(pm_setroot(original.get(), words, 0));
        REQUIRE_OK(pm_commit(original.get()));
        take();
    }
    test::Container c = elsewhere();
    uint64_t to = (uintptr_t)base_of(c.get());
    const auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    REQUIRE(words[0] == from); // no object is there
    REQUIRE(words[1] == to + 1);
    REQUIRE(words[2] == to + size);
    REQUIRE(words[3] == from + size + 1);
    REQUIRE(words[4] == from - 1);
    REQUIRE(words[5] == 0);
}

// In the file of a container that lies elsewhere, the original's address means the container itself.
TEST_CASE_METHOD(Fixture, "a declared pointer to the container that has its own addresses is refused")
{
    pm_options how = movable();
    how.foreign_pointers = PM_FOREIGN_IGNORE;
    test::Container c = elsewhere(how);
    auto *word = static_cast<uint64_t *>(pm_calloc(c.get(), 2, 8));
    REQUIRE(word);
    REQUIRE_OK(pm_mark_pointer(word));
    REQUIRE_OK(pm_setroot(c.get(), word, 0));
    REQUIRE_OK(pm_commit(c.get()));
    const auto of_original = reinterpret_cast<uintptr_t>(pm_getroot(original.get()));
    REQUIRE_OK(pm_dirty(word, 8));
    *word = of_original;
    if (!test::stores()) { // there the compiled store makes the word data
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(errno == EINVAL);
        CHECK(std::string(pm_errormsg()).find("pm_mark_data") != std::string::npos);
        REQUIRE_OK(pm_mark_data(word, 8));
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_dirty(word, 16));
    word[1] = 7;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(*word == of_original);
    c.reset();
    c = elsewhere(how);
    REQUIRE(*static_cast<uint64_t *>(pm_getroot(c.get())) == of_original);
}

// The transaction has changed more pages than may have copies, so pages that were only read are given back. One
// load that needs two of them must get both.
TEST_CASE_METHOD(Fixture, "a load across two pages ends, however little memory there may be")
{
    constexpr size_t bytes = 8 << 20, page = 4096;
    pm_options how = movable();
    how.private_max = 1 << 20;
    original.reset();
    original = test::open(path, movable());
    auto *object = static_cast<char *>(pm_calloc(original.get(), 1, 2 * bytes));
    REQUIRE(object);
    REQUIRE_OK(pm_setroot(original.get(), object, 0));
    REQUIRE_OK(pm_commit(original.get()));
    take();
    const test::Container c = elsewhere(how);
    object = static_cast<char *>(pm_getroot(c.get()));
    for (size_t i = 0; i < bytes; i += page) {
        REQUIRE_OK(pm_dirty(object + i, 1));
        object[i] = 1;
    }
    alarm(60);
    for (size_t i = 2 * bytes - page; i > bytes; i -= page) {
        uint64_t value = 1;
        const auto *across = reinterpret_cast<const volatile char *>(object + i - 4);
        __asm__ volatile("movq %1, %0" : "=r"(value) : "m"(*reinterpret_cast<const volatile uint64_t *>(across)));
        REQUIRE(value == 0);
    }
    alarm(0);
}

TEST_CASE_METHOD(Fixture, "a reader elsewhere sees all of it, and may not store")
{
    std::string before = test::read_file(copy);
    {
        test::Container c = elsewhere(movable(PM_READONLY));
        linked::require(c.get(), 1000);
        REQUIRE_OK(pm_check(c.get()));
        REQUIRE(test::stats(c.get()).pointers_moved > 3000);
    }
    REQUIRE(test::read_file(copy) == before);
    original.reset();
    test::Ended ended = test::run("stores_to_what_it_may_only_read", {path, copy});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGSEGV));
}

// arguments: a container to have open, another to read
CHILD_PROCESS(stores_to_what_it_may_only_read)
{
    test::Container first = test::open(arguments[0], test::small(PM_MOVABLE | PM_READONLY));
    test::Container c = test::open(arguments[1], test::small(PM_MOVABLE | PM_READONLY));
    auto *root = static_cast<volatile linked::Root *>(pm_getroot(c.get()));
    CHILD_REQUIRE(root->count == 1000);
    root->count = 1;
    _exit(0);
}

static void limit_file_sizes(rlim_t bytes)
{
    const rlimit limit = {bytes, bytes};
    CHILD_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

// arguments: a container to have open, and its copy
CHILD_PROCESS(opens_under_a_limit_of_file_sizes)
{
    test::Container first = test::open(arguments[0], Fixture::movable(PM_READONLY));
    const rlim_t size = std::filesystem::file_size(arguments[1]);
    const pm_options how = Fixture::movable(), reading = Fixture::movable(PM_READONLY);
    limit_file_sizes(2 * size);
    {
        test::Container c = test::open(arguments[1], how);
        CHILD_REQUIRE(base_of(c.get()) != base_of(first.get()));
        while (test::stats(c.get()).file_bytes < size + size / 2) {
            linked::push(c.get());
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
        }
        linked::require(c.get(), linked::root(c.get())->count);
    }
    const rlim_t grown = std::filesystem::file_size(arguments[1]);
    CHILD_REQUIRE(grown > size);
    limit_file_sizes(grown);
    {
        test::Container c = test::open(arguments[1], reading);
        linked::require(c.get(), linked::root(c.get())->count);
    }
    limit_file_sizes(grown - 1);
    for (const pm_options &o : {how, reading}) {
        CHILD_REQUIRE(!pm_open(arguments[1].c_str(), &o));
        CHILD_REQUIRE(test::failed_with(EFBIG, {arguments[1].c_str(), "view", "ulimit -f"}));
    }
}

TEST_CASE_METHOD(Fixture, "a limit of file sizes has to hold the file, and no more", "[home]")
{
    original.reset();
    REQUIRE_CLEAN(test::run("opens_under_a_limit_of_file_sizes", {path, copy}));
}

TEST_CASE_METHOD(Fixture, "a program that vouches for nothing has it moved for good")
{
    {
        test::Container c = test::open(copy, test::small());
        REQUIRE(base_of(c.get()) != base_of(original.get()));
        REQUIRE(test::stats(c.get()).pointers_moved > 3000);
        linked::require(c.get(), 1000);
        REQUIRE(test::stats(c.get()).touches == 0);
    }
    pm_options how = movable(PM_RELOCATE | PM_READONLY);
    REQUIRE(pm_open(copy.c_str(), &how) == nullptr);
    REQUIRE(test::failed_with(EINVAL, {"PM_RELOCATE", "PM_READONLY"}));
    how = test::small(PM_RELOCATE);
    REQUIRE(pm_open(copy.c_str(), &how) == nullptr);
    REQUIRE(test::failed_with(EINVAL, {"PM_RELOCATE", "PM_MOVABLE"}));
}

TEST_CASE_METHOD(Fixture, "objects that come and go, beside a model")
{
    constexpr unsigned SLOTS = 300;
    struct Slot {
        uint64_t *object, *interior;
    };
    std::mt19937_64 random(1);
    std::vector<uint64_t> sizes(SLOTS), committed;
    auto slots_of = [](pm_container *c) { return static_cast<Slot *>(pm_getroot(c)); };
    auto require = [&](pm_container *c, const std::vector<uint64_t> &expected) {
        const Slot *slots = slots_of(c);
        for (unsigned i = 0; i < SLOTS; i++) {
            REQUIRE((slots[i].object != nullptr) == (expected[i] > 0));
            if (!slots[i].object)
                continue;
            REQUIRE(slots[i].object[0] == (uint64_t)(uintptr_t)i);
            REQUIRE(slots[i].interior == slots[i].object + expected[i] - 1);
            REQUIRE(*slots[i].interior == (expected[i] == 1 ? i : expected[i]));
        }
    };
    auto change = [&](pm_container *c) {
        Slot *slots = slots_of(c);
        for (int times = 0; times < 100; times++) {
            unsigned i = random() % SLOTS;
            if (slots[i].object) {
                REQUIRE_OK(pm_free(slots[i].object));
                slots[i] = {};
                sizes[i] = 0;
            } else {
                sizes[i] = 1 + random() % (random() % 20 ? 40 : 12000);
                auto *o = static_cast<uint64_t *>(pm_malloc(c, sizes[i] * 8));
                REQUIRE(o);
                REQUIRE_OK(pm_dirty(o, sizes[i] * 8));
                o[sizes[i] - 1] = sizes[i];
                o[0] = i;
                slots[i] = {o, o + sizes[i] - 1};
            }
        }
    };
    auto transact = [&](pm_container *c) {
        change(c);
        if (random() % 4 == 0) {
            REQUIRE_OK(pm_rollback(c));
            sizes = committed;
        } else {
            REQUIRE_OK(pm_commit(c));
            committed = sizes;
        }
        require(c, sizes);
    };
    committed = sizes;
    REQUIRE_OK(pm_setroot(original.get(),
                          pm_malloc_typed(original.get(), PM_TYPE(Slot, object, interior), SLOTS),
                          0));
    REQUIRE_OK(pm_commit(original.get()));
    for (int i = 0; i < 20; i++)
        transact(original.get());
    take();
    pm_options how = movable();
    how.private_max = 1 << 20; // so that pages come and go
    for (int i = 0; i < 4; i++) {
        test::Container c = elsewhere(how);
        require(c.get(), sizes);
        for (int k = 0; k < 30; k++)
            transact(c.get());
        change(c.get());
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        sizes = committed;
    }
    require(at_home().get(), sizes);
}

TEST_CASE_METHOD(Fixture, "who walks everything is not stopped at each page")
{
    constexpr uint64_t COUNT = 60000;
    struct Cell {
        Cell *next;
        uint64_t number, filler[6];
    };
    {
        std::vector<Cell *> cells;
        auto *first =
            static_cast<Cell *>(pm_malloc_typed(original.get(), PM_TYPE(Cell, next), COUNT));
        REQUIRE(first);
        for (uint64_t i = 0; i < COUNT; i++)
            cells.push_back(first + i);
        std::shuffle(cells.begin() + 1, cells.end(), std::mt19937(1)); // in whatever order
        for (uint64_t i = 0; i < COUNT; i++) {
            *cells[i] = {i + 1 < COUNT ? cells[i + 1] : nullptr, i, {}};
        }
        REQUIRE_OK(pm_setroot(original.get(), first, 0));
        REQUIRE_OK(pm_commit(original.get()));
        take();
    }
    pm_options how = movable(GENERATE(0u, (unsigned)PM_READONLY));
    auto walk = [](pm_container *c, uint64_t most) {
        uint64_t number = 0;
        for (const auto *p = static_cast<Cell *>(pm_getroot(c)); p && number < most; p = p->next)
            REQUIRE(p->number == number++);
        return number;
    };
    {
        test::Container c = elsewhere(how);
        REQUIRE(walk(c.get(), UINT64_MAX) == COUNT);
        struct pm_stats s = test::stats(c.get());
        REQUIRE(s.pointers_moved >= COUNT - 1);
        REQUIRE(s.touches < pages(c.get()) / 40);
        REQUIRE(s.pages_private <= pages(c.get()));
    }
    // And needs no more memory than it may have.
    how.private_max = 1 << 20;
    test::Container c = elsewhere(how);
    const auto *first = static_cast<Cell *>(pm_getroot(c.get()));
    for (uint64_t i = 0; i < COUNT; i++)
        REQUIRE((!first[i].next || pm_contains(c.get(), first[i].next)));
    REQUIRE(test::stats(c.get()).pages_private <= 256 + 512); // and a neighbourhood
    REQUIRE(walk(c.get(), 2000) == 2000);
}

TEST_CASE_METHOD(Fixture, "threads that touch the same pages first")
{
    for (int times = 0; times < 20; times++) {
        test::Container c = elsewhere();
        std::atomic<int> started{0}, wrong{0};
        std::vector<std::thread> threads;
        for (int i = 0; i < 4; i++)
            threads.emplace_back([&] {
                for (started++; started < 4;)
                    ;
                try {
                    linked::require(c.get(), 1000);
                } catch (const std::runtime_error &) {
                    wrong++;
                }
            });
        for (std::thread &t : threads)
            t.join();
        REQUIRE(wrong == 0);
    }
}

TEST_CASE_METHOD(Fixture, "who reads beside a rollback sees no pointer that is home's")
{
    struct Node {
        Node *self;
        long number;
    };
    constexpr size_t COUNT = 200; // most of a page
    {
        auto *nodes =
            static_cast<Node *>(pm_malloc_typed(original.get(), PM_TYPE(Node, self), COUNT));
        REQUIRE(nodes);
        for (size_t i = 0; i < COUNT; i++)
            nodes[i] = {nodes + i, 0};
        REQUIRE_OK(pm_setroot(original.get(), nodes, 0));
        REQUIRE_OK(pm_commit(original.get()));
        take();
    }
    test::Container c = elsewhere();
    auto *nodes = static_cast<Node *>(pm_getroot(c.get()));
    std::atomic<bool> begun{false}, ended{false};
    uint64_t wrong = 0;
    std::thread reader([&] {
        for (; !ended; begun = true)
            for (size_t i = 0; i < COUNT; i++)
                wrong += *const_cast<Node *volatile *>(&nodes[i].self) != nodes + i;
    });
    while (!begun)
        ;
    for (int i = 0; i < 10000; i++) {
        for (size_t n = 0; n < COUNT; n += 4) // of each line
            nodes[n].number++;
        REQUIRE_OK(pm_rollback(c.get()));
    }
    ended = true;
    reader.join();
    REQUIRE(wrong == 0);
    REQUIRE(nodes->number == 0);
}

// Reads a byte of the next page that nobody has touched.
static volatile char *next_page, *last_page;

static void read_next(int)
{
    if (next_page < last_page) {
        (void)*next_page;
        next_page += PM_PAGE;
    }
}

TEST_CASE_METHOD(Fixture, "a signal handler may read, also what a commit has not touched")
{
    constexpr size_t PAGES = 4000;
    REQUIRE_OK(pm_setroot(original.get(), pm_calloc(original.get(), PAGES, PM_PAGE), 0));
    REQUIRE_OK(pm_commit(original.get()));
    take();
    test::Container c = elsewhere();
    auto *first = static_cast<char *>(pm_getroot(c.get()));
    next_page = first + PM_PAGE;
    last_page = first + PAGES * PM_PAGE;
    auto *old = signal(SIGALRM, read_next);
    itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    int failed = 0;
    for (int i = 0; i < 20000; i++) {
        *reinterpret_cast<volatile int *>(first) = i + 1;
        failed += pm_commit(c.get()) != 0;
    }
    setitimer(ITIMER_REAL, &never, nullptr);
    signal(SIGALRM, old);
    REQUIRE(failed == 0);
    REQUIRE(next_page > first + 10 * PM_PAGE);
    REQUIRE(*reinterpret_cast<int *>(first) == 20000);
}

TEST_CASE_METHOD(Fixture, "a damaged pointer map is found before it is believed", "[home]")
{
    uint64_t segment = 0;
    while (segment_kind(test::read_word(copy, FORMAT_TABLE + 8 * segment)) != SEGMENT_MAP)
        segment++;
    uint64_t root = test::offset_of(original.get(), pm_getroot(original.get()));
    test::flip_bit(copy, (segment << 16) + root / MAP_WORD_BYTES * 8, 5);
    {
        test::Container c = elsewhere();
        REQUIRE(pm_check(c.get()) == -1);
        REQUIRE(test::failed_with(EBADMSG, {"pointer map is damaged"}));
    }
    original.reset();
    test::Ended ended = test::run("reads_the_root", {path, copy});
    REQUIRE(test::killed(ended.status, SIGABRT));
    REQUIRE_THAT(ended.errors, Catch::Contains(copy + ": offset ") &&
                                   Catch::Contains("pointer map is damaged") &&
                                   Catch::Contains("`pm check`") &&
                                   Catch::Contains("restore the file from a backup") &&
                                   !Catch::Contains("Bad message"));
}

// arguments: a container to have open, another to read
CHILD_PROCESS(reads_the_root)
{
    test::Container first = test::open(arguments[0], test::small(PM_MOVABLE | PM_READONLY));
    test::Container c = test::open(arguments[1], test::small(PM_MOVABLE));
    volatile uint64_t count = linked::root(c.get())->count;
    (void)count;
    _exit(0);
}

TEST_CASE("pages are read as before when the map of pointers has gone, and the file's end with it")
{
    constexpr uint64_t PAGES = 200;
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    auto at = [](void *root, uint64_t page) -> volatile uint64_t &
    {
        return static_cast<volatile uint64_t *>(root)[page * (PM_PAGE / sizeof(uint64_t))];
    };
    {
        test::Container c = test::open(path, Fixture::movable(PM_CREATE));
        void *root = pm_calloc(c.get(), PAGES, PM_PAGE);
        REQUIRE(root);
        for (uint64_t i = 0; i < PAGES; i++)
            at(root, i) = i;
        REQUIRE_OK(pm_setroot(c.get(), root, 0));
        REQUIRE_OK(pm_mark_pointer(root));
        *static_cast<void **>(root) = root;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(test::stats(c.get()).segments_map == 1);
    }
    std::filesystem::copy_file(path, copy);
    test::Container original = test::open(path, Fixture::movable());
    test::Container c = test::open(copy, Fixture::movable());
    void *root = pm_getroot(c.get());
    REQUIRE(*static_cast<void **>(root) == root);
    at(root, 0) = 0;
    REQUIRE_OK(pm_mark_data(root, sizeof(void *)));
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE(test::stats(c.get()).segments_map == 0);
    root = pm_getroot(c.get());
    for (uint64_t i = 0; i < PAGES; i++)
        REQUIRE(at(root, i) == i);
}

TEST_CASE("addresses that are partly another container's", "[home]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", behind = directory / "behind.pm";
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = UINT64_C(3) << 30; // of slots of 1 GiB
    uint64_t offset, base;
    {
        test::Container c = test::open(path, how);
        auto **self = static_cast<void **>(pm_calloc(c.get(), 1, 8));
        REQUIRE(self);
        REQUIRE_OK(pm_dirty(self, 8));
        *self = self;
        REQUIRE_OK(pm_mark_pointer(self));
        REQUIRE_OK(pm_setroot(c.get(), self, 0));
        REQUIRE_OK(pm_commit(c.get()));
        offset = test::offset_of(c.get(), self);
        base = (uintptr_t)base_of(c.get());
    }
    // The same container as it would be one or two slots further on.
    std::filesystem::copy_file(path, behind);
    uint64_t there = base + ((uint64_t)GENERATE(1, 2) << 30);
    uint64_t words[] = {seal(there), there + offset};
    for (uint64_t at : {FORMAT_STATE + offsetof(format_state, base),
                        FORMAT_GUARD + offsetof(format_guard, base)})
        test::patch_file(behind, at, &words[0], 8);
    test::patch_file(behind, offset, &words[1], 8);
    const unsigned relocate = GENERATE(0u, (unsigned)PM_RELOCATE);
    const bool first = GENERATE(true, false); // is opened first, and gets its own
    how.flags = PM_MOVABLE | relocate;
    test::Container a = test::open(first ? path : behind, how);
    test::Container b = test::open(first ? behind : path, how);
    REQUIRE((uintptr_t)base_of(a.get()) == (first ? base : there));
    uint64_t distance = (uint64_t)std::abs(base_of(a.get()) - base_of(b.get()));
    REQUIRE(distance >= how.max_size);
    for (pm_container *c : {a.get(), b.get()}) {
        auto **self = static_cast<void **>(pm_getroot(c));
        REQUIRE(*self == self);
        REQUIRE_OK(pm_check(c));
    }
}

// options.private_max under the log engine: home gets a page at its first access, and loses it when there is no
// room. The program must not see that, whatever it does; a system call may.
#include "common/process.hpp"
#include "unit/values.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <random>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace
{

constexpr uint64_t MiB = 1 << 20, PAGE = 4096, LIMIT = 2 * MiB; // half of it for home
constexpr uint64_t UNIT = 16; // pages that are filled at once, if accesses run on

pm_options bounded(unsigned flags = 0)
{
    pm_options o = test::options(flags);
    o.private_max = LIMIT;
    return o;
}

// Bytes that home has: those of the file in memory. There is one container.
uint64_t home_bytes()
{
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        std::string name = std::filesystem::read_symlink(entry.path(), error).string();
        struct stat st;
        if (name.find("libpm home") != std::string::npos && stat(entry.path().c_str(), &st) == 0)
            return (uint64_t)st.st_blocks * 512;
    }
    return 0;
}

// A large object with a number in each word of each page. A commit has too few pages for them to be mapped from
// the file.
void make(const std::string &path, uint64_t pages)
{
    test::Container c = test::open(path, test::options(PM_CREATE));
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), pages * PAGE));
    REQUIRE(words);
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    REQUIRE_OK(pm_dirty(words, pages * PAGE));
    for (uint64_t i = 0; i < pages * PAGE / 8; i++) {
        words[i] = i * 3;
        if (i % (8 * PAGE / 8) == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_commit(c.get()));
}

// In children: such a container of 1024 pages, bounded, and what it must have.
pm_container *open_in_child(const std::string &path)
{
    pm_options how = bounded();
    pm_container *c = pm_open(path.c_str(), &how);
    CHILD_REQUIRE(c);
    return c;
}

void require_numbers(pm_container *c)
{
    auto *words = static_cast<volatile uint64_t *>(pm_getroot(c));
    for (uint64_t i = 0; i < 1024 * PAGE / 8; i++)
        CHILD_REQUIRE(words[i] == i * 3);
}

} // namespace

TEST_CASE("home has what was accessed, and no more than the limit")
{
    const uint64_t pages = 4096;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    const bool readonly = GENERATE(false, true);
    make(path, pages);
    test::Container c = test::open(path, bounded(readonly ? PM_READONLY : 0));
    auto *words = static_cast<volatile uint64_t *>(pm_getroot(c.get()));
    const uint64_t least = home_bytes(); // metadata
    CHECK(least < 2 * MiB);
    auto read = [&](uint64_t at) { REQUIRE(words[at / 8] == at / 8 * 3); };
    read(0); // the object begins where a unit does
    CHECK(home_bytes() == least + PAGE);
    read(PAGE - 8);
    CHECK(home_bytes() == least + PAGE);
    read(PAGE); // accesses run on
    CHECK(home_bytes() == least + UNIT * PAGE);
    read(UNIT * PAGE - 8);
    CHECK(home_bytes() == least + UNIT * PAGE);
    read(UNIT * PAGE);
    CHECK(home_bytes() == least + 2 * UNIT * PAGE);
    read((5 * UNIT - 1) * PAGE);
    CHECK(home_bytes() == least + (2 * UNIT + 1) * PAGE);
    uint64_t most = 0;
    for (int turn = 0; turn < 2; turn++)
        for (uint64_t i = 0; i < pages * PAGE / 8; i++) {
            if (words[i] != i * 3)
                FAIL("word " << i << " in turn " << turn);
            if (i % (UNIT * PAGE / 8) == 0)
                most = std::max(most, home_bytes());
        }
    CHECK(most <= least + LIMIT / 2 + UNIT * PAGE);
    CHECK(test::stats(c.get()).pages_evicted > 2 * (pages - LIMIT / PAGE));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("home has no more than the limit in a container that was relocated, too")
{
    const uint64_t pages = 4096;
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    {
        test::Container c = test::open(path, test::options(PM_CREATE | PM_MOVABLE));
        auto *bytes = static_cast<char *>(pm_malloc(c.get(), pages * PAGE));
        REQUIRE(bytes);
        REQUIRE_OK(pm_setroot(c.get(), bytes, 0));
        for (uint64_t page = 0; page < pages; page++) {
            REQUIRE_OK(pm_dirty(bytes + page * PAGE, 8));
            bytes[page * PAGE] = 1;
            if (page % 8 == 7)
                REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE_OK(pm_copy(c.get(), copy.c_str(), nullptr, nullptr));
    }
    pm_options how = bounded(PM_MOVABLE | PM_RELOCATE);
    // The original is where the copy would be. It is first among the files in memory, so it goes before
    // somebody looks.
    test::Container original = test::open(path, test::options(PM_MOVABLE));
    test::Container c = test::open(copy, how);
    REQUIRE(test::stats(c.get()).touches == 0);
    original.reset();
    const uint64_t least = home_bytes();
    auto *bytes = static_cast<volatile char *>(pm_getroot(c.get()));
    for (uint64_t page = 0; page < pages; page++)
        REQUIRE(bytes[page * PAGE] == 1);
    CHECK(home_bytes() <= least + LIMIT / 2 + UNIT * PAGE);
}

// The audit compares private pages with home. Of a freed object home has nothing any more, if it was filled anew.
TEST_CASE("elsewhere the audit takes what is left of freed objects for no store")
{
    constexpr uint64_t OBJECTS = 2000, BYTES = 3000;
    test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    pm_options how = bounded(PM_MOVABLE | PM_ANNOUNCED), create = how;
    how.tracker = create.tracker = PM_TRACKER_STORES;
    create.flags |= PM_CREATE;
    std::mt19937_64 random(1);
    const auto replace = [&](pm_container *c, char **slot) {
        REQUIRE_OK(pm_free(*slot));
        REQUIRE_OK(pm_dirty(slot, sizeof *slot));
        *slot = nullptr;
        if (random() % 2) {
            *slot = static_cast<char *>(pm_malloc(c, BYTES));
            REQUIRE(*slot);
            REQUIRE_OK(pm_dirty(*slot, 1)); // and nobody stores to the rest
            **slot = 1;
        }
    };
    {
        test::Container c = test::open(path, create);
        auto **slots = static_cast<char **>(pm_calloc(c.get(), OBJECTS, sizeof(char *)));
        REQUIRE_OK(pm_setroot(c.get(), slots, 0));
        REQUIRE_OK(pm_mark_pointers(slots, OBJECTS));
        for (uint64_t i = 0; i < OBJECTS; i++) {
            replace(c.get(), &slots[i]);
            if (!slots[i])
                continue;
            REQUIRE_OK(pm_dirty(slots[i], BYTES));
            memset(slots[i], 1, BYTES);
        }
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_copy(c.get(), copy.c_str(), nullptr, nullptr));
    }
    test::Container original = test::open(path, how); // where the copy would be
    setenv("LIBPM_AUDIT", "1", 1);
    test::Container c = test::open(copy, how);
    unsetenv("LIBPM_AUDIT");
    auto **slots = static_cast<char **>(pm_getroot(c.get()));
    for (int i = 0; i < 1000; i++) {
        for (int n = 0; n < 20; n++) // home is filled again and again
            if (const volatile char *p = slots[random() % OBJECTS])
                (void)(p[0] + p[BYTES - 1]);
        if (char *p = slots[random() % OBJECTS]) {
            REQUIRE_OK(pm_dirty(p, 1));
            ++*p;
        }
        replace(c.get(), &slots[random() % OBJECTS]);
        REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("without a limit, home is whole, and a system call reads it")
{
    const uint64_t pages = 1024;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path, pages);
    const bool is_bounded = GENERATE(false, true);
    test::Container c = test::open(path, is_bounded ? bounded() : test::options());
    auto *words = static_cast<volatile uint64_t *>(pm_getroot(c.get()));
    int out = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    REQUIRE(out >= 0);
    auto write_page = [&] { return write(out, const_cast<uint64_t *>(words), PAGE); };
    if (is_bounded) {
        REQUIRE(write_page() == -1);
        REQUIRE(errno == EFAULT);
        REQUIRE(words[5] == 15);
    }
    REQUIRE(write_page() == PAGE);
    if (test::mode() == "log") { // announced, the kernel may store, too, also to pages behind each other
        const uint64_t from = 3 * UNIT * PAGE - 100, size = UNIT * PAGE + 200;
        char *to = reinterpret_cast<char *>(const_cast<uint64_t *>(words)) + from;
        REQUIRE_OK(pm_dirty(to, size));
        REQUIRE(lseek(out, 0, SEEK_SET) == 0);
        REQUIRE(ftruncate(out, (off_t)size) == 0);
        REQUIRE(read(out, to, size) == (ssize_t)size);
        REQUIRE(to[size - 1] == 0);
        REQUIRE(words[from / 8 - 1] == (from / 8 - 1) * 3);
        REQUIRE(words[(from + size) / 8 + 1] == ((from + size) / 8 + 1) * 3);
        REQUIRE_OK(pm_commit(c.get()));
    }
    CHECK((home_bytes() > pages * PAGE) == !is_bounded);
    close(out);
}

TEST_CASE("what was handed over, and what was announced, stays while other pages come and go")
{
    const uint64_t pages = 2048, SIZE = 5000;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path, pages);
    pm_options how = bounded();
    how.private_max = 1;
    test::Container c = test::open(path, how);
    const uint64_t least = home_bytes();
    auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    auto read_all = [&] {
        for (uint64_t i = 1; i < pages * PAGE / 8; i += 512)
            REQUIRE(static_cast<volatile uint64_t *>(words)[i] == i * 3);
    };
    const int in = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    REQUIRE((in >= 0 && ftruncate(in, SIZE) == 0));
    const bool commits = GENERATE(true, false);
    for (int turn = 0; turn < 3; turn++) {
        std::vector<char *> put;
        for (unsigned i = 0; i < 40; i++) {
            put.push_back(
                static_cast<char *>(pm_put(c.get(), values::bytes_of(SIZE, i).data(), SIZE)));
            REQUIRE(put.back());
        }
        auto is_there = [&](unsigned i) {
            return std::string(put[i], SIZE) == values::bytes_of(SIZE, i);
        };
        auto *large = static_cast<char *>(pm_malloc(c.get(), MiB)), *announced = large + MiB / 2;
        REQUIRE(large);
        REQUIRE_OK(pm_dirty(announced, SIZE));
        read_all();
        if (!test::stores()) {
            REQUIRE(lseek(in, 0, SEEK_SET) == 0);
            REQUIRE(read(in, announced, SIZE) == (ssize_t)SIZE);
        }
        read_all();
        CHECK(home_bytes() < least + 2 * MiB);
        for (unsigned i = 0; i < put.size(); i++)
            REQUIRE(is_there(i));
        REQUIRE_OK(commits ? pm_commit(c.get()) : pm_rollback(c.get()));
        CHECK(home_bytes() < least + 2 * MiB);
        if (commits)
            REQUIRE_OK(pm_free(large));
        for (unsigned i = 0; i < put.size() && commits; i++) {
            REQUIRE(is_there(i));
            REQUIRE_OK(pm_free(put[i]));
        }
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    close(in);
}

TEST_CASE("what was handed over may go when it was committed")
{
    constexpr size_t SIZE = 4096;
    test::Directory directory;
    pm_options how = bounded(PM_CREATE);
    how.private_max = 1;
    test::Container c = test::open(directory / "c.pm", how);
    const uint64_t least = home_bytes();
    std::vector<char *> put;
    for (unsigned i = 0; i < 2000; i++) { // one at a time, so none is mapped from the file
        put.push_back(static_cast<char *>(pm_put(c.get(), values::bytes_of(SIZE, i).data(), SIZE)));
        REQUIRE(put.back());
        REQUIRE_OK(pm_commit(c.get()));
    }
    CHECK(home_bytes() < least + 2 * MiB);
    for (unsigned i = 0; i < put.size(); i++)
        REQUIRE(std::string(put[i], SIZE) == values::bytes_of(SIZE, i));
}

TEST_CASE("when a transaction ends, what it has stored to may go")
{
    const uint64_t pages = 2048;
    const std::string end = GENERATE(as<std::string>(), "small commit", "commit", "rollback");
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path, pages);
    pm_options how = bounded();
    how.private_max = 1;
    test::Container c = test::open(path, how);
    const uint64_t least = home_bytes();
    auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    for (uint64_t page = 0; page < pages; page++) {
        REQUIRE_OK(pm_dirty(words + page * 512, 8));
        words[page * 512]++;
    }
    CHECK(home_bytes() > least + pages / 2 * PAGE);
    REQUIRE_OK(end == "rollback" ? pm_rollback(c.get()) : pm_commit(c.get()));
    for (int i = 0; i < 8; i++) {
        for (uint64_t page = 0; page < (end == "small commit" ? 1 : 20); page++) {
            REQUIRE_OK(pm_dirty(words + page * 512, 8));
            words[page * 512]++;
        }
        REQUIRE_OK(end == "rollback" ? pm_rollback(c.get()) : pm_commit(c.get()));
    }
    CHECK(home_bytes() < least + 2 * MiB);
}

TEST_CASE("large transactions, one after the other, leave home within the limit")
{
    constexpr uint64_t COUNT = 12, SIZE = 8 * MiB, STEP = 4 * PAGE;
    test::Directory directory;
    pm_options how = bounded(PM_CREATE);
    how.private_max = 4 * MiB;
    test::Container c = test::open(directory / "c.pm", how);
    const uint64_t least = home_bytes();
    char *objects[COUNT][SIZE / STEP];
    for (auto &row : objects) {
        for (char *&object : row) {
            object = static_cast<char *>(pm_malloc(c.get(), STEP));
            REQUIRE(object);
            REQUIRE_OK(pm_dirty(object, STEP));
            memset(object, 'a', STEP);
        }
        REQUIRE_OK(pm_commit(c.get()));
    }
    // Home has the pages, too, of which the view has copies.
    CHECK(home_bytes() <= least + how.private_max + 2 * MiB);
    for (auto &row : objects)
        for (char *object : row)
            REQUIRE(object[STEP - 1] == 'a');
}

// The cleaner's record has deltas of lines that home had when it was planned.
TEST_CASE("the cleaner works where home was cut off and came back")
{
    constexpr uint64_t LINES = 6 * MiB / 64, STEP = 48, BEHIND = 128 << 10;
    test::Directory directory;
    pm_options how = bounded(PM_CREATE | PM_MOVABLE);
    how.private_max = 8 * MiB;
    how.segment_size = 64 << 10;
    test::Container c = test::open(directory / "c.pm", how);
    auto *words = static_cast<uint64_t *>(pm_malloc(c.get(), LINES * 64));
    auto *behind = static_cast<uint64_t *>(pm_malloc(c.get(), BEHIND));
    REQUIRE((words && behind));
    REQUIRE_OK(pm_setroot(c.get(), words, 0));
    std::vector<uint64_t> copy(LINES * 8);
    std::mt19937_64 random(1);
    auto store = [&](uint64_t word) {
        REQUIRE_OK(pm_dirty(words + word, 8));
        words[word] = copy[word] = random();
    };
    for (uint64_t i = 0; i < copy.size(); i++) {
        store(i);
        if (i % (32 << 10) == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    for (uint64_t i = 0; i < BEHIND / 64; i++) { // some lines get deltas, in chunks with dead lines
        store(i * STEP * 8);
        for (int k = 0; k < 2; k++) {
            REQUIRE_OK(pm_dirty(behind + i * 8, 64));
            for (int word = 0; word < 8; word++)
                behind[i * 8 + (uint64_t)word] = random();
            REQUIRE_OK(pm_commit(c.get()));
        }
        if (i % 2 == 0) { // they get some, too
            REQUIRE_OK(pm_dirty(behind + i * 8, 8));
            behind[i * 8] = random();
        }
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < BEHIND / 8; i += 512) // home has all of it
        sum += static_cast<volatile uint64_t *>(behind)[i];
    REQUIRE(sum != 0);
    REQUIRE_OK(pm_free(behind));
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    words = static_cast<uint64_t *>(pm_getroot(c.get()));
    REQUIRE(pm_malloc(c.get(), 100)); // home grows again
    REQUIRE_OK(pm_commit(c.get()));
    for (uint64_t i = 0; i < test::repetitions(60000, 400000); i++) {
        const uint64_t line = random() % LINES;
        for (uint64_t word = 0; word < 8 && line % STEP != 0; word++)
            store(line * 8 + word);
        if (i % 16 == 0)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(memcmp(words, copy.data(), LINES * 64) == 0);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

// Arguments: two paths. Each thread hands over to one container what the other has.
CHILD_PROCESS(exchanges)
{
    constexpr uint64_t SIZE = 2 * MiB;
    test::Container c[2];
    char *object[2];
    for (int i = 0; i < 2; i++) {
        pm_options how = bounded(PM_CREATE);
        how.private_max = 1;
        c[i] = test::open(arguments[(size_t)i], how);
        object[i] = static_cast<char *>(pm_calloc(c[i].get(), 1, SIZE));
        CHILD_REQUIRE(object[i] && pm_setroot(c[i].get(), object[i], 0) == 0 &&
                      pm_commit(c[i].get()) == 0);
    }
    auto exchange = [&](int to) {
        for (int turn = 0; turn < 100; turn++) {
            void *p = pm_put(c[to].get(), object[1 - to], SIZE);
            CHILD_REQUIRE(p && pm_free(p) == 0 && pm_commit(c[to].get()) == 0);
        }
    };
    std::thread other(exchange, 1);
    exchange(0);
    other.join();
    _exit(0);
}

TEST_CASE("two containers hand over to one another at once")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("exchanges", {directory / "a.pm", directory / "b.pm"}));
}

CHILD_PROCESS(takes_sigbus)
{
    pm_container *c = open_in_child(arguments[0]);
    signal(SIGBUS, [](int) { _exit(3); });
    CHILD_REQUIRE(pm_commit(c) == 0); // puts libpm's handler in front again
    require_numbers(c);
    _exit(0);
}

TEST_CASE("a program takes SIGBUS, and gives it back at the next commit")
{
    test::Directory directory;
    make(directory / "c.pm", 1024);
    // In mode `stores` few commits look whether the handler is there.
    if (!test::stores())
        REQUIRE_CLEAN(test::run("takes_sigbus", {directory / "c.pm"}));
}

// arguments: path. Pages that memory does not have were in the part of the file that is gone.
CHILD_PROCESS(reads_what_was_cut_off)
{
    pm_container *c = open_in_child(arguments[0]);
    CHILD_REQUIRE(truncate(arguments[0].c_str(), 64 << 10) == 0);
    require_numbers(c);
    _exit(0);
}

TEST_CASE("a page that was in a part of the file that somebody has cut off ends the program, in words")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path, 1024);
    test::Ended ended = test::run("reads_what_was_cut_off", {path});
    INFO(ended.status << ": " << ended.errors);
    REQUIRE(test::killed(ended.status, SIGBUS));
    REQUIRE_THAT(ended.errors, Catch::Contains("libpm: " + path + ": offset ") &&
                                   Catch::Contains("run `pm check`"));
}

namespace
{

// Objects of all sizes, beside a copy in ordinary memory.
struct Model {
    static constexpr int OBJECTS = 400;
    struct Root {
        char *object[OBJECTS];
        uint64_t size[OBJECTS];
    };
    std::string copy[OBJECTS], committed[OBJECTS];
    std::mt19937_64 random;
    test::Container c;

    Root *root() { return static_cast<Root *>(pm_getroot(c.get())); }

    void set(int i, void *object, uint64_t size)
    {
        REQUIRE_OK(pm_dirty(&root()->object[i], sizeof(char *)));
        REQUIRE_OK(pm_dirty(&root()->size[i], sizeof(uint64_t)));
        root()->object[i] = static_cast<char *>(object);
        root()->size[i] = size;
    }

    void replace(int i)
    {
        static const uint64_t sizes[] = {24, 200, 1000, 5000, 40000, 300000};
        uint64_t size = sizes[random() % 6];
        if (root()->object[i])
            REQUIRE_OK(pm_free(root()->object[i]));
        std::string bytes(size, (char)random());
        void *object =
            random() % 2 ? pm_put(c.get(), bytes.data(), size) : pm_malloc(c.get(), size);
        REQUIRE(object);
        REQUIRE_OK(pm_dirty(object, size));
        memcpy(object, bytes.data(), size);
        set(i, object, size);
        copy[i] = bytes;
    }

    void remove(int i)
    {
        if (root()->object[i])
            REQUIRE_OK(pm_free(root()->object[i]));
        set(i, nullptr, 0);
        copy[i].clear();
    }

    void store(int i)
    {
        if (copy[i].empty())
            return;
        uint64_t at = random() % copy[i].size(),
                 n = std::min<uint64_t>(copy[i].size() - at, random() % 100);
        char *to = root()->object[i] + at;
        REQUIRE_OK(pm_dirty(to, n + (n == 0)));
        for (uint64_t k = 0; k < n; k++)
            to[k] = copy[i][at + k] = (char)random();
    }

    void compare()
    {
        for (int i = 0; i < OBJECTS; i++)
            if (root()->size[i] != copy[i].size() ||
                memcmp(root()->object[i], copy[i].data(), copy[i].size()) != 0)
                FAIL("object " << i);
    }
};

} // namespace

TEST_CASE("random operations, commits, rollbacks, compactions and openings agree with a copy")
{
    const unsigned seed = GENERATE(range(1u, test::repetitions(3, 100)));
    const bool concurrently = test::concurrently();
    CAPTURE(seed, concurrently);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = bounded(PM_CREATE | PM_MOVABLE);
    how.private_max = 1; // the least
    how.segment_size = seed % 2 ? 64 << 10 : MiB;
    how.max_size = UINT64_C(1) << 30;
    how.concurrent_stores = concurrently;
    Model m;
    m.random.seed(seed);
    m.c = test::open(path, how);
    void *root = pm_malloc_typed(m.c.get(), PM_TYPE(Model::Root, object), 1);
    REQUIRE(root);
    REQUIRE_OK(pm_setroot(m.c.get(), root, 0));
    REQUIRE_OK(pm_commit(m.c.get()));
    for (int step = 0; step < 300; step++) {
        for (int k = 0; k < 10; k++) {
            int i = (int)(m.random() % Model::OBJECTS);
            uint64_t what = m.random() % 10;
            what < 5 ? m.store(i) : what < 9 ? m.replace(i) : m.remove(i);
        }
        if (m.random() % 6 == 0) {
            REQUIRE_OK(pm_rollback(m.c.get()));
            std::copy_n(m.committed, Model::OBJECTS, m.copy);
        } else {
            REQUIRE_OK(pm_commit(m.c.get()));
            std::copy_n(m.copy, Model::OBJECTS, m.committed);
        }
        if (step % 50 == 20) {
            REQUIRE_OK(pm_compact(m.c.get(), nullptr, nullptr, nullptr));
            m.compare();
        }
        if (step % 50 == 40) {
            m.c.reset();
            m.c = test::open(path, step % 100 == 40 ? how : test::options(PM_MOVABLE));
            m.compare();
            REQUIRE_OK(pm_check(m.c.get()));
            m.c.reset();
            m.c = test::open(path, how);
        }
    }
    m.compare();
    REQUIRE(test::stats(m.c.get()).pages_evicted > 0);
}

// Readers meet pages that leave while they read, and pages that another thread fills.
TEST_CASE("threads read while another commits, and a signal handler does")
{
    const uint64_t pages = 2048;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    make(path, pages);
    pm_options how = bounded();
    how.private_max = 1;
    test::Container c = test::open(path, how);
    auto *words = static_cast<uint64_t *>(pm_getroot(c.get()));
    std::atomic<bool> stop{false}, wrong{false};
    auto read = [&](unsigned seed) {
        std::minstd_rand random(seed);
        while (!stop) {
            uint64_t i = random() % (pages * PAGE / 8);
            if (i % 512 != 7 && static_cast<volatile uint64_t *>(words)[i] != i * 3)
                wrong = true;
        }
    };
    static volatile uint64_t *handler_words;
    static volatile sig_atomic_t handler_wrong;
    handler_words = words;
    handler_wrong = 0;
    struct sigaction action = {}, before;
    action.sa_handler = [](int) {
        static uint64_t next;
        uint64_t i = (next += 40961) % (pages * PAGE / 8);
        if (i % 512 != 7 && handler_words[i] != i * 3)
            handler_wrong = 1;
    };
    action.sa_flags = SA_RESTART;
    REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
    struct itimerval often = {{0, 500}, {0, 500}}, never = {};
    std::thread one(read, 1), two(read, 2);
    setitimer(ITIMER_REAL, &often, nullptr);
    // Until the readers have met enough pages: how often they run meanwhile is the machine's business.
    for (uint64_t n = 0; n < 400 || test::stats(c.get()).pages_evicted <= pages; n++)
        for (uint64_t page = n % 5; page < pages; page += 191) { // word 7 of some pages
            uint64_t *word = words + page * 512 + 7;
            REQUIRE_OK(pm_dirty(word, 8));
            *word = n;
            if (page % 3 == 0)
                REQUIRE_OK(pm_commit(c.get()));
        }
    setitimer(ITIMER_REAL, &never, nullptr);
    stop = true;
    one.join();
    two.join();
    REQUIRE(sigaction(SIGALRM, &before, nullptr) == 0);
    CHECK_FALSE(wrong);
    CHECK_FALSE(handler_wrong);
    REQUIRE(test::stats(c.get()).pages_evicted > pages);
}

// The kernel fills a locked mapping when it is made.
// Metadata alone is more than `private_max` allows: a map of pointers has a segment.
CHILD_PROCESS(loads_from_two_pages_at_once)
{
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.private_max = 1;
    test::Container c = test::open(arguments[0], how);
    auto *object = static_cast<char *>(pm_calloc(c.get(), 1, 24 * PAGE));
    CHILD_REQUIRE(object);
    memset(object, 'x', 24 * PAGE);
    *reinterpret_cast<char **>(object) = object;
    CHILD_REQUIRE(pm_mark_pointer(object) == 0 && pm_setroot(c.get(), object, 0) == 0 &&
                  pm_commit(c.get()) == 0);
    c.reset();
    c = test::open(arguments[0], how);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    object = static_cast<char *>(pm_getroot(c.get()));
    alarm(10);
    for (uint64_t page = 2; page < 24; page++) { // one load each
        uint64_t word;
        memcpy(&word, object + page * PAGE - 4, sizeof word);
        CHILD_REQUIRE(word == 0x7878787878787878);
    }
    c.reset();
    _exit(0);
}

TEST_CASE("a load from two pages ends, however little memory there may be")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("loads_from_two_pages_at_once", {directory / "c.pm"}));
}

CHILD_PROCESS(locks_memory)
{
    if (mlockall(MCL_FUTURE) != 0)
        _exit(77);
    pm_container *c = open_in_child(arguments[0]);
    require_numbers(c);
    CHILD_REQUIRE(pm_close(c) == 0);
    _exit(0);
}

TEST_CASE("memory that is locked is filled all the same")
{
    test::Directory directory;
    make(directory / "c.pm", 1024);
    test::Ended ended = test::run("locks_memory", {directory / "c.pm"});
    if (test::exited(ended.status, 77)) {
        WARN("this user may lock no memory");
        return;
    }
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
}

namespace
{

// From here on the kernel refuses a system call, as in many containers.
void forbid(long number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    CHILD_REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHILD_REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

} // namespace

CHILD_PROCESS(may_not_watch)
{
    forbid(SYS_userfaultfd);
    pm_container *c = open_in_child(arguments[0]);
    require_numbers(c);
    CHILD_REQUIRE(home_bytes() > 1024 * PAGE);
    CHILD_REQUIRE(pm_close(c) == 0);
    _exit(0);
}

TEST_CASE("where the kernel refuses, home is whole, and the program is told once")
{
    test::Directory directory;
    make(directory / "c.pm", 1024);
    test::Ended ended = test::run("may_not_watch", {directory / "c.pm"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    REQUIRE(ended.errors.find("private_max") != std::string::npos);
    REQUIRE(ended.errors.find("userfaultfd") != std::string::npos);
}

// Bytes that are handed over: pm_put() and pm_write(), at every boundary, beside a plain copy in memory. Under
// the log engine they take a short way, which must not show.
#include "common/process.hpp"
#include "unit/values.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <numeric>
#include <random>

using namespace values;

namespace
{

constexpr size_t LINE = 64, PAGE = 4096, SEGMENT = 64 << 10;

std::string contents(const Root *root, int i)
{
    return {root->object[i], root->size[i]};
}

bool takes_short_way()
{
    return test::engine() == "log";
}

void crash(test::Container &c, const std::string &path)
{
    values::crash(c, path, test::options());
}

} // namespace

TEST_CASE("a value that is handed over is there, at once, after the commit, and after a crash")
{
    const size_t size = GENERATE(1u, 63u, 64u, 255u, 256u, 257u, 320u, 4095u, 4096u, 4097u, 20000u,
                                 SEGMENT / 2, SEGMENT / 2 + 1, SEGMENT, 3 * SEGMENT + 5);
    CAPTURE(size);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    for (int i = 0; i < 5; i++) {
        const std::string value = bytes_of(size, (unsigned)i);
        void *object = pm_put(c.get(), value.data(), value.size());
        REQUIRE(object);
        REQUIRE(memcmp(object, value.data(), size) == 0);
        REQUIRE((uintptr_t)object % (size < 256 ? 16 : 64) == 0);
        set(root, i, object, size);
        if (i == 2)
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    for (bool crashed : {true, false}) {
        if (crashed) {
            crash(c, path);
        } else {
            c.reset();
            c = test::open(path, test::options());
        }
        for (int i = 0; i < 5; i++)
            REQUIRE(contents(root_of(c.get()), i) == bytes_of(size, (unsigned)i));
    }
}

// A store that home seems to have already is not logged.
TEST_CASE("what was handed over and then undone or freed leaves nothing behind")
{
    // Slots of 288 bytes share lines, so pm_malloc() does not mark these together.
    const size_t size = GENERATE(256u, 288u, 1000u, 4096u, 40000u, 2 * SEGMENT);
    const std::string how =
        GENERATE(as<std::string>{}, "rolled back", "freed", "freed and rolled back");
    const bool used_before = GENERATE(false, true), opened = GENERATE(false, true),
               zeros = GENERATE(false, true), aligned = GENERATE(false, true);
    CAPTURE(size, how, used_before, opened, zeros, aligned);
    test::Directory directory;
    const std::string path = directory / "c.pm", value = bytes_of(size, 1);
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    auto allocate = [&] {
        void *p = aligned ? pm_aligned_alloc(c.get(), LINE, size) : pm_malloc(c.get(), size);
        REQUIRE(p);
        return static_cast<char *>(p);
    };
    auto hand_over = [&](const std::string &bytes) {
        char *p = aligned ? static_cast<char *>(pm_put(c.get(), bytes.data(), size)) : allocate();
        REQUIRE(p);
        if (!aligned)
            REQUIRE_OK(pm_write(p, bytes.data(), size));
        return p;
    };
    if (used_before) {
        void *object = hand_over(bytes_of(size, 2));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(object));
        REQUIRE_OK(pm_commit(c.get()));
    }
    char *object = hand_over(value);
    if (opened) { // from here on its page has a private copy
        REQUIRE_OK(pm_dirty(object, 1));
        object[0] ^= 1;
    }
    if (how != "rolled back")
        REQUIRE_OK(pm_free(object));
    if (how == "freed") {
        set(root, 0, nullptr, 0);
        REQUIRE_OK(pm_commit(c.get()));
    } else {
        REQUIRE_OK(pm_rollback(c.get()));
    }
    // Uninitialised memory, to which the program stores the same bytes in the ordinary way, or zeros.
    const std::string later = zeros ? std::string(size, 0) : value;
    char *second = allocate();
    memcpy(second, later.data(), size);
    set(root, 0, second, size);
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(contents(root, 0) == later);
}

TEST_CASE("a value comes in pieces, and the program stores to it before the commit and after it")
{
    const size_t piece = GENERATE(64u, 100u, 256u, 1000u, 4096u, 8192u);
    const size_t size = GENERATE(3000u, 10000u, 70000u);
    CAPTURE(piece, size);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    std::string value = bytes_of(size, 3);
    auto *object = static_cast<char *>(pm_put(c.get(), nullptr, size));
    REQUIRE(object);
    for (size_t at = 0; at < size; at += piece)
        REQUIRE_OK(pm_write(object + at, value.data() + at, std::min(piece, size - at)));
    // Once more, and then in part in the ordinary way.
    REQUIRE_OK(pm_write(object, value.data(), size));
    REQUIRE(std::string(object, size) == value);
    auto change = [&](size_t at) {
        REQUIRE_OK(pm_dirty(object + at, 1));
        object[at] ^= 0x55;
        value[at] ^= 0x55;
    };
    change(0);
    change(size / 2);
    set(root, 0, object, size);
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(contents(root, 0) == value);
    change(size - 1);
    REQUIRE_OK(pm_commit(c.get()));
    // An object that the last commit had: a rollback brings its bytes back.
    REQUIRE_OK(pm_write(object + 1, bytes_of(size, 4).data(), size - 1));
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(contents(root, 0) == value);
    const std::string other = bytes_of(size, 5);
    REQUIRE_OK(pm_write(object, other.data(), size));
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(contents(root, 0) == other);
    REQUIRE_OK(pm_check(c.get()));
}

// Objects that share pages, among them some that the program has stored to: many random transactions, and a
// crash after each commit.
TEST_CASE("values of random sizes beside ordinary objects")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    std::mt19937 random(GENERATE(1u, 2u, 3u));
    std::string model[16], committed[16];
    for (int step = 0; step < 200; step++) {
        for (unsigned changes = 1 + random() % 6; changes > 0; changes--) {
            const int i = (int)(random() % 16);
            const size_t size = 1 + random() % (random() % 4 == 0 ? 9000 : 600);
            const std::string value = bytes_of(size, random());
            if (root->object[i])
                REQUIRE_OK(pm_free(root->object[i]));
            void *object = nullptr;
            if (random() % 3 > 0) {
                object = pm_put(c.get(), value.data(), size);
            } else {
                object = pm_malloc(c.get(), size);
                REQUIRE(object);
                REQUIRE_OK(pm_dirty(object, size));
                memcpy(object, value.data(), size);
            }
            REQUIRE(object);
            set(root, i, object, size);
            model[i] = value;
        }
        if (random() % 4 == 0) {
            REQUIRE_OK(pm_rollback(c.get()));
            std::copy(committed, committed + 16, model);
        } else {
            REQUIRE_OK(pm_commit(c.get()));
            std::copy(model, model + 16, committed);
        }
        for (int i = 0; i < 16; i++)
            REQUIRE(contents(root, i) == model[i]);
        if (step % 10 == 0) {
            crash(c, path);
            std::copy(committed, committed + 16, model);
            for (int i = 0; i < 16; i++)
                REQUIRE(contents(root, i) == committed[i]);
        }
    }
    REQUIRE_OK(pm_check(c.get()));
}

// The short way: no page gets a private copy, no store faults, and just these lines are logged.
TEST_CASE("a large value needs no private pages", "[log][log.stores]")
{
    if (!takes_short_way())
        return;
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small());
    make_root(c.get());
    const std::string value = bytes_of(16 * PAGE, 6);
    struct pm_stats before = test::stats(c.get());
    void *object = pm_put(c.get(), value.data(), value.size());
    REQUIRE(object);
    for (int again = 0; again < 3; again++) // is logged once
        REQUIRE_OK(pm_write(object, value.data(), value.size()));
    REQUIRE(test::stats(c.get()).pages_private == before.pages_private);
    REQUIRE_OK(pm_commit(c.get()));
    struct pm_stats after = test::stats(c.get());
    REQUIRE(after.faults == before.faults);
    REQUIRE(after.pages_private == before.pages_private);
    const uint64_t lines = after.lines_logged - before.lines_logged;
    REQUIRE(lines >= value.size() / LINE);
    REQUIRE(lines <= value.size() / LINE + 4); // words of the segment table
}

namespace
{

constexpr int PAIRS = 4000;

struct Pairs {
    char *value[PAIRS];
    uint64_t *number[PAIRS]; // each beside a value
};

Pairs *pairs;
volatile sig_atomic_t now;
uint64_t stored[PAIRS];

// Store beside the value that is being handed over.
void on_timer(int)
{
    const int i = now;
    stored[i]++;
    *pairs->number[i] = stored[i];
}

class Timer
{
  public:
    Timer()
    {
        struct sigaction how = {};
        how.sa_handler = on_timer;
        REQUIRE(sigaction(SIGALRM, &how, nullptr) == 0);
        sigevent event = {};
        event.sigev_signo = SIGALRM;
        event.sigev_notify = SIGEV_SIGNAL;
        REQUIRE(timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
        const itimerspec often = {{0, 20000}, {0, 20000}};
        REQUIRE(timer_settime(timer_, 0, &often, nullptr) == 0);
    }
    Timer(const Timer &) = delete;
    Timer &operator=(const Timer &) = delete;
    ~Timer() { timer_delete(timer_); }

  private:
    timer_t timer_ = {};
};

} // namespace

// The signal may come when the page has been found untouched, and the value is not there yet.
TEST_CASE("a signal handler stores to a page while a value is handed over", "[log][log.stores]")
{
    test::Directory directory;
    pm_options how = test::options(PM_CREATE);
    how.max_size = 64 << 20;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, how);
    pairs = static_cast<Pairs *>(pm_calloc(c.get(), 1, sizeof *pairs));
    REQUIRE(pairs);
    REQUIRE_OK(pm_setroot(c.get(), pairs, 0));
    std::fill_n(stored, PAIRS, 0);
    for (int i = 0; i < PAIRS; i++) { // two on a page
        pairs->value[i] = static_cast<char *>(pm_calloc(c.get(), 1, 2048));
        pairs->number[i] = static_cast<uint64_t *>(pm_calloc(c.get(), 1, 2048));
    }
    REQUIRE_OK(pm_commit(c.get()));
    c.reset(); // nobody has stored to any page
    c = test::open(path, how);
    pairs = static_cast<Pairs *>(pm_getroot(c.get()));
    REQUIRE_OK(pm_dirty(pairs, sizeof *pairs));
    for (int i = 0; i < PAIRS; i++)
        REQUIRE_OK(pm_free(pairs->value[i]));
    REQUIRE_OK(pm_commit(c.get()));
    std::string values[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        values[i] = bytes_of(2048, (unsigned)i);
    {
        const Timer timer;
        for (int i = 0; i < PAIRS; i++) {
            now = i;
            pairs->value[i] = static_cast<char *>(pm_put(c.get(), values[i].data(), 2048));
        }
    }
    auto check = [&] {
        for (int i = 0; i < PAIRS; i++) {
            REQUIRE(memcmp(pairs->value[i], values[i].data(), 2048) == 0);
            REQUIRE(*pairs->number[i] == stored[i]);
        }
    };
    check();
    CHECK(std::accumulate(stored, stored + PAIRS, UINT64_C(0)) > 100);
    REQUIRE_OK(pm_commit(c.get()));
    check();
    crash(c, path);
    pairs = static_cast<Pairs *>(pm_getroot(c.get()));
    check();
}

// The masks of metadata come behind those of lines handed over. 320 bytes have a slab without the root.
TEST_CASE("a value is handed over while objects of many sizes are freed")
{
    constexpr size_t SIZES = 12;
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    const std::string value = bytes_of(320, 1);
    REQUIRE(pm_put(c.get(), value.data(), value.size())); // its slab is not new later
    void *freed[SIZES];
    for (size_t i = 0; i < SIZES; i++)
        for (size_t n = 0; n < 200; n++) {
            void *object = pm_malloc(c.get(), 16 * (i + 1));
            REQUIRE(object);
            if (n == i % 3 * 60) // in words of the bitmap that differ from size to size
                freed[i] = object;
        }
    REQUIRE_OK(pm_commit(c.get()));
    void *object = pm_put(c.get(), value.data(), value.size());
    REQUIRE(object);
    set(root, 0, object, value.size());
    for (void *p : freed)
        REQUIRE_OK(pm_free(p));
    REQUIRE_OK(pm_commit(c.get()));
    crash(c, path);
    REQUIRE(contents(root_of(c.get()), 0) == value);
    REQUIRE_OK(pm_check(c.get()));
    for (void *p : freed)
        REQUIRE(pm_usable_size(p) == 0);
}

TEST_CASE("bytes cannot be handed over to nowhere")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    test::Container c = test::open(path, test::small());
    Root *root = make_root(c.get());
    char byte = 1;
    REQUIRE(pm_write(nullptr, &byte, 1) == -1);
    REQUIRE(test::failed_with(EINVAL, {"no open container"}));
    REQUIRE(pm_write(&byte, &byte, 1) == -1);
    REQUIRE(test::failed_with(EINVAL));
    REQUIRE(pm_write(reinterpret_cast<char *>(root) + (48 << 20), &byte, 1) == -1);
    REQUIRE(test::failed_with(EINVAL, {"not in one object"}));
    REQUIRE(pm_write(root, &byte, (size_t)1 << 40) == -1);
    REQUIRE(test::failed_with(EINVAL, {"not in one object"}));
    REQUIRE_OK(pm_write(root, &byte, 0));
    std::array<char *, 3> objects;
    const std::string bytes(512, 1);
    for (char *&object : objects)
        REQUIRE((object = static_cast<char *>(pm_put(c.get(), bytes.data(), 512))));
    REQUIRE(pm_usable_size(objects[1]) == 512);
    REQUIRE_OK(pm_write(objects[1] + 12, bytes.data(), 500)); // to the last byte
    for (const size_t at : {size_t{13}, size_t{511}}) {
        REQUIRE(pm_write(objects[1] + at, bytes.data(), 500) == -1); // a neighbour would be there
        REQUIRE(test::failed_with(EINVAL, {path.c_str(), "not in one object"}));
    }
    REQUIRE_OK(pm_free(objects[1]));
    REQUIRE(pm_write(objects[1], bytes.data(), 512) == -1);
    REQUIRE(test::failed_with(EINVAL, {"not in one object"}));
    REQUIRE_OK(pm_rollback(c.get()));
    root = make_root(c.get());
    REQUIRE(pm_put(nullptr, &byte, 1) == nullptr);
    REQUIRE(test::failed_with(EINVAL));
    const std::string large = bytes_of(80 << 20, 7);
    const uint64_t file = test::stats(c.get()).file_bytes;
    REQUIRE(pm_put(c.get(), large.data(), large.size()) == nullptr);
    REQUIRE(test::failed_with(ENOSPC));
    REQUIRE(test::stats(c.get()).file_bytes == file);
    REQUIRE_OK(pm_rollback(c.get()));
    c.reset();
    pm_options how = test::options(PM_READONLY);
    c = test::open(path, how);
    REQUIRE(pm_put(c.get(), &byte, 1) == nullptr);
    REQUIRE(test::failed_with(EROFS));
    REQUIRE(pm_write(root_of(c.get()), &byte, 1) == -1);
    REQUIRE(test::failed_with(EROFS));
}

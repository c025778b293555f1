// Segments that change their owner from one commit to the next, and a crash right then. What the
// record before last says of a segment must not be repeated over its new owner.
#include "common/format.hpp"
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

struct Root {
    char *now; // the object under test
    uint64_t size;
};

Root *root_of(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

bool memory_is_locked;

} // namespace

extern "C" {

int __real_madvise(void *address, size_t size, int advice);

int __wrap_madvise(void *address, size_t size, int advice)
{
    if (!memory_is_locked || advice != MADV_DONTNEED)
        return __real_madvise(address, size, advice);
    errno = EINVAL;
    return -1;
}
}

// Fill slabs with objects of the first size, free them all, take objects of the second size from
// the freed segments; a commit after each; then die.
CHILD_PROCESS(reuses_segments)
{
    size_t first = std::stoul(arguments[1]), second = std::stoul(arguments[2]);
    bool commit_last = arguments[3] == "commit";
    pm_options options = test::options(PM_CREATE);
    options.segment_size = 1 << 20;
    options.max_size = 256 << 20;
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    Root *root = static_cast<Root *>(pm_calloc(c, 1, sizeof(Root)));
    CHILD_REQUIRE(root && pm_setroot(c, root, 0) == 0 && pm_commit(c) == 0);
    std::vector<void *> objects;
    for (size_t bytes = 0; bytes < 8 << 20; bytes += first) {
        objects.push_back(pm_malloc(c, first));
        CHILD_REQUIRE(objects.back());
        memset(objects.back(), 0x55, first);
    }
    CHILD_REQUIRE(pm_commit(c) == 0);
    for (void *p : objects)
        CHILD_REQUIRE(pm_free(p) == 0);
    CHILD_REQUIRE(pm_commit(c) == 0);
    // A chain of them, to be found again.
    char *previous = nullptr;
    for (size_t bytes = 0; bytes < 6 << 20; bytes += second) {
        char *p = static_cast<char *>(pm_malloc(c, second));
        CHILD_REQUIRE(p);
        memset(p, 0xAA, second);
        memcpy(p + second - sizeof previous, &previous, sizeof previous);
        previous = p;
    }
    root->now = previous;
    root->size = second;
    if (commit_last)
        CHILD_REQUIRE(pm_commit(c) == 0);
    _exit(0);
}

TEST_CASE("a crash right after emptied segments were taken by somebody else")
{
    const size_t sizes[] = {16, 64, 1000, 30000, 1 << 20, 3 << 20};
    test::Directory directory;
    for (size_t first : sizes)
        for (size_t second : sizes)
            for (const char *commit : {"commit", "die"}) {
                INFO("objects of " << first << ", then of " << second << " bytes, " << commit);
                std::string path =
                    directory / (std::to_string(first) + "-" + std::to_string(second) + commit);
                REQUIRE_CLEAN(test::run("reuses_segments", {path, std::to_string(first),
                                                            std::to_string(second), commit}));
                test::Container c = test::open(path, test::options());
                REQUIRE(test::stats(c.get()).recovered);
                REQUIRE_OK(pm_check(c.get()));
                Root *root = root_of(c.get());
                REQUIRE(root);
                uint64_t found = 0, wrong = 0;
                for (char *p = root->now; p; found++) {
                    REQUIRE(pm_contains(c.get(), p));
                    for (size_t i = 0; i < second - sizeof p; i++)
                        wrong += p[i] != (char)0xAA;
                    memcpy(&p, p + second - sizeof p, sizeof p);
                }
                REQUIRE(found == (*commit == 'c' ? ((6 << 20) + second - 1) / second : 0));
                CHECK(wrong == 0);
                c.reset();
                REQUIRE_OK(pm_delete(path.c_str()));
            }
}

TEST_CASE("slabs that were filled and emptied in one transaction are given back")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c", test::small());
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t before = test::stats(c.get()).segments_data;
    std::vector<void *> objects;
    while (void *p = pm_malloc(c.get(), 64))
        objects.push_back(p);
    REQUIRE(objects.size() > 100000);
    for (void *p : objects)
        REQUIRE(pm_free(p) == 0);
    bool rolled_back = GENERATE(false, true);
    REQUIRE_OK(rolled_back ? pm_rollback(c.get()) : pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(test::stats(c.get()).segments_data <= before + 1); // one stays for the next object
    void *large = pm_malloc(c.get(), 8 << 20);
    REQUIRE(large);
    memset(large, 1, 8 << 20);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

// A new slab clears its bitmap in home at once. On a file that makes a private copy of the page. The kernel
// drops no copy that is locked.
TEST_CASE("a large object where a slab was that nobody committed")
{
    memory_is_locked = GENERATE(false, true);
    constexpr uint64_t SEGMENT = 64 << 10;
    test::Directory directory(GENERATE(as<std::string>(), "/dev/shm", "/var/tmp"));
    const std::string path = directory / "c";
    pm_options how = test::small(PM_CREATE | (test::mode() == "undo" ? PM_UNSAFE_POWER : 0));
    test::Container c = test::open(path, how);
    const void *object = pm_malloc(c.get(), 64); // of the slab
    REQUIRE(object);
    REQUIRE_OK(pm_rollback(c.get()));
    auto *large = static_cast<volatile char *>(pm_malloc(c.get(), SEGMENT));
    REQUIRE(large);
    REQUIRE((uintptr_t)large / SEGMENT == (uintptr_t)object / SEGMENT);
    for (uint64_t i = 0; i < SEGMENT; i++)
        large[i] = (char)(i % 101 + 1);
    REQUIRE_OK(pm_setroot(c.get(), const_cast<char *>(large), 0));
    REQUIRE_OK(pm_commit(c.get()));
    auto wrong = [](const volatile char *p) {
        uint64_t n = 0;
        for (uint64_t i = 0; i < SEGMENT; i++)
            n += p[i] != (char)(i % 101 + 1);
        return n;
    };
    for (uint64_t i = 0; i < SEGMENT; i++)
        large[i] = 0;
    REQUIRE_OK(pm_rollback(c.get()));
    REQUIRE(wrong(large) == 0);
    large[4095] = large[4095] + 1; // the file gets the page whole
    REQUIRE_OK(pm_commit(c.get()));
    large[4095] = large[4095] - 1;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, how);
    REQUIRE(wrong(static_cast<char *>(pm_getroot(c.get()))) == 0);
    memory_is_locked = false;
}

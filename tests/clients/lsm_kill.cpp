// The LSM store beside SIGKILL. A child writes, and dies just before its n-th event. An event is a write to a
// file, a sync, a change of a directory, or a commit of the container. So the child dies in every phase. It
// may put, open, or compact. In the background it may move or flush a memtable, free nodes, merge tables,
// move them to the disk or back, or collect garbage.
#include "clients/dying.hpp"
#include "clients/lsm_tiny.hpp"
#include "common/process.hpp"
#include "crash/spawn.hpp"

#include <libpm.h>

#include <unistd.h>

EVENT(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at))
EVENT(int, fdatasync, (int fd), (fd))
EVENT(int, rename, (const char *from, const char *to), (from, to))
EVENT(int, unlink, (const char *path), (path))
EVENT(int, pm_commit, (pm_container * c), (c))

namespace
{

constexpr uint64_t kept = 500; // keys; older ones are deleted

std::string key_at(uint64_t i)
{
    return "key" + std::to_string(i);
}

std::string value_at(uint64_t i)
{
    return std::to_string(i) + std::string(i % 2000, 'x');
}

uint64_t rounds()
{
    return crash::from_environment("LIBPM_ROUNDS", 20);
}

} // namespace

// arguments: directory, mode, first number, event to die at
CHILD_PROCESS(writes_and_dies)
{
    events_left = std::stoull(arguments[3]);
    const Memtables mode = all_modes[std::stoul(arguments[1])];
    auto store = lsm::Store::open(arguments[0], tiny(mode));
    for (uint64_t i = std::stoull(arguments[2]);; i++) {
        store->put(key_at(i), value_at(i), {.sync = i % 50 == 0});
        if (i > kept)
            store->remove(key_at(i - kept));
        if (i % 1000 == 999)
            store->compact();
        if (mode == Memtables::key_lsm && i % 200 == 199)
            store->collect();
        if (mode == Memtables::key_lsm && i % 100 == 99)
            store->set_persistent_bytes(i % 400 < 200 ? 0 : 512 << 10);
        test::say(std::to_string(i).c_str());
    }
}

// Each write names its number, so that a write that is missing in the middle shows.
TEST_CASE("after SIGKILL a store has every write that was acknowledged, and no gap")
{
    test::Directory directory;
    const size_t first_mode = GENERATE(range(size_t{0}, all_modes.size()));
    const bool changes = GENERATE(false, true); // of the mode, at each opening
    const std::string path = directory / "s";
    uint64_t acknowledged = 0;
    std::mt19937_64 random(first_mode);
    for (uint64_t round = 0; round < rounds(); round++) {
        const size_t mode = (first_mode + (changes ? random() : 0)) % all_modes.size();
        const uint64_t most = random() % 4 == 0 ? 60 : 3000; // often while it opens
        test::Process child("writes_and_dies",
                            {path, std::to_string(mode), std::to_string(acknowledged),
                             std::to_string(1 + random() % most)});
        for (std::string line; !(line = child.read_line()).empty();)
            acknowledged = std::stoull(line) + 1;
        const test::Ended ended = child.wait();
        INFO(ended.errors);
        REQUIRE(test::killed(ended.status, SIGKILL));

        const size_t reader = changes ? random() % all_modes.size() : mode;
        auto store = lsm::Store::open(path, tiny(all_modes[reader]));
        uint64_t i = acknowledged < kept ? 0 : acknowledged - kept + 1;
        for (; i < acknowledged; i++)
            REQUIRE(store->get(key_at(i)) == value_at(i));
        for (uint64_t k = 1; k + kept < acknowledged; k += 37)
            REQUIRE(store->get(key_at(k)) == std::nullopt);
        store->check();
    }
    REQUIRE(acknowledged > 1000);
}

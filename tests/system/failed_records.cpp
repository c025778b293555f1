// What a record leaves behind that could not be written, or could not be synced.
//
// A record whose missing bytes are zero is whole where the file reads as zeros. But its commit has failed, and
// may have been rolled back.
//
// After a sync that failed the kernel calls the pages clean, though the disk does not have them. So what a
// recovery finds in the cache may be nowhere else.
#include "common/file_medium.hpp"
#include "common/fixture.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

using test::file_medium;
using test::page_word;

namespace
{

constexpr uint64_t PAGES = 4, PAGE = 4096;

struct Fixture {
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    test::Container c = start();

    test::Container start() const
    {
        file_medium = {};
        return test::open_with_pages(path, PAGES, test::small());
    }
    ~Fixture() { file_medium = {}; }

    // A new container, whose commit store_zeros() changes.
    void restart_with_ones()
    {
        c.reset();
        std::filesystem::remove(path);
        c = start();
        page_word(c.get(), 0) = 1;
        for (uint64_t word = 0; word < PAGE / 8; word += 8)
            (&page_word(c.get(), 1))[word] = 1;
        REQUIRE_OK(pm_commit(c.get()));
    }

    // A file has the commit of this value.
    void holds(const std::string &file, uint64_t value) const
    {
        test::Container left = test::open(file, test::options(PM_ACCEPT_COPY));
        REQUIRE(page_word(left.get(), 0) == value);
        REQUIRE(page_word(left.get(), 1) == (value == 1));
        REQUIRE_OK(pm_check(left.get()));
    }
};

// A record whose second half is zeros: a page that was not zero is now.
void store_zeros(pm_container *c)
{
    page_word(c, 0) = 2;
    for (uint64_t word = 0; word < PAGE / 8; word += 8)
        (&page_word(c, 1))[word] = 0;
}

// The disk below the cache. A sync that fails loses what was written since the sync before. The cache keeps it,
// but no later sync writes it.
class Disk
{
  public:
    explicit Disk(std::string path) : path_(std::move(path)), bytes_(test::read_file(path_))
    {
        file_medium.wrote = [this](uint64_t offset, uint64_t bytes) {
            for (uint64_t page = offset / PAGE; page * PAGE < offset + bytes; page++)
                dirty_.insert(page);
        };
        file_medium.synced = [this](bool works) {
            const std::string cache = test::read_file(path_);
            bytes_.resize(cache.size());
            for (uint64_t page : dirty_)
                if (works)
                    bytes_.replace(page * PAGE, PAGE, cache, page * PAGE, PAGE);
            dirty_.clear();
        };
    }
    ~Disk() { file_medium.wrote = nullptr, file_medium.synced = nullptr; }
    Disk(const Disk &) = delete;
    const std::string &bytes() const { return bytes_; }
    bool has_all() const { return dirty_.empty(); } // that was written

  private:
    std::string path_, bytes_;
    std::set<uint64_t> dirty_;
};

} // namespace

TEST_CASE_METHOD(Fixture, "a commit that failed is not there, though all of its record is")
{
    const bool erases_at_once = GENERATE(true, false), copies = GENERATE(false, true);
    uint64_t failures = 0;
    for (uint64_t at = 1;; at++) {
        restart_with_ones();
        store_zeros(c.get());
        file_medium = {};
        file_medium.write_fails = at;
        file_medium.write_error = ENOSPC;
        file_medium.writes_work_from = erases_at_once ? at + 2 : UINT64_MAX;
        const Disk disk(path);
        const bool done = pm_commit(c.get()) == 0;
        const uint64_t writes = file_medium.writes;
        if (writes < at)
            break;
        INFO("write " << at << " failed");
        if (done) // the call went on where the first one stopped
            continue;
        failures++;
        REQUIRE(errno == ENOSPC);
        if (erases_at_once) {
            REQUIRE_OK(pm_rollback(c.get()));
            REQUIRE(disk.has_all());
        }
        const std::string crashed = test::read_file(path);
        file_medium = {};
        if (copies)
            REQUIRE_OK(pm_copy(c.get(), other.c_str(), nullptr, nullptr));
        c.reset();
        holds(path, 1);
        if (copies)
            holds(other, 1);
        std::filesystem::remove(other);
        if (erases_at_once) {
            test::write_file(other, crashed);
            holds(other, 1);
            std::filesystem::remove(other);
        }
    }
    REQUIRE(failures > 0);
}

// The disk takes no byte for a while, as a file system that never overwrites does when it is full. So what the
// failed record has left cannot be erased. Until it is, no call ends the transaction in another way.
TEST_CASE_METHOD(Fixture, "no call succeeds until the rest of a record that failed is erased")
{
    const std::string ending = GENERATE("rollback", "commit", "close", "clear");
    const bool is_first = GENERATE(false, true); // commit since it was opened
    uint64_t failures = 0;
    for (uint64_t at = 1;; at++) {
        restart_with_ones();
        if (is_first) {
            c.reset();
            c = test::open(path, test::options());
        }
        store_zeros(c.get());
        file_medium = {};
        file_medium.write_fails = at;
        file_medium.write_error = ENOSPC;
        const bool done = pm_commit(c.get()) == 0;
        if (file_medium.writes < at)
            break;
        INFO("write " << at << " failed");
        if (done)
            continue;
        failures++;
        const uint64_t after = file_medium.writes;
        REQUIRE(pm_rollback(c.get()) == -1);
        REQUIRE(test::failed_with(ENOSPC, {path.c_str(), "erase"}));
        REQUIRE(file_medium.writes > after);
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(test::failed_with(ENOTRECOVERABLE));
        REQUIRE(page_word(c.get(), 0) == 2);
        if (ending == "close")
            REQUIRE(pm_close(c.release()) == -1);
        file_medium = {};
        if (ending == "rollback")
            REQUIRE_OK(pm_rollback(c.get()));
        if (ending == "clear")
            REQUIRE_OK(pm_clear(c.get()));
        if (ending == "commit") {
            REQUIRE_OK(pm_rollback(c.get()));
            REQUIRE_OK(pm_commit(c.get()));
        }
        if (ending != "close") {
            test::write_file(other, test::read_file(path));
            c.reset();
            holds(other, 1);
            std::filesystem::remove(other);
        }
    }
    REQUIRE(failures > 0);
}

// The transaction may change back to what it was. Then there is nothing to commit, but something to erase.
TEST_CASE_METHOD(Fixture, "a commit of nothing erases the rest of a record that failed")
{
    page_word(c.get(), 1) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    const uint64_t before = page_word(c.get(), 0);
    page_word(c.get(), 0) = 2;
    page_word(c.get(), 1) = 0;
    file_medium = {};
    file_medium.write_fails = 1;
    file_medium.write_error = ENOSPC;
    REQUIRE(pm_commit(c.get()) == -1);
    page_word(c.get(), 0) = before;
    page_word(c.get(), 1) = 1;
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(test::failed_with(ENOSPC, {path.c_str(), "erase"}));
    const uint64_t writes = file_medium.writes;
    file_medium.write_fails = 0;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(file_medium.writes > writes);
}

// The commit lets the file grow, for a map. After it has failed, the map's segment would be cut off.
TEST_CASE_METHOD(Fixture,
                 "the rest of a record that cannot be erased names no segment that is gone",
                 "[stores]")
{
    uint64_t failures = 0;
    for (uint64_t at = 1;; at++) {
        c.reset();
        std::filesystem::remove(path);
        file_medium = {};
        c = test::open_with_pages(path, PAGES, test::small(PM_CREATE | PM_MOVABLE));
        for (uint64_t word = 0; word < PAGE / 8; word += 8)
            (&page_word(c.get(), 1))[word] = 1;
        while (test::stats(c.get()).segments_free > 0)
            REQUIRE(pm_malloc(c.get(), 64 << 10));
        REQUIRE_OK(pm_commit(c.get()));
        store_zeros(c.get());
        reinterpret_cast<void *volatile *>(pm_getroot(c.get()))[1] = pm_getroot(c.get());
        file_medium = {};
        file_medium.write_fails = at;
        file_medium.write_error = ENOSPC;
        const bool done = pm_commit(c.get()) == 0;
        const std::string crashed = test::read_file(path);
        const uint64_t writes = file_medium.writes;
        file_medium = {};
        c.reset();
        if (writes < at)
            break;
        failures += !done;
        INFO("write " << at << " failed");
        test::write_file(other, crashed);
        test::Container left = test::open(other, test::options(PM_MOVABLE | PM_ACCEPT_COPY));
        REQUIRE((page_word(left.get(), 0) == 0 || page_word(left.get(), 0) == 2));
        REQUIRE_OK(pm_check(left.get()));
    }
    REQUIRE(failures > 0);
}

TEST_CASE_METHOD(Fixture, "recovery writes again what only the cache may have")
{
    const bool is_new = GENERATE(false, true);
    const uint64_t failing =
        GENERATE(as<uint64_t>(), 1, 2, 3); // the first may be that of a longer file
    page_word(c.get(), 0) = 1;
    page_word(c.get(), 1) = 1;
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    const Disk disk(path);
    if (is_new) { // whole pages that the record says are at home
        char *object = static_cast<char *>(pm_malloc(c.get(), 16 * PAGE));
        REQUIRE(object);
        memset(object, 7, 16 * PAGE);
        (&page_word(c.get(), 0))[1] =
            reinterpret_cast<uint64_t>(object) - reinterpret_cast<uint64_t>(pm_getroot(c.get()));
    }
    page_word(c.get(), 0) = 2;
    page_word(c.get(), 1) = 0;
    file_medium.syncs = 0;
    file_medium.sync_fails = failing;
    file_medium.sync_error = EIO;
    const bool done = pm_commit(c.get()) == 0;
    REQUIRE(done == (file_medium.syncs < failing));
    if (done)
        return;
    REQUIRE(errno == EIO);
    c.reset(); // fails too
    file_medium.sync_fails = 0;
    c = test::open(path, test::options());
    const uint64_t found = page_word(c.get(), 0);
    REQUIRE((found == 1 || found == 2));
    const uint64_t distance = (&page_word(c.get(), 0))[1];
    std::vector<std::pair<uint64_t, std::string>> crashes{{found, disk.bytes()}};
    for (uint64_t value = 3; value < 20; value++) {
        page_word(c.get(), 0) = value;
        REQUIRE_OK(pm_commit(c.get()));
        crashes.emplace_back(value, disk.bytes());
    }
    file_medium = {};
    c.reset();
    for (const auto &[value, bytes] : crashes) {
        test::write_file(other, bytes);
        test::Container left = test::open(other, test::options(PM_ACCEPT_COPY));
        REQUIRE(page_word(left.get(), 0) == value);
        REQUIRE_OK(pm_check(left.get()));
        if (distance == 0)
            continue;
        const char *object = static_cast<char *>(pm_getroot(left.get())) + distance;
        REQUIRE(std::all_of(object, object + 16 * PAGE, [](char b) { return b == 7; }));
    }
}

// Writes and syncs that fail while a checkpoint of the log's map is on its way. A write that fails costs the
// checkpoint, and no commit: the next checkpoint is tried later. A failed fdatasync(2) ends all writing.
// Whoever reads the file then finds the last commit, with the checkpoint that is named and without.
#include "common/file_medium.hpp"
#include "common/process.hpp"
#include "system/lines.hpp"
#include "unit/checkpoints.hpp"
#include "unit/page_state.h"

#include <cerrno>

using namespace checkpoints;
using namespace lines;
using test::file_medium;

namespace
{

// What the next opening would find if the process died now. If a checkpoint is named, it is whole and used.
void crash_holds(const std::string &path, const std::string &crashed, uint64_t interval,
                 uint64_t value)
{
    const bool is_named = root_of(path) != 0;
    const std::string file = test::read_file(path);
    std::vector<uint64_t> read;
    for (const pm_options &how : {every(interval, PM_ACCEPT_COPY), none(PM_ACCEPT_COPY)}) {
        test::write_file(crashed, file);
        test::Container c = test::open(crashed, how);
        read.push_back(test::stats(c.get()).recovery_bytes);
        REQUIRE(value_of(c.get()) == value);
        REQUIRE_OK(pm_check(c.get()));
    }
    REQUIRE((!is_named || read[0] < read[1]));
}

} // namespace

TEST_CASE("a checkpoint whose writes fail costs no commit")
{
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, MiB); // at once, or in shares
    const bool once = GENERATE(true, false), arrives = GENERATE(false, true);
    const int others = GENERATE(2, 3), error = others == 2 ? ENOSPC : EIO;
    CAPTURE(interval, once, arrives, others);
    const test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    file_medium = {};
    test::Container c = test::open_with_pages(path, PAGES, every(interval, PM_CREATE));
    uint64_t value = 0, costs_none = 0;
    // A checkpoint takes three commits: it is written, it is named, and the old one is given up. Two other commits
    // between failures let all failures meet the same step. Three let them meet each step.
    constexpr int TURNS = 3;
    int all_arrived = 0;
    for (uint64_t turn = 0; all_arrived < TURNS; turn++) {
        const uint64_t at = turn / TURNS + 1;
        INFO("write " << at << ", turn " << turn);
        store(c.get(), value + 1);
        file_medium = {};
        file_medium.write_fails = at;
        file_medium.write_error = (uint64_t)error;
        file_medium.once = once;
        file_medium.arrives = arrives;
        const bool done = pm_commit(c.get()) == 0;
        const int actual = errno;
        const bool failed = file_medium.writes >= at;
        file_medium = {};
        REQUIRE((done || actual == error));
        value += done;
        costs_none += done && failed;
        all_arrived = failed ? 0 : all_arrived + 1;
        crash_holds(path, crashed, interval, value);
        if (!done)
            REQUIRE_OK(pm_rollback(c.get()));
        for (int i = 0; i < others; i++) {
            store(c.get(), ++value);
            REQUIRE_OK(pm_commit(c.get()));
            crash_holds(path, crashed, interval, value);
        }
        REQUIRE(lost_chunks(c.get()) == 0);
    }
    // A commit writes its part of the checkpoint first. If all further writes fail, too, it fails with them.
    if (once)
        REQUIRE(costs_none >= 4);
    else
        REQUIRE(costs_none == 0);
    c.reset();
    c = test::open(path, every(interval));
    REQUIRE(test::stats(c.get()).recovery_bytes == 0); // checkpoints go on
    REQUIRE(value_of(c.get()) == value);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("an fdatasync that fails while a checkpoint is on its way ends all writing")
{
    const uint64_t interval = GENERATE(as<uint64_t>(), 1, MiB); // at once, or in shares
    const test::Directory directory;
    const std::string path = directory / "c.pm";
    bool closed = false;
    uint64_t places = 0;
    for (uint64_t at = 1; !closed; at++, places++) {
        INFO("sync " << at);
        file_medium = {};
        test::Container c = test::open_with_pages(path, PAGES, every(interval, PM_CREATE));
        file_medium = {};
        file_medium.sync_fails = at;
        file_medium.sync_error = EIO;
        file_medium.once = true; // the next would succeed, and prove nothing
        uint64_t acknowledged = 0, tried = 0;
        for (bool fails = false; tried < 4 && !fails; acknowledged = fails ? acknowledged : tried) {
            store(c.get(), ++tried);
            fails = pm_commit(c.get()) != 0;
            REQUIRE((!fails || errno == EIO));
        }
        if (acknowledged < tried) // for ever, whatever the kernel says next
            REQUIRE((pm_commit(c.get()) == -1 && errno == EIO));
        closed = pm_close(c.release()) == 0;
        REQUIRE(!(closed && acknowledged < tried));
        file_medium = {};
        c = test::open(path, every(interval));
        const uint64_t value = value_of(c.get());
        REQUIRE((value == acknowledged || value == tried));
        REQUIRE_OK(pm_check(c.get()));
        store(c.get(), 9);
        REQUIRE_OK(pm_commit(c.get()));
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
    REQUIRE(places >= 6);
}

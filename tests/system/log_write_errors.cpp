// Writes and syncs of a log container's file that fail. If a record of several parts cannot be written, some
// parts stay behind. They never join the record that follows. A failed fdatasync(2) ends all writing.
#include "common/file_medium.hpp"
#include "common/process.hpp"
#include "system/lines.hpp"
#include "unit/linked.hpp"
#include "unit/pages.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

using namespace lines;
using test::failed_with;
using test::file_medium;
using test::page_word;

namespace
{

struct Fixture {
    test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    test::Container c = start();

    test::Container start() const
    {
        file_medium = {};
        return test::open_with_pages(path, PAGES, test::small());
    }
    ~Fixture() { file_medium = {}; }
};

bool commit_failing_at(pm_container *c, uint64_t at, int error)
{
    file_medium = {};
    file_medium.write_fails = at;
    file_medium.write_error = (uint64_t)error;
    const bool done = pm_commit(c) == 0;
    const int actual = errno;
    const uint64_t writes = file_medium.writes;
    file_medium = {};
    REQUIRE((done || actual == error));
    REQUIRE(done == (writes < at));
    return done;
}

struct Crash {
    std::string file;
    uint64_t value;         // of the last commit
    uint64_t first, second; // writes that failed
};

} // namespace

TEST_CASE_METHOD(Fixture, "parts of an attempt that failed join no other record")
{
    const bool rolls_back = GENERATE(false, true);
    const uint64_t shorter =
        GENERATE(as<uint64_t>(), PAGES, PAGES / 2, 1); // pages of the next attempt
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<Crash> crashes;
    uint64_t value = 1, first = 1, failures = 0;
    for (bool all_arrived = false; !all_arrived; first++) {
        bool done = false;
        for (uint64_t second = 1; !done && !all_arrived; second++) {
            store(c.get(), value + 1);
            all_arrived = commit_failing_at(c.get(), first, ENOSPC);
            if (all_arrived) {
                value++;
                break;
            }
            crashes.push_back({test::read_file(path), value, first, 0});
            if (rolls_back) {
                REQUIRE_OK(pm_rollback(c.get()));
                REQUIRE(value_of(c.get()) == value);
            } else {
                store(c.get(), value);
            }
            store(c.get(), value + 2, shorter);
            done = commit_failing_at(c.get(), second, ENOSPC);
            failures += 1 + !done;
            crashes.push_back({test::read_file(path), value, first, second});
            if (done) {
                crashes.back().value = shorter < PAGES ? UINT64_MAX : value + 2;
                value += 2;
                store(c.get(), value);
                REQUIRE_OK(pm_commit(c.get()));
                crashes.push_back({test::read_file(path), value, first, second});
            }
        }
    }
    REQUIRE(first > 6); // headers of chunks, and parts
    // A rollback erases what is left. So a second attempt of few writes has nothing to erase that could fail.
    REQUIRE(failures > (rolls_back && shorter == 1 ? 20 : 30));
    c.reset();
    for (const Crash &crash : crashes) {
        INFO("write " << crash.first << " failed, then " << crash.second);
        test::write_file(crashed, crash.file);
        test::Container left = test::open(crashed, test::options(PM_ACCEPT_COPY));
        if (crash.value != UINT64_MAX) {
            REQUIRE(value_of(left.get()) == crash.value);
        } else { // a part of all pages is newer
            REQUIRE(value_of(left.get(), shorter) == page_word(left.get(), PAGES - 1) + 2);
        }
        REQUIRE_OK(pm_check(left.get()));
    }
    c = test::open(path, test::options());
    REQUIRE(value_of(c.get()) == value);
}

TEST_CASE("a compaction whose writes fail loses nothing, and goes on")
{
    const bool once = GENERATE(true, false), crashes = GENERATE(false, true);
    const int error = GENERATE(ENOSPC, EIO);
    const test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    file_medium = {};
    pm_options how = test::small();
    how.flags |= PM_MOVABLE;
    uint64_t at = 0, value = 1, failures = 0;
    for (bool all_arrived = false; !all_arrived;) {
        test::Container c = test::open_with_pages(path, PAGES, how);
        const uint64_t pages = 10;
        store(c.get(), value, pages);
        REQUIRE_OK(pm_commit(c.get()));
        void *goes = pm_malloc(c.get(), 2 << 20);
        REQUIRE(goes);
        memset(goes, 'x', 2 << 20);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_free(goes));
        store(c.get(), ++value, pages);
        REQUIRE_OK(pm_commit(c.get()));
        file_medium = {};
        file_medium.write_fails = ++at;
        file_medium.write_error = (uint64_t)error;
        file_medium.once = once;
        const bool done = pm_compact(c.get(), nullptr, nullptr, nullptr) == 0;
        if (!done)
            REQUIRE(failed_with(error, {path.c_str()}));
        all_arrived = file_medium.writes < at;
        REQUIRE(done >= all_arrived);
        REQUIRE(
            (once || done == all_arrived)); // a write of what need not be done now may fail once
        file_medium = {};
        failures += !done;
        REQUIRE(value_of(c.get(), pages) == value);
        if (crashes) {
            test::write_file(crashed, test::read_file(path));
            const test::Container left = test::open(crashed, test::options(PM_ACCEPT_COPY));
            REQUIRE(value_of(left.get(), pages) == value);
            REQUIRE_OK(pm_check(left.get()));
        }
        store(c.get(), ++value, pages);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
        CHECK(std::filesystem::file_size(path) < 1 << 20);
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(value_of(c.get(), pages) == value);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        std::filesystem::remove(path);
    }
    CHECK(failures > 10);
}

TEST_CASE_METHOD(Fixture, "a commit whose writes fail says so, and nothing changes")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    store(c.get(), 2);
    const int error = GENERATE(ENOSPC, EDQUOT, EIO);
    const uint64_t epoch = test::stats(c.get()).epoch;
    for (uint64_t at = 1; at <= 5; at++) {
        REQUIRE_FALSE(commit_failing_at(c.get(), at, error));
        errno = error;
        REQUIRE(failed_with(error, {path.c_str(), "commit again, or roll back"}));
        REQUIRE(test::stats(c.get()).epoch == epoch);
        REQUIRE(value_of(c.get()) == 2);
    }
    SECTION("tried again")
    {
        REQUIRE_OK(pm_commit(c.get()));
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(value_of(c.get()) == 2);
    }
    SECTION("rolled back")
    {
        REQUIRE_OK(pm_rollback(c.get()));
        c.reset();
        c = test::open(path, test::options());
        REQUIRE(value_of(c.get()) == 1);
    }
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a small commit whose write fails changes nothing")
{
    const bool rolls_back = GENERATE(false, true);
    const auto change = [&](uint64_t value) {
        for (uint64_t line : {0, 1, 5})
            (&page_word(c.get(), 0))[line * 8] = value;
    };
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<Crash> crashes;
    for (uint64_t value = 2; value < 10; value++) {
        change(value);
        REQUIRE_FALSE(commit_failing_at(c.get(), 1, ENOSPC)); // and what is left cannot be erased
        crashes.push_back({test::read_file(path), value - 1, 1, 0});
        if (rolls_back) {
            REQUIRE_OK(pm_rollback(c.get()));
            REQUIRE(page_word(c.get(), 0) == value - 1);
            change(value);
        }
        REQUIRE_OK(pm_commit(c.get()));
    }
    c.reset();
    for (const Crash &crash : crashes) {
        test::write_file(crashed, crash.file);
        const test::Container left = test::open(crashed, test::options(PM_ACCEPT_COPY));
        REQUIRE(page_word(left.get(), 0) == crash.value);
        REQUIRE_OK(pm_check(left.get()));
    }
    c = test::open(path, test::options());
    for (uint64_t line = 0; line < 8; line++)
        REQUIRE((&page_word(c.get(), 0))[line * 8] == (line < 2 || line == 5 ? 9 : 1));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "an object where another was is logged whole, though a commit has failed")
{
    // The program stores to none of its lines. Old pieces of them would count again.
    constexpr size_t SIZE = 40'000;
    void *first = pm_malloc(c.get(), SIZE);
    REQUIRE(first);
    memset(first, 'a', SIZE);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_free(first));
    REQUIRE_OK(pm_commit(c.get()));
    const void *object = pm_malloc(c.get(), SIZE);
    REQUIRE(object == first);
    const std::string seen(static_cast<const char *>(object), SIZE);
    const uint64_t offset = (uintptr_t)object - (uintptr_t)pm_getroot(c.get());
    REQUIRE_FALSE(commit_failing_at(c.get(), 1, ENOSPC));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    const bool same = std::string(static_cast<const char *>(pm_getroot(c.get())) + offset, SIZE) == seen;
    REQUIRE(same);
}

namespace
{

// All words, so the line is logged as a whole.
void store_line(pm_container *c, uint64_t line, uint64_t value)
{
    uint64_t *at = const_cast<uint64_t *>(&page_word(c, 0)) + line * 8;
    if (pm_dirty(at, 64) != 0)
        FAIL(pm_errormsg());
    std::fill_n(at, 8, value);
}

uint64_t wrong_lines(pm_container *c, const std::vector<uint64_t> &model)
{
    uint64_t wrong = 0;
    for (uint64_t line = 0; line < model.size(); line++)
        wrong += (&page_word(c, 0))[line * 8] != model[line];
    return wrong;
}

} // namespace

TEST_CASE("a small commit counts, and nothing of a record that the cleaner could not write before it")
{
    constexpr uint64_t LINES = 12'800;
    const test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    file_medium = {};
    pm_options how = test::small(PM_CREATE | PM_ANNOUNCED); // marks, and no listed pages
    how.tracker = PM_TRACKER_STORES;
    test::Container c = test::open_with_pages(path, LINES / 64, how);
    std::vector<uint64_t> model(LINES);
    std::mt19937_64 random(1);
    const auto store = [&](uint64_t line, uint64_t value) {
        store_line(c.get(), line, model[line] = value);
    };
    for (uint64_t line = 0; line < LINES; line++)
        store(line, line + 1);
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<std::pair<std::string, std::vector<uint64_t>>> crashes;
    for (int commits = 0; commits < 20'000 && crashes.size() < 12; commits++) {
        for (int i = 0; i < 5; i++)
            store(random() % LINES, random());
        if (commits % 3 != 0) { // the cleaner has a chunk of its own, and goes on in it
            REQUIRE_OK(pm_commit(c.get()));
            continue;
        }
        file_medium = {};
        file_medium.write_fails = 1; // the cleaner's record, or ours; it arrives all the same,
        file_medium.arrives = true;
        file_medium.write_error = ENOSPC;
        file_medium.writes_work_from = 3; // and cannot be erased at once
        const bool done = pm_commit(c.get()) == 0;
        file_medium = {};
        if (done)
            crashes.push_back({test::read_file(path), model});
        else
            REQUIRE_OK(pm_commit(c.get()));
    }
    REQUIRE(crashes.size() == 12);
    c.reset();
    for (const auto &[file, committed] : crashes) {
        test::write_file(crashed, file);
        test::Container left = test::open(crashed, test::options(PM_ACCEPT_COPY));
        REQUIRE(wrong_lines(left.get(), committed) == 0);
        REQUIRE_OK(pm_check(left.get()));
    }
}

TEST_CASE("what one opening has cut off does not count in later ones", "[cut]")
{
    constexpr uint64_t LINES = 12'800;
    const test::Directory directory;
    const std::string path = directory / "c.pm";
    file_medium = {};
    pm_options how = test::small(PM_CREATE | PM_ANNOUNCED);
    how.tracker = PM_TRACKER_STORES;
    test::Container c = test::open_with_pages(path, LINES / 64, how);
    how.flags = PM_ANNOUNCED | PM_ACCEPT_COPY;
    std::vector<uint64_t> model(LINES);
    std::mt19937_64 random(1);
    const auto store = [&](uint64_t line, uint64_t value) { store_line(c.get(), line, value); };
    const auto store_some = [&](uint64_t lines) {
        for (uint64_t i = 0; i < lines; i++) {
            const uint64_t line = random() % LINES;
            store(line, model[line] = random());
        }
        REQUIRE_OK(pm_commit(c.get()));
    };
    const auto reopen = [&](const std::string &file) {
        c.reset();
        test::write_file(path, file);
        c = test::open(path, how);
    };
    for (uint64_t line = 0; line < LINES; line++)
        store(line, model[line] = line + 1);
    for (int commits = 0; commits < 3000; commits++)
        store_some(10);
    uint64_t most = 0;
    for (int round = 0; round < 40; round++) {
        for (uint64_t commits = random() % 60; commits > 0; commits--)
            store_some(10);
        c.reset();
        const std::string closed = test::read_file(path);
        const std::vector<uint64_t> committed = model;
        for (uint64_t writes = 1;; writes++) {
            INFO("round " << round << ", a crash before write " << writes);
            reopen(closed);
            model = committed;
            REQUIRE_OK(pm_reserve(c.get(), 1 << 20)); // the cleaner logs elsewhere, and that counts
            for (uint64_t line = 0; line < 3000; line++)
                store(line, writes); // in several parts
            if (commit_failing_at(c.get(), writes, ENOSPC))
                break;
            most = std::max(most, writes);
            reopen(test::read_file(path));
            store(LINES - 1, model[LINES - 1] = writes);
            REQUIRE_OK(pm_commit(c.get()));
            reopen(test::read_file(path));
            REQUIRE(wrong_lines(c.get(), model) == 0);
            REQUIRE_OK(pm_check(c.get()));
        }
        reopen(closed);
        model = committed;
    }
    REQUIRE(most > 4);
}

// The write of the cleaner's record fails, but its bytes arrive. The write that would erase them fails too. Then
// the program's record, which has the same epoch, can be written.
TEST_CASE("what the cleaner has left of a record joins no small commit")
{
    constexpr uint64_t MANY = 256, CHANGED = 4;
    const test::Directory directory;
    const std::string path = directory / "c.pm", crashed = directory / "crashed.pm";
    file_medium = {};
    test::Container c = test::open_with_pages(path, MANY, test::small());
    const auto line = [](pm_container *of, uint64_t i) { return &page_word(of, 0) + i * 8; };
    store(c.get(), 1, MANY);
    REQUIRE_OK(pm_commit(c.get()));
    std::vector<Crash> crashes;
    std::minstd_rand random(1);
    for (uint64_t value = 2; value < 20000 && crashes.size() < 20; value++) {
        const uint64_t first = random() % (MANY * 64 - CHANGED);
        for (uint64_t i = 0; i < CHANGED; i++)
            *line(c.get(), first + i) = value;
        file_medium = {};
        file_medium.arrives = true;
        file_medium.write_fails = value % 2;
        file_medium.write_error = ENOSPC;
        file_medium.writes_work_from = 3;
        const bool failed = pm_commit(c.get()) != 0;
        if (!failed && value % 2 == 1)
            crashes.push_back({test::read_file(path), value, first, 0});
        file_medium = {};
        if (failed)
            REQUIRE_OK(pm_commit(c.get()));
    }
    CHECK((!test::stores() || !crashes.empty())); // with faults no commit is small
    c.reset();
    for (const Crash &crash : crashes) {
        INFO("commit " << crash.value);
        test::write_file(crashed, crash.file);
        const test::Container left = test::open(crashed, test::options(PM_ACCEPT_COPY));
        for (uint64_t i = 0; i < CHANGED; i++)
            REQUIRE(*line(left.get(), crash.first + i) == crash.value);
        REQUIRE_OK(pm_check(left.get()));
    }
}

// The commit has unmapped what the old value had, and the new one is in the file.
TEST_CASE("a large value replaces another in a commit whose writes fail", "[replaced]")
{
    const bool rolls_back = GENERATE(false, true);
    CAPTURE(rolls_back);
    test::Directory directory;
    const std::string path = directory / "c.pm";
    file_medium = {};
    test::Container c = test::open(path, values::options());
    std::string old = values::bytes_of(300 * values::PAGE, 1);
    values::set(values::make_root(c.get()), 0, values::put(c.get(), old), old.size());
    REQUIRE_OK(pm_commit(c.get()));
    bool arrived = false;
    for (uint64_t first = 1; !arrived; first++) {
        CAPTURE(first);
        const std::string value = values::bytes_of(300 * values::PAGE, (unsigned)first + 1);
        REQUIRE_OK(pm_free(values::root_of(c.get())->object[0]));
        values::set(values::root_of(c.get()), 0, values::put(c.get(), value), value.size());
        arrived = commit_failing_at(c.get(), first, ENOSPC);
        if (!arrived && rolls_back)
            REQUIRE_OK(pm_rollback(c.get()));
        else if (!arrived)
            REQUIRE_OK(pm_commit(c.get()));
        old = arrived || !rolls_back ? value : old;
        REQUIRE(values::has(c.get(), 0, old));
        char *later =
            static_cast<char *>(pm_malloc(c.get(), value.size())); // perhaps where the value was
        REQUIRE(later);
        if (first % 2 == 1) { // the next one must not have these bytes
            REQUIRE_OK(pm_dirty(later, value.size()));
            std::fill_n(later, value.size(), 'x');
        }
        const std::string seen(later, value.size());
        values::set(values::root_of(c.get()), 1, later, value.size());
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE_OK(pm_check(c.get()));
        values::crash(c, path);
        REQUIRE(values::has(c.get(), 0, old));
        REQUIRE(values::has(c.get(), 1, seen));
        REQUIRE_OK(pm_free(values::root_of(c.get())->object[1]));
        REQUIRE_OK(pm_commit(c.get()));
    }
}

// The parts of the failed record are in chunks that are free again, and the value goes to one of these.
TEST_CASE("a large value is where a commit that failed has left parts", "[left_parts]")
{
    const bool rolls_back = GENERATE(false, true);
    const uint64_t first = GENERATE(2u, 3u, 4u, 6u);
    CAPTURE(rolls_back, first);
    test::Directory directory;
    const std::string path = directory / "c.pm", value = values::bytes_of(200 * values::PAGE, 1);
    file_medium = {};
    test::Container c = test::open(path, values::options());
    std::string scattered = values::bytes_of(4 * values::MiB, 2);
    void *object = values::store(c.get(), scattered);
    values::set(values::make_root(c.get()), 0, object, scattered.size());
    REQUIRE_OK(pm_commit(c.get()));
    std::string changed = scattered;
    for (size_t at = 0; at < changed.size(); at += 2 * values::LINE)
        std::fill_n(changed.begin() + (ptrdiff_t)at, values::LINE, 3);
    REQUIRE_OK(pm_dirty(object, changed.size()));
    std::copy(changed.begin(), changed.end(), static_cast<char *>(object));
    REQUIRE_FALSE(commit_failing_at(c.get(), first, ENOSPC)); // and nothing can be erased
    if (rolls_back)
        REQUIRE_OK(pm_rollback(c.get()));
    values::set(values::root_of(c.get()), 1, values::put(c.get(), value), value.size());
    REQUIRE_OK(pm_commit(c.get()));
    for (int round = 0; round < 2; round++) {
        REQUIRE(values::has(c.get(), 1, value));
        REQUIRE(values::has(c.get(), 0, rolls_back ? scattered : changed));
        REQUIRE_OK(pm_check(c.get()));
        values::crash(c, path);
    }
}

TEST_CASE_METHOD(Fixture, "an fdatasync that fails anywhere ends all writing")
{
    uint64_t places = 0;
    for (uint64_t at = 1;; at++) {
        INFO("sync " << at);
        c.reset();
        file_medium = {};
        REQUIRE_OK(pm_delete(path.c_str()));
        c = start();
        file_medium = {};
        file_medium.sync_fails = at;
        file_medium.sync_error = EIO;
        file_medium.once = true; // the next would succeed, and prove nothing
        uint64_t acknowledged = 0, tried = 0;
        bool failed = false;
        for (uint64_t i = 1; i <= 3 && !failed; i++) {
            store(c.get(), tried = i); // the file grows
            if (i == 2) {              // what a failed attempt has left is erased, and synced
                file_medium.write_fails = file_medium.writes + 4;
                file_medium.write_error = ENOSPC;
                failed = pm_commit(c.get()) == -1 && errno == EIO;
                file_medium.write_fails = 0;
            }
            failed = failed || pm_commit(c.get()) != 0;
            acknowledged = failed ? acknowledged : i;
        }
        if (failed) {
            REQUIRE(errno == EIO);
            // For ever, whatever the kernel says next.
            for (int again = 0; again < 2; again++) {
                REQUIRE(pm_commit(c.get()) == -1);
                REQUIRE(failed_with(EIO, {path.c_str()}));
            }
            REQUIRE(pm_reserve(c.get(), 1) == -1);
            REQUIRE(failed_with(EIO));
        }
        const bool closed = pm_close(c.release()) == 0;
        const int error = errno;
        REQUIRE((closed || error == EIO));
        REQUIRE(!(failed && closed));
        file_medium = {};
        c = test::open(path, test::options());
        const uint64_t value = value_of(c.get());
        REQUIRE((value == acknowledged || value == tried));
        REQUIRE_OK(pm_check(c.get()));
        store(c.get(), 9);
        REQUIRE_OK(pm_commit(c.get()));
        if (closed)
            break;
        places++;
    }
    REQUIRE(places >= 6); // of commits, of growth, of what failed, and two of closing
}

TEST_CASE_METHOD(Fixture, "home that cannot be written to in opening is copied to")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    const std::string killed = test::read_file(path);
    c.reset();
    uint64_t works_from = 2;
    for (pm_options options = test::options(PM_ACCEPT_COPY);; works_from++) {
        test::write_file(crashed, killed);
        file_medium = {};
        file_medium.write_fails = 1;
        file_medium.write_error = ENOSPC;
        file_medium.writes_work_from = works_from;
        c.reset(pm_open(crashed.c_str(), &options));
        file_medium = {};
        if (!c) { // the seals could not be written
            REQUIRE(failed_with(ENOSPC, {crashed.c_str()}));
            break;
        }
        REQUIRE(value_of(c.get()) == 1);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
    }
    REQUIRE(works_from > 6);
}

TEST_CASE_METHOD(Fixture, "an fdatasync that fails in opening")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    const std::string killed = test::read_file(path);
    c.reset();
    uint64_t at = 1;
    for (pm_options options = test::options(PM_ACCEPT_COPY);; at++) {
        test::write_file(crashed, killed);
        file_medium = {};
        file_medium.sync_fails = at;
        file_medium.sync_error = EIO;
        file_medium.once = true;
        c.reset(pm_open(crashed.c_str(), &options));
        const bool opened = c != nullptr;
        if (!opened)
            REQUIRE(failed_with(EIO, {crashed.c_str()}));
        file_medium = {};
        if (!opened)
            c = test::open(crashed, options);
        REQUIRE(value_of(c.get()) == 1);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        if (opened)
            break;
    }
    REQUIRE(at >= 3);
}

TEST_CASE_METHOD(Fixture, "what an attempt has left is erased before the next record, and durably")
{
    uint64_t usual = 0; // syncs of a commit, once the file no longer grows
    for (uint64_t value = 1; value < 9; value++) {
        store(c.get(), value);
        file_medium = {};
        REQUIRE_OK(pm_commit(c.get()));
        usual = file_medium.syncs;
    }
    store(c.get(), 9);
    REQUIRE(
        !commit_failing_at(c.get(), 4, ENOSPC)); // no later write succeeds, so nothing is erased
    store(c.get(), 10);
    file_medium = {};
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(file_medium.syncs == usual + 1);
}

TEST_CASE_METHOD(Fixture, "attempts that fail take no more of the file each time")
{
    store(c.get(), 1);
    REQUIRE_OK(pm_commit(c.get()));
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < 40; i++) {
        store(c.get(), 2 + i);
        REQUIRE(!commit_failing_at(c.get(), 5, ENOSPC));
        if (i == 3)
            bytes = test::stats(c.get()).file_bytes;
    }
    REQUIRE(test::stats(c.get()).file_bytes == bytes);
}

TEST_CASE("a relocation whose writes fail can be tried again, and the container opens without it")
{
    constexpr uint64_t NODES = 1000;
    const bool once = GENERATE(true, false);
    const test::Directory directory;
    const std::string path = directory / "c.pm", copy = directory / "copy.pm";
    const pm_options movable = test::small(PM_MOVABLE),
                     relocate = test::small(PM_MOVABLE | PM_RELOCATE);
    file_medium = {};
    linked::recorded = test::stores();
    test::Container original = test::open(path, test::small(PM_CREATE | PM_MOVABLE));
    linked::build(original.get(), NODES);
    REQUIRE_OK(pm_commit(original.get()));
    REQUIRE_OK(pm_copy(original.get(), copy.c_str(), 0, 0));
    const std::string closed = test::read_file(copy);
    uint64_t failed = 0;
    for (bool opened = false; !opened; failed++) {
        INFO("write " << failed + 1 << (once ? "" : " and all behind it"));
        test::write_file(copy, closed);
        file_medium.writes = 0;
        file_medium.write_fails = failed + 1;
        file_medium.write_error = ENOSPC;
        file_medium.once = once;
        pm_container *c = pm_open(copy.c_str(), &relocate);
        opened = c && file_medium.writes < file_medium.write_fails;
        file_medium = {};
        pm_close(c);
        original.reset();
        for (int again = 0; again < 2;
             again++) { // at its own addresses, or there where it was to go
            test::Container left = test::open(copy, movable);
            REQUIRE(test::stats(left.get()).touches == 0);
            linked::require(left.get(), NODES);
            REQUIRE_OK(pm_check(left.get()));
        }
        original = test::open(path, movable);
        test::Container left = test::open(copy, relocate);
        linked::require(left.get(), NODES);
    }
    REQUIRE(failed > 8);
}

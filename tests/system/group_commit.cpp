// Commits that share one fdatasync(2). Every container here is on an ordinary file.
#include "common/file_medium.hpp"
#include "common/process.hpp"

#include <atomic>
#include <cerrno>
#include <mutex>
#include <thread>
#include <unistd.h>

using test::page_word;

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 100, test::small());
    uint64_t syncs() { return test::file_medium.syncs; }
};

} // namespace

TEST_CASE_METHOD(Fixture, "several commits wait for one fdatasync", "[private]")
{
    uint64_t before = syncs();
    pm_ticket tickets[20];
    for (uint64_t i = 0; i < 20; i++) {
        page_word(c.get(), i) = i + 1;
        tickets[i] = pm_commit_async(c.get());
        REQUIRE(tickets[i].container == c.get());
        REQUIRE((i == 0 || tickets[i].epoch == tickets[i - 1].epoch + 1));
    }
    REQUIRE(syncs() == before);
    REQUIRE_OK(pm_wait(tickets[7])); // serves all that were written
    REQUIRE(syncs() == before + 1);
    for (const pm_ticket &ticket : tickets)
        REQUIRE_OK(pm_wait(ticket));
    REQUIRE(syncs() == before + 1);
    REQUIRE_OK(pm_commit(c.get())); // nothing changed
    REQUIRE(syncs() == before + 1);
    REQUIRE(pm_wait({nullptr, 0}) == -1);
    REQUIRE(test::failed_with(EINVAL));
    REQUIRE(pm_wait({c.get(), tickets[19].epoch + 1}) == -1);
    REQUIRE(test::failed_with(EINVAL, {path.c_str(), "ticket"}));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "a round has a bounded number of records, even if nobody waits", "[redo]")
{
    test::Container large = test::open_with_pages(directory / "large.pm", 100, test::options(PM_CREATE));
    const uint64_t before = syncs(), bound = 1024; // ROUND_MAX: R13
    for (uint64_t i = 0; i < 3 * bound; i++) {
        page_word(large.get(), i % 100) = i + 1;
        REQUIRE(pm_commit_async(large.get()).container);
        REQUIRE((i >= bound / 2 || syncs() == before)); // the log has room enough
    }
    REQUIRE(syncs() > before);
}

TEST_CASE_METHOD(Fixture, "a commit is one fdatasync, and a transaction that reads is none",
                 "[private]")
{
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t before = syncs();
        page_word(c.get(), i) = i + 1;
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(syncs() == before + 1);
        REQUIRE(page_word(c.get(), i) == i + 1);
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(syncs() == before + 1);
    }
}

// Two threads commit under a lock and wait outside it; what the waits have returned for is there
// after a kill. arguments: path, commits of each, microseconds of a sync, and whether to stay
CHILD_PROCESS(two_threads_commit)
{
    static pm_container *c = test::open(arguments[0], test::options()).release();
    static std::mutex lock, output;
    static std::atomic<uint64_t> waited{0};
    const uint64_t commits = std::stoul(arguments[1]);
    test::file_medium.sync_us = std::stoul(arguments[2]);
    auto work = [commits](uint64_t thread) {
        for (uint64_t n = 1; n <= commits; n++) {
            pm_ticket ticket;
            {
                std::lock_guard<std::mutex> guard(lock);
                page_word(c, thread) = n;
                ticket = pm_commit_async(c);
                CHILD_REQUIRE(ticket.container);
            }
            CHILD_REQUIRE(pm_wait(ticket) == 0);
            waited++;
            std::lock_guard<std::mutex> guard(output);
            test::say((std::to_string(thread) + " " + std::to_string(n)).c_str());
        }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    CHILD_REQUIRE(waited == 2 * commits);
    CHILD_REQUIRE(pm_check(c) == 0);
    test::say(("syncs " + std::to_string(test::file_medium.syncs)).c_str());
    if (arguments.size() > 3) // until the parent has seen enough
        test::wait_for_end_of_input();
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "two threads need fewer fdatasyncs than commits", "[private]")
{
    c.reset();
    uint64_t commits = 2000, most = 4020; // where a sync is over before the other comes
    std::string sync_us = "0";
    SECTION("where a sync takes a while")
    {
        commits = 100, most = 199;
        sync_us = "2000";
    }
    test::Ended ended = test::run("two_threads_commit", {path, std::to_string(commits), sync_us});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    uint64_t syncs = std::stoul(ended.output.substr(ended.output.find("syncs") + 5));
    WARN(2 * commits << " commits by two threads took " << syncs << " fdatasyncs");
    CHECK(syncs <= most);
    c = test::open(path, test::options());
    REQUIRE(page_word(c.get(), 0) == commits);
    REQUIRE(page_word(c.get(), 1) == commits);
}

TEST_CASE_METHOD(Fixture, "a kill amid two threads' waits loses nothing that was waited for",
                 "[private]")
{
    c.reset();
    for (int kill = 0; kill < 10; kill++) {
        uint64_t told[2] = {0, 0};
        {
            test::Process child("two_threads_commit", {path, "1000000", "0"});
            for (int line = 0; line < 100 + kill * 17; line++) {
                std::string said = child.read_line();
                REQUIRE(said.size() > 2);
                told[said[0] - '0'] = std::stoul(said.substr(2));
            }
            child.kill(SIGKILL);
            REQUIRE_KILLED(SIGKILL, child.wait());
        }
        c = test::open(path, test::options());
        REQUIRE(test::stats(c.get()).recovered);
        for (uint64_t thread : {0, 1})
            REQUIRE(page_word(c.get(), thread) >= told[thread]);
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
    }
}

// A thread that follows a round waits awake at first, and then sleeps. Before it sleeps it looks once more. For
// the round may have ended meanwhile, and then nobody would wake the thread.
TEST_CASE("a thread that follows a short round is not left behind when it ends", "[private]")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 100, test::small());
    std::atomic<int> go = 0, waiting = 0;
    constexpr int TIMES = 100;
    bool all = true;
    std::jthread other([&] {
        for (int i = 1; i <= TIMES; i++) {
            while (go < i)
                std::this_thread::yield();
            page_word(c.get(), 1) = (uint64_t)i;
            pm_ticket ticket = pm_commit_async(c.get());
            waiting = i;
            all &= pm_wait(ticket) == 0;
            waiting = -i;
        }
    });
    alarm(20); // a thread that is left behind waits for ever
    for (int i = 1; i <= TIMES; i++) {
        for (int k = 0; k < 2; k++) { // so that the last round was short
            page_word(c.get(), 0) = (uint64_t)(2 * i + k);
            REQUIRE_OK(pm_commit(c.get()));
        }
        test::file_medium.synced = [&](bool) {
            if (go == i)
                return;
            go = i;
            for (int n = 0; waiting < i && n < 100;
                 n++) // its commit may wait for this round itself
                usleep(10);
        };
        page_word(c.get(), 0) = 1;
        REQUIRE_OK(pm_commit(c.get()));
        while (waiting != -i)
            std::this_thread::yield();
    }
    other.join();
    alarm(0);
    test::file_medium.synced = nullptr;
    REQUIRE(all);
}

// SIGSEGV in programs that have their own ideas of it; unit/signals.cpp has what is more common.
#include "common/process.hpp"

#include <cerrno>
#include <csignal>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

// Memory that is nobody's: a load from it is a fault that libpm has no part in.
struct Foreign {
    volatile int *page =
        static_cast<int *>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    void close() { mprotect(const_cast<int *>(page), 4096, PROT_NONE); }
    void open() { mprotect(const_cast<int *>(page), 4096, PROT_READ | PROT_WRITE); }
};

Foreign &foreign()
{
    static Foreign the_one;
    return the_one;
}

// What a handler saw.
volatile int calls, chains, seen_code;
void *volatile seen_address;
sigset_t seen_mask;
struct sigaction chained;

void look()
{
    calls = calls + 1;
    sigprocmask(SIG_SETMASK, nullptr, &seen_mask);
    foreign().open();
}

void plain(int)
{
    look();
}

void detailed(int, siginfo_t *info, void *)
{
    seen_address = info->si_addr;
    seen_code = info->si_code;
    look();
}

void chaining(int signal, siginfo_t *info, void *context)
{
    chains = chains + 1;
    if (chained.sa_flags & SA_SIGINFO)
        chained.sa_sigaction(signal, info, context);
}

struct sigaction action_of(void (*handler)(int, siginfo_t *, void *), int flags = 0)
{
    struct sigaction action = {};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    return action;
}

void install(const struct sigaction &action, struct sigaction *old = nullptr)
{
    CHILD_REQUIRE(sigaction(SIGSEGV, &action, old) == 0);
}

// Faults that loop must not take the test along.
test::Container open_pages(const std::string &path, uint64_t pages = 20)
{
    alarm(10);
    return test::open_with_pages(path, pages, test::small());
}

void require_foreign_fault_is_seen()
{
    int before = calls;
    foreign().close();
    (void)*foreign().page;
    CHILD_REQUIRE(calls == before + 1);
}

} // namespace

CHILD_PROCESS(chains_to_us)
{
    install(action_of(detailed));
    test::Container c = open_pages(arguments[0]);
    install(action_of(chaining), &chained);
    test::page_word(c.get(), 0) = 1; // by way of theirs
    CHILD_REQUIRE(chains == 1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    test::page_word(c.get(), 1) = 1; // ours is in front
    CHILD_REQUIRE(chains == 1);
    for (int i = 0; i < 3; i++) {
        require_foreign_fault_is_seen(); // ours, theirs, ours, and the one below
        CHILD_REQUIRE(chains == 2 + i);
        CHILD_REQUIRE(seen_address == foreign().page);
    }
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

TEST_CASE("a fault passes a handler that chains to ours, and reaches the one from before us")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("chains_to_us", {directory / "c.pm"}));
}

CHILD_PROCESS(replaces_it_twenty_times)
{
    test::Container c = open_pages(arguments[0]);
    struct sigaction one = action_of(detailed), two = {};
    two.sa_handler = plain;
    for (uint64_t i = 0; i < 20; i++) {
        install(i % 2 ? one : two);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        test::page_word(c.get(), i) = i + 1;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        seen_address = nullptr;
        require_foreign_fault_is_seen();
        CHILD_REQUIRE((seen_address != nullptr) == (i % 2 == 1)); // the newest has it
    }
}

TEST_CASE("two handlers that replace ours in turn are as one each")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("replaces_it_twenty_times", {directory / "c.pm"}));
}

CHILD_PROCESS(had_a_handler)
{
    bool once = arguments[1] == "once";
    install(action_of(detailed, once ? (int)SA_RESETHAND : 0));
    test::Container c = open_pages(arguments[0]);
    sigset_t mine, after;
    sigemptyset(&mine);
    sigaddset(&mine, SIGUSR2);
    sigprocmask(SIG_SETMASK, &mine, nullptr);
    for (uint64_t i = 0; i < 3; i++) {
        test::say("again");
        test::page_word(c.get(), i) = 1; // ours
        CHILD_REQUIRE(calls == (int)i);
        require_foreign_fault_is_seen(); // theirs
        // Under what was blocked outside the handler, and no more than that.
        CHILD_REQUIRE(sigismember(&seen_mask, SIGUSR2) && !sigismember(&seen_mask, SIGUSR1));
        sigprocmask(SIG_SETMASK, nullptr, &after);
        CHILD_REQUIRE(sigismember(&after, SIGUSR2) && !sigismember(&after, SIGSEGV));
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
}

TEST_CASE("an earlier handler has its turn each time, or once if it asked for that")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("had_a_handler", {directory / "1", "always"}));
    test::Ended ended = test::run("had_a_handler", {directory / "2", "once"});
    INFO(ended.errors);
    REQUIRE(test::killed(ended.status, SIGSEGV));
    REQUIRE(ended.output == "again\nagain\n");
}

// arguments: path, disposition, how it is sent.
CHILD_PROCESS(is_sent_sigsegv)
{
    if (arguments[1] == "ignore")
        signal(SIGSEGV, SIG_IGN);
    if (arguments[1] == "handler")
        install(action_of(detailed));
    test::Container c = open_pages(arguments[0]);
    test::page_word(c.get(), 0) = 1;
    if (arguments[2] == "kill")
        kill(getpid(), SIGSEGV);
    else if (arguments[2] == "raise")
        raise(SIGSEGV);
    else // whose value must not be taken for an address
        sigqueue(getpid(), SIGSEGV, {.sival_ptr = pm_getroot(c.get())});
    CHILD_REQUIRE(calls == (arguments[1] == "handler"));
    CHILD_REQUIRE(calls == 0 || seen_code == (arguments[2] == "kill"    ? SI_USER
                                              : arguments[2] == "raise" ? SI_TKILL
                                                                        : SI_QUEUE));
    test::page_word(c.get(), 5) = 5;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
}

TEST_CASE("SIGSEGV sent by a process")
{
    test::Directory directory;
    std::string how = GENERATE(as<std::string>(), "kill", "raise", "sigqueue");
    INFO(how);
    REQUIRE_KILLED(SIGSEGV, test::run("is_sent_sigsegv", {directory / "1", "default", how}));
    REQUIRE_CLEAN(test::run("is_sent_sigsegv", {directory / "2", "ignore", how}));
    REQUIRE_CLEAN(test::run("is_sent_sigsegv", {directory / "3", "handler", how}));
}

// arguments: path, where.
CHILD_PROCESS(strays)
{
    const std::string &path = arguments[0], &where = arguments[1];
    test::Container c = open_pages(path);
    char *freed = static_cast<char *>(pm_malloc(c.get(), 64 << 10)); // a segment
    CHILD_REQUIRE(freed);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    char *target = nullptr;
    if (where == "a segment freed after it was used often") {
        for (int i = 0; i < 10; i++) {
            *freed = (char)i;
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
        }
        CHILD_REQUIRE(pm_free(freed) == 0);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        target = freed;
    } else if (where == "a segment freed long after its use") {
        for (uint64_t i = 0; i < 100; i++) {
            test::page_word(c.get(), 1) = i;
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
        }
        CHILD_REQUIRE(pm_free(freed) == 0);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        target = freed;
    } else { // a read-only container
        c.reset();
        pm_options options = test::options(PM_READONLY);
        c.reset(pm_open(path.c_str(), &options));
        CHILD_REQUIRE(c);
        target = static_cast<char *>(pm_getroot(c.get()));
    }
    test::say("so far");
    *reinterpret_cast<volatile uint64_t *>(target) = 1;
}

TEST_CASE("stores to what may not be stored to kill the program")
{
    for (const char *where : {"a segment freed after it was used often",
                              "a segment freed long after its use", "a read-only container"}) {
        INFO(where);
        test::Directory directory;
        std::string path = directory / "c.pm";
        test::Ended ended = test::run("strays", {path, where});
        INFO("wait status " << ended.status << ": " << ended.errors);
        CHECK(ended.output == "so far\n");
        CHECK(test::killed(ended.status, SIGSEGV));
        test::Container c = test::open(path, test::options()); // and it harms nothing
        CHECK(test::page_word(c.get(), 0) == 0);
        REQUIRE_OK(pm_check(c.get()));
    }
}

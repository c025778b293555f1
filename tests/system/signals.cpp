// libpm stands in front of all handlers of SIGSEGV and SIGBUS, and programs must not notice.
#include "common/process.hpp"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

using test::failed_with;
using test::page_word;

// A store through NULL of which we know the address.
extern "C" void store_to_null();
asm(".text\n"
    ".globl store_to_null\n"
    ".type store_to_null, @function\n"
    "store_to_null:\n"
    "    movl $1, 0\n"
    "    ret\n");

namespace
{

// What a handler of the program saw last.
struct Seen {
    volatile int calls, chained;
    void *volatile address;
    volatile uintptr_t instruction;
    volatile bool blocked_usr1, blocked_segv, on_stack;
} seen;

char alternate_stack[1 << 16];
void *trap; // a page that cannot be accessed, until the handler lets it
struct sigaction previous;
sigjmp_buf back;

void note(siginfo_t *info, void *context)
{
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    seen.blocked_usr1 = sigismember(&now, SIGUSR1);
    seen.blocked_segv = sigismember(&now, SIGSEGV);
    char local;
    seen.on_stack = &local >= alternate_stack && &local < alternate_stack + sizeof alternate_stack;
    seen.calls = seen.calls + 1;
    if (!info)
        return;
    seen.address = info->si_addr;
    seen.instruction = (uintptr_t)static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP];
}

void give_access()
{
    mprotect(trap, 4096, PROT_READ | PROT_WRITE);
}

void with_info(int, siginfo_t *info, void *context)
{
    note(info, context);
    give_access();
}

void plain(int)
{
    note(nullptr, nullptr);
    give_access();
}

void jumps_back(int, siginfo_t *info, void *context)
{
    note(info, context);
    siglongjmp(back, 1);
}

// As a well-mannered program: what is not its own goes to who was there before.
void chains(int signal, siginfo_t *info, void *context)
{
    seen.chained = seen.chained + 1;
    if (seen.chained > 100)
        _exit(90); // we go round in a circle
    if (previous.sa_flags & SA_SIGINFO)
        previous.sa_sigaction(signal, info, context);
    else if (previous.sa_handler == SIG_DFL)
        give_access();
}

void leaves(int, siginfo_t *info, void *context)
{
    note(info, context);
    _exit(seen.instruction == (uintptr_t)&store_to_null && info->si_addr == nullptr ? 55 : 56);
}

void install(void (*handler)(int, siginfo_t *, void *), int flags = 0,
             struct sigaction *old = nullptr, int signal = SIGSEGV)
{
    struct sigaction action{};
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGUSR1);
    CHILD_REQUIRE(sigaction(signal, &action, old) == 0);
}

void make_trap()
{
    if (!trap)
        trap = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_REQUIRE(mprotect(trap, 4096, PROT_NONE) == 0);
}

// A foreign fault reaches the program's handler, and afterwards a store to the container works.
void foreign_fault_then_ours(pm_container *c, uint64_t page)
{
    int calls = seen.calls;
    make_trap();
    *static_cast<volatile int *>(trap) = 1;
    CHILD_REQUIRE(seen.calls == calls + 1);
    uint64_t faults = test::stats(c).faults;
    page_word(c, page) = 5;
    CHILD_REQUIRE(test::stats(c).faults == faults + 1);
    CHILD_REQUIRE(seen.calls == calls + 1);
}

test::Container open_container(const std::string &path)
{
    return test::open_with_pages(path, 64, test::small());
}

} // namespace

CHILD_PROCESS(earlier_handler_with_info)
{
    stack_t stack{};
    stack.ss_sp = alternate_stack;
    stack.ss_size = sizeof alternate_stack;
    bool on_stack = arguments[1] == "stack";
    if (on_stack)
        CHILD_REQUIRE(sigaltstack(&stack, nullptr) == 0);
    install(with_info, on_stack ? SA_ONSTACK : 0);
    test::Container c = open_container(arguments[0]);
    for (uint64_t i = 0; i < 5; i++) {
        foreign_fault_then_ours(c.get(), 2 * i);
        CHILD_REQUIRE(seen.address == trap);
        CHILD_REQUIRE(seen.blocked_usr1 && seen.blocked_segv);
        CHILD_REQUIRE(seen.on_stack == on_stack);
        sigset_t now;
        sigprocmask(SIG_SETMASK, nullptr, &now);
        CHILD_REQUIRE(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGSEGV));
        if (i % 2)
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
}

CHILD_PROCESS(earlier_handler_plain)
{
    struct sigaction action{};
    action.sa_handler = plain;
    action.sa_flags = SA_NODEFER;
    CHILD_REQUIRE(sigaction(SIGSEGV, &action, nullptr) == 0);
    test::Container c = open_container(arguments[0]);
    foreign_fault_then_ours(c.get(), 0);
    CHILD_REQUIRE(!seen.blocked_segv && !seen.blocked_usr1);
    foreign_fault_then_ours(c.get(), 2);
}

// With so much of the stack in use.
[[gnu::noinline]] void store_to_null_below(int depth)
{
    volatile char used[3000];
    used[0] = 1;
    if (depth > 0)
        store_to_null_below(depth - 1);
    else
        store_to_null();
    (void)used[0]; // no tail call
}

CHILD_PROCESS(earlier_handler_jumps_out)
{
    install(jumps_back);
    test::Container c = open_container(arguments[0]);
    for (int i = 1; i <= 30; i++) {
        if (sigsetjmp(back, 1) == 0)
            store_to_null_below(i % 20); // deeper than ever, and then not
        CHILD_REQUIRE(seen.calls == i);
        page_word(c.get(), (uint64_t)i) = 1;
        if (i == 3)
            CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
}

CHILD_PROCESS(handler_replaced_between_commits)
{
    test::Container c = open_container(arguments[0]);
    page_word(c.get(), 0) = 1;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    for (uint64_t i = 1; i < 10; i++) {
        install(with_info); // no store until the commit: nobody would serve its fault
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        foreign_fault_then_ours(c.get(), 2 * i);
        CHILD_REQUIRE(seen.address == trap);
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
}

CHILD_PROCESS(replacing_handler_chains_to_ours)
{
    test::Container c = open_container(arguments[0]);
    install(chains, 0, &previous);
    // Theirs in front: our faults reach us through it.
    uint64_t faults = test::stats(c.get()).faults;
    page_word(c.get(), 2) = 1;
    CHILD_REQUIRE(seen.chained == 1);
    CHILD_REQUIRE(test::stats(c.get()).faults == faults + 1);
    // Ours in front again, before one that chains to ours.
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    page_word(c.get(), 4) = 1;
    CHILD_REQUIRE(seen.chained == 1);
    CHILD_REQUIRE(test::stats(c.get()).faults == faults + 2);
    if (arguments[1] == "foreign")
        store_to_null(); // us, them, us: the default
}

CHILD_PROCESS(many_handlers)
{
    // Each a different handler as far as anybody can tell, none of which chains.
    static void (*const handlers[])(int, siginfo_t *, void *) = {
        [](int, siginfo_t *, void *) { _exit(1); },  [](int, siginfo_t *, void *) { _exit(2); },
        [](int, siginfo_t *, void *) { _exit(3); },  [](int, siginfo_t *, void *) { _exit(4); },
        [](int, siginfo_t *, void *) { _exit(5); },  [](int, siginfo_t *, void *) { _exit(6); },
        [](int, siginfo_t *, void *) { _exit(7); },  [](int, siginfo_t *, void *) { _exit(8); },
        [](int, siginfo_t *, void *) { _exit(9); },  [](int, siginfo_t *, void *) { _exit(10); },
        [](int, siginfo_t *, void *) { _exit(11); }, [](int, siginfo_t *, void *) { _exit(12); }};
    test::Container c = open_container(arguments[0]);
    bool refused = false;
    uint64_t page = 0;
    for (auto handler : handlers) {
        install(handler);
        if (pm_commit(c.get()) != 0) {
            CHILD_REQUIRE(failed_with(EPERM, {"SIGSEGV"}));
            refused = true;
            break;
        }
        page_word(c.get(), page += 2) = 1; // ours is in front
    }
    CHILD_REQUIRE(refused); // with a message, and nothing lost
    install(handlers[0]);   // one that we know comes back
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    page_word(c.get(), page += 2) = 1;
}

CHILD_PROCESS(null_store_with_handler)
{
    install(leaves);
    test::Container c = open_container(arguments[0]);
    page_word(c.get(), 0) = 1;
    store_to_null();
}

CHILD_PROCESS(null_store)
{
    test::Container c = open_container(arguments[0]);
    page_word(c.get(), 0) = 1;
    store_to_null();
}

// The same under a tracer, which sees each signal and where it strikes.
CHILD_PROCESS(traced_null_store)
{
    pid_t child = fork();
    CHILD_REQUIRE(child >= 0);
    if (child == 0) {
        CHILD_REQUIRE(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0);
        child_null_store(arguments);
        _exit(0);
    }
    int status = 0;
    uintptr_t last = 0;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        user_regs_struct registers;
        CHILD_REQUIRE(ptrace(PTRACE_GETREGS, child, nullptr, &registers) == 0);
        if (WSTOPSIG(status) == SIGSEGV)
            last = registers.rip;
        CHILD_REQUIRE(ptrace(PTRACE_CONT, child, nullptr, (void *)(long)WSTOPSIG(status)) == 0);
    }
    CHILD_REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHILD_REQUIRE(last == (uintptr_t)&store_to_null); // what a core dump shows
}

// Where no contents are: behind the file, or at the container's end if the file has a log.
static uint64_t end_of(pm_container *c)
{
    return test::engine() == "log" ? (64 << 20) - 4096 : test::stats(c).file_bytes;
}

CHILD_PROCESS(dies_in_some_way)
{
    const std::string &way = arguments[1];
    struct sigaction ignore{};
    ignore.sa_handler = SIG_IGN;
    if (way == "ignored kill" || way == "ignored null")
        CHILD_REQUIRE(sigaction(SIGSEGV, &ignore, nullptr) == 0);
    test::Container c = open_container(arguments[0]);
    char *root = static_cast<char *>(pm_getroot(c.get()));
    char *base = reinterpret_cast<char *>((uintptr_t)root & ~((uintptr_t{1} << 30) - 1));
    page_word(c.get(), 0) = 1;
    auto store = [](char *p) { *static_cast<volatile char *>(p) = 1; };
    auto load = [](char *p) { return *static_cast<volatile char *>(p); };
    if (way == "kill" || way == "ignored kill") {
        kill(getpid(), SIGSEGV);
        CHILD_REQUIRE(way == "ignored kill");
        page_word(c.get(), 2) = 1; // and ours are still served
        _exit(54);
    } else if (way == "kill bus") {
        kill(getpid(), SIGBUS);
    } else if (way == "ignored null") {
        store_to_null(); // the kernel lets nobody ignore a fault
    } else if (way == "jump") {
        reinterpret_cast<void (*)()>(root)();
    } else if (way == "jump to a closed page") {
        reinterpret_cast<void (*)()>(root + 40 * 4096)();
    } else if (way == "read beyond the end") {
        load(base + end_of(c.get()));
    } else if (way == "store beyond the end") {
        store(base + end_of(c.get()));
    } else if (way == "store beyond the container") {
        store(base + (64 << 20));
    } else if (way == "store to the header") {
        store(base);
    } else if (way == "store to the segment table") {
        store(base + 3 * 4096);
    } else if (way == "store to the log") {
        store(base + 65536 + 8192);
    } else if (way == "store to a bitmap") {
        char *p = static_cast<char *>(pm_malloc(c.get(), 100));
        store(p); // fine
        store(reinterpret_cast<char *>((uintptr_t)p & ~(uintptr_t)65535));
    } else if (way == "store to a freed segment") {
        CHILD_REQUIRE(pm_free(root) == 0 && pm_commit(c.get()) == 0);
        store(root + 40 * 4096);
    } else if (way == "store after the close") {
        c.reset();
        store(root);
    } else if (way == "read after the close") {
        c.reset();
        load(root);
    } else if (way == "store elsewhere in the arena") {
        store(base > (char *)0x208000000000 ? base - (uint64_t{1} << 38)
                                            : base + (uint64_t{1} << 38));
    }
}

CHILD_PROCESS(kill_reaches_the_earlier_handler)
{
    install([](int, siginfo_t *info, void *) { _exit(info->si_code == SI_USER ? 53 : 1); });
    test::Container c = open_container(arguments[0]);
    kill(getpid(), SIGSEGV);
}

CHILD_PROCESS(file_cut_short)
{
    if (arguments[1] == "handler")
        install([](int, siginfo_t *, void *) { _exit(52); }, 0, nullptr, SIGBUS);
    test::Container c = open_container(arguments[0]);
    page_word(c.get(), 40) = 1;
    CHILD_REQUIRE(truncate(arguments[0].c_str(), 65536) == 0);
    volatile uint64_t &closed = page_word(c.get(), 20), &open = page_word(c.get(), 40);
    if (arguments[2] == "load")
        test::say(std::to_string(closed).c_str());
    else if (arguments[2] == "store to an open page")
        open = 2;
    else
        closed = 2;
}

// arguments: path of a container, and of another file, which is mapped and cut short.
CHILD_PROCESS(other_file_cut_short)
{
    test::Container c = open_container(arguments[0]);
    test::write_file(arguments[1], std::string(4096, 1));
    int fd = open(arguments[1].c_str(), O_RDWR);
    void *mapped = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHILD_REQUIRE(mapped != MAP_FAILED && ftruncate(fd, 0) == 0);
    test::say(std::to_string(*static_cast<volatile char *>(mapped)).c_str());
}

namespace
{

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";
};

} // namespace

TEST_CASE_METHOD(Fixture, "a handler installed before us gets what is not ours")
{
    SECTION("with siginfo")
    {
        REQUIRE_CLEAN(test::run("earlier_handler_with_info", {path, ""}));
    }
    SECTION("on its own stack")
    {
        REQUIRE_CLEAN(test::run("earlier_handler_with_info", {path, "stack"}));
    }
    SECTION("without siginfo")
    {
        REQUIRE_CLEAN(test::run("earlier_handler_plain", {path}));
    }
    SECTION("that never returns")
    {
        REQUIRE_CLEAN(test::run("earlier_handler_jumps_out", {path}));
    }
    SECTION("a signal sent by kill")
    {
        test::Ended ended = test::run("kill_reaches_the_earlier_handler", {path});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status, 53));
    }
}

TEST_CASE_METHOD(Fixture, "a handler that replaced ours")
{
    SECTION("is behind ours after a commit, and gets what is not ours")
    {
        REQUIRE_CLEAN(test::run("handler_replaced_between_commits", {path}));
    }
    SECTION("may chain to ours")
    {
        REQUIRE_CLEAN(test::run("replacing_handler_chains_to_ours", {path, "ours"}));
    }
    SECTION("may chain to ours, which does not go round in a circle")
    {
        REQUIRE_KILLED(SIGSEGV, test::run("replacing_handler_chains_to_ours", {path, "foreign"}));
    }
    SECTION("and another, and another")
    {
        REQUIRE_CLEAN(test::run("many_handlers", {path}));
    }
}

TEST_CASE_METHOD(Fixture, "a real null dereference dies at the guilty instruction")
{
    REQUIRE_KILLED(SIGSEGV, test::run("null_store", {path}));
    test::Ended ended = test::run("null_store_with_handler", {path});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status, 55));
    REQUIRE_CLEAN(test::run("traced_null_store", {path}));
}

TEST_CASE_METHOD(Fixture, "what nobody may do dies by its signal, and does not hang")
{
    for (const char *way :
         {"kill", "ignored null", "jump", "jump to a closed page", "read beyond the end",
          "store beyond the end", "store beyond the container", "store to the header",
          "store to the segment table", "store to the log", "store to a bitmap",
          "store to a freed segment", "store after the close", "read after the close",
          "store elsewhere in the arena"}) {
        INFO(way);
        if (way == std::string("store to the log") && test::engine() == "log")
            continue; // the log has no addresses there
        REQUIRE_KILLED(SIGSEGV, test::run("dies_in_some_way", {path, way}));
        // What was committed stays.
        test::Container c = test::open(path, test::options());
        REQUIRE_OK(pm_check(c.get()));
        c.reset();
        REQUIRE_OK(pm_delete(path.c_str()));
    }
    REQUIRE_KILLED(SIGBUS, test::run("dies_in_some_way", {path, "kill bus"}));
    test::Ended ended = test::run("dies_in_some_way", {path, "ignored kill"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status, 54));
}

TEST_CASE_METHOD(Fixture, "another file that is cut short is none of our business")
{
    test::Ended ended = test::run("other_file_cut_short", {path, directory / "other"});
    REQUIRE(test::killed(ended.status, SIGBUS));
    REQUIRE(ended.errors.empty());
}

TEST_CASE_METHOD(Fixture, "a file that is cut short under us", "[home]")
{
    for (const char *how : {"load", "store to an open page", "store to a closed page"}) {
        INFO(how);
        test::Ended ended = test::run("file_cut_short", {path, "", how});
        INFO(ended.status << ": " << ended.errors);
        CHECK(test::killed(ended.status, SIGBUS));
        CHECK(ended.errors.find("libpm: " + path + ": offset ") != std::string::npos);
        CHECK(ended.errors.find("SIGBUS") != std::string::npos);
        CHECK(ended.errors.find("run `pm check`") != std::string::npos);
        unlink(path.c_str());
    }
    for (const char *how : {"load", "store to an open page", "store to a closed page"}) {
        INFO(how << ", with a handler");
        test::Ended ended = test::run("file_cut_short", {path, "handler", how});
        INFO(ended.status << ": " << ended.errors);
        CHECK(test::exited(ended.status, 52));
        unlink(path.c_str());
    }
}

// Pointers that nobody declared, to what the next run does not have: LIBPM_AUDIT=1 warns of them, and
// no commit fails.
#include "common/process.hpp"

#include <cerrno>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace
{

constexpr size_t WORDS = 4096; // 8 pages

int variable;

struct Opened {
    test::Container c;
    void **words;

    // A container with an object of WORDS words, which are no news any more.
    Opened(const std::string &path, pm_options how)
    {
        how.flags |= PM_CREATE;
        c = test::open(path, how);
        words = static_cast<void **>(pm_calloc(c.get(), WORDS, sizeof(void *)));
        CHILD_REQUIRE(words && pm_setroot(c.get(), words, 0) == 0 && pm_commit(c.get()) == 0);
    }
    void commit() { CHILD_REQUIRE(pm_commit(c.get()) == 0); }
    // What the commits warn of from here on.
    void say(const char *what) { fprintf(stderr, "[%s]\n", what); }
};

struct Thread {
    pthread_barrier_t barrier;
    int *on_stack;
    long id;
};

void *wait_on_stack(void *context)
{
    auto *t = static_cast<Thread *>(context);
    int here = 0;
    t->on_stack = &here;
    t->id = syscall(SYS_gettid);
    pthread_barrier_wait(&t->barrier);
    pthread_barrier_wait(&t->barrier);
    return nullptr;
}

size_t count(const std::string &text, const std::string &what)
{
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        n++;
    return n;
}

} // namespace

// arguments: path, another, flags, concurrent stores, an address that the kernel chose, or ""
CHILD_PROCESS(stores_strays)
{
    pm_options how = test::small((unsigned)std::stoul(arguments[2]));
    how.concurrent_stores = arguments[3] == "1";
    Opened o(arguments[0], how);
    Opened other(arguments[1], how);
    Thread thread = {};
    pthread_t started;
    CHILD_REQUIRE(pthread_barrier_init(&thread.barrier, nullptr, 2) == 0 &&
                  pthread_create(&started, nullptr, wait_on_stack, &thread) == 0);
    pthread_barrier_wait(&thread.barrier);
    int local = 0;
    void *small = malloc(100);
    void *large = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *closed = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *gone = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHILD_REQUIRE(small && large != MAP_FAILED && closed != MAP_FAILED && munmap(gone, 1 << 20) == 0);
    CHILD_REQUIRE(mprotect(closed, 4096, PROT_READ) == 0);

    o.say("nothing");
    o.words[1] = o.words + 7;                // into the container
    o.words[2] = reinterpret_cast<void *>(5); // numbers
    o.words[3] = reinterpret_cast<void *>(-1L);
    o.words[4] = static_cast<char *>(closed) + 5000; // which cannot be followed here either
    o.words[5] = gone;   // where nothing is
    o.words[6] = static_cast<char *>(closed) + 4096; // likewise, just behind what can be read
    o.commit();
    o.say("stack");
    o.words[10] = &local;
    errno = 0;
    o.commit();
    CHILD_REQUIRE(errno == 0);
    o.say("thread");
    o.words[600] = thread.on_stack;
    o.commit();
    o.say("heap");
    o.words[1100] = small;
    o.commit();
    o.say("anonymous");
    o.words[1101] = static_cast<char *>(large) + 5000;
    o.commit();
    o.say("module");
    o.words[1102] = &variable;
    o.words[1103] = reinterpret_cast<void *>(&wait_on_stack);
    o.commit();
    o.say("container");
    o.words[2000] = other.words + 3;
    o.commit();
    o.say("same");
    o.words[11] = reinterpret_cast<void *>(6); // on the page, and of the line, of a pointer
    o.commit();
    o.say("new object");
    // Beside another, so that the page is in use whatever becomes of this one.
    constexpr size_t FRESH = 25 * sizeof(void *);
    auto **fresh = static_cast<void **>(pm_malloc(o.c.get(), FRESH));
    CHILD_REQUIRE(fresh && pm_calloc(o.c.get(), 1, FRESH));
    memset(fresh, 0, FRESH);
    fresh[23] = &local;
    o.commit();
    o.say("same words");
    CHILD_REQUIRE(pm_free(fresh) == 0);
    o.commit();
    CHILD_REQUIRE(pm_malloc(o.c.get(), FRESH) == fresh && fresh[23] == &local);
    fresh[23] = &local;
    o.commit();
    o.say("many");
    for (size_t i = 0; i < 100; i++)
        o.words[3000 + i] = &local;
    o.commit();
    o.say("rolled back");
    o.words[20] = &local;
    CHILD_REQUIRE(pm_rollback(o.c.get()) == 0);
    o.commit();
    o.say("end");
    fprintf(stderr, "thread %ld, %p\n", thread.id, static_cast<void *>(&local));
    pthread_barrier_wait(&thread.barrier);
    pthread_join(started, nullptr);
    CHILD_REQUIRE(o.words[10] == &local && pm_check(o.c.get()) == 0);
    free(small);
    o.c.reset();
    _exit(0);
}

namespace
{

std::string between(const std::string &text, const std::string &first, const std::string &last)
{
    size_t from = text.find("[" + first + "]"), to = text.find("[" + last + "]");
    REQUIRE((from != std::string::npos && to != std::string::npos));
    return text.substr(from, to - from);
}

} // namespace

TEST_CASE("with LIBPM_AUDIT=1 a commit warns of words that may lead out of the container")
{
    test::Directory directory;
    const std::string path = directory / "c.pm", other = directory / "other.pm";
    const bool concurrent = test::concurrently();
    // With PM_MOVABLE the tracker `stores` records pointers instead.
    const unsigned movable = test::options().tracker == PM_TRACKER_STORES ? 0 : PM_MOVABLE;
    const std::string flags = std::to_string(GENERATE_COPY(0u, movable));
    test::Ended ended = test::run("stores_strays", {path, other, flags, concurrent ? "1" : "0"},
                                  {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    const std::string &e = ended.errors;
    auto part = [&](const char *first, const char *last) { return between(e, first, last); };
    REQUIRE(count(part("nothing", "stack"), "libpm: ") == 0);
    const std::string stack = part("stack", "thread");
    REQUIRE(count(stack, "libpm: ") == 2); // and what to do
    REQUIRE_THAT(stack, Catch::Contains("another run cannot follow such pointers"));
    REQUIRE_THAT(stack, Catch::Contains("libpm: " + path + ": offset ") &&
                            Catch::Contains("byte 80 of the object of 65536 bytes") &&
                            Catch::Contains("looks like a pointer to the stack of the main thread\n"));
    const std::string id = e.substr(e.rfind("thread ") + 7);
    REQUIRE_THAT(part("thread", "heap"),
                 Catch::Contains("byte 4800 of") &&
                     Catch::Contains("the stack of thread " + id.substr(0, id.find(',')) + "\n"));
    REQUIRE_THAT(part("heap", "anonymous"), Catch::Contains("pointer to the heap"));
    REQUIRE_THAT(part("anonymous", "module"),
                 Catch::Contains("the heap, or other anonymous memory"));
    REQUIRE(count(part("module", "container"), "pointer to the module test_strays") == 2);
    REQUIRE_THAT(part("container", "same"), Catch::Contains("another container, " + other));
    REQUIRE(count(part("same", "new object"), "libpm: ") == 0);
    for (const std::string &text : {part("new object", "same words"), part("same words", "many")})
        REQUIRE_THAT(text, Catch::Contains("byte 184 of the object of 208 bytes"));
    const std::string many = part("many", "rolled back");
    REQUIRE(count(many, "the stack of the main thread") == 16);
    REQUIRE_THAT(many, Catch::Contains("so do 84 more words"));
    REQUIRE(count(part("rolled back", "end"), "libpm: ") == 0);

    // And nothing without it.
    for (const char *file : {"c.pm", "other.pm"})
        REQUIRE(unlink((directory / file).c_str()) == 0);
    ended = test::run("stores_strays", {path, other, flags, concurrent ? "1" : "0"});
    REQUIRE(test::exited(ended.status));
    REQUIRE(count(ended.errors, "libpm: ") == 0);
}

// arguments: path. Declared pointers are judged as ever, and not told of twice.
CHILD_PROCESS(declares_pointers)
{
    pm_options how = test::small(PM_MOVABLE);
    how.foreign_pointers = PM_FOREIGN_IGNORE;
    Opened o(arguments[0], how);
    int local = 0;
    CHILD_REQUIRE(pm_mark_pointers(o.words, 2) == 0);
    o.words[0] = &local;
    o.words[1] = &variable;
    o.commit();
    o.c.reset();
    _exit(0);
}

// arguments: path. Nobody has allocated since the container was opened, so nothing is known of its slabs when they
// go.
CHILD_PROCESS(clears_at_once)
{
    constexpr size_t BYTES = 64;
    test::Container c = test::open(arguments[0], test::small());
    void *p = pm_calloc(c.get(), 1, BYTES);
    CHILD_REQUIRE(p && pm_setroot(c.get(), p, 0) == 0 && pm_commit(c.get()) == 0);
    c.reset();
    c = test::open(arguments[0], test::options());
    *static_cast<int *>(pm_getroot(c.get())) = 1;
    CHILD_REQUIRE(pm_clear(c.get()) == 0 && pm_commit(c.get()) == 0);
    CHILD_REQUIRE(!pm_getroot(c.get()) && pm_check(c.get()) == 0);
    c.reset();
    _exit(0);
}

TEST_CASE("a container that is cleared as soon as it is open has no words to warn of")
{
    test::Directory directory;
    test::Ended ended = test::run("clears_at_once", {directory / "c.pm"}, {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    REQUIRE(ended.errors.empty());
}

TEST_CASE("of declared pointers the audit says nothing")
{
    test::Directory directory;
    test::Ended ended = test::run("declares_pointers", {directory / "c.pm"}, {"LIBPM_AUDIT=1"});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    REQUIRE(count(ended.errors, "libpm: ") == 0);
}

// Asynchronous cancellation ends a thread at any instruction. Here thousands of threads repeat one call
// each, and are cancelled at a random moment of it. No lock stays held, and the container is whole.
#include "common/compiled.hpp"
#include "common/fixture.hpp"
#include "common/process.hpp"

#include <atomic>
#include <filesystem>
#include <pthread.h>
#include <random>
#include <thread>
#include <unistd.h>

using test::page_word;

static std::atomic<uint64_t> settled;

extern "C" {

void __real_cancel_settle(void);

void __wrap_cancel_settle(void)
{
    settled++;
    __real_cancel_settle();
}
}

namespace
{

// Pages of the last transactions stay open, and stores to them do not fault. So each thread stores to
// another part of the pages.
constexpr uint64_t PAGES = 2048, PART = 64;
constexpr int THREADS = 700; // for each call

// What the threads do; `turn` counts from 0 in each.
using Work = void (*)(uint64_t turn);

struct Call {
    const char *name;
    Work work;
};

pm_container *container;
char *bytes; // its root object, of so many pages
char *part;  // of it, so many pages
const char *path;

void store(uint64_t turn)
{
    part[turn * (37 * 4096 + 3) % (PART * 4096)] = (char)turn; // no run that is opened ahead
}

// No libc in here: it may not be cancelled so.
const Call calls[] = {
    {"stores", store},
    {"commits",
     [](uint64_t turn) {
         store(turn);
         pm_commit(container);
     }},
    {"commits to be waited for",
     [](uint64_t turn) {
         store(turn);
         pm_wait(pm_commit_async(container));
     }},
    {"rollbacks",
     [](uint64_t turn) {
         store(turn);
         pm_rollback(container);
     }},
    {"small objects",
     [](uint64_t turn) {
         if (void *p = pm_malloc(container, 1 + turn * 97 % 3000))
             pm_free(p);
     }},
    {"large objects, zeroed",
     [](uint64_t turn) {
         if (void *p = pm_calloc(container, 1, (turn % 3 + 1) << 16))
             pm_free(p);
     }},
    {"objects that grow",
     [](uint64_t turn) {
         if (void *p = pm_malloc(container, 100))
             if (void *q = pm_realloc(p, 200 + turn * 31 % 9000))
                 pm_free(q);
     }},
    {"announced stores",
     [](uint64_t turn) {
         pm_dirty(part + turn * 4099 % ((PART - 1) * 4096), 4096);
         store(turn);
     }},
    {"pointers",
     [](uint64_t turn) {
         void *field = bytes + (PAGES - 1) * 4096 + turn * 8 % 4096; // null: nobody stores there
         pm_mark_pointer(field);
         pm_next_pointer(part, bytes + PAGES * 4096);
         pm_mark_data(field, 8);
     }},
    {"roots and reservations",
     [](uint64_t turn) {
         pm_reserve(container, turn % 8 * 4096);
         pm_setroot(container, pm_getroot(container), 0);
     }},
    {"what looks inside",
     [](uint64_t) {
         struct pm_stats stats;
         stats.size = sizeof stats;
         pm_stats(container, &stats);
         size_t size;
         pm_usable_size(pm_next_object(container, nullptr, &size));
         pm_check(container);
     }},
    {"a walk over the objects",
     [](uint64_t) {
         size_t size;
         for (void *p = nullptr; (p = pm_next_object(container, p, &size));)
             ;
     }},
    {"openings",
     [](uint64_t) {
         pm_options how{};
         how.size = sizeof how;
         how.flags = PM_READONLY;
         pm_close(pm_open(path, &how)); // EBUSY
     }},
    {"compaction", [](uint64_t) { pm_compact(container, nullptr, nullptr, nullptr); }},
    {"memory of the heap that is discovered",
     [](uint64_t turn) { pm__free(pm__realloc(pm__malloc(turn * 97 % 70000), 100)); }},
};

void *work_asynchronously(void *argument)
{
    const Work work = *static_cast<Work *>(argument);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    for (uint64_t turn = 0;; turn++)
        work(turn);
    return nullptr;
}

void wait_ns(long ns)
{
    timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < ns);
}

void cancel_one(Work work, std::minstd_rand &random)
{
    pthread_t thread;
    void *result = nullptr;
    CHILD_REQUIRE(pthread_create(&thread, nullptr, work_asynchronously, &work) == 0);
    wait_ns(random() % 300000);
    pthread_cancel(thread);
    CHILD_REQUIRE(pthread_join(thread, &result) == 0);
    CHILD_REQUIRE(result == PTHREAD_CANCELED);
}

void choose_part(int thread)
{
    bytes = static_cast<char *>(pm_getroot(container)); // which compaction may have moved
    part = bytes + (uint64_t)thread % (PAGES / PART - 1) * PART * 4096;
}

void go_on(Work work, int threads, unsigned seed)
{
    std::minstd_rand random(seed);
    for (int i = 0; i < threads; i++) {
        choose_part(i);
        cancel_one(work, random);
        choose_part(i);
        part[i] = (char)i;
        CHILD_REQUIRE(pm_commit(container) == 0);
    }
    CHILD_REQUIRE(pm_check(container) == 0);
    void *p = pm__malloc(100);
    CHILD_REQUIRE(p);
    pm__free(p);
}

} // namespace

// arguments: path, number of the call. A test that hangs is ended after two minutes.
CHILD_PROCESS(cancels_asynchronously)
{
    const compiled::Module module;
    path = arguments[0].c_str();
    test::Container c = test::open_with_pages(arguments[0], PAGES, test::small(PM_CREATE | PM_MOVABLE));
    container = c.get();
    go_on(calls[std::stoul(arguments[1])].work, THREADS, 1);
    c.reset();
    c = test::open(arguments[0], test::options());
    CHILD_REQUIRE(pm_check(c.get()) == 0);
}

TEST_CASE("a thread whose cancellation is asynchronous leaves no lock held")
{
    for (size_t i = 0; i < std::size(calls); i++) {
        INFO(calls[i].name);
        test::Directory directory(test::mode() == "undo" || i % 2 ? "/dev/shm" : "/var/tmp");
        REQUIRE_CLEAN(test::run("cancels_asynchronously", {directory / "c.pm", std::to_string(i)}));
    }
}

// Pages are made when they are read, by a call of the system within the handler of the fault.
CHILD_PROCESS(cancels_asynchronous_readers)
{
    std::string copy = arguments[0] + ".copy";
    {
        test::Container c =
            test::open_with_pages(arguments[0], PAGES, test::small(PM_CREATE | PM_MOVABLE));
    }
    std::filesystem::copy_file(arguments[0], copy);
    test::Container original = test::open(arguments[0], test::options(PM_MOVABLE));
    for (int i = 0; i < 20; i++) {
        test::Container c = test::open(copy, test::options(PM_MOVABLE));
        CHILD_REQUIRE(test::stats(c.get()).moved);
        container = c.get();
        go_on([](uint64_t turn) { (void)*(volatile char *)&part[turn * 4099 % (PART * 4096)]; }, 40,
              (unsigned)i + 1);
    }
}

TEST_CASE("nor does one that reads what has to be moved first")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("cancels_asynchronous_readers", {directory / "c.pm"}));
}

namespace
{

int ends;

// Destructors at the end of a thread run under the thread's mask: their stores to a container are served.
void store_at_end(void *)
{
    for (uint64_t page = 0; page < PART; page++)
        part[page * 4096] = 1;
    ends++;
}

pthread_key_t ending;

void *store_until_cancelled(void *)
{
    pthread_setspecific(ending, part);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    for (uint64_t turn = 0;; turn++)
        part[turn * 37 % PART * 4096] = (char)turn; // no run that is opened ahead
    return nullptr;
}

} // namespace

CHILD_PROCESS(stores_when_cancelled)
{
    test::Container c =
        test::open_with_pages(arguments[0], PAGES, test::small(PM_CREATE | PM_MOVABLE));
    container = c.get();
    CHILD_REQUIRE(pthread_key_create(&ending, store_at_end) == 0);
    std::minstd_rand random(1);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        choose_part(i);
        CHILD_REQUIRE(pthread_create(&thread, nullptr, store_until_cancelled, nullptr) == 0);
        wait_ns(random() % 300000);
        pthread_cancel(thread);
        pthread_join(thread, nullptr);
        CHILD_REQUIRE(pm_commit(container) == 0);
    }
    CHILD_REQUIRE(ends > THREADS / 2); // others were cancelled before they could begin
    CHILD_REQUIRE(pm_check(container) == 0);
}

TEST_CASE("what the end of a cancelled thread stores is served")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("stores_when_cancelled", {directory / "c.pm"}));
}

// A signal that is under way meets a later instruction so seldom that no number of threads is enough.
TEST_CASE("a call waits for a cancellation that is under way, before it takes a lock")
{
    test::Directory directory;
    test::Container c = test::open_with_pages(directory / "c.pm", 1, test::small());
    for (int type : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
        uint64_t before = settled;
        int results[3];
        std::thread([&] {
            pthread_setcanceltype(type, nullptr);
            results[0] = pm_commit(c.get());
            results[1] = pm_rollback(c.get());
            results[2] = pm_check(c.get());
            pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
        }).join();
        for (int result : results)
            REQUIRE(result == 0);
        REQUIRE((settled - before >= 3) == (type == PTHREAD_CANCEL_ASYNCHRONOUS));
    }
}

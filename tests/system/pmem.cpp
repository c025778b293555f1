// The last step to persistent memory. The crash simulator replaces the medium's operations, so it cannot
// see whether the real ones do their work. Here the real operations run, and the test sees every call of
// libpmem. Each operation must write back exactly its lines, copy exactly its bytes, and fence once.
#include "common/process.hpp"
#include "simulation/workload.hpp"

#include <csignal>
#include <cstdio>
#include <emmintrin.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

extern "C" {
#include "backend/backend.h"
}

namespace
{

// ---- what libpmem is asked for -----------------------------------------------------------------

// Operations run in the handler of faults too, so nothing here allocates.
struct Range {
    uintptr_t first, end; // in whole lines
    bool operator==(const Range &other) const { return first == other.first && end == other.end; }
};

constexpr size_t LINE = 64, STREAMED_MAX = 16 * LINE;

Range lines_of(const void *address, size_t size)
{
    uintptr_t at = (uintptr_t)address;
    return {at / LINE * LINE, (at + size + LINE - 1) / LINE * LINE};
}

// Calls within one operation.
struct Calls {
    uint64_t flushes, copies, drains, syncs;
    Range flushed;
    const void *to, *from;
    size_t copied;
    unsigned flags;
};

struct Watch {
    bool in_operation;
    Calls calls;
    uint64_t write_backs, publishes, copies, streams, fences, length_syncs; // operations
    uint64_t unfenced, cuts; // operations since the last fence; how often the file became shorter
    char wrong[200];                                                       // the first one

    void begin()
    {
        calls = {};
        in_operation = true;
        unfenced++;
    }
    void end(bool good, const char *what, const void *address, size_t size)
    {
        in_operation = false;
        if (!good && !*wrong)
            snprintf(wrong, sizeof wrong,
                     "%s of %zu bytes at %p: %lu flushes, the last of [%#lx, %#lx), %lu copies, "
                     "%lu drains, %lu syncs",
                     what, size, address, calls.flushes, calls.flushed.first, calls.flushed.end,
                     calls.copies, calls.drains, calls.syncs);
    }
    bool only(uint64_t flushes, uint64_t copies_, uint64_t drains, uint64_t syncs) const
    {
        return calls.flushes == flushes && calls.copies == copies_ && calls.drains == drains &&
               calls.syncs == syncs;
    }
};

Watch watch;

// A call outside of any operation would be one that the simulator does not know of.
Calls &called(const char *what)
{
    if (!watch.in_operation)
        watch.end(false, what, nullptr, 0);
    return watch.calls;
}

// ---- what the medium is asked for --------------------------------------------------------------

void write_back(medium *m, const void *address, size_t size)
{
    watch.begin();
    medium_pmem.write_back(m, address, size);
    watch.write_backs++;
    watch.end(watch.only(1, 0, 0, 0) && watch.calls.flushed == lines_of(address, size),
              "write-back", address, size);
}

int publish(medium *m, const void *address, size_t size)
{
    watch.begin();
    int result = medium_pmem.publish(m, address, size);
    watch.publishes++;
    watch.end(result == 0 && watch.only(1, 0, 0, 0) &&
                  watch.calls.flushed == lines_of(address, size),
              "publishing", address, size);
    return result;
}

// Without libpmem: see the test of such lines.
bool is_streamed(const void *to, const void *from, size_t size)
{
    return size <= STREAMED_MAX && ((uintptr_t)to | (uintptr_t)from | size) % LINE == 0;
}

int copy(medium *m, void *to, const void *from, size_t size)
{
    watch.begin();
    int result = medium_pmem.copy(m, to, from, size);
    const Calls &c = watch.calls;
    bool good = result == 0 && memcmp(to, from, size) == 0;
    if (is_streamed(to, from, size)) {
        watch.streams++;
        good = good && watch.only(0, 0, 0, 0);
    } else {
        watch.copies++;
        good = good && watch.only(0, 1, 0, 0) && c.to == to && c.from == from &&
               c.copied == size && !(c.flags & PMEM_F_MEM_NOFLUSH);
    }
    watch.end(good, "copy", to, size);
    return result;
}

int fence_by(int (*operation)(medium *), medium *m)
{
    watch.begin();
    int result = operation(m);
    watch.fences++;
    watch.unfenced = 0;
    watch.end(result == 0 && watch.only(0, 0, 1, 0), "fence", nullptr, 0);
    return result;
}

int fence(medium *m)
{
    return fence_by(medium_pmem.fence, m);
}

int settle(medium *m)
{
    return fence_by(medium_pmem.settle, m);
}

int sync_length(medium *m)
{
    watch.begin();
    int result = medium_pmem.sync_length(m);
    watch.length_syncs++;
    watch.end(result == 0 && watch.only(0, 0, 0, 1), "sync of the length", nullptr, 0);
    return result;
}

const medium_ops watched = {"pmem", true, write_back, publish, copy, fence, settle, sync_length};

} // namespace

extern "C" {

void __real_pmem_flush(const void *address, size_t size);
void __real_pmem_drain();
void *__real_pmem_memcpy(void *to, const void *from, size_t size, unsigned flags);
int __real_fsync(int fd);
int __real_ftruncate(int fd, off_t size);
const medium_ops *__real_medium_of(int fd, const void *home, size_t size, bool synchronous);

void __wrap_pmem_flush(const void *address, size_t size)
{
    Calls &c = called("pmem_flush()");
    c.flushes++;
    c.flushed = lines_of(address, size);
    __real_pmem_flush(address, size);
}

void __wrap_pmem_drain()
{
    called("pmem_drain()").drains++;
    __real_pmem_drain();
}

void *__wrap_pmem_memcpy(void *to, const void *from, size_t size, unsigned flags)
{
    Calls &c = called("pmem_memcpy()");
    c.copies++;
    c.to = to;
    c.from = from;
    c.copied = size;
    c.flags = flags;
    return __real_pmem_memcpy(to, from, size, flags);
}

// Before a new container has a name, the file is synced too; the medium is not asked for that.
int __wrap_fsync(int fd)
{
    watch.calls.syncs++;
    return __real_fsync(fd);
}

// The segment table must not name what is cut off, so its lines are durable before.
int __wrap_ftruncate(int fd, off_t size)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && size < st.st_size) {
        watch.cuts++;
        if (watch.unfenced > 0)
            watch.end(false, "a cut without a fence", nullptr, (size_t)size);
    }
    return __real_ftruncate(fd, size);
}

const medium_ops *__wrap_medium_of(int fd, const void *home, size_t size, bool synchronous)
{
    return __real_medium_of(fd, home, size, synchronous) == &medium_pmem ? &watched : nullptr;
}
}

// ---- tests -------------------------------------------------------------------------------------

namespace
{

constexpr uint64_t TRANSACTIONS = 40;

simulation::Workload workload(const std::string &profile)
{
    return {simulation::structure_by_name("rbtree"), simulation::profile_by_name(profile), 1};
}

void run(pm_container *c, const std::string &profile)
{
    const simulation::Workload program = workload(profile);
    for (uint64_t i = simulation::Workload::transactions(c), end = i + TRANSACTIONS; i < end; i++) {
        program.run(c, i, [] {});
        REQUIRE_OK(pm_commit(c));
    }
}

} // namespace

// arguments: path, profile. Dies without closing, so that there is something to recover.
CHILD_PROCESS(works_on_pmem)
{
    pm_options how = test::small();
    pm_container *c = pm_open(arguments[0].c_str(), &how);
    CHILD_REQUIRE(c);
    const simulation::Workload program = workload(arguments[1]);
    for (uint64_t i = 0; i < TRANSACTIONS; i++) {
        program.run(c, i, [] {});
        CHILD_REQUIRE(pm_commit(c) == 0);
    }
    CHILD_REQUIRE(watch.copies > 0 && watch.streams > 0 && watch.fences > TRANSACTIONS);
    if (test::engine() != "log") // which has no home to bring lines to
        CHILD_REQUIRE(watch.write_backs > 0);
    test::child_require(!*watch.wrong, watch.wrong);
    _exit(0);
}

TEST_CASE("libpmem is asked for every line, copy and fence that the medium is asked for")
{
    // The log goes round, grows and shrinks; small and large objects come and go.
    const std::string profile = GENERATE("mixed", "large", "rewrite");
    test::Directory directory;
    const std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("works_on_pmem", {path, profile}));
    watch = {};
    test::Container c = test::open(path, test::options());
    REQUIRE(test::stats(c.get()).recovered);
    REQUIRE(watch.publishes > 0);
    simulation::Workload program = workload(profile);
    REQUIRE(program.compare(c.get(), TRANSACTIONS).empty());
    run(c.get(), profile);
    REQUIRE(program.compare(c.get(), 2 * TRANSACTIONS).empty());
    c.reset();
    REQUIRE(watch.fences > TRANSACTIONS);
    REQUIRE(std::string(watch.wrong).empty());
}

TEST_CASE("what compaction gives up of the log is durable before the file is cut off", "[home]")
{
    constexpr uint64_t PAGES = 600;
    test::Directory directory;
    test::Container c =
        test::open_with_pages(directory / "c.pm", PAGES, test::small(PM_CREATE | PM_MOVABLE));
    memset(pm_getroot(c.get()), 1, PAGES * 4096);
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE(test::stats(c.get()).segments_log > 2);
    watch = {};
    REQUIRE_OK(pm_compact(c.get(), nullptr, nullptr, nullptr));
    REQUIRE(test::stats(c.get()).segments_log == 2);
    REQUIRE(watch.cuts > 0);
    REQUIRE(std::string(watch.wrong).empty());
}

// ---- lines that are copied without libpmem -----------------------------------------------------

namespace
{

// The page that is stored to: open for one instruction at a time.
alignas(4096) char target[4096];

struct Store {
    uintptr_t offset;
    bool streams; // movntdq, or movntps, which clang makes of it
};
Store stores[STREAMED_MAX / sizeof(__m128i)];
volatile sig_atomic_t store_count;

void on_store(int, siginfo_t *info, void *context)
{
    auto *registers = static_cast<ucontext_t *>(context)->uc_mcontext.gregs;
    const auto *code = reinterpret_cast<const unsigned char *>(registers[REG_RIP]);
    const bool is_wide = code[0] == 0x66;
    const auto *operation = code + is_wide;
    operation += *operation >> 4 == 4; // REX
    const bool streams =
        operation[0] == 0x0f && (operation[1] == 0x2b || (is_wide && operation[1] == 0xe7));
    const uintptr_t offset = (uintptr_t)info->si_addr - (uintptr_t)target;
    if (offset >= sizeof target || (size_t)store_count == std::size(stores))
        abort();
    stores[store_count] = {offset, streams};
    store_count = store_count + 1;
    mprotect(target, sizeof target, PROT_READ | PROT_WRITE);
    registers[REG_EFL] |= 0x100; // trap after this instruction
}

void after_store(int, siginfo_t *, void *context)
{
    mprotect(target, sizeof target, PROT_NONE);
    static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL] &= ~0x100;
}

} // namespace

TEST_CASE("each store of lines that are copied goes past the cache", "[undo]")
{
    const size_t bytes = GENERATE(1 * LINE, 3 * LINE, STREAMED_MAX);
    alignas(LINE) char from[STREAMED_MAX];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i % 251 + 1);
    memset(target, 0, sizeof target);
    store_count = 0;
    struct sigaction store = {}, step = {}, segv_before, trap_before;
    store.sa_sigaction = on_store;
    step.sa_sigaction = after_store;
    store.sa_flags = step.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &store, &segv_before);
    sigaction(SIGTRAP, &step, &trap_before);
    medium m = {};
    mprotect(target, sizeof target, PROT_NONE);
    medium_pmem.copy(&m, target + 128, from, bytes);
    mprotect(target, sizeof target, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &segv_before, nullptr);
    sigaction(SIGTRAP, &trap_before, nullptr);

    constexpr int PIECE = sizeof(__m128i);
    REQUIRE((size_t)store_count == bytes / PIECE);
    for (int i = 0; i < store_count; i++) {
        REQUIRE(stores[i].offset == (uintptr_t)(128 + i * PIECE));
        REQUIRE(stores[i].streams);
    }
    REQUIRE(memcmp(target + 128, from, bytes) == 0);
    REQUIRE(target[128 + bytes] == 0);
}

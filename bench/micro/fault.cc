/*
 * What a store to a protected page costs: libpm's fault (handler, 4 KiB pre-image, fence, open)
 * beside the least a fault can be, a handler that calls mprotect and returns. Both store once to
 * each page of the same number of pages of shared memory on tmpfs, in the same random order, with
 * all pages present and readable beforehand. Taken apart from that: closing the pages again, which
 * is libpm's commit and the bare loop's one mprotect over the range.
 *
 * The first two transactions since pm_open() write to parts of the log that are not there or not
 * mapped yet, and the kernel has to fetch each page; from the third on they are, for transactions
 * take turns with the two halves of the log. Both cases are shown. The redo engine's handler copies
 * nothing; it logs what changed at commit.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr size_t page_size = 4096;
constexpr size_t page_count = 8192; // each lone writable page costs two maps of the 65,530
constexpr size_t size = page_size * page_count;

void store_to_each(volatile char *base, const std::vector<uint32_t> &order, char byte)
{
    for (uint32_t page : order)
        base[page * page_size] = byte;
}

void read_each(const volatile char *base)
{
    for (size_t page = 0; page < page_count; page++)
        static_cast<void>(base[page * page_size]);
}

void report(const std::string &peer, const char *step, double ns, uint64_t pages)
{
    emit({"fault", {step}, peer, ns / static_cast<double>(pages), "ns", pages});
}

void open_page(int, siginfo_t *info, void *)
{
    auto address = reinterpret_cast<uintptr_t>(info->si_addr) & ~(page_size - 1);
    if (mprotect(reinterpret_cast<void *>(address), page_size, PROT_READ | PROT_WRITE) != 0)
        _exit(1); // nothing else is safe here
}

/** A shared mapping of a new, already removed file, its pages present and read-only. */
class Mapping
{
  public:
    explicit Mapping(const std::string &path)
    {
        int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || unlink(path.c_str()) != 0 || ftruncate(fd, size) != 0)
            fail(path.c_str());
        void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (base == MAP_FAILED)
            fail("mmap");
        base_ = static_cast<char *>(base);
        memset(base_, 0, size);
        protect();
    }
    Mapping(const Mapping &) = delete;
    Mapping &operator=(const Mapping &) = delete;
    ~Mapping() { munmap(base_, size); }

    void protect()
    {
        if (mprotect(base_, size, PROT_READ) != 0)
            fail("mprotect");
    }
    char *base() const { return base_; }

  private:
    char *base_;
};

void bare_loop(const std::string &path, const std::vector<uint32_t> &order)
{
    Mapping mapping(path);
    read_each(mapping.base());

    struct sigaction ours{}, before{};
    ours.sa_sigaction = open_page;
    ours.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &ours, &before) != 0)
        fail("sigaction");
    double opened = elapsed_ns([&] { store_to_each(mapping.base(), order, 1); });
    double closed = elapsed_ns([&] { mapping.protect(); });
    sigaction(SIGSEGV, &before, nullptr);

    report("mprotect loop", "fault", opened, page_count);
    report("mprotect loop", "fault, log new", opened, page_count);
    report("mprotect loop", "close", closed, page_count);
}

void libpm(const std::string &directory, const std::vector<uint32_t> &order,
           const std::string &peer, const Mode &mode, bool concurrent_stores = false)
{
    Container container(directory, mode, PM_CREATE, concurrent_stores);
    char *base = static_cast<char *>(container.allocate(size));
    memset(base, 0, size);
    container.set_root(base);
    container.commit();

    container.reopen(); // now every page is closed and holds a committed object
    base = static_cast<char *>(pm_getroot(container));
    read_each(base);

    constexpr char rounds = 4;
    for (char round = 1; round <= rounds; round++) {
        struct pm_stats before = container.stats();
        double opened = elapsed_ns([&] { store_to_each(base, order, round); });
        struct pm_stats after = container.stats();
        double closed = elapsed_ns([&] { container.commit(); });

        // Some pages are open still from the round before, so there are a few faults less.
        uint64_t faults = after.faults - before.faults;
        if (round == 1)
            report(peer, "fault, log new", opened, faults);
        if (round == rounds) {
            report(peer, "fault", opened, faults);
            report(peer, "close", closed, page_count);
        }
    }
}

} // namespace

void fault(const std::string &directory)
{
    auto order = permutation(page_count, 1);
    bare_loop(directory + "/bare", order);
    for (const Mode &mode : modes)
        libpm(directory, order, mode.name, mode);
    Mode closing = modes[0];
    closing.file = "concurrent";
    libpm(directory, order, std::string(closing.name) + ", concurrent_stores", closing, true);
}

} // namespace bench

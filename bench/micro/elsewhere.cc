/*
 * A container of 1 GiB with 16 million pointers, opened where they mean what they say, and elsewhere:
 * to the first access, then page by page as it is read, or moved on the medium.
 *
 * Beside it what the steps cannot do without, measured in the same run: a fault whose handler calls
 * mprotect for as many pages and returns; for each page its first store in new memory, a copy of
 * what home has, and the shifting of its pointers as a map of bits names them; and for the move one
 * pass that does that in place.
 */
#include "harness/clock.h"
#include "harness/random.h"
#include "harness/sample.h"
#include "micro/container.h"
#include "micro/micro.h"

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

namespace bench
{
namespace
{

constexpr size_t page_size = 4096;
constexpr size_t nodes = 1 << 24;
constexpr size_t neighbourhood = 8;  // pages; see src/address/translation.c
constexpr size_t stretch = 512;      // pages
constexpr double eagerly_ns = 0.3e9; // that the move may take besides

struct Node {
    Node *next;
    uint64_t number[7];
};

constexpr size_t size = nodes * sizeof(Node), pages = size / page_size;

void report(const char *step, const char *peer, double value, const char *unit = "ns")
{
    emit({"elsewhere", {step}, peer, value, unit});
}

void make(const std::string &directory, const Mode &mode)
{
    Container container(directory, mode, PM_CREATE | PM_MOVABLE);
    auto *first = static_cast<Node *>(pm_malloc_typed(container, PM_TYPE(Node, next), nodes));
    if (!first)
        throw std::runtime_error(pm_errormsg());
    for (size_t i = 0; i < nodes; i++)
        first[i] = {first + (i + 1) % nodes, {i}};
    container.set_root(first);
    container.commit();
}

const volatile Node *root(pm_container *c)
{
    return static_cast<const volatile Node *>(pm_getroot(c));
}

void require(bool right)
{
    if (!right)
        throw std::runtime_error("a pointer is not right");
}

/** In another order than they lie in memory: a page of each stretch, one after the other. */
template <class Visit> void each_page_scattered(Visit &&visit)
{
    for (size_t in = 0; in < stretch; in++)
        for (size_t from = 0; from < pages; from += stretch)
            visit(from + in * 37 % stretch);
}

constexpr size_t nodes_a_page = page_size / sizeof(Node);

void require_node(const volatile Node *first, size_t i)
{
    require(first[i].number[0] == i && first[i].next == first + (i + 1) % nodes);
}

/* ---- what cannot be done without ------------------------------------------------------------- */

size_t pages_opened;

void open_pages(int, siginfo_t *info, void *)
{
    auto address = reinterpret_cast<uintptr_t>(info->si_addr) & ~(page_size - 1);
    if (mprotect(reinterpret_cast<void *>(address), pages_opened * page_size, PROT_READ) != 0)
        _exit(1); // nothing else is safe here
}

char *map(int fd, int protection)
{
    int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *base = mmap(nullptr, size, protection, flags, fd, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    return static_cast<char *>(base);
}

char *map_file(const std::string &path, int protection)
{
    int fd = open(path.c_str(), O_RDWR);
    if (fd < 0)
        fail(path.c_str());
    char *base = map(fd, protection);
    close(fd);
    return base;
}

/**
 * The host of a virtual machine may have to find memory that the guest has not used for a while, which
 * takes longer than what is measured. So it is to have found as much before each step that takes some.
 */
void have_memory()
{
    char *memory = map(-1, PROT_READ | PROT_WRITE);
    if (madvise(memory, size, MADV_POPULATE_WRITE) != 0)
        fail("madvise");
    munmap(memory, size);
}

/** ns of a fault at the first of so many pages of each stretch, present in memory. */
double bare_fault(const std::string &path, size_t opened)
{
    char *base = map_file(path, PROT_READ);
    for (size_t page = 0; page < pages; page++)
        static_cast<void>(*static_cast<volatile char *>(base + page * page_size));
    if (mprotect(base, size, PROT_NONE) != 0)
        fail("mprotect");
    struct sigaction ours{}, before{};
    ours.sa_sigaction = open_pages;
    ours.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSEGV, &ours, &before) != 0)
        fail("sigaction");
    pages_opened = opened;
    double ns = elapsed_ns([&] {
        for (size_t page = 0; page < pages; page += stretch)
            static_cast<void>(*static_cast<volatile char *>(base + page * page_size));
    });
    sigaction(SIGSEGV, &before, nullptr);
    munmap(base, size);
    return ns / (pages / stretch);
}

/** Bits as the pointer map has them: the first word of each line, in words of 56 bits. */
std::vector<uint64_t> map_of_bits()
{
    std::vector<uint64_t> bits(size / (56 * 8) + 1);
    for (size_t word = 0; word < size / 8; word += 8)
        bits[word / 56] |= uint64_t{1} << word % 56;
    return bits;
}

/** Shift what `bits` names of [offset, offset + bytes), which is at `words`. */
void shift(const std::vector<uint64_t> &bits, size_t offset, size_t bytes, uint64_t *words,
           uint64_t from, uint64_t by)
{
    for (size_t i = offset / 448; i * 448 < offset + bytes; i++)
        for (uint64_t left = bits[i]; left; left &= left - 1) {
            size_t at = i * 448 + static_cast<size_t>(__builtin_ctzll(left)) * 8;
            if (at - offset < bytes && words[(at - offset) / 8] - from < 2 * size)
                words[(at - offset) / 8] += by;
        }
}

/** ns for each page of new memory that gets what is in the file. */
double made_page(const std::string &path, uint64_t from)
{
    const char *home = map_file(path, PROT_READ);
    char *copy = map(-1, PROT_READ | PROT_WRITE);
    std::vector<uint64_t> bits = map_of_bits();
    double ns = elapsed_ns([&] {
        each_page_scattered([&](size_t page) {
            memcpy(copy + page * page_size, home + page * page_size, page_size);
            shift(bits, page * page_size, page_size,
                  reinterpret_cast<uint64_t *>(copy + page * page_size), from, page_size);
        });
    });
    munmap(copy, size);
    munmap(const_cast<char *>(home), size);
    return ns / pages;
}

/** ns of one pass over the file's memory, newly mapped, which stores to each pointer. */
double pass_in_place(const std::string &path, uint64_t from)
{
    char *home = map_file(path, PROT_READ | PROT_WRITE);
    std::vector<uint64_t> bits = map_of_bits();
    volatile uint64_t nowhere = 0; // so that the compiler stores
    double ns = elapsed_ns(
        [&] { shift(bits, 0, size, reinterpret_cast<uint64_t *>(home), from, nowhere); });
    munmap(home, size);
    return ns;
}

/* ---- libpm ----------------------------------------------------------------------------------- */

struct Measured {
    double to_first, neighbourhood, walk;
    uint64_t faults; // of the walk
};

Measured lie_elsewhere(const std::string &directory, const Mode &mode)
{
    Measured m;
    std::optional<Container> container;
    m.to_first = elapsed_ns([&] {
        container.emplace(directory, mode, PM_MOVABLE, false, size * 2);
        require_node(root(*container), 0);
    });
    const volatile Node *first = root(*container);
    m.neighbourhood = elapsed_ns([&] {
                          for (size_t page = stretch; page < pages; page += stretch)
                              require_node(first, page * nodes_a_page);
                      }) /
                      (pages / stretch - 1);
    uint64_t before = container->stats().touches;
    m.walk = elapsed_ns([&] {
        each_page_scattered([&](size_t page) { require_node(first, page * nodes_a_page); });
    });
    m.faults = container->stats().touches - before;
    return m;
}

} // namespace

void elsewhere(const std::string &directory)
{
    namespace fs = std::filesystem;
    Mode mode = modes[0], copy = mode;
    copy.file = "copy";
    make(directory, mode);
    const std::string path = directory + "/" + mode.file, copied = directory + "/" + copy.file;
    fs::copy_file(path, copied);
    std::optional<Container> original;
    double at_home = elapsed_ns([&] {
        original.emplace(directory, mode, PM_MOVABLE);
        require_node(root(*original), 0);
    });
    report("open where its pointers mean, to the first access", "libpm", at_home);

    const auto from = reinterpret_cast<uint64_t>(original->stats().base);
    have_memory();
    Measured m = lie_elsewhere(directory, copy);
    have_memory();
    double page = made_page(path, from);
    report("open elsewhere, to the first access", "libpm", m.to_first);
    report("a neighbourhood of 8 pages", "libpm", m.neighbourhood);
    report("a neighbourhood of 8 pages", "what it needs",
           bare_fault(path, neighbourhood) + neighbourhood * page);
    report("all pages, in scattered order", "libpm", m.walk);
    report("all pages, in scattered order", "what it needs",
           static_cast<double>(m.faults) * bare_fault(path, stretch / 2) + pages * page);
    report("faults a page of that", "libpm", static_cast<double>(m.faults) / pages, "");

    double moved = elapsed_ns([&] {
        Container container(directory, copy, PM_MOVABLE | PM_RELOCATE);
        require_node(root(container), 0);
        require(container.stats().pointers_moved == nodes);
    });
    report("move on the medium", "libpm", moved);
    report("move on the medium", "what it needs", pass_in_place(copied, from) + eagerly_ns);
    report("pointers a second of that", "libpm", nodes / moved * 1e9, "");
    original.reset();
    Container::remove(directory, mode);
    Container::remove(directory, copy);
}

} // namespace bench

// Containers of format version 2, which an older libpm left: of both engines, closed and killed, movable
// and not. A reader reads them as they are. A writer brings them to the current version when it opens
// them.
#include "common/format.hpp"
#include "hostile/life.hpp"
#include "hostile/memory_file.hpp"

using namespace hostile;

namespace
{

unsigned unsettled; // words that were published, and not made durable
unsigned upgrades;
bool upgrading;
bool refuses;                   // its pointers
std::vector<std::string> steps; // that upgrading takes

} // namespace

extern "C" {
struct container;
struct medium;

int __real_medium_publish(struct medium *medium, const void *address, size_t size);
int __real_medium_settle(struct medium *medium);
int __real_container_upgrade(struct container *c);
int __real_file_write(int fd, const void *from, size_t size, uint64_t offset);
int __real_file_sync(int fd);
struct allocator;
int __real_pointers_check(struct allocator *a, void (*allowed)(void));

int __wrap_medium_publish(struct medium *medium, const void *address, size_t size)
{
    unsettled++;
    return __real_medium_publish(medium, address, size);
}

int __wrap_medium_settle(struct medium *medium)
{
    unsettled = 0;
    return __real_medium_settle(medium);
}

int __wrap_container_upgrade(struct container *c)
{
    upgrades++;
    REQUIRE(unsettled == 0); // the headers say that these words count
    upgrading = true;
    int result = __real_container_upgrade(c);
    upgrading = false;
    return result;
}

int __wrap_file_write(int fd, const void *from, size_t size, uint64_t offset)
{
    if (upgrading)
        steps.push_back(offset == FORMAT_HEADER_A   ? "write A"
                        : offset == FORMAT_HEADER_B ? "write B"
                                                    : "write");
    return __real_file_write(fd, from, size, offset);
}

int __wrap_file_sync(int fd)
{
    if (upgrading)
        steps.push_back("sync");
    return __real_file_sync(fd);
}

int __wrap_pointers_check(struct allocator *a, void (*allowed)(void))
{
    return refuses ? -1 : __real_pointers_check(a, allowed);
}
}

namespace
{

constexpr int STEPS = 20; // committed by the older libpm, from seed 1

// What tests/hostile/format2.tar.xz holds.
const char *const FILES[] = {"undo-closed-fixed",   "undo-closed-movable", "undo-killed-fixed",
                             "undo-killed-movable", "redo-closed-fixed",   "redo-closed-movable",
                             "redo-killed-fixed",   "redo-killed-movable"};

class Old
{
  public:
    Old()
    {
        const std::string name = GENERATE(from_range(std::begin(FILES), std::end(FILES)));
        INFO(name);
        whole = test::read_file(std::string(FORMAT2_FILES) + "/" + name + ".pm");
        movable = name.find("movable") != std::string::npos;
        for (int i = 0; i < STEPS; i++)
            life.change(nullptr);
        file.fill(whole);
    }

    test::Container open(unsigned flags = 0)
    {
        pm_options how = test::options(flags | (movable ? (unsigned)PM_MOVABLE : 0u) | PM_ACCEPT_COPY);
        return test::open(file.path(), how);
    }

    uint32_t version(uint64_t header)
    {
        return at<format_header>(test::read_file(file.path()), header).version;
    }

    void requires_current()
    {
        REQUIRE(version(FORMAT_HEADER_A) == FORMAT_VERSION);
        REQUIRE(version(FORMAT_HEADER_B) == FORMAT_VERSION);
    }

    void requires_life(pm_container *c)
    {
        REQUIRE(life.matches(c));
        REQUIRE_OK(pm_check(c));
    }

    Bytes whole;
    bool movable;
    Life life{1};
    MemoryFile file;
};

} // namespace

TEST_CASE_METHOD(Old, "a container of format version 2 is read as it is")
{
    test::Container c = open(PM_READONLY);
    requires_life(c.get());
    c.reset();
    REQUIRE(test::read_file(file.path()) == whole);
}

TEST_CASE_METHOD(Old, "a writer brings a container of format version 2 to the current one")
{
    upgrades = 0;
    steps.clear();
    test::Container c = open();
    REQUIRE(upgrades == 1);
    // If both were torn, nothing would be left.
    REQUIRE(steps == std::vector<std::string>{"write A", "sync", "write B", "sync"});
    requires_life(c.get());
    requires_current();
    for (int i = 0; i < 100; i++)
        REQUIRE((life.change(c.get()) && pm_commit(c.get()) == 0));
    c.reset();
    c = open();
    requires_life(c.get());
}

TEST_CASE_METHOD(Old, "bringing a container to the current format is interrupted between the headers")
{
    open();
    Bytes after = test::read_file(file.path());
    after.replace(FORMAT_HEADER_B, sizeof(format_header), whole, FORMAT_HEADER_B,
                  sizeof(format_header));
    file.fill(after);
    test::Container reader = open(PM_READONLY);
    REQUIRE(life.matches(reader.get()));
    reader.reset();
    test::Container c = open();
    requires_life(c.get());
    requires_current();
}

TEST_CASE_METHOD(Old, "a header torn on the way to the current format is mended, from either side")
{
    open();
    Bytes after = test::read_file(file.path()), torn = after;
    SECTION("copy A: the old one is believed, and upgraded again")
    {
        torn.replace(FORMAT_HEADER_B, sizeof(format_header), whole, FORMAT_HEADER_B,
                     sizeof(format_header));
        torn.replace(FORMAT_HEADER_A + 64, 136, 136, '\xff');
    }
    SECTION("copy B: the new one is believed")
    {
        torn.replace(FORMAT_HEADER_B + 64, 136, 136, '\xff');
    }
    file.fill(torn);
    test::Container c = open();
    requires_life(c.get());
    requires_current();
}

// PM_MODULES_REFUSE asks for the last check of pm_open().
TEST_CASE_METHOD(Old, "an opening that fails leaves a container at format version 2")
{
    const bool moves = GENERATE(false, true); // to other addresses, which comes before
    if (moves && !movable)
        return;
    MemoryFile other;
    test::Container there;
    if (moves) {
        other.fill(whole);
        there = test::open(other.path(), test::options(PM_MOVABLE | PM_READONLY | PM_ACCEPT_COPY));
    }
    const unsigned flags = movable ? (unsigned)PM_MOVABLE : 0u;
    pm_options how = test::options(flags | (moves ? (unsigned)PM_RELOCATE : 0u) | PM_ACCEPT_COPY);
    how.module_pointers = PM_MODULES_REFUSE;
    upgrades = 0;
    refuses = true;
    const bool fails = !pm_open(file.path(), &how) && errno == EPERM;
    refuses = false;
    REQUIRE(fails);
    REQUIRE(upgrades == 0);
    REQUIRE(version(FORMAT_HEADER_A) == FORMAT_VERSION_OLDEST);
    REQUIRE(version(FORMAT_HEADER_B) == FORMAT_VERSION_OLDEST);
    const Bytes after = test::read_file(file.path());
    REQUIRE(at<format_state>(after, FORMAT_STATE).sums == 0);
    const bool no_guard =
        Bytes(after, FORMAT_GUARD, sizeof(format_guard)) == Bytes(sizeof(format_guard), '\0');
    REQUIRE(no_guard);
    if (moves)
        REQUIRE(at<format_state>(after, FORMAT_STATE).base !=
                at<format_state>(whole, FORMAT_STATE).base);
    const test::Container c(pm_open(file.path(), &how));
    REQUIRE(c);
    REQUIRE(upgrades == 1);
    requires_life(c.get());
    requires_current();
}

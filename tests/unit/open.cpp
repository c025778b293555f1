// What pm_open() and pm_delete() refuse, and that they leave alone what they refuse.
#include "common/format.hpp"
#include "common/process.hpp"

#include "base/marks.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using test::failed_with;

extern "C" {
extern uintptr_t arena_base;
bool arena_take(uint64_t base, uint64_t size, struct container *owner);
void arena_give_back(uint64_t base, uint64_t size);
struct container *arena_find(const void *address);

bool tables_can_be_cleared = true;
int __real_map_clear_table(void *address, size_t size);
int __wrap_map_clear_table(void *address, size_t size)
{
    return tables_can_be_cleared ? __real_map_clear_table(address, size) : -ENOMEM;
}
}

namespace
{

void create(const std::string &path, pm_options options = test::small())
{
    test::Container c = test::open(path, options);
    void *p = pm_malloc(c.get(), 100);
    REQUIRE(p);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
}

// Neither can it be opened in any way, nor is it changed or deleted.
void require_refused(const std::string &path, int error)
{
    std::string before = test::read_file(path);
    for (unsigned flags : {0u, (unsigned)PM_CREATE, (unsigned)PM_READONLY}) {
        pm_options options = test::options(flags);
        INFO(path << ", flags " << flags);
        REQUIRE_FALSE(pm_open(path.c_str(), &options));
        REQUIRE(failed_with(error, {path.c_str()}));
    }
    REQUIRE(pm_delete(path.c_str()) == -1);
    REQUIRE(failed_with(error, {path.c_str()}));
    REQUIRE(test::read_file(path) == before);
    REQUIRE(std::filesystem::exists(path));
}

} // namespace

// An error or a container at the link's end, but an answer.
CHILD_PROCESS(creates_through_a_dangling_link)
{
    alarm(3);
    pm_options options = test::small();
    pm_close(pm_open(arguments[0].c_str(), &options));
}

TEST_CASE("the longest path, and a longer one")
{
    test::Directory directory;
    pm_options creating = test::small();
    const std::string name = "c.pm", temporary = ".new-0123456789abcdef";
    for (size_t more : {0, 1}) {
        INFO(more << " bytes too long");
        std::string path = directory.path();
        path +=
            std::string(PATH_MAX - 1 - temporary.size() - path.size() - name.size() + more, '/');
        path += name;
        test::Container c(pm_open(path.c_str(), &creating));
        if (more == 0) {
            REQUIRE(c);
            c.reset();
            REQUIRE_OK(pm_delete(path.c_str()));
        } else {
            REQUIRE_FALSE(c);
            REQUIRE(failed_with(ENAMETOOLONG, {strerror(ENAMETOOLONG)})); // not cut off
        }
        REQUIRE(std::filesystem::is_empty(directory.path()));
    }
}

// The buffer has 1024 bytes: 1023 of text, and the zero byte.
TEST_CASE("a message is cut to 1023 bytes, and still ends with the reason")
{
    std::string path = "/dev/shm";
    while (path.size() < 2000)
        path += "/.";
    path += "/none/c.pm";
    REQUIRE_FALSE(pm_open(path.c_str(), nullptr));
    const int error = errno;
    const std::string message = pm_errormsg();
    REQUIRE(error == ENOENT);
    REQUIRE(message.size() <= 1023);
    REQUIRE_THAT(message, Catch::EndsWith(strerror(ENOENT)));
}

TEST_CASE("there is no such directory, or no such file")
{
    test::Directory directory;
    pm_options creating = test::small();
    std::string nowhere = directory / "none/c.pm", missing = directory / "c.pm";
    REQUIRE_FALSE(pm_open(nowhere.c_str(), &creating));
    REQUIRE(failed_with(ENOENT, {nowhere.c_str()}));
    REQUIRE_FALSE(pm_open(missing.c_str(), nullptr));
    REQUIRE(failed_with(ENOENT, {missing.c_str()}));
    REQUIRE(pm_delete(missing.c_str()) == -1);
    REQUIRE(failed_with(ENOENT, {missing.c_str()}));
    REQUIRE_FALSE(pm_open(nullptr, &creating));
    REQUIRE(failed_with(EINVAL));
    REQUIRE(pm_delete(nullptr) == -1);
    REQUIRE(failed_with(EINVAL));
    REQUIRE(std::filesystem::is_empty(directory.path()));
    REQUIRE(pm_close(nullptr) == 0);
}

TEST_CASE("a file that is no container is refused and kept")
{
    test::Directory directory;
    std::string random(1 << 20, 0);
    for (char &c : random)
        c = (char)rand();
    test::write_file(directory / "empty", "");
    test::write_file(directory / "text", "Dear reader,\r\nthis is no container.\n");
    test::write_file(directory / "short", std::string(FORMAT_MAGIC).substr(0, 7));
    test::write_file(directory / "magic", FORMAT_MAGIC);
    test::write_file(directory / "zeros", std::string(1 << 20, 0));
    test::write_file(directory / "random", random);
    for (const char *name : {"empty", "text", "short", "zeros", "random"})
        require_refused(directory / name, EBADMSG);
    // The magic alone, then nothing: a container of version 0, which there never was.
    require_refused(directory / "magic", ENOTSUP);
}

TEST_CASE("what is not even a regular file is refused")
{
    test::Directory directory;
    std::string fifo = directory / "fifo", folder = directory / "folder";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    REQUIRE(mkdir(folder.c_str(), 0700) == 0);
    for (const std::string &path : {fifo, std::string("/dev/null")})
        for (unsigned flags : {0u, (unsigned)PM_CREATE}) {
            pm_options options = test::options(flags);
            INFO(path);
            REQUIRE_FALSE(pm_open(path.c_str(), &options));
            REQUIRE(failed_with(EBADMSG, {path.c_str()}));
        }
    REQUIRE_FALSE(pm_open(folder.c_str(), nullptr));
    REQUIRE((errno == EISDIR || errno == EBADMSG)); // open(2) knows it first
    REQUIRE(pm_delete(folder.c_str()) == -1);
    REQUIRE(std::filesystem::is_directory(folder));
}

TEST_CASE("pm_delete deletes the container to which a symbolic link leads, not the link")
{
    test::Directory directory;
    const std::string path = directory / "c", link = directory / "link";
    create(path);
    REQUIRE(symlink("c", link.c_str()) == 0);
    REQUIRE_OK(pm_delete(link.c_str()));
    REQUIRE(access(path.c_str(), F_OK) != 0);
    struct stat status;
    REQUIRE(lstat(link.c_str(), &status) == 0);
}

TEST_CASE("pm_delete keeps what is not a regular file")
{
    test::Directory directory;
    std::string fifo = directory / "fifo";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    REQUIRE(pm_delete(fifo.c_str()) == -1);
    CHECK(failed_with(EBADMSG, {fifo.c_str()}));
    REQUIRE(std::filesystem::exists(fifo));
}

TEST_CASE("a container of another version")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    create(path);
    const uint32_t version = 77;
    const uint64_t field = offsetof(format_header, version);

    // In one copy it is damage, and mended.
    test::patch_file(path, FORMAT_HEADER_A + field, &version, sizeof version);
    test::open(path, test::options());
    REQUIRE(test::read_word(path, FORMAT_HEADER_A + field) == test::read_word(path, FORMAT_HEADER_B + field));

    test::patch_file(path, FORMAT_HEADER_A + field, &version, sizeof version);
    test::patch_file(path, FORMAT_HEADER_B + field, &version, sizeof version);
    require_refused(path, ENOTSUP);
    REQUIRE_FALSE(pm_open(path.c_str(), nullptr));
    REQUIRE(failed_with(ENOTSUP, {"77", "version"}));
}

TEST_CASE("a container for another page size")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    create(path);
    format_header header;
    std::string bytes = test::read_file(path);
    memcpy(&header, bytes.data(), sizeof header);
    header.page_size = 16384;
    header.checksum = checksum(&header, offsetof(format_header, checksum), header.version);
    test::patch_file(path, FORMAT_HEADER_A, &header, sizeof header);
    test::patch_file(path, FORMAT_HEADER_B, &header, sizeof header);
    require_refused(path, ENOTSUP);
    REQUIRE_FALSE(pm_open(path.c_str(), nullptr));
    REQUIRE(failed_with(ENOTSUP, {"16384"}));
}

TEST_CASE("truncated", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm", copy = directory / "copy.pm";
    uint64_t used = 0; // bytes up to the end of the last segment in use
    {
        test::Container c = test::open(path, test::small());
        for (int i = 0; i < 40; i++)
            REQUIRE(pm_malloc(c.get(), 64 << 10));
        void *p = pm_malloc(c.get(), 64 << 10);
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        REQUIRE_OK(pm_commit(c.get()));
        REQUIRE(pm_malloc(c.get(), 10 * (64 << 10))); // grows the file, and is rolled back
    }
    const uint64_t size = std::filesystem::file_size(path), segment = 64 << 10;
    for (uint64_t i = 0; i < size / segment; i++)
        if (test::read_word(path, FORMAT_TABLE + 8 * i) != 0)
            used = (i + 1) * segment;
    REQUIRE(used < size);

    std::string whole = test::read_file(path);
    std::vector<uint64_t> lengths = {0,     1,           7,       8,           100,
                                     207,   208,         4095,    4096,        4303,
                                     12288, segment - 1, segment, 2 * segment, 3 * segment - 1};
    for (uint64_t at = 3 * segment; at <= size; at += segment)
        for (uint64_t length : {at - 4096, at - 1, at, at + 1, at + 4096})
            if (length <= size)
                lengths.push_back(length);
    for (uint64_t length : lengths) {
        INFO("cut to " << length << " of " << used << " bytes in use, " << size << " in all");
        test::write_file(copy, whole.substr(0, length));
        for (unsigned flags : {(unsigned)PM_READONLY, 0u}) {
            pm_options options = test::options(flags);
            test::Container c(pm_open(copy.c_str(), &options));
            if (length < used) {
                REQUIRE_FALSE(c);
                // Of the first 8 bytes one may think that a version number follows.
                bool magic_only = length >= 8 && length < 12;
                REQUIRE(failed_with(magic_only ? ENOTSUP : EBADMSG, {copy.c_str()}));
                continue;
            }
            REQUIRE(c);
            REQUIRE_OK(pm_check(c.get()));
            if (flags)
                continue;
            // It grows again over whatever remained of the last segment.
            for (int i = 0; i < 10; i++)
                REQUIRE(pm_malloc(c.get(), segment));
            REQUIRE_OK(pm_commit(c.get()));
            REQUIRE_OK(pm_check(c.get()));
        }
    }
}

// While this lives, a container that no address is in has all of the arena.
class FullArena
{
  public:
    FullArena()
    {
        alignas(64) static char nobody[4096];
        REQUIRE(arena_take(arena_base, ARENA_SIZE, reinterpret_cast<container *>(nobody)));
    }
    ~FullArena() { arena_give_back(arena_base, ARENA_SIZE); }
};

TEST_CASE("the holes of a sparse copy are filled, for a store into one may meet a full disk", "[home]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open(path, test::small());
    struct stat st;
    auto missing = [&] { // bytes
        REQUIRE(stat(path.c_str(), &st) == 0);
        return st.st_size - st.st_blocks * 512;
    };
    int fd = open(path.c_str(), O_RDWR);
    REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 128 << 10, 32 << 10) == 0);
    close(fd);
    REQUIRE(missing() == 32 << 10);
    pm_options options = test::options(PM_READONLY);
    REQUIRE(test::Container(pm_open(path.c_str(), &options)));
    REQUIRE(missing() > 0); // tmpfs may fill what has been read
    test::Container c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(missing() <= 0);
}

TEST_CASE("a file that is nearly all holes does not fill the disk when it is opened")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    const bool by_default = GENERATE(true, false);
    if (by_default)
        options.max_size = UINT64_C(8) << 30;
    create(path, options);
    const uint64_t size = by_default ? UINT64_C(4) << 30 : 32 << 20;
    struct stat before, st;
    REQUIRE(truncate(path.c_str(), (off_t)size) == 0);
    REQUIRE(stat(path.c_str(), &before) == 0);
    const uint64_t holes = size - (uint64_t)before.st_blocks * 512;
    options = test::options();
    if (!by_default)
        options.holes_max = holes - 1;
    REQUIRE(pm_open(path.c_str(), &options) == nullptr);
    REQUIRE(failed_with(EFBIG, {path.c_str(), std::to_string(holes).c_str(), "holes_max",
                                "cp --sparse=never", "PM_READONLY"}));
    REQUIRE(stat(path.c_str(), &st) == 0);
    REQUIRE(st.st_blocks == before.st_blocks);
    options.flags |= PM_READONLY;
    REQUIRE(test::Container(pm_open(path.c_str(), &options)));
    if (by_default)
        return; // it would take 4 GiB
    options.flags &= ~PM_READONLY;
    options.holes_max = GENERATE_COPY(holes, UINT64_MAX);
    test::Container c = test::open(path, options);
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("what lies behind max_size makes up for no hole")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    options.max_size = 4 << 20;
    create(path, options);
    REQUIRE(truncate(path.c_str(), 8 << 20) == 0);
    int fd = open(path.c_str(), O_RDWR);
    REQUIRE(fallocate(fd, 0, 4 << 20, 4 << 20) == 0);
    close(fd);
    options = test::options();
    options.holes_max = 4096;
    REQUIRE(pm_open(path.c_str(), &options) == nullptr);
    REQUIRE(failed_with(EFBIG, {path.c_str(), "holes_max"}));
    options.holes_max = 0; // the default
    REQUIRE_OK(pm_check(test::open(path, options).get()));
    struct stat st;
    REQUIRE(stat(path.c_str(), &st) == 0);
    REQUIRE(st.st_blocks * 512 >= (8 << 20)); // all are filled
}

TEST_CASE("the holes of a log are filled behind max_size too", "[log]")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    options.max_size = 4 << 20;
    create(path, options);
    REQUIRE(truncate(path.c_str(), 8 << 20) == 0); // chunks that are void
    test::Container c = test::open(path, test::options());
    REQUIRE_OK(pm_check(c.get()));
    struct stat st;
    REQUIRE(stat(path.c_str(), &st) == 0);
    REQUIRE(st.st_blocks * 512 >= (8 << 20));
}

TEST_CASE("a file that cannot be opened keeps its holes")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    create(path, test::small());
    REQUIRE(truncate(path.c_str(), 32 << 20) == 0);
    struct stat before, st;
    REQUIRE(stat(path.c_str(), &before) == 0);
    {
        const FullArena full;
        REQUIRE(pm_open(path.c_str(), nullptr) == nullptr);
        REQUIRE(failed_with(EADDRINUSE, {path.c_str()}));
    }
    REQUIRE(stat(path.c_str(), &st) == 0);
    REQUIRE(st.st_size == before.st_size);
    REQUIRE(st.st_blocks <= before.st_blocks + 64); // tmpfs may keep what has been read
    REQUIRE_OK(pm_check(test::open(path, test::options()).get()));
}

TEST_CASE("a file that others may write to is refused on request")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    const mode_t umask_before = umask(0);
    pm_options options = test::small();
    options.check_owner = true;
    REQUIRE(pm_open(path.c_str(), &options) == nullptr); // which it would have created so
    REQUIRE(failed_with(EPERM, {path.c_str(), "0666", "options.mode"}));
    REQUIRE(!std::filesystem::exists(path));
    options.mode = 0640;
    test::open(path, options);
    umask(umask_before);

    options = test::options(GENERATE(0u, (unsigned)PM_READONLY));
    options.check_owner = true;
    // Which pm_open() would mend otherwise.
    const std::string damaged = "damaged";
    test::patch_file(path, FORMAT_HEADER_B, damaged.data(), damaged.size());
    const std::string before = test::read_file(path);
    for (mode_t mode : {0660, 0602, 0666, 0620}) {
        REQUIRE(chmod(path.c_str(), mode) == 0);
        REQUIRE(pm_open(path.c_str(), &options) == nullptr);
        REQUIRE(failed_with(EPERM, {path.c_str(),
                                    ("mode 0" + std::to_string(mode / 64) +
                                     std::to_string(mode / 8 % 8) + std::to_string(mode % 8))
                                        .c_str(),
                                    "others than its owner", "chmod go-w"}));
        REQUIRE(test::read_file(path) == before);
    }
    for (mode_t mode : {0600, 0644, 0755}) {
        REQUIRE(chmod(path.c_str(), mode) == 0);
        test::open(path, options);
    }
    REQUIRE(chmod(path.c_str(), 0666) == 0);
    options.check_owner = false;
    test::open(path, options);
}

TEST_CASE("a file that is another user's is refused on request")
{
    test::Directory directory;
    std::string path = directory / "c.pm", owner = "user 12345,";
    create(path);
    if (geteuid() == 0) {
        REQUIRE(chown(path.c_str(), 12345, 0) == 0);
    } else { // of which anybody can read some; what is in it comes second
        path = "/etc/passwd";
        owner = "user 0,";
    }
    pm_options options = test::options(PM_READONLY);
    options.check_owner = true;
    REQUIRE(pm_open(path.c_str(), &options) == nullptr);
    REQUIRE(failed_with(EPERM, {path.c_str(), owner.c_str(),
                                ("as user " + std::to_string(geteuid())).c_str(), "chown it"}));
}

TEST_CASE("text out of a file commands no terminal")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    pm_options options = test::small();
    options.layout = "a\033]0;b\177c";
    create(path, options);
    options.layout = "mine";
    REQUIRE(pm_open(path.c_str(), &options) == nullptr);
    REQUIRE(failed_with(EMEDIUMTYPE, {"\"a?]0;b?c\""}));
}

TEST_CASE("options out of range")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    std::string long_layout(PM_LAYOUT_MAX + 1, 'x');
    struct Case {
        const char *what;
        std::function<void(pm_options &)> spoil;
    };
    const Case cases[] = {
        {"size 0", [](pm_options &o) { o.size = 0; }},
        {"size one less", [](pm_options &o) { o.size--; }},
        {"size one more", [](pm_options &o) { o.size++; }},
        {"unknown flag", [](pm_options &o) { o.flags |= 1u << 5; }},
        {"highest flag", [](pm_options &o) { o.flags |= 1u << 31; }},
        {"read-only creation", [](pm_options &o) { o.flags |= PM_READONLY; }},
        {"exclusive without creation", [](pm_options &o) { o.flags = PM_EXCLUSIVE; }},
        {"unknown engine", [](pm_options &o) { o.engine = (pm_engine)99; }},
        {"unknown tracker", [](pm_options &o) { o.tracker = (pm_tracker)99; }},
        {"unknown fate of pointers to freed memory",
         [](pm_options &o) { o.freed_pointers = (pm_freed_pointers)(PM_FREED_ERROR + 1); }},
        {"unknown fate of pointers into modules",
         [](pm_options &o) { o.module_pointers = (pm_module_pointers)(PM_MODULES_REFUSE + 1); }},
        {"unknown fate of foreign pointers",
         [](pm_options &o) { o.foreign_pointers = (pm_foreign_pointers)(PM_FOREIGN_IGNORE + 1); }},
        {"marks under undo",
         [](pm_options &o) { o.tracker = PM_TRACKER_STORES, o.engine = PM_ENGINE_UNDO; }},
        {"marks and concurrent stores",
         [](pm_options &o) {
             o.tracker = PM_TRACKER_STORES, o.engine = PM_ENGINE_REDO, o.concurrent_stores = true;
         }},
        {"announced to page faults",
         [](pm_options &o) { o.tracker = PM_TRACKER_FAULTS, o.flags |= PM_ANNOUNCED; }},
        {"layout too long", [&](pm_options &o) { o.layout = long_layout.c_str(); }},
        {"segment not a power", [](pm_options &o) { o.segment_size = 96 << 10; }},
        {"segment too small", [](pm_options &o) { o.segment_size = 32 << 10; }},
        {"segment too large", [](pm_options &o) { o.segment_size = UINT64_C(2) << 30; }},
        {"segment of 1", [](pm_options &o) { o.segment_size = 1; }},
        {"granularity not a power", [](pm_options &o) { o.granularity = 24; }},
        {"granularity too small", [](pm_options &o) { o.granularity = 8; }},
        {"granularity too large", [](pm_options &o) { o.granularity = 8192; }},
        {"max_size of 1", [](pm_options &o) { o.max_size = 1; }},
        {"no room for data", [](pm_options &o) { o.max_size = 3 * o.segment_size; }},
        {"max_size too large", [](pm_options &o) { o.max_size = (UINT64_C(4) << 40) + 1; }},
        {"max_size at its limit", [](pm_options &o) { o.max_size = UINT64_MAX; }},
        {"initial_size too large", [](pm_options &o) { o.initial_size = o.max_size + 1; }},
        {"live_percent too small", [](pm_options &o) { o.live_percent = 9; }},
        {"live_percent too large", [](pm_options &o) { o.live_percent = 91; }},
        {"initial_size at its limit", [](pm_options &o) { o.initial_size = UINT64_MAX; }},
    };
    for (const Case &c : cases) {
        INFO(c.what);
        pm_options options = test::small();
        c.spoil(options);
        REQUIRE_FALSE(pm_open(path.c_str(), &options));
        REQUIRE(failed_with(EINVAL, {path.c_str()}));
        REQUIRE(std::filesystem::is_empty(directory.path()));
    }
    pm_options least = test::small(); // one segment of data
    least.max_size = 4 * least.segment_size;
    test::Container c = test::open(path, least);
    REQUIRE(pm_malloc(c.get(), 1000));
    REQUIRE_OK(pm_commit(c.get()));
    // The log engine's container has its log beside them.
    REQUIRE((pm_malloc(c.get(), 64 << 10) != nullptr) == (test::engine() == "log"));
    if (test::engine() != "log")
        REQUIRE(failed_with(ENOSPC));
}

TEST_CASE("a new file has its initial size, and objects fill it before it grows", "[home]")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    pm_options how = test::small();
    const uint64_t segment = how.segment_size;
    const auto size_of = [&](uint64_t initial_size) {
        std::filesystem::remove(path);
        how.initial_size = initial_size;
        test::open(path, how);
        return std::filesystem::file_size(path);
    };
    const uint64_t least = size_of(0);
    for (uint64_t initial : {UINT64_C(1), least - 1, least})
        REQUIRE(size_of(initial) == least);
    REQUIRE(size_of(least + 1) == least + segment);
    REQUIRE(size_of(how.max_size - segment + 1) == how.max_size);
    REQUIRE(size_of(how.max_size) == how.max_size);

    REQUIRE(size_of(least + 8 * segment) == least + 8 * segment);
    how.initial_size = 0; // it counts at creation only
    test::Container c = test::open(path, how);
    const uint64_t free = test::stats(c.get()).segments_free;
    REQUIRE(free == 8);
    for (uint64_t i = 0; i < free; i++) {
        REQUIRE(test::stats(c.get()).file_bytes == least + 8 * segment);
        REQUIRE(pm_malloc(c.get(), segment));
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(pm_malloc(c.get(), segment));
    REQUIRE(test::stats(c.get()).file_bytes > least + 8 * segment);
}

TEST_CASE("PM_DISCOVER needs a program that can be looked at")
{
    test::Directory directory;
    const pm_options o = test::small(PM_CREATE | PM_DISCOVER);
    REQUIRE_FALSE(pm_open((directory / "c.pm").c_str(), &o));
    REQUIRE(test::failed_with(ENOTSUP, {"c.pm", "pmcc --discover"}));
    REQUIRE_FALSE(std::filesystem::exists(directory / "c.pm"));
}

TEST_CASE("the limits of the options work")
{
    test::Directory directory;
    pm_options options = test::options(PM_CREATE);
    options.engine = PM_ENGINE_UNDO;
    options.tracker = PM_TRACKER_FAULTS;
    SECTION("the largest container")
    {
        options.max_size = UINT64_C(4) << 40;
        options.segment_size = UINT64_C(16) << 20;
    }
    SECTION("large segments") // the largest would take 3 GiB of memory
    {
        options.segment_size = UINT64_C(64) << 20;
    }
    SECTION("the smallest segments")
    {
        options.segment_size = 64 << 10;
    }
    SECTION("the largest granularity")
    {
        options.granularity = 4096;
    }
    SECTION("the smallest segments and the largest granularity")
    {
        options.segment_size = 64 << 10;
        options.granularity = 4096;
    }
    test::Container c = test::open(directory / "c.pm", options);
    for (size_t size : {1, 4096, 5000, 40000, 100000}) {
        char *p = static_cast<char *>(pm_malloc(c.get(), size));
        REQUIRE(p);
        p[0] = p[size - 1] = 1;
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE("the layout string")
{
    test::Directory directory;
    std::string path = directory / "c.pm", longest(PM_LAYOUT_MAX, 'y');
    auto opens = [&](const char *layout) {
        pm_options options = test::options();
        options.layout = layout;
        test::Container c(pm_open(path.c_str(), &options));
        return c != nullptr;
    };
    pm_options options = test::small();
    SECTION("as given")
    {
        options.layout = "list/1";
        create(path, options);
        REQUIRE(opens("list/1"));
        REQUIRE(opens(nullptr));
        for (const char *other : {"list/2", "list/", "list/10", ""}) {
            REQUIRE_FALSE(opens(other));
            REQUIRE(failed_with(EMEDIUMTYPE, {"list/1", path.c_str()}));
        }
    }
    SECTION("of the greatest length")
    {
        options.layout = longest.c_str();
        create(path, options);
        REQUIRE(opens(longest.c_str()));
        REQUIRE_FALSE(opens(longest.substr(1).c_str()));
    }
    SECTION("none")
    {
        create(path, options);
        REQUIRE(opens(nullptr));
        REQUIRE(opens(""));
        REQUIRE_FALSE(opens("list/1"));
        REQUIRE(failed_with(EMEDIUMTYPE));
    }
    REQUIRE(opens(nullptr)); // a refusal holds no lock and no address
}

TEST_CASE("creating, exclusively or not, with a mode")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    auto mode_of = [&] {
        struct stat st;
        REQUIRE(stat(path.c_str(), &st) == 0);
        return st.st_mode & 07777;
    };
    mode_t mask = umask(027);
    pm_options options = test::small(PM_CREATE | PM_EXCLUSIVE);
    test::open(path, options);
    REQUIRE(mode_of() == 0640);
    REQUIRE_FALSE(pm_open(path.c_str(), &options));
    REQUIRE(failed_with(EEXIST, {path.c_str()}));
    options.flags = PM_CREATE;
    test::open(path, options);
    REQUIRE_OK(pm_delete(path.c_str()));
    options.mode = 0606;
    test::open(path, options);
    REQUIRE(mode_of() == 0600);
    umask(mask);
}

TEST_CASE("a symbolic link that leads nowhere")
{
    test::Directory directory;
    std::string link = directory / "link";
    std::filesystem::create_symlink(directory / "nowhere", link);
    REQUIRE_CLEAN(test::run("creates_through_a_dangling_link", {link}));
    REQUIRE(std::filesystem::is_symlink(link));
}

TEST_CASE("what is recorded at creation stays")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    create(path);
    pm_options other = test::options(PM_CREATE);
    other.granularity = 4096;
    other.segment_size = 1 << 20;
    other.max_size = 1 << 30;
    test::Container c = test::open(path, other);
    REQUIRE(pm_usable_size(pm_malloc(c.get(), 1)) == 16);
    REQUIRE_FALSE(pm_malloc(c.get(), 65 << 20));
}

TEST_CASE("pm_version agrees with its header")
{
    std::string version = std::to_string(PM_VERSION_MAJOR) + "." +
                          std::to_string(PM_VERSION_MINOR) + "." + std::to_string(PM_VERSION_PATCH);
    REQUIRE(pm_version() == version);
}

TEST_CASE("nothing is created when the arena has no room, nor opened where another is")
{
    test::Directory directory;
    std::string path = directory / "old.pm", other = directory / "new.pm";
    std::string movable = directory / "movable.pm"; // of two slots
    create(path);
    pm_options how = test::small(PM_CREATE | PM_MOVABLE);
    how.max_size = UINT64_C(2) << 30;
    create(movable, how);
    pm_options options = test::small();
    std::optional<FullArena> full(std::in_place);
    for (uint64_t size : {UINT64_C(64) << 20, UINT64_C(2) << 30}) { // a slot of the arena, and two
        options.max_size = size;
        CHECK_FALSE(pm_open(other.c_str(), &options));
        CHECK(failed_with(ENOMEM, {other.c_str(), "the arena has no free"}));
    }
    CHECK_FALSE(std::filesystem::exists(other));
    CHECK_FALSE(pm_open(path.c_str(), nullptr));
    CHECK(failed_with(EADDRINUSE, {path.c_str()}));
    CHECK_FALSE(pm_open(movable.c_str(), &how));
    CHECK(failed_with(ENOMEM, {movable.c_str(), "the arena has no free"}));
    full.reset();
    REQUIRE(test::open(path, test::options()));
    REQUIRE(test::open(other, options));
}

TEST_CASE("addresses whose marks cannot be cleared are used by no later container, and belong to "
          "no closed one")
{
    test::Directory directory;
    test::Container c = test::open(directory / "c.pm", test::small(PM_CREATE | PM_MOVABLE));
    void *const p = pm_malloc(c.get(), 100);
    const container *const closed = arena_find(p);
    tables_can_be_cleared = false;
    c.reset();
    tables_can_be_cleared = true;
    CHECK(arena_find(p) != closed);
    c = test::open(directory / "c.pm", test::options());
    void *const q = pm_malloc(c.get(), 100);
    REQUIRE(q);
    CHECK((uintptr_t)q >> 30 != (uintptr_t)p >> 30);
    arena_give_back((uintptr_t)p >> 30 << 30, UINT64_C(1) << 30);
}

// arguments: path, limit
CHILD_PROCESS(opens_under_a_limit_of_memory)
{
    const bool is_of_data = arguments[1] == "data";
    rlim_t field[6] = {}; // pages that are in use: sanitizers have terabytes
    std::ifstream status("/proc/self/statm");
    for (rlim_t &f : field)
        status >> f;
    rlim_t most = field[is_of_data ? 5 : 0] * 4096 + (1 << 30);
    rlimit limit = {most, most};
    CHILD_REQUIRE(setrlimit(is_of_data ? RLIMIT_DATA : RLIMIT_AS, &limit) == 0);
    pm_options how = test::small();
    CHILD_REQUIRE(!pm_open(arguments[0].c_str(), &how));
    CHILD_REQUIRE(test::failed_with(
        ENOMEM, {arguments[0].c_str(), "ulimit -v unlimited", "ulimit -d unlimited"}));
    CHILD_REQUIRE(!test::failed_with(ENOMEM, {"max_size"})); // which has no part in it
}

TEST_CASE("the limits of address space and data are named where the arena does not fit")
{
    test::Directory directory;
    for (const char *limit : {"address space", "data"})
        REQUIRE_CLEAN(test::run("opens_under_a_limit_of_memory", {directory / "c.pm", limit}));
}

CHILD_PROCESS(prints_without_stderr)
{
    close(STDERR_FILENO);                     // its number is the next to be given out
    for (int times = 0; times < 2; times++) { // created, then opened
        pm_container *c = pm_open(arguments[0].c_str(), nullptr);
        if (!c) {
            pm_options how = test::small();
            c = pm_open(arguments[0].c_str(), &how);
        }
        bool printed = write(STDERR_FILENO, "a message", 9) == 9;
        if (!c || printed || pm_close(c) != 0)
            _exit(1);
    }
    _exit(0);
}

TEST_CASE("a container never is standard error")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("prints_without_stderr", {path}));
    REQUIRE_OK(pm_check(test::open(path, test::options()).get()));
}

static uint32_t lower_half_of_base(const test::Container &c)
{
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(test::stats(c.get()).base));
}

TEST_CASE(
    "no small number behind half an address leads into a new container or a copy opened elsewhere")
{
    test::Directory directory;
    for (int i = 0; i < 100; i++) {
        test::Container c =
            test::open(directory / std::to_string(i), test::small(PM_CREATE | PM_MOVABLE));
        REQUIRE(lower_half_of_base(c) == 1 << 30);
    }
    std::filesystem::copy_file(directory / "0", directory / "copy");
    test::Container original = test::open(directory / "0", test::options());
    test::Container copy = test::open(directory / "copy", test::options(PM_MOVABLE));
    REQUIRE(test::stats(copy.get()).base != test::stats(original.get()).base);
    REQUIRE(lower_half_of_base(copy) == 1 << 30);
}

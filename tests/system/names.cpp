// A container that is deleted, renamed or replaced while it is open: there is one warning, or there are
// errors, by option. All else goes without a word.
#include "common/process.hpp"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

static uint64_t looks;
static std::function<void()> before_fstat; // called once
static std::function<void()> before_failing; // once, and then pm_open() fails

struct container;

extern "C" {

int __real_stat(const char *path, struct stat *st);
int __real_fstat(int fd, struct stat *st);

int __real_container_map_rest(struct container *c);
int __wrap_container_map_rest(struct container *c);
int __wrap_container_map_rest(struct container *c)
{
    if (std::function<void()> act = std::exchange(before_failing, nullptr)) {
        act();
        errno = ENOMEM;
        return -1;
    }
    return __real_container_map_rest(c);
}

int __wrap_stat(const char *path, struct stat *st)
{
    looks++;
    return __real_stat(path, st);
}

int __wrap_fstat(int fd, struct stat *st)
{
    looks++;
    if (std::function<void()> act = std::exchange(before_fstat, nullptr))
        act();
    return __real_fstat(fd, st);
}
}

namespace
{

using Clock = std::chrono::steady_clock;

// What a child does to its container at upper/lower/c.pm.
struct Act {
    const char *name;
    void (*run)();
};

void make(const char *path)
{
    int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
    CHILD_REQUIRE(fd >= 0 && close(fd) == 0);
}

const Act acts[] = {
    {"deleted", [] { fs::remove("upper/lower/c.pm"); }},
    {"renamed", [] { fs::rename("upper/lower/c.pm", "other.pm"); }},
    {"directory", [] { fs::rename("upper", "other"); }},
    {"replaced",
     [] {
         make("new.pm");
         fs::rename("new.pm", "upper/lower/c.pm");
     }},
    {"directory-replaced",
     [] {
         fs::rename("upper", "other");
         fs::create_directories("upper/lower");
         make("upper/lower/c.pm");
     }},
    {"one-of-two-names",
     [] {
         fs::create_hard_link("upper/lower/c.pm", "other.pm");
         fs::remove("upper/lower/c.pm");
     }},
    {"nothing", [] {}},
    {"link-changed",
     [] {
         fs::remove("link");
         fs::create_symlink("nowhere", "link");
     }},
    {"left-directory", [] { fs::current_path("/"); }},
    {"changed-root", [] { CHILD_REQUIRE(chroot("upper/lower") == 0 && chdir("/") == 0); }},
};

// Commits, of which at least the first looks where the file is.
int commit_grown(pm_container *c)
{
    CHILD_REQUIRE(pm_malloc(c, 3 << 20));
    return pm_commit(c);
}

} // namespace

// arguments: directory, path in it, act, flags. Says how each call ends.
CHILD_PROCESS(goes_on_after)
{
    fs::current_path(arguments[0]);
    fs::create_directories("upper/lower");
    fs::create_symlink("upper/lower/c.pm", "link");
    pm_options how = test::small(PM_CREATE | (unsigned)std::stoul(arguments[3]));
    pm_container *c = pm_open("upper/lower/c.pm", &how);
    CHILD_REQUIRE(c && pm_close(c) == 0);
    c = pm_open(arguments[1].c_str(), &how);
    CHILD_REQUIRE(c && commit_grown(c) == 0);
    for (const Act &act : acts)
        if (arguments[2] == act.name)
            act.run();
    for (int i = 0; i < 3; i++)
        test::say(commit_grown(c) == 0 ? "committed" : pm_errormsg());
    if (arguments[2] == "renamed") {
        fs::rename("other.pm", "upper/lower/c.pm");
        test::say(pm_commit(c) == 0 ? "committed" : pm_errormsg());
        fs::rename("upper/lower/c.pm", "other.pm");
    }
    test::say(pm_close(c) == 0 ? "closed" : pm_errormsg());
}

namespace
{

// What it says, a line a call.
test::Ended go_on(const std::string &act, unsigned flags, const std::string &path = "link")
{
    test::Directory directory;
    test::Ended ended =
        test::run("goes_on_after", {directory.path(), path, act, std::to_string(flags)});
    INFO(act << ": " << ended.errors);
    REQUIRE(test::exited(ended.status));
    return ended;
}

std::string lines(std::initializer_list<const char *> all)
{
    std::string text;
    for (const char *line : all)
        text += line + std::string("\n");
    return text;
}

const std::string all_well = lines({"committed", "committed", "committed", "closed"});

uint64_t occurrences(const std::string &text, const std::string &word)
{
    uint64_t count = 0;
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at++)
        count++;
    return count;
}

struct Case {
    const char *act, *words;
};

} // namespace

TEST_CASE("what takes the container from its path is told, once")
{
    auto [act, words] = GENERATE(values<Case>({{"deleted", "has been deleted while open"},
                                               {"renamed", "has been renamed while open"},
                                               {"directory", "has been renamed while open"},
                                               {"replaced", "has been replaced while open"},
                                               {"directory-replaced", "replaced while open"},
                                               {"one-of-two-names", "renamed while open"}}));
    CAPTURE(act);
    test::Ended warned = go_on(act, 0);
    REQUIRE(warned.output.find("committed\ncommitted\ncommitted\n") == 0);
    REQUIRE(warned.output.find("closed\n") != std::string::npos);
    REQUIRE(warned.errors.find("libpm: /dev/shm/libpm-test-") == 0);
    REQUIRE(warned.errors.find("/upper/lower/c.pm: ") != std::string::npos);
    REQUIRE(occurrences(warned.errors, "while open") == 1);
    REQUIRE(warned.errors.find(words) != std::string::npos);
    REQUIRE(warned.errors.find("pm_copy()") != std::string::npos);

    test::Ended failed = go_on(act, PM_PATH_ERROR);
    REQUIRE(failed.errors == "");
    REQUIRE(occurrences(failed.output, words) == 4); // three commits, and to close
    REQUIRE(occurrences(failed.output, "closed\n") == 0);
    // When the file is put back all is well.
    REQUIRE(occurrences(failed.output, "committed\n") == (act == std::string("renamed")));
}

// arguments: path. As daemons do that know of no libpm.
CHILD_PROCESS(closes_all_descriptors)
{
    pm_options how = test::small(PM_CREATE | PM_PATH_ERROR);
    how.segment_size = 1 << 20; // so that its log need not grow within a second
    test::Container c = test::open_with_pages(arguments[0], 4, how);
    for (int fd = 3; fd < 100; fd++)
        close(fd);
    int result = 0;
    for (int i = 0; i < 60000 && result == 0; i++) {
        test::page_word(c.get(), 0) = (uint64_t)i;
        result = pm_commit(c.get());
        usleep(1000);
    }
    CHILD_REQUIRE(result == -1 && test::failed_with(ESTALE, {"lost its lock", "descriptor"}));
    _exit(0);
}

TEST_CASE("a program that closes libpm's descriptor, and with it the lock, is told")
{
    test::Directory directory;
    REQUIRE_CLEAN(test::run("closes_all_descriptors", {directory / "c.pm"}));
}

TEST_CASE("what leaves it there is not")
{
    for (unsigned flags : {0u, (unsigned)PM_PATH_ERROR})
        for (const char *act : {"nothing", "link-changed", "left-directory", "changed-root"})
            for (const char *path : {"link", "upper/lower/c.pm", "upper/../upper/lower/c.pm"}) {
                CAPTURE(act, path, flags);
                test::Ended ended = go_on(act, flags, path);
                REQUIRE(ended.output == all_well);
                REQUIRE(ended.errors == "");
            }
}

TEST_CASE("a file that is replaced after pm_open has found it, and before it is locked, is not opened")
{
    test::Directory directory;
    std::string path = directory / "c.pm", other = directory / "other.pm";
    for (const std::string &name : {path, other}) {
        test::Container c = test::open_with_pages(name, 1, test::small());
        test::page_word(c.get(), 0) = name == other;
        REQUIRE_OK(pm_commit(c.get()));
    }
    before_fstat = [&] { fs::rename(other, path); };
    test::Container c = test::open(path, test::options(PM_PATH_ERROR));
    REQUIRE(!before_fstat);
    REQUIRE(test::page_word(c.get(), 0) == 1);
    test::page_word(c.get(), 0) = 2;
    REQUIRE_OK(pm_commit(c.get()));
}

TEST_CASE("files that never had a name are exempt")
{
    test::Directory directory;
    int memory = memfd_create("container", MFD_CLOEXEC);
    int nameless = open(directory.path().c_str(), O_TMPFILE | O_RDWR, 0600);
    int unlinked = open((directory / "c.pm").c_str(), O_CREAT | O_RDWR, 0600);
    REQUIRE((memory >= 0 && nameless >= 0 && unlinked >= 0));
    REQUIRE(unlink((directory / "c.pm").c_str()) == 0);
    {
        test::Container empty = test::open(directory / "empty.pm", test::small());
    }
    std::string bytes = test::read_file(directory / "empty.pm");
    pm_options how = test::options(PM_PATH_ERROR);
    for (int fd : {memory, nameless, unlinked}) {
        std::string path = "/proc/self/fd/" + std::to_string(fd);
        REQUIRE(pwrite(fd, bytes.data(), bytes.size(), 0) == (ssize_t)bytes.size());
        test::Container c = test::open(path, how);
        REQUIRE(commit_grown(c.get()) == 0);
        REQUIRE_OK(pm_close(c.release()));
        close(fd);
    }
}

TEST_CASE("a commit looks once a second, without which it asks the system nothing")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::Container c = test::open_with_pages(path, 4, test::small(PM_CREATE | PM_PATH_ERROR));
    REQUIRE_OK(pm_commit(c.get()));
    looks = 0;
    const uint64_t before = test::stats(c.get()).file_bytes;
    auto start = Clock::now();
    for (uint64_t i = 0; i < 2000; i++) {
        test::page_word(c.get(), i % 4) = i;
        REQUIRE_OK(pm_commit(c.get()));
    }
    auto took = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start).count();
    const uint64_t grown = (test::stats(c.get()).file_bytes - before) / (64 << 10); // the log engine's file
    REQUIRE(looks <= 2 * ((uint64_t)took + 1 + grown)); // both stat(2) and fstat(2), for each second begun
    fs::rename(path, directory / "other.pm");
    start = Clock::now();
    int result = 0;
    while (result == 0 && Clock::now() - start < std::chrono::seconds(60)) {
        test::page_word(c.get(), 0) = looks;
        result = pm_commit(c.get());
        usleep(1000);
    }
    REQUIRE(result == -1);
    REQUIRE(test::failed_with(ESTALE, {path.c_str(), "renamed"}));
    for (int i = 0; i < 3; i++) // at once, not a second later
        REQUIRE(pm_commit(c.get()) == -1);
    fs::rename(directory / "other.pm", path);
    REQUIRE_OK(pm_commit(c.get()));
    fs::rename(path, directory / "other.pm");
    REQUIRE_OK(pm_copy(c.get(), (directory / "saved.pm").c_str(), nullptr, nullptr));
    REQUIRE(pm_close(c.release()) == -1);
    REQUIRE(test::failed_with(ESTALE, {path.c_str()}));
    REQUIRE(test::open(directory / "other.pm", test::options())); // it is closed all the same
}

// Creates c.pm in directory `here`, does something meanwhile, and fails.
CHILD_PROCESS(creates_and_fails)
{
    const bool goes = arguments[1] == "goes";
    fs::current_path(arguments[0]);
    fs::create_directory("here");
    fs::create_directory("there");
    test::write_file("there/c.pm", "precious");
    fs::current_path("here");
    before_failing = [&] {
        if (goes)
            fs::current_path("../there");
        else
            fs::rename("../there/c.pm", "c.pm");
    };
    const pm_options o = test::small();
    CHILD_REQUIRE(pm_open("c.pm", &o) == nullptr);
    CHILD_REQUIRE(!before_failing && errno == ENOMEM);
    CHILD_REQUIRE(test::read_file("c.pm") == "precious");
    CHILD_REQUIRE(!goes || !fs::exists("../here/c.pm"));
}

TEST_CASE("a pm_open() that fails deletes the file that it has created, and no other")
{
    test::Directory directory;
    SECTION("also if the program has changed its directory")
    {
        REQUIRE_CLEAN(test::run("creates_and_fails", {directory.path(), "goes"}));
    }
    SECTION("also if somebody has replaced the file")
    {
        REQUIRE_CLEAN(test::run("creates_and_fails", {directory.path(), "replaces"}));
    }
}

// Creation and growth, cut short before or inside each system call that they make, or meeting an
// error in each. What is found afterwards is no file, or a whole container.
#include "common/process.hpp"
#include "system/steps.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>

using steps::At;

namespace
{

// Where the steps differ: on tmpfs, and on an ordinary file; without what old or foreign file
// systems have not.
struct Place {
    std::string parent = "/dev/shm";
    steps::Lacks lacks;
    unsigned flags() const { return PM_CREATE | (parent == "/dev/shm" ? 0 : PM_UNSAFE_POWER); }
};

Place place_of(const std::string &name)
{
    Place place;
    if (name == "file")
        place.parent = std::filesystem::temp_directory_path();
    bool user_space = name == "user space";
    place.lacks.nameless = name == "no O_TMPFILE" || name == "nothing" || user_space;
    place.lacks.fallocate = name == "no fallocate" || name == "nothing";
    place.lacks.noreplace = name == "nothing" || user_space;
    place.lacks.links = user_space;
    place.lacks.proc = name == "no /proc";
    return place;
}

std::string any_place()
{
    return GENERATE(as<std::string>(), "tmpfs", "file", "no O_TMPFILE", "no fallocate", "nothing",
                    "user space", "no /proc");
}

uint64_t files_in(const std::string &directory)
{
    uint64_t count = 0;
    for ([[maybe_unused]] auto &entry : std::filesystem::directory_iterator(directory))
        count++;
    return count;
}

} // namespace

// arguments: path, place, how ("dies", "tears"), n; ends with EXIT_STATUS while there is an n-th
// step.
CHILD_PROCESS(creates)
{
    Place place = place_of(arguments[1]);
    steps::lack(place.lacks);
    steps::arm(std::stoi(arguments[3]), arguments[2] == "dies" ? At::dies : At::tears);
    pm_options options = test::small(place.flags());
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(steps::count() > 8); // else libpm's calls do not come through here
    CHILD_REQUIRE(pm_close(c) == 0);
}

// A container opens, is empty, and works.
CHILD_PROCESS(finds_a_whole_container)
{
    pm_options options = test::small(place_of(arguments[1]).flags());
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(!pm_getroot(c));
    CHILD_REQUIRE(pm_check(c) == 0);
    void *p = pm_calloc(c, 1, 200000);
    CHILD_REQUIRE(p);
    CHILD_REQUIRE(pm_setroot(c, p, 0) == 0);
    CHILD_REQUIRE(pm_commit(c) == 0);
    CHILD_REQUIRE(pm_close(c) == 0);
}

TEST_CASE("a crash at each step of creation")
{
    std::string name = any_place(), how = GENERATE(as<std::string>(), "dies", "tears");
    Place place = place_of(name);
    bool before = false, after = false; // has been seen to crash before, after the file was there
    int n = 1;
    for (;; n++) {
        INFO(name << ", " << how << " at step " << n);
        test::Directory directory(place.parent);
        std::string path = directory / "c.pm";
        test::Ended ended = test::run("creates", {path, name, how, std::to_string(n)});
        INFO(ended.errors);
        if (!test::exited(ended.status, steps::EXIT_STATUS)) {
            REQUIRE(test::exited(ended.status));
            break;
        }
        bool there = std::filesystem::exists(path);
        (there ? after : before) = true;
        uint64_t litter = files_in(directory.path()) - there;
        // Without O_TMPFILE one temporary file may stay, under another name.
        bool named = place.lacks.nameless || place.lacks.proc;
        REQUIRE(litter <= (named && (!there || place.lacks.noreplace) ? 1 : 0));
        if (there) {
            pm_options reading = test::options(PM_READONLY);
            test::Container c(pm_open(path.c_str(), &reading));
            INFO(pm_errormsg());
            REQUIRE(c);
            REQUIRE_OK(pm_check(c.get()));
        }
        REQUIRE_CLEAN(test::run("finds_a_whole_container", {path, name}));
        REQUIRE(files_in(directory.path()) == 1 + litter);
    }
    REQUIRE(n > 8);
    REQUIRE(before);
    REQUIRE(after);
}

// arguments: path, place, errno, n. Exits with EXIT_STATUS while there is an n-th step.
CHILD_PROCESS(meets_an_error_in_creation)
{
    const std::string &path = arguments[0], directory = std::filesystem::path(path).parent_path();
    Place place = place_of(arguments[1]);
    int error = std::stoi(arguments[2]), n = std::stoi(arguments[3]);
    steps::lack(place.lacks);
    steps::arm(n, At::fails, error);
    pm_options options = test::small(place.flags() | PM_EXCLUSIVE);
    pm_container *c = pm_open(path.c_str(), &options);
    if (steps::count() < n) { // all went well
        CHILD_REQUIRE(c);
        return;
    }
    fprintf(stderr, "step %d, %s\n", n, steps::name_of_last());
    CHILD_REQUIRE(!c);
    CHILD_REQUIRE(test::failed_with(error, {path.c_str()}));
    CHILD_REQUIRE(std::filesystem::is_empty(directory));
    // Nothing stays behind in the process either: neither lock nor addresses.
    c = pm_open(path.c_str(), &options);
    CHILD_REQUIRE(c);
    CHILD_REQUIRE(pm_check(c) == 0);
    CHILD_REQUIRE(pm_close(c) == 0);
    _exit(steps::EXIT_STATUS);
}

TEST_CASE("an error in each step of creation leaves nothing")
{
    std::string name = any_place();
    int error = GENERATE(ENOSPC, EIO);
    Place place = place_of(name);
    int n = 1;
    for (bool more = true; more; n++) {
        test::Directory directory(place.parent);
        test::Ended ended =
            test::run("meets_an_error_in_creation",
                      {directory / "c.pm", name, std::to_string(error), std::to_string(n)});
        INFO(name << ", " << strerror(error) << ": " << ended.errors);
        more = !test::exited(ended.status, 0);
        if (more)
            REQUIRE(test::exited(ended.status, steps::EXIT_STATUS));
    }
    REQUIRE(n > 8);
}

TEST_CASE("a container that pm_open creates but refuses is not left behind")
{
    test::Directory directory(std::filesystem::temp_directory_path());
    pm_options options = test::small(); // on an ordinary file, without PM_UNSAFE_POWER
    test::Container c(pm_open((directory / "c.pm").c_str(), &options));
    if (c) // this machine has its temporary files on tmpfs, or on DAX
        return;
    REQUIRE(test::failed_with(ENOTSUP, {"PM_UNSAFE_POWER"}));
    REQUIRE(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("what is created is the file that others find by its name")
{
    Place place = place_of(any_place());
    steps::lack(place.lacks);
    test::Directory directory(place.parent);
    std::string path = directory / "c.pm";
    pm_options options = test::small(place.flags() | PM_EXCLUSIVE);
    test::Container c(pm_open(path.c_str(), &options));
    INFO(pm_errormsg());
    REQUIRE(c);
    options.flags = place.flags();
    REQUIRE(!pm_open(path.c_str(), &options));
    REQUIRE(test::failed_with(EBUSY, {path.c_str()}));
    void *p = pm_calloc(c.get(), 1, 200000);
    REQUIRE_OK(pm_setroot(c.get(), p, 0));
    REQUIRE_OK(pm_commit(c.get()));
    c.reset();
    REQUIRE(files_in(directory.path()) == 1);
    c = test::open(path, options);
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(pm_getroot(c.get()));
    steps::lack({});
}

// The object list of the growth tests: each object says how many were committed before it.
struct Link {
    Link *next;
    uint64_t number;
    char filling[40000];
};

constexpr int OBJECTS = 16;

// arguments: path, place, how, n. Each object takes a segment; commits each.
CHILD_PROCESS(grows)
{
    Place place = place_of(arguments[1]);
    pm_options options = test::small(place.flags() & ~(unsigned)PM_CREATE);
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    steps::lack(place.lacks);
    steps::arm(std::stoi(arguments[3]), arguments[2] == "dies" ? At::dies : At::tears);
    for (int i = 0; i < OBJECTS; i++) {
        Link *first = static_cast<Link *>(pm_getroot(c));
        Link *link = static_cast<Link *>(pm_malloc(c, sizeof *link));
        CHILD_REQUIRE(link);
        link->next = first;
        link->number = first ? first->number + 1 : 0;
        memset(link->filling, 'x', sizeof link->filling);
        CHILD_REQUIRE(pm_setroot(c, link, 0) == 0);
        CHILD_REQUIRE(pm_commit(c) == 0);
        test::say("committed");
    }
    CHILD_REQUIRE(steps::count() > 3);
    CHILD_REQUIRE(pm_close(c) == 0);
}

// The steps of growth are the same on all old and foreign file systems that have fallocate(2).
TEST_CASE("a crash at each step of growth")
{
    std::string name = GENERATE(as<std::string>(), "tmpfs", "file", "no fallocate"),
                how = GENERATE(as<std::string>(), "dies", "tears");
    Place place = place_of(name);
    bool partial = false; // has been seen to leave a part of a segment
    int n = 1;
    for (;; n++) {
        INFO(name << ", " << how << " at step " << n);
        test::Directory directory(place.parent);
        std::string path = directory / "c.pm";
        test::open(path, test::small(place.flags()));
        test::Ended ended = test::run("grows", {path, name, how, std::to_string(n)});
        INFO(ended.errors);
        if (!test::exited(ended.status, steps::EXIT_STATUS)) {
            REQUIRE(test::exited(ended.status));
            break;
        }
        partial |= std::filesystem::file_size(path) % (64 << 10) != 0;
        uint64_t committed = (uint64_t)std::count(ended.output.begin(), ended.output.end(), '\n');

        test::Container c = test::open(path, test::small(place.flags()));
        REQUIRE_OK(pm_check(c.get()));
        uint64_t found = 0;
        for (Link *l = static_cast<Link *>(pm_getroot(c.get())); l; l = l->next, found++)
            REQUIRE((l->filling[0] == 'x' && l->filling[sizeof l->filling - 1] == 'x'));
        REQUIRE((found == committed || found == committed + 1)); // the word of it may be missing
        // On it goes, over what the torn call left.
        for (int i = 0; i < 10; i++) {
            REQUIRE(pm_calloc(c.get(), 1, sizeof(Link)));
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE_OK(pm_check(c.get()));
    }
    REQUIRE(n > 3);
    REQUIRE((how == "dies" || partial));
}

TEST_CASE("a part of a segment at the end of the file does not show in what grows over it")
{
    test::Directory directory;
    std::string path = directory / "c.pm";
    test::open(path, test::small());
    uint64_t size = std::filesystem::file_size(path);
    uint64_t part = GENERATE(as<uint64_t>(), 1, 4096, 50000, 65535);
    std::string rubbish(part, 'r');
    std::filesystem::resize_file(path, size + part);
    test::patch_file(path, size, rubbish.data(), rubbish.size());
    test::Container c = test::open(path, test::small());
    bool slab_first = GENERATE(true, false); // its bitmap must begin as zero
    for (int i = 0; i < 3; i++) {
        if (slab_first)
            REQUIRE(pm_malloc(c.get(), 64u << i));
        char *p = static_cast<char *>(pm_malloc(c.get(), 64 << 10));
        REQUIRE(p);
        REQUIRE(std::string(p, 64 << 10).find('r') == std::string::npos);
    }
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
    REQUIRE(test::stats(c.get()).file_bytes % (64 << 10) == 0);
}

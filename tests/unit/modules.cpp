// Pointers into programs and libraries. Each run has those at other addresses, which is why every run
// here is a process of its own: the system's choice of addresses differs.
#include "address/loaded.h"
#include "base/marks.h"
#include "common/fixture.hpp"
#include "common/format.hpp"
#include "common/process.hpp"
#include "unit/mapped.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <sys/mman.h>

namespace
{

struct Shape {
    virtual ~Shape() = default;
    virtual int corners() const = 0;
};

struct Square : Shape {
    Square *self = this;
    int corners() const override { return 4; }
};

int twice(int n)
{
    return 2 * n;
}

int numbers[1000];

// What has pointers out of the container, but for the last.
struct Root {
    int (*function)(int);
    const char *text;
    int *object;
    size_t (*of_libc)(const char *);
    Square *square;
    int (*of_module)(int); // of a library that was loaded for it, or null
};

pm_options may_move()
{
    return test::small(PM_CREATE | PM_MOVABLE);
}

using Version = int (*)(int);

Version load(const std::string &library, void **to_close = nullptr)
{
    void *handle = dlopen(library.c_str(), RTLD_NOW);
    CHILD_REQUIRE(handle);
    if (to_close)
        *to_close = handle;
    auto version = reinterpret_cast<Version>(dlsym(handle, "module_version"));
    CHILD_REQUIRE(version);
    return version;
}

Root *root(pm_container *c)
{
    return static_cast<Root *>(pm_getroot(c));
}

void store(pm_container *c, const char *text)
{
    Root *r = root(c);
    r->function = twice;
    r->text = text;
    r->object = numbers + 500;
    r->of_libc = strlen;
}

} // namespace

// arguments: path, library or nothing, "commit" or "rollback first"
CHILD_PROCESS(makes_pointers_out)
{
    test::Container c = test::open(arguments[0], may_move());
    auto *r = static_cast<Root *>(pm_malloc_typed(
        c.get(), PM_TYPE(Root, function, text, object, of_libc, square, of_module), 1));
    CHILD_REQUIRE(r && pm_setroot(c.get(), r, 0) == 0 && pm_commit(c.get()) == 0);
    if (arguments[2] == "rollback first") {
        store(c.get(), "abandoned");
        CHILD_REQUIRE(pm_rollback(c.get()) == 0);
    }
    void *memory = pm_malloc(c.get(), sizeof(Square));
    CHILD_REQUIRE(memory && pm_dirty(memory, sizeof(Square)) == 0);
    // Its table is the first word, which nobody can name; code compiled by pmcc records it.
    CHILD_REQUIRE(pm_mark_pointers(memory, 2) == 0);
    r->square = new (memory) Square;
    store(c.get(), "a text");
    if (!arguments[1].empty())
        r->of_module = load(arguments[1]);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    test::say(test::stats(c.get()).touches == 0 ? "in place" : "moved");
    _exit(0); // as killed: the modules must come out of the log too
}

// arguments: path, library or nothing, its version, flags, and what else is done
CHILD_PROCESS(uses_pointers_out)
{
    Version version = arguments[1].empty() ? nullptr : load(arguments[1]);
    pm_options how = test::small((unsigned)std::stoul(arguments[3]));
    test::Container taken, c;
    if (!arguments[4].empty())
        taken = test::open(arguments[4], test::small(PM_MOVABLE));
    c = test::open(arguments[0], how);
    CHILD_REQUIRE(taken == nullptr || test::base_of(c.get()) != test::base_of(taken.get()));
    const Root *r = root(c.get());
    CHILD_REQUIRE(r->function == twice && r->function(21) == 42);
    CHILD_REQUIRE(strcmp(r->text, "a text") == 0);
    CHILD_REQUIRE(r->object == numbers + 500);
    CHILD_REQUIRE(r->of_libc("four") == 4);
    CHILD_REQUIRE(r->square->corners() == 4 && r->square->self == r->square);
    CHILD_REQUIRE(r->of_module == version);
    CHILD_REQUIRE(!version || version(1) == std::stoi(arguments[2]) + 1);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    if (!(how.flags & PM_READONLY)) { // and the line is logged, and written home
        Root *w = root(c.get());
        w->object++;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        w->object--;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        CHILD_REQUIRE(w->object == numbers + 500);
    }
    test::say(test::stats(c.get()).touches == 0 ? "in place" : "moved");
    CHILD_REQUIRE(pm_close(c.release()) == 0);
    _exit(0);
}

// arguments: path, library that is loaded or nothing, module_pointers, foreign_pointers
CHILD_PROCESS(lacks_a_module)
{
    if (!arguments[1].empty())
        load(arguments[1]);
    pm_options how = may_move();
    how.module_pointers = (enum pm_module_pointers)std::stoi(arguments[2]);
    how.foreign_pointers = (enum pm_foreign_pointers)std::stoi(arguments[3]);
    test::Container c(pm_open(arguments[0].c_str(), &how));
    test::say(c ? "open" : pm_errormsg());
    if (c) {
        CHILD_REQUIRE(root(c.get())->function(21) == 42);
        CHILD_REQUIRE(pm_check(c.get()) == 0);
        root(c.get())->object++; // in the line of the pointer that means nothing here
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
        root(c.get())->object--;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    } else {
        CHILD_REQUIRE(errno == ENOEXEC);
    }
    _exit(0);
}

// arguments: path, library. Its pointer goes.
CHILD_PROCESS(drops_the_pointer)
{
    load(arguments[1]);
    test::Container c = test::open(arguments[0], may_move());
    root(c.get())->of_module = nullptr;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

// arguments: path, library. Its pointer leads to a byte that has no name.
CHILD_PROCESS(moves_the_pointer)
{
    char *version = reinterpret_cast<char *>(load(arguments[1]));
    test::Container c = test::open(arguments[0], may_move());
    root(c.get())->of_module = reinterpret_cast<Version>(version + 1);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

namespace
{

// Copies of a library, each a version of its own: names of the first `count`.
std::vector<std::string> versions(const test::Directory &directory, int count)
{
    std::string library = test::read_file(MODULE_1);
    const char id[] = {4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0};
    size_t at = library.find(std::string(id, sizeof id));
    REQUIRE(at != std::string::npos);
    std::vector<std::string> names;
    for (int version = 0; version < count; version++) {
        names.push_back(directory / ("v" + std::to_string(version) + ".so"));
        library[at + sizeof id] = (char)version;
        library[at + sizeof id + 1] = (char)(77 + version / 256);
        test::write_file(names.back(), library);
    }
    return names;
}

struct Fixture {
    test::Directory directory;
    std::string path = directory / "c.pm";

    void make(const std::string &library, const std::string &how = "commit") const
    {
        test::Ended ended = test::run("makes_pointers_out", {path, library, how});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status));
        REQUIRE(ended.output == "in place\n");
    }

    std::string use(const std::string &library = "", const std::string &version = "",
                    unsigned flags = PM_MOVABLE, const std::string &beside = "") const
    {
        test::Ended ended =
            test::run("uses_pointers_out", {path, library, version, std::to_string(flags), beside});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status));
        return ended.output;
    }

    test::Ended lack(const std::string &library, enum pm_module_pointers what,
                     enum pm_foreign_pointers foreign = PM_FOREIGN_ERROR) const
    {
        test::Ended ended = test::run("lacks_a_module", {path, library, std::to_string((int)what),
                                                         std::to_string((int)foreign)});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status));
        return ended;
    }
};

} // namespace

TEST_CASE_METHOD(Fixture, "pointers into the program and libraries are right in every run")
{
    make(MODULE_1, GENERATE("commit", "rollback first"));
    unsigned moved = 0;
    for (int i = 0; i < 5; i++)
        moved += use(MODULE_1, "1") == "moved\n";
    REQUIRE(moved >= 4); // or else the system does not choose addresses anew
    std::string before = test::read_file(path);
    use(MODULE_1, "1", PM_MOVABLE | PM_READONLY);
    REQUIRE(test::read_file(path) == before);
}

TEST_CASE_METHOD(Fixture, "they are right where the container lies elsewhere, too")
{
    make(MODULE_1);
    std::string beside = directory / "beside.pm";
    std::filesystem::copy_file(path, beside);
    pm_options how = may_move();
    how.flags |= PM_ACCEPT_COPY; // whoever made it did not close it
    how.module_pointers = PM_MODULES_MISSING_OK; // this process has not loaded it
    {
        test::Container c = test::open(beside, how);
        REQUIRE_OK(pm_setroot(c.get(), nullptr, 0));
        REQUIRE_OK(pm_clear(c.get()));
        REQUIRE_OK(pm_commit(c.get()));
    }
    use(MODULE_1, "1", PM_MOVABLE, beside);
    use(MODULE_1, "1", PM_MOVABLE | PM_RELOCATE, beside);
    use(MODULE_1, "1", PM_MOVABLE | PM_READONLY, beside);
    use(MODULE_1, "1");
}

TEST_CASE_METHOD(Fixture, "a library that is missing, or another version of it")
{
    make(MODULE_1);
    const char *library = GENERATE("", MODULE_2);
    INFO(library);
    // What is said of foreign memory does not matter here.
    auto foreign = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_WARN, PM_FOREIGN_IGNORE);
    test::Ended ended = lack(library, PM_MODULES_KEEP, foreign);
    REQUIRE_THAT(ended.output, Catch::Contains(path + ": offset ") &&
                                   Catch::Contains("in byte 40 of the object of 48 bytes") &&
                                   Catch::Contains("libtest_module_1.so") &&
                                   Catch::Contains("module_version") &&
                                   Catch::Contains("load it before pm_open()"));
    REQUIRE(lack(library, PM_MODULES_MISSING_OK, foreign).output == "open\n");
    use(MODULE_1, "1"); // nothing is lost
    REQUIRE_CLEAN(test::run("moves_the_pointer", {path, MODULE_1}));
    ended = lack(library, PM_MODULES_KEEP, foreign); // names the first that there was, and no other
    REQUIRE_THAT(ended.output, Catch::Contains("libtest_module_1.so, of which"));
    REQUIRE_CLEAN(test::run("drops_the_pointer", {path, MODULE_1}));
    REQUIRE(lack(library, PM_MODULES_KEEP, foreign).output == "open\n"); // nobody needs it
}

// arguments: path, library, and those to be stored then, one after the other
CHILD_PROCESS(lives_through_versions)
{
    pm_options how = may_move();
    how.module_pointers = PM_MODULES_MISSING_OK;
    test::Container c = test::open(arguments[0], how);
    root(c.get())->of_module = load(arguments[1]);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "a table has room for more versions than it has entries")
{
    make(MODULE_1);
    std::vector<std::string> libraries = versions(directory, 2 * FORMAT_MODULES_MAX);
    for (const std::string &library : libraries) {
        INFO(library);
        REQUIRE_CLEAN(test::run("lives_through_versions", {path, library}));
    }
    use(libraries.back(), "1");
}

struct Slot {
    Version version;
};

// arguments: path, "make", "use" or "clear", libraries: one pointer into each, of which one is too many
CHILD_PROCESS(fills_the_table)
{
    std::vector<Version> loaded;
    for (size_t i = 2; i < arguments.size(); i++)
        loaded.push_back(load(arguments[i]));
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_getroot(c.get()));
    if (arguments[1] == "make") {
        slots =
            static_cast<Slot *>(pm_malloc_typed(c.get(), PM_TYPE(Slot, version), loaded.size()));
        CHILD_REQUIRE(slots && pm_setroot(c.get(), slots, 0) == 0);
        for (size_t i = 0; i < loaded.size(); i++)
            slots[i].version = loaded[i];
        CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == ENOSPC);
        CHILD_REQUIRE(strstr(pm_errormsg(), "no room in the table of modules"));
        slots[loaded.size() - 1].version = nullptr;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    for (size_t i = 0; i < loaded.size(); i++)
        CHILD_REQUIRE(slots[i].version == (i + 1 < loaded.size() ? loaded[i] : nullptr));
    if (arguments[1] == "clear") {
        for (size_t i = 0; i < loaded.size(); i++)
            slots[i].version = nullptr;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    _exit(0);
}

// arguments: path. The first commit that would take a place fails.
CHILD_PROCESS(takes_a_place)
{
    int local = 0;
    Version other = load(MODULE_2);
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_getroot(c.get()));
    slots[0].version = other;
    slots[1].version = reinterpret_cast<Version>(&local);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == EINVAL);
    CHILD_REQUIRE(pm_rollback(c.get()) == 0 && !slots[0].version);
    slots[0].version = other;
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
    _exit(0);
}

// arguments: path. The library lies elsewhere now, so only the table can tell where the pointer leads.
CHILD_PROCESS(finds_the_place)
{
    Version other = load(MODULE_2);
    test::Container c = test::open(arguments[0], may_move());
    CHILD_REQUIRE(static_cast<Slot *>(pm_getroot(c.get()))[0].version == other);
    CHILD_REQUIRE(pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "the table holds as many modules as it has entries, and then others")
{
    std::vector<std::string> arguments = {path, ""};
    for (const std::string &library : versions(directory, FORMAT_MODULES_MAX + 1))
        arguments.push_back(library);
    for (const char *what : {"make", "use", "clear"}) {
        arguments[1] = what;
        INFO(what);
        REQUIRE_CLEAN(test::run("fills_the_table", arguments));
    }
    REQUIRE_CLEAN(test::run("takes_a_place", {path}));
    REQUIRE_CLEAN(test::run("finds_the_place", {path}));
}

// arguments: path, "needed", "needed alone" or "unneeded"
CHILD_PROCESS(has_a_module)
{
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_malloc_typed(c.get(), PM_TYPE(Slot, version), 4));
    CHILD_REQUIRE(slots && pm_setroot(c.get(), slots, 0) == 0);
    for (size_t i = 0; i < 4; i++)
        slots[i].version = nullptr;
    slots[0].version = load(MODULE_1);
    if (arguments[1] == "needed")
        slots[1].version = twice; // the program lies elsewhere next time
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    if (arguments[1] == "unneeded")
        slots[0].version = nullptr;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

// arguments: path, a library that is loaded or nothing, flags, module_pointers, errno or 0
CHILD_PROCESS(opens_or_fails)
{
    if (!arguments[1].empty())
        load(arguments[1]);
    pm_options how = test::small((unsigned)std::stoul(arguments[2]));
    how.module_pointers = (enum pm_module_pointers)std::stoi(arguments[3]);
    test::Container c(pm_open(arguments[0].c_str(), &how));
    CHILD_REQUIRE(c ? arguments[4] == "0" : std::to_string(errno) == arguments[4]);
    if (c)
        test::say(test::stats(c.get()).movable ? "movable" : "not movable");
    c.reset();
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "an opening that fails leaves the container movable")
{
    REQUIRE_CLEAN(test::run("has_a_module", {path, GENERATE("needed", "needed alone")}));
    const auto open = [&](const char *library, unsigned flags, int modules, int error) {
        test::Ended ended =
            test::run("opens_or_fails", {path, library, std::to_string(flags),
                                         std::to_string(modules), std::to_string(error)});
        INFO(ended.errors);
        REQUIRE(test::exited(ended.status));
        return ended.output;
    };
    open("", 0, PM_MODULES_KEEP, ENOEXEC);
    open(MODULE_1, 0, PM_MODULES_REFUSE, EPERM);
    REQUIRE(open(MODULE_1, PM_MOVABLE, PM_MODULES_KEEP, 0) == "movable\n");
    REQUIRE(open(MODULE_1, 0, PM_MODULES_KEEP, 0) == "not movable\n");
    REQUIRE(open(MODULE_1, PM_MOVABLE, PM_MODULES_KEEP, 0) == "not movable\n");
}

// arguments: path, "needed" or "unneeded". The module comes after the container, and a rollback drops one.
CHILD_PROCESS(rolls_a_module_back)
{
    const bool is_needed = arguments[1] == "needed";
    int local = 0;
    pm_options how = may_move();
    how.module_pointers = is_needed ? PM_MODULES_MISSING_OK : PM_MODULES_KEEP;
    test::Container c = test::open(arguments[0], how);
    auto *slots = static_cast<Slot *>(pm_getroot(c.get()));
    CHILD_REQUIRE(!slots[2].version); // so the page has the addresses of this run
    Version late = load(MODULE_1), adopted = is_needed ? load(MODULE_2) : late;
    slots[2].version = adopted;
    slots[3].version = reinterpret_cast<Version>(&local);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == EINVAL);
    CHILD_REQUIRE(strstr(pm_errormsg(), "leads out of the container"));
    CHILD_REQUIRE(pm_rollback(c.get()) == 0 && !slots[2].version);
    slots[2].version = late; // in the line of the old pointer
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
    _exit(0);
}

// arguments: path, the same
CHILD_PROCESS(has_the_module_still)
{
    Version there = load(MODULE_1);
    test::Container c = test::open(arguments[0], may_move());
    const auto *slots = static_cast<const Slot *>(pm_getroot(c.get()));
    CHILD_REQUIRE(slots[0].version == (arguments[1] == "needed" ? there : nullptr));
    CHILD_REQUIRE(slots[2].version == there && pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "a rollback that drops a module leaves all others where they were")
{
    const char *how = GENERATE("unneeded", "needed");
    INFO(how);
    for (const char *child : {"has_a_module", "rolls_a_module_back", "has_the_module_still"}) {
        INFO(child);
        REQUIRE_CLEAN(test::run(child, {path, how}));
    }
}

// arguments: path, "make" or "use", the library with a pointer, all libraries
CHILD_PROCESS(loads_many)
{
    Version wanted = nullptr;
    for (size_t i = 3; i < arguments.size(); i++) {
        Version one = load(arguments[i]);
        wanted = arguments[i] == arguments[2] ? one : wanted;
    }
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_getroot(c.get()));
    if (arguments[1] == "make") {
        slots = static_cast<Slot *>(pm_malloc_typed(c.get(), PM_TYPE(Slot, version), 1));
        CHILD_REQUIRE(slots && pm_setroot(c.get(), slots, 0) == 0);
        slots[0].version = wanted;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    }
    CHILD_REQUIRE(slots[0].version == wanted && pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "pointers lead into any of more modules than the list of loaded ones has")
{
    std::vector<std::string> libraries = versions(directory, LOADED_MAX + 3);
    for (const std::string &library : {libraries.front(), libraries.back()}) {
        std::filesystem::remove(path);
        for (const char *what : {"make", "use"}) {
            INFO(what << ' ' << library);
            std::vector<std::string> arguments = {path, what, library};
            arguments.insert(arguments.end(), libraries.begin(), libraries.end());
            REQUIRE_CLEAN(test::run("loads_many", arguments));
            std::ranges::reverse(libraries); // the other way round next time
        }
    }
}

// arguments: path, whether the pointer into the first is "corrected" or left, another library
CHILD_PROCESS(loads_another_in_its_place)
{
    void *handle, *other;
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_malloc_typed(c.get(), PM_TYPE(Slot, version), 2));
    CHILD_REQUIRE(slots && pm_setroot(c.get(), slots, 0) == 0);
    slots[1].version = load(arguments[2], &other); // its place in the table will be another's
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    auto first = (uintptr_t)load(MODULE_1, &handle);
    slots[0].version = reinterpret_cast<Version>(first);
    slots[1].version = nullptr;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(dlclose(handle) == 0);
    Version second = load(MODULE_2);
    CHILD_REQUIRE((uintptr_t)second == first); // as the kernel chooses addresses
    CHILD_REQUIRE(dlclose(other) == 0);
    const Slot from = {second};
    for (bool as_bytes : {false, true}) {
        if (as_bytes)
            memcpy(&slots[1], &from, sizeof from);
        else
            slots[1].version = second;
        CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == EINVAL);
        CHILD_REQUIRE(strstr(pm_errormsg(), "another, into which") &&
                      strstr(pm_errormsg(), "open the container anew"));
        CHILD_REQUIRE(pm_rollback(c.get()) == 0 && !slots[1].version);
    }
    pm_options how = may_move();
    if (arguments[1] == "corrected") {
        slots[0].version = nullptr;
        CHILD_REQUIRE(pm_commit(c.get()) == 0);
    } else { // they can be told apart where it is opened anew
        how.module_pointers = PM_MODULES_MISSING_OK;
    }
    c.reset();
    c = test::open(arguments[0], how);
    slots = static_cast<Slot *>(pm_getroot(c.get()));
    slots[1].version = second;
    CHILD_REQUIRE(pm_commit(c.get()) == 0 && pm_check(c.get()) == 0);
    _exit(0);
}

// arguments: path. What is mapped in a library's place is no library.
CHILD_PROCESS(maps_memory_in_its_place)
{
    void *handle;
    test::Container c = test::open(arguments[0], may_move());
    auto **words = static_cast<void **>(pm_calloc(c.get(), 2, sizeof(void *)));
    CHILD_REQUIRE(words && pm_mark_pointers(words, 2) == 0 && pm_setroot(c.get(), words, 0) == 0);
    auto address = reinterpret_cast<uintptr_t>(load(MODULE_1, &handle));
    words[0] = reinterpret_cast<void *>(twice); // so that commit looks at what is loaded
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    words[0] = nullptr;
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(dlclose(handle) == 0);
    words[1] = mmap(reinterpret_cast<void *>(address & ~(PM_PAGE - 1)), PM_PAGE, PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHILD_REQUIRE(words[1] != MAP_FAILED);
    CHILD_REQUIRE(pm_commit(c.get()) == -1 && errno == EINVAL);
    CHILD_REQUIRE(strstr(pm_errormsg(), "leads out of the container"));
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "a pointer to where a library was fails the commit once it is closed")
{
    REQUIRE_CLEAN(test::run("maps_memory_in_its_place", {path}));
}

// arguments: path, as above
CHILD_PROCESS(has_both)
{
    Version second = load(MODULE_2), first = load(MODULE_1);
    test::Container c = test::open(arguments[0], may_move());
    auto *slots = static_cast<Slot *>(pm_getroot(c.get()));
    CHILD_REQUIRE(slots[0].version == (arguments[1] == "corrected" ? nullptr : first));
    CHILD_REQUIRE(slots[1].version == second && pm_check(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "a library that lies where another did")
{
    const char *how = GENERATE("corrected", "left");
    for (const char *child : {"loads_another_in_its_place", "has_both"}) {
        REQUIRE_CLEAN(test::run(child, {path, how, versions(directory, 1)[0]}));
    }
}

// arguments: path. By copies from outside, of which the pass sees only bytes.
CHILD_PROCESS(copies_pointers)
{
    struct Pair {
        int (*function)(int);
        const char *text;
    };
    static const Pair constant = {twice, "a text"};
    test::Container c = test::open(arguments[0], may_move());
    auto *pairs = static_cast<Pair *>(pm_malloc_typed(c.get(), PM_TYPE(Pair, function, text), 3));
    CHILD_REQUIRE(pairs && pm_setroot(c.get(), pairs, 0) == 0);
    Pair local = {twice, constant.text};
    pairs[0] = constant;
    memcpy(&pairs[1], &local, sizeof local);
    pairs[2] = pairs[1];
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    CHILD_REQUIRE(test::mapped(c.get()).size() == 6);
    _exit(0);
}

// arguments: path
CHILD_PROCESS(follows_copied_pointers)
{
    struct Pair {
        int (*function)(int);
        const char *text;
    };
    test::Container c = test::open(arguments[0], may_move());
    const auto *pairs = static_cast<Pair *>(pm_getroot(c.get()));
    for (int i = 0; i < 3; i++)
        CHILD_REQUIRE(pairs[i].function == twice && strcmp(pairs[i].text, "a text") == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "pointers that come by copies of structs from outside are recorded, too")
{
    for (const char *child : {"copies_pointers", "follows_copied_pointers"}) {
        REQUIRE_CLEAN(test::run(child, {path}));
    }
}

// arguments: path, library, flags. Pointers into modules are refused, so none is followed.
CHILD_PROCESS(refuses_modules)
{
    load(arguments[1]);
    pm_options how = test::small((unsigned)std::stoul(arguments[2]));
    how.module_pointers = PM_MODULES_REFUSE;
    how.foreign_pointers = PM_FOREIGN_IGNORE;
    test::Container c(pm_open(arguments[0].c_str(), &how));
    test::say(c ? "open" : pm_errormsg());
    CHILD_REQUIRE(c || errno == EPERM);
    _exit(0);
}

// arguments: path
CHILD_PROCESS(drops_all_pointers)
{
    load(MODULE_1);
    test::Container c = test::open(arguments[0], may_move());
    CHILD_REQUIRE(pm_clear(c.get()) == 0);
    CHILD_REQUIRE(pm_commit(c.get()) == 0);
    _exit(0);
}

TEST_CASE_METHOD(Fixture, "a program that refuses pointers into modules opens no file that has one")
{
    make(MODULE_1);
    unsigned flags = GENERATE(0u, (unsigned)PM_READONLY, (unsigned)PM_MOVABLE,
                              (unsigned)(PM_MOVABLE | PM_READONLY));
    test::Arguments arguments = {path, MODULE_1, std::to_string(flags)};
    std::string before = test::read_file(path);
    test::Ended ended = test::run("refuses_modules", arguments);
    REQUIRE_THAT(ended.output, Catch::Contains(path + ": offset ") &&
                                   Catch::Contains("of the object of") &&
                                   Catch::Contains("PM_MODULES_REFUSE forbids"));
    use(MODULE_1, "1"); // who trusts it
    REQUIRE_CLEAN(test::run("drops_all_pointers", {path}));
    // Its table has the modules still, but nothing leads there.
    REQUIRE(test::run("refuses_modules", arguments).output == "open\n");
}

TEST_CASE_METHOD(Fixture, "a program that refuses pointers into modules opens no file with one that is not noted", "[home]")
{
    uint64_t offset;
    {
        test::Container c = test::open(path, may_move());
        void *p = pm_malloc_typed(c.get(), PM_TYPE(Root, of_module), 1);
        REQUIRE(p);
        REQUIRE_OK(pm_setroot(c.get(), p, 0));
        REQUIRE_OK(pm_commit(c.get()));
        offset = (uint64_t)((char *)&static_cast<Root *>(p)->of_module - test::base_of(c.get()));
    }
    pm_options how = may_move();
    how.module_pointers = PM_MODULES_REFUSE;
    test::open(path, how);
    auto forged = reinterpret_cast<uint64_t>(&may_move); // as if it were at the same address in each run
    test::patch_file(path, offset, &forged, sizeof forged);
    REQUIRE(pm_open(path.c_str(), &how) == nullptr);
    REQUIRE(test::failed_with(EPERM, {path.c_str(), "leads out of the container"}));
}

TEST_CASE_METHOD(Fixture, "a program that refuses pointers into modules stores none", "[faults]")
{
    pm_options how = may_move();
    how.module_pointers = PM_MODULES_REFUSE;
    how.foreign_pointers = GENERATE(PM_FOREIGN_ERROR, PM_FOREIGN_WARN, PM_FOREIGN_IGNORE);
    test::Container c = test::open(path, how);
    auto **p = static_cast<void **>(pm_calloc(c.get(), 4, 8));
    REQUIRE(p);
    REQUIRE_OK(pm_mark_pointer(p + 2));
    p[2] = numbers;
    REQUIRE(pm_commit(c.get()) == -1);
    REQUIRE(test::failed_with(EINVAL, {"in byte 16 of the object of 32 bytes",
                                       "into a program or library", "PM_MODULES_REFUSE"}));
    p[2] = p;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get()));
}

TEST_CASE_METHOD(Fixture, "what becomes of foreign memory says nothing of modules", "[faults]")
{
    pm_options how = may_move();
    how.foreign_pointers = GENERATE(PM_FOREIGN_WARN, PM_FOREIGN_IGNORE);
    how.freed_pointers = GENERATE(PM_FREED_DATA, PM_FREED_ERROR);
    int local = 0;
    test::Container c = test::open(path, how);
    auto **p = static_cast<void **>(pm_calloc(c.get(), 4, 8));
    REQUIRE(p);
    REQUIRE_OK(pm_mark_pointers(p, 4));
    p[1] = numbers;
    p[2] = &local;
    REQUIRE_OK(pm_commit(c.get()));
    p[2] = nullptr;
    REQUIRE_OK(pm_commit(c.get()));
    REQUIRE_OK(pm_check(c.get())); // which knows the module
}

TEST_CASE_METHOD(Fixture, "a damaged table of modules is refused", "[home]")
{
    make("");
    use();
    uint64_t word = FORMAT_MODULES + 8 * (uint64_t)GENERATE(0, 1, 2, 5, 15, 16, 479);
    std::string before = test::read_file(path);
    SECTION("a flipped bit")
    {
        test::flip_bit(path, word, 3);
    }
    SECTION("addresses that no module can have")
    {
        word = FORMAT_MODULES + offsetof(format_module, base);
        uint64_t wrong =
            seal(GENERATE(uint64_t{0}, uint64_t{4097}, uint64_t{ARENA_HINT}, uint64_t{1} << 47));
        test::patch_file(path, word, &wrong, sizeof wrong);
    }
    SECTION("those of another")
    {
        std::string entry = before.substr(FORMAT_MODULES, sizeof(format_module));
        word = FORMAT_MODULES + 5 * sizeof(format_module);
        test::patch_file(path, word, entry.data(), entry.size());
    }
    REQUIRE(pm_open(path.c_str(), nullptr) == nullptr);
    REQUIRE(test::failed_with(EBADMSG, {"table of modules"}));
}

TEST_CASE_METHOD(Fixture, "modules may adjoin each other, and not share an address", "[home]")
{
    make("");
    use();
    const uint64_t offset = FORMAT_MODULES + 5 * sizeof(format_module);
    format_module e;
    memcpy(&e, test::read_file(path).data() + FORMAT_MODULES, sizeof e);
    const bool before = GENERATE(true, false), shares = GENERATE(false, true);
    uint64_t base = seal_payload(e.base), size = seal_payload(e.size);
    base = before ? base - size : base + size;
    if (shares)
        base = before ? base + PM_PAGE : base - PM_PAGE;
    e.id = seal(seal_payload(e.id) ^ 1);
    e.base = seal(base);
    uint64_t words[sizeof e / 8];
    memcpy(words, &e, sizeof e);
    for (size_t i = 0; i < sizeof e / 8; i++)
        test::forge_word(path, offset + 8 * i, words[i]);
    pm_options how = may_move();
    if (shares) {
        REQUIRE(pm_open(path.c_str(), &how) == nullptr);
        REQUIRE(test::failed_with(EBADMSG, {"table of modules"}));
    } else {
        REQUIRE(test::open(path, how)); // no pointer leads into the one that is not loaded
    }
}

TEST_CASE_METHOD(Fixture, "a declared pointer that cannot live fails the commit", "[faults]")
{
    pm_options how = may_move();
    int local = 0;
    auto *heap = new int;
    void *nameless = dlopen(MODULE_WITHOUT_ID, RTLD_NOW);
    REQUIRE(nameless);
    for (void *foreign : {static_cast<void *>(&local), static_cast<void *>(heap),
                          dlsym(nameless, "module_version")}) {
        std::filesystem::remove(path);
        test::Container c = test::open(path, how);
        auto **p = static_cast<void **>(pm_calloc(c.get(), 4, 8));
        REQUIRE(p);
        REQUIRE_OK(pm_mark_pointer(p + 2));
        p[2] = foreign;
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(test::failed_with(EINVAL, {"in byte 16 of the object of 32 bytes", "build-id"}));
        p[2] = nullptr;
        REQUIRE_OK(pm_commit(c.get()));
        p[2] = foreign; // when the page is open, and the object old
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE_OK(pm_rollback(c.get()));
        REQUIRE(p[2] == nullptr);
        p[1] = foreign; // a word that is declared later
        REQUIRE_OK(pm_commit(c.get()));
        auto *other = static_cast<uint64_t *>(pm_calloc(c.get(), 1, 10000));
        REQUIRE(other);
        for (uint64_t i = 0; i < 40; i++) { // until the page of the word is closed
            other[1000] = i;
            REQUIRE_OK(pm_commit(c.get()));
        }
        REQUIRE_OK(pm_mark_pointer(p + 1));
        REQUIRE(pm_commit(c.get()) == -1);
        REQUIRE(test::failed_with(EINVAL, {"in byte 8 of the object of 32 bytes", "build-id"}));
    }
    delete heap;
}

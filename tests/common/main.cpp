// The one translation unit with Catch2's main: a run of the tests, or one child process of them.
//
// Some test cases are for some modes only. Their tags: [undo], [redo], [log] (whichever the tracker), [home] (undo
// and redo), [private] (redo and log), [stores], [faults] (whichever the engine). And [disk]: they mount a file system. Where this user may not,
// they are left out, by name, and the status is SKIPPED if nothing else failed.
#define CATCH_CONFIG_RUNNER
#include "common/mounting.hpp"
#include "common/process.hpp"

#include <algorithm>
#include <iostream>

static constexpr int FAILED = 1, SKIPPED = 77; // never Catch2's number of failures, which may be 77

static bool has_tag(const Catch::TestCase &test, const std::string &tag)
{
    return std::count(test.lcaseTags.begin(), test.lcaseTags.end(), tag) > 0;
}

static std::vector<std::string> tags_of_other_modes()
{
    std::vector<std::string> tags = {test::stores() ? "faults" : "stores"};
    for (const char *engine : {"undo", "redo", "log"})
        if (engine != test::engine())
            tags.push_back(engine);
    if (test::engine() == "log")
        tags.push_back("home");
    if (test::engine() == "undo")
        tags.push_back("private");
    return tags;
}

// Leave out what mounts, if that is not allowed: how many of the test cases without these tags.
static size_t skip_disks(std::string &chosen, const std::vector<std::string> &tags)
{
    std::vector<std::string> names;
    for (const Catch::TestCase &test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests())
        if (has_tag(test, "disk") && std::none_of(tags.begin(), tags.end(), [&](const std::string &tag) {
                return has_tag(test, tag);
            }))
            names.push_back(test.name);
    if (names.empty() || test::may_mount())
        return 0;
    chosen += "~[disk]";
    for (const std::string &name : names)
        std::cerr << "skipped, for this user may not mount a file system: " << name << "\n";
    return names.size();
}

// Signals are what many of these tests are about; sanitizers must leave them to us.
extern "C" const char *__asan_default_options()
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0:detect_leaks=0";
}

// A race ends the process, for a child that is killed would not tell of it.
extern "C" const char *__tsan_default_options()
{
    return "handle_segv=0:handle_sigbus=0:handle_abort=0:use_sigaltstack=0:halt_on_error=1";
}

int main(int argc, char **argv)
{
    int status = test::run_child_named(argc, argv);
    if (status >= 0)
        return status;
    Catch::Session session;
    status = session.applyCommandLine(argc, argv);
    std::vector<std::string> &chosen = session.configData().testsOrTags;
    size_t skipped = 0;
    if (status == 0 && chosen.empty()) {
        chosen.emplace_back("~[.]"); // with any pattern, Catch2 takes hidden cases too
        for (const std::string &tag : tags_of_other_modes())
            chosen.back() += "~[" + tag + "]";
        skipped = skip_disks(chosen.back(), tags_of_other_modes());
    }
    if (status == 0)
        status = session.run();
    return status != 0 ? FAILED : skipped > 0 ? SKIPPED : 0;
}

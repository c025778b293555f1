// Every call of the system that libpm makes fails once, at each of its counts in a small workload,
// with each errno of calls.def. Then
//
//   nothing crashes or hangs, but for a store that cannot be honoured, which ends the process with
//   a message;
//   the public function fails, and its message names the file, what failed, and a remedy;
//   nothing has changed; calling again works, or rolling back and going on, unless the error is
//   sticky (a failed sync of an ordinary file), when closing and opening works;
//   after an end at any such point, and at the end of all, the state is that of the last commit
//   that returned or of the one in flight, pm_check() is content, no descriptor, file, object or
//   block is left over.
//
// A first run counts; then there is a process for each fault. That takes minutes. So by default
// only every STRIDEth is tried, beginning at the seed; LIBPM_STRIDE=1 tries all. LIBPM_FAULT
// repeats one of them.
#include "common/process.hpp"
#include "faults/case.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>

namespace fs = std::filesystem;
using namespace faults;

namespace
{

// A prime, so that it is no multiple of any call's number of errors.
constexpr uint64_t STRIDE = 59;

// What is wrong after a case; empty if nothing.
std::string problem_of(const Case &what, const test::Ended &ended, const std::string &directory)
{
    std::string path = directory + "/c.pm";
    uint64_t durable = 0, attempted = 0;
    bool deleting = false;
    std::istringstream lines(ended.output);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        uint64_t number = 0;
        words >> word >> number;
        durable = word == "durable" ? number : durable;
        attempted = word == "attempted" ? std::max(attempted, number) : attempted;
        deleting |= word == "deleting";
    }
    std::string told = "\nstandard error: " + ended.errors;
    if (test::killed(ended.status, SIGABRT)) {
        if (ended.errors.find("fault in an access\nlibpm: " + path + ": offset ") != 0 ||
            ended.errors.find("the last commit stands") == std::string::npos)
            return "aborted, not by an access that it could not honour" + told;
        if (!has_one_of(ended.errors, strerror(what.fault.error)) &&
            !(view_is_full(what) && has_one_of(ended.errors, strerror(ENOMEM))))
            return "aborted and did not say why" + told;
    } else if (!test::exited(ended.status) && !test::exited(ended.status, STOPPED)) {
        return "wait status " + std::to_string(ended.status) + told;
    }
    bool there = fs::exists(path);
    if (entries_of(directory) != there)
        return "there is another file" + told;
    if (!there)
        return durable == 0 || deleting ? "" : "the file is gone" + told;
    std::string problem =
        judge(path, options_in(what.place, PM_ACCEPT_COPY), durable, std::max(durable, attempted));
    return problem.empty() ? "" : problem + told;
}

// Whether a public function failed, so that it matters what is done then.
bool check_case(const Case &what)
{
    INFO("repeat with LIBPM_TEST_MODE=" << test::mode() << " LIBPM_FAULT='" << text_of(what) << "' "
                                        << fs::read_symlink("/proc/self/exe").string());
    test::Directory directory;
    test::Ended ended = test::run("runs_the_workload", {directory.path(), text_of(what)});
    CHECK(problem_of(what, ended, directory.path()) == "");
    return ended.output.find("failed\n") != std::string::npos;
}

using Counts = std::map<std::string, uint64_t>;

// How often each call is made when none fails.
Counts count_calls(const std::string &place)
{
    test::Directory directory;
    test::Ended ended = test::run("runs_the_workload", {directory.path(), place});
    INFO(ended.errors);
    REQUIRE(test::exited(ended.status));
    Counts counts;
    std::istringstream in(ended.output);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t count;
        if (words >> name >> count && name != "durable" && name != "attempted")
            counts[name] = count;
    }
    return counts;
}

struct Attempt {
    Fault fault;
    bool fully; // whatever the program does then; once a call and count is enough
};

// All faults there are, in an order that is always the same.
std::vector<Attempt> all_faults(const Counts &counts)
{
    std::vector<Attempt> all;
    for (const Call &call : calls)
        for (uint64_t count = 1; count <= counts.at(call.name); count++)
            for (int error : call.errors)
                all.push_back({{call.name, count, error}, error == call.errors[0]});
    return all;
}

uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? std::stoull(text) : otherwise;
}

void fail_everywhere(const std::string &place)
{
    if (const char *only = getenv("LIBPM_FAULT")) {
        if (case_of(only).place == place)
            check_case(case_of(only));
        return;
    }
    uint64_t seed = from_environment("LIBPM_SEED", std::random_device{}());
    uint64_t stride = from_environment("LIBPM_STRIDE", STRIDE), cases = 0;
    std::vector<Attempt> faults = all_faults(count_calls(place));
    for (uint64_t i = seed % stride; i < faults.size(); i += stride) {
        const auto &[fault, fully] = faults[i];
        cases++;
        if (!check_case({place, fault, "retry"}) || !fully)
            continue;
        for (std::string then : {"rollback", "stop"})
            check_case({place, fault, then});
        cases += 2;
    }
    printf("%s, %s: %zu faults, of which every %lu. was tried, in %lu runs; LIBPM_SEED=%lu\n",
           test::mode().c_str(), place.c_str(), faults.size(), stride, cases, seed);
}

} // namespace

TEST_CASE("each call fails: memory that persists")
{
    fail_everywhere("memory");
}

TEST_CASE("each call fails: memory that persists, at other addresses")
{
    fail_everywhere("elsewhere");
}

TEST_CASE("each call fails: an ordinary file")
{
    fail_everywhere("file");
}

TEST_CASE("each call fails: an old file system")
{
    fail_everywhere("old");
}

TEST_CASE("the workload makes each call")
{
    Counts made;
    for (const char *place : {"memory", "elsewhere", "file", "old"})
        for (auto [call, count] : count_calls(place))
            made[call] += count;
    for (auto [call, count] : made) {
        INFO(call);
        CHECK(count > 0);
    }
}

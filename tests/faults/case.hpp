// One fault in one workload: what fails, and what the program does then. A case has a text, with
// which it is handed to a process and repeated by hand.
#ifndef TESTS_FAULTS_CASE_HPP
#define TESTS_FAULTS_CASE_HPP

#include "common/fixture.hpp"
#include "faults/injector.hpp"

namespace faults
{

struct Case {
    std::string place; // "memory", "elsewhere", "file" or "old"; injector.hpp says more
    Fault fault;
    std::string then; // "retry", "rollback" or "stop"
};

constexpr int STOPPED = 70; // exit status of a process that stops where a call has failed

std::string text_of(const Case &c);
Case case_of(const std::string &text);

// Of all containers of the workload there: small, and with little room for private pages.
pm_options options_in(const std::string &place, unsigned flags);

// The write may be one to the view, a file in memory: then the library says ENOMEM.
bool view_is_full(const Case &c);

// One of the words that | separates is in the text.
bool has_one_of(const std::string &text, const std::string &words);
uint64_t entries_of(const std::string &directory);

// What is wrong with a closed container that should be whole, without holes, and in a version from
// `low` to `high`; empty if nothing.
std::string judge(const std::string &path, const pm_options &options, uint64_t low, uint64_t high);

} // namespace faults

#endif

// Goes through the crashes of a recording, and has what each leaves judged.
#ifndef PM_CRASH_SEARCH_HPP
#define PM_CRASH_SEARCH_HPP

#include "pm/crash/check.hpp"
#include "pm/crash/place.hpp"

#include <chrono>
#include <functional>
#include <unordered_map>

namespace crash
{

// As one says it: "1 event", "2 events".
std::string count(uint64_t n, const std::string &what);

struct Plan {
    uint32_t events; // to crash at, at most, spread over all
    uint64_t seeds;  // of Fate::SOME at each
    std::string check;
    double seconds; // for one check
};

struct Failure {
    sim::Crash crash;
    std::string moment, commits; // in words: when, and what had been committed
    std::string last_line;       // that the program had printed
    Verdict verdict;
    std::string kept; // directory with the containers
};

class Search
{
  public:
    // In `directory` is the recording, and there images are kept.
    Search(const Tape &tape, const Plan &plan, Libpm &libpm, std::string directory);

    // All of the plan. Each state that a crash can leave is judged once. Reported are the first
    // failures of some rows of events at which any crash fails.
    void explore(const std::function<void(const Failure &)> &report);
    // One crash. The check's output is ours.
    void repeat(const sim::Crash &crash, const std::function<void(const Failure &)> &report);

    uint64_t states() const { return states_; }
    uint64_t failures() const { return failures_; }
    uint64_t failed_events() const { return failed_events_; }

  private:
    void visit_event(uint32_t event);
    void visit(const sim::Crash &crash);
    bool judge(const sim::Crash &crash);
    void failed(const sim::Crash &crash, const Verdict &verdict);
    Situation situation(const sim::Crash &crash) const;
    std::string commits_in_words(uint32_t event) const;
    uint64_t key(uint32_t event) const;
    bool is_anything_there(uint32_t event) const;
    void tell_progress(uint32_t event);

    const Tape &tape_;
    const Plan &plan_;
    Libpm &libpm_;
    std::string directory_, check_output_;
    Place place_;
    sim::Memory memory_;
    sim::Cursor cursor_;
    sim::Image image_;
    std::function<void(const Failure &)> report_;
    std::unordered_map<uint64_t, bool> verdicts_; // by key()
    std::string all_output_;
    uint64_t printed_ = UINT64_MAX; // bytes of it are in the file now
    uint64_t states_ = 0, failures_ = 0, failed_events_ = 0;
    uint64_t told_of_ = 0;
    bool failed_before_ = false, failed_now_ = false; // at the last event, and at this one
    std::chrono::steady_clock::time_point start_, told_;
};

} // namespace crash

#endif

// Goes through the crashes of a recording, and has the containers judged after each.
#ifndef PM_CRASH_SEARCH_HPP
#define PM_CRASH_SEARCH_HPP

#include "pm/crash/check.hpp"
#include "pm/crash/place.hpp"

#include <chrono>
#include <functional>
#include <unordered_map>

namespace crash
{

// A number with its noun: "1 event", "2 events".
std::string count(uint64_t n, const std::string &what);

struct Plan {
    uint32_t events; // how many events to crash at, at most; they are spread over all events
    uint64_t seeds;  // how many crashes of Fate::SOME at each event
    std::string check;
    double seconds; // that one check may take
};

struct Failure {
    sim::Crash crash;
    std::string moment, commits; // in words: the moment of the crash, and the commits up to it
    std::string last_line;       // of the program's output up to the crash
    Verdict verdict;
    std::string kept; // directory with the containers as the crash left them
};

class Search
{
  public:
    // `directory` has the recording. Images that failed are kept there, too.
    Search(const Tape &tape, const Plan &plan, Libpm &libpm, std::string directory);

    // Carry out the plan. Each state that a crash can leave is judged once. `report` gets the first failure
    // of a row of consecutive events with failures, for the first few rows.
    void explore(const std::function<void(const Failure &)> &report);
    // Try one crash. The check's output goes to the tool's own output.
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
    uint64_t printed_ = UINT64_MAX; // how many bytes of it the file for the check has now
    uint64_t states_ = 0, failures_ = 0, failed_events_ = 0;
    uint64_t told_of_ = 0;
    bool failed_before_ = false, failed_now_ = false; // at the last event, and at this one
    std::chrono::steady_clock::time_point start_, told_;
};

} // namespace crash

#endif

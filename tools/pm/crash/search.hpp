// Goes through the crashes of a recording, and has what each leaves judged.
#ifndef PM_CRASH_SEARCH_HPP
#define PM_CRASH_SEARCH_HPP

#include "pm/crash/check.hpp"
#include "pm/crash/place.hpp"

#include <chrono>
#include <functional>
#include <unordered_set>

namespace crash
{

struct Plan {
    uint32_t events; // to crash at, spread over all; 0: all
    uint64_t seeds;  // of Fate::SOME at each
    std::string check;
    double seconds; // for one check
};

struct Failure {
    sim::Crash crash;
    std::string moment; // in words
    std::string commits;
    std::string last_line; // that the program had printed
    Verdict verdict;
    std::string kept; // directory with the containers; "" if there are enough already
};

class Search
{
  public:
    // In `directory` is the recording, and there images are kept.
    Search(const Tape &tape, const Plan &plan, std::string directory);

    // All of the plan. Each state that a crash can leave is judged once.
    void explore(const std::function<void(const Failure &)> &report);
    // One crash. The check's output is ours.
    void repeat(const sim::Crash &crash, const std::function<void(const Failure &)> &report);

    uint64_t states() const { return states_; }
    uint64_t failures() const { return failures_; }
    uint64_t failed_events() const { return failed_events_; }

  private:
    void visit_event(uint32_t event);
    void visit(const sim::Crash &crash);
    void judge(const sim::Crash &crash);
    bool is_news(uint32_t event);
    bool is_anything_there(uint32_t event) const;
    void tell_progress();

    const Tape &tape_;
    const Plan &plan_;
    std::string directory_, check_output_;
    Place place_;
    sim::Memory memory_;
    sim::Cursor cursor_;
    sim::Image image_;
    std::function<void(const Failure &)> report_;
    std::unordered_set<uint64_t> seen_;
    std::string all_output_;
    uint64_t states_ = 0, failures_ = 0, failed_events_ = 0;
    uint32_t event_ = 0, last_failed_ = 0;
    std::chrono::steady_clock::time_point start_, told_;
};

} // namespace crash

#endif

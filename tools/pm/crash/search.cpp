// One cursor goes forward through the events. At each event the simulator lists the power failures to try,
// and makes the image of each. If what a check would see has been judged before, the old verdict counts.
// Otherwise the files are put in place, and libpm judges first, then the user's check.
//
// The memory is one verdict for each different state.
#include "pm/crash/search.hpp"

#include "sim/random.hpp"

#include <algorithm>
#include <cinttypes>
#include <fstream>
#include <unistd.h>
#include <utility>

namespace crash
{

// Failures at consecutive events are likely to have one cause, so they count as one row. Only the first
// TOLD_MAX rows are reported.
static constexpr uint64_t TOLD_MAX = 5;

static std::string read_all(const std::string &path)
{
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

Search::Search(const Tape &tape, const Plan &plan, Libpm &libpm, std::string directory)
    : tape_(tape), plan_(plan), libpm_(libpm), directory_(std::move(directory)), place_(tape),
      memory_(tape.start()), cursor_(tape.recording(), memory_, tape.no_commits()),
      all_output_(read_all(directory_ + "/" STREAM_OUTPUT)),
      start_(std::chrono::steady_clock::now()), told_(start_)
{
}

// ---- which crashes -----------------------------------------------------------------------------

bool Search::is_anything_there(uint32_t event) const
{
    for (const Tape::File &f : tape_.files())
        if (f.is_there(event))
            return true;
    return false;
}

void Search::explore(const std::function<void(const Failure &)> &report)
{
    report_ = report;
    check_output_ = directory_ + "/check-output";
    const uint64_t all = tape_.events(), chosen = std::min<uint64_t>(plan_.events, all);
    for (uint64_t i = 0; i < chosen; i++) {
        uint32_t event = (uint32_t)((i + 1) * all / chosen);
        cursor_.advance_to(event);
        failed_before_ = std::exchange(failed_now_, false);
        if (is_anything_there(event))
            visit_event(event);
        failed_events_ += failed_now_;
        tell_progress(event);
    }
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

void Search::visit_event(uint32_t event)
{
    uint64_t seed = sim::mix(event) % 1000000 * 1000;
    for (const sim::Crash &crash : sim::power_failures(memory_, event, seed, plan_.seeds))
        visit(crash);
}

void Search::visit(const sim::Crash &crash)
{
    check_interrupted();
    sim::choose(memory_, crash, image_);
    auto [verdict, is_new] = verdicts_.try_emplace(key(crash.event), true);
    if (is_new)
        verdict->second = judge(crash);
    failed_now_ |= !verdict->second;
}

// Identifies what a check sees. The same bytes may be right after one commit and wrong after two. So the key
// depends on the output and on the commits that had returned, too.
uint64_t Search::key(uint32_t event) const
{
    uint64_t key = image_.hash + sim::mix(tape_.event(event).output);
    for (uint32_t f = 0; f < tape_.files().size(); f++)
        key = sim::mix(key + cursor_.bounds()[f].lower * 2 + tape_.files()[f].is_there(event));
    return key;
}

void Search::repeat(const sim::Crash &crash, const std::function<void(const Failure &)> &report)
{
    report_ = report;
    if (crash.event == 0 || crash.event > tape_.events())
        throw Error("there are only " + std::to_string(tape_.events()) + " events");
    if (!is_anything_there(crash.event))
        throw Error("there is no container yet at event " + std::to_string(crash.event));
    if (crash.fate == sim::Fate::PROCESS)
        throw Error("to die as a process only is what `kept` does");
    cursor_.advance_to(crash.event);
    sim::choose(memory_, crash, image_);
    failed_events_ = !judge(crash);
}

// ---- judging -----------------------------------------------------------------------------------

std::string count(uint64_t n, const std::string &what)
{
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

static std::string in_words(stream_event event)
{
    switch (event) {
    case EVENT_OPEN:
        return "pm_open() returning";
    case EVENT_WRITE_BACK:
        return "a write-back";
    case EVENT_COPY:
        return "a copy past the cache";
    case EVENT_FENCE:
        return "a fence";
    case EVENT_WRITE:
        return "a write(2)";
    case EVENT_SYNC:
        return "a sync";
    case EVENT_RESIZE:
        return "the file growing";
    case EVENT_END:
        return "the program's end";
    }
    return "";
}

static std::string in_words(sim::Fate fate)
{
    switch (fate) {
    case sim::Fate::LOST:
        return "what was not certainly durable is lost";
    case sim::Fate::LOG:
        return "of what was not certainly durable the log is kept";
    case sim::Fate::DATA:
        return "of what was not certainly durable all but the log is kept";
    case sim::Fate::SUBSET:
    case sim::Fate::SOME:
        return "of what was not certainly durable some is kept";
    default:
        return "all is kept, as if only the process died";
    }
}

static std::string last_line(const std::string &printed)
{
    size_t end = printed.find_last_not_of('\n');
    if (end == std::string::npos)
        return "";
    size_t before = printed.rfind('\n', end);
    size_t start = before == std::string::npos ? 0 : before + 1;
    return printed.substr(start, end - start + 1);
}

std::string Search::commits_in_words(uint32_t event) const
{
    std::string text;
    for (uint32_t f = 0; f < tape_.files().size(); f++)
        if (const Tape::File &file = tape_.files()[f]; file.is_there(event))
            text += (text.empty() ? "" : ", ") + count(cursor_.bounds()[f].lower, "commit") +
                    (tape_.files().size() > 1 ? " of " + file.path : "");
    return text + " had returned";
}

Situation Search::situation(const sim::Crash &crash) const
{
    Situation s{sim::to_string(crash), "", directory_ + "/printed", {}};
    for (uint32_t f = 0; f < tape_.files().size(); f++) {
        s.commits += (f ? " " : "") + std::to_string(cursor_.bounds()[f].lower);
        if (tape_.files()[f].is_there(crash.event))
            s.containers.push_back(tape_.files()[f].path);
    }
    return s;
}

bool Search::judge(const sim::Crash &crash)
{
    const Situation s = situation(crash);
    const uint64_t printed = tape_.event(crash.event).output;
    if (printed != printed_) {
        std::ofstream out(s.printed, std::ios::binary);
        if (!(out << all_output_.substr(0, printed)).flush())
            throw Error("cannot write " + s.printed);
        printed_ = printed;
    }
    place_.fill(crash.event, memory_, image_);
    states_++;
    Verdict verdict = libpm_.ask(s.containers);
    if (verdict.good && !plan_.check.empty())
        verdict = ask_command(plan_.check, s, check_output_, plan_.seconds);
    if (!verdict.good)
        failed(crash, verdict);
    return verdict.good;
}

void Search::failed(const sim::Crash &crash, const Verdict &verdict)
{
    failures_++;
    if (failed_now_ || failed_before_ || ++told_of_ > TOLD_MAX)
        return;
    const Tape::Event &event = tape_.event(crash.event);
    Failure failure{crash,
                    "",
                    commits_in_words(crash.event),
                    last_line(all_output_.substr(0, event.output)),
                    verdict,
                    directory_ + "/" + sim::to_string(crash)};
    failure.moment = "at " + in_words(event.kind) + ", event " + std::to_string(crash.event) +
                     " of " + std::to_string(tape_.events()) + ": " + in_words(crash.fate);
    place_.keep(failure.kept, crash.event, memory_, image_);
    report_(failure);
}

// Shows progress: ten times a second on a terminal, else every ten seconds.
void Search::tell_progress(uint32_t event)
{
    using namespace std::chrono;
    auto now = steady_clock::now();
    bool terminal = isatty(STDERR_FILENO);
    if (now - told_ < (terminal ? milliseconds(100) : milliseconds(10000)))
        return;
    told_ = now;
    fprintf(stderr,
            "%sevent %u of %u: %" PRIu64 " crash states, %" PRIu64 " failed, %.0f a second%s",
            terminal ? "\r" : "", event, tape_.events(), states_, failures_,
            (double)states_ / duration<double>(now - start_).count(), terminal ? "\033[K" : "\n");
}

} // namespace crash

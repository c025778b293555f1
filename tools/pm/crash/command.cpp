// Reads the options and runs the parts in their order: the judge, the recording, the search. The judge comes
// first, because it forks. The recording stays if a check failed, so that the printed command can repeat a
// crash.
#include "pm/crash/command.hpp"

#include "pm/crash/record.hpp"
#include "pm/crash/search.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace fs = std::filesystem;

namespace crash
{

namespace
{

struct Options {
    std::string medium, from, crash;
    Plan plan{UINT32_MAX, 4, "", 30};
    std::vector<std::string> program;
};

// Holds the recording, the images that failed, and the check's output. The tool removes the directory
// at its end, unless a check failed or the user named the directory.
class Directory
{
  public:
    explicit Directory(const std::string &existing) : path_(existing), keep_(!existing.empty())
    {
        if (keep_)
            return;
        path_ = fs::temp_directory_path() / "pm-crash-XXXXXX";
        if (!mkdtemp(path_.data()))
            throw Error("cannot make a directory like " + path_);
    }
    ~Directory()
    {
        std::error_code ignored;
        if (!keep_)
            fs::remove_all(path_, ignored);
    }
    const std::string &path() const { return path_; }
    void keep() { keep_ = true; }

  private:
    std::string path_;
    bool keep_;
};

std::string quoted(const std::string &word)
{
    std::string text = "'";
    for (char c : word)
        text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return text + "'";
}

std::string repeat_command(const Options &o, const std::string &directory, const sim::Crash &crash)
{
    std::string text = std::string(program_invocation_name) + " crash --from " + directory +
                       " --crash " + sim::to_string(crash);
    if (!o.plan.check.empty())
        text += " --check " + quoted(o.plan.check);
    return text;
}

void print_failure(const Options &o, const std::string &directory, const Failure &f)
{
    std::cout << "FAILED " << f.moment << "\n  " << f.commits;
    if (!f.last_line.empty())
        std::cout << "; printed last: " << f.last_line;
    std::cout << "\n  " << f.verdict.judge << ": " << f.verdict.outcome << "\n";
    std::istringstream text(f.verdict.text);
    for (std::string line; std::getline(text, line);)
        std::cout << "    | " << line << "\n";
    std::cout << "  what the crash left: " << f.kept
              << "\n  repeat with: " << repeat_command(o, directory, f.crash) << "\n"
              << std::flush;
}

// The number of commits that returned, of all containers together.
uint64_t commits_of(const Tape &tape)
{
    sim::Memory memory = tape.start();
    sim::Cursor cursor(tape.recording(), memory, tape.no_commits());
    cursor.advance_to(tape.events());
    uint64_t commits = 0;
    for (const sim::Bounds &b : cursor.bounds())
        commits += b.lower;
    return commits;
}

void print_recording(const Tape &tape)
{
    std::cout << "recorded: " << count(tape.files().size(), "container") << " on "
              << (tape.kind() == sim::Kind::PMEM ? "persistent memory" : "an ordinary file system")
              << ", " << count(commits_of(tape), "commit") << ", " << count(tape.events(), "event")
              << "\n"
              << std::flush;
}

int run_command(Options &o)
{
    std::optional<sim::Crash> crash = sim::parse_crash(o.crash);
    if (!o.crash.empty() && !crash)
        throw Error("--crash wants EVENT:lost, EVENT:kept, EVENT:log, EVENT:data or "
                    "EVENT:subset:BITS or EVENT:some:SEED, not " +
                    o.crash);
    if (o.program.empty() == o.from.empty())
        throw Error(o.from.empty() ? "which program? Write it behind --"
                                   : "either a program, or a recording by --from");
    catch_interrupts();
    Libpm libpm; // first: it forks, while the process has little memory
    Directory directory(o.from);
    if (o.from.empty())
        record(o.program, directory.path(), o.medium);
    Tape tape(directory.path());
    print_recording(tape);
    auto start = std::chrono::steady_clock::now();
    Search search(tape, o.plan, libpm, directory.path());
    auto report = [&](const Failure &failure) {
        directory.keep();
        print_failure(o, directory.path(), failure);
    };
    if (crash)
        search.repeat(*crash, report);
    else
        search.explore(report);
    double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::cout << count(search.states(), "crash state") << ": ";
    if (search.failures() > 0)
        std::cout << search.failures() << " FAILED, at " << count(search.failed_events(), "event");
    else
        std::cout << "all are as they should be";
    printf(" (%.1f s, %.0f a second)\n", seconds, (double)search.states() / seconds);
    return search.failures() > 0;
}

const char *const epilogue =
    "PROGRAM is run once, with a recorder in place of libpm.so. For each event at which the power\n"
    "may fail, and for several choices of what is on the medium then, the containers are put at\n"
    "their paths as that crash leaves them, libpm recovers and checks them, and CMD is run by\n"
    "sh -c. It exits with 0 if all is well. It is told by its environment:\n"
    "  LIBPM_CRASH_COMMITS  how many calls of pm_commit() had returned (for several containers\n"
    "                       one number each, in the order of their first pm_open())\n"
    "  LIBPM_CRASH_OUTPUT   a file with what the program had printed\n"
    "  LIBPM_CRASH_EVENT    the crash, as for --crash\n"
    "Exit status: 0 if no crash failed, 1 if one did, 2 if nothing can be said.\n";

} // namespace

void add_command(CLI::App &app, int &status)
{
    auto options = std::make_shared<Options>();
    CLI::App *command =
        app.add_subcommand("crash", "Crash a program everywhere and check what is left");
    command->footer(epilogue);
    command->add_option("--check", options->plan.check, "Command that judges what a crash left")
        ->type_name("CMD");
    command
        ->add_option("--events", options->plan.events, "Crash at so many events, spread over all")
        ->type_name("N")
        ->check(CLI::Range(1u, UINT32_MAX).description(""))
        ->default_str("all");
    command->add_option("--seeds", options->plan.seeds, "Random choices of what is lost, per event")
        ->type_name("N")
        ->check(CLI::Range(0u, UINT32_MAX).description(""))
        ->capture_default_str();
    command
        ->add_option("--medium", options->medium, "Take containers to be there; else as they are")
        ->type_name("pmem|file")
        ->check(CLI::IsMember({"pmem", "file"}).description(""));
    command->add_option("--timeout", options->plan.seconds, "Seconds that one check may take")
        ->type_name("S")
        ->check(CLI::Range(1.0, 86400.0).description(""))
        ->capture_default_str();
    command->add_option("--from", options->from, "Use the recording that is in a directory")
        ->type_name("DIR");
    command->add_option("--crash", options->crash, "Only this crash; the check's output is shown")
        ->type_name("CRASH");
    command->add_option("program", options->program, "The program and its arguments, behind --");
    command->callback([options, &status] { status = run_command(*options); });
}

} // namespace crash

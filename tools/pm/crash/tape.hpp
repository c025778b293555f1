// Reads the recording of a program: every container of the program, and the memory at each event.
//
// Events are numbered from 1. A crash at event e comes after everything before e was issued, and before
// e itself has any effect. The last event is the program's end.
#ifndef PM_CRASH_TAPE_HPP
#define PM_CRASH_TAPE_HPP

#include "sim/recording.hpp"
#include "sim/stream.h"

#include <map>
#include <stdexcept>
#include <string>

namespace crash
{

// A message for the user, instead of a report.
struct Error : std::runtime_error {
    using runtime_error::runtime_error;
};

class Tape
{
  public:
    struct File {
        std::string path;
        uint32_t from;  // the file exists at crashes after this event,
        uint32_t until; // and up to this one
        bool is_there(uint32_t event) const { return event > from && event <= until; }
    };
    struct Event {
        stream_event kind;
        uint32_t file;
        uint64_t output; // how many bytes the program had printed
    };

    // Read the recording in the directory. If the program has just been run, the present contents of
    // the files are added as the program's end.
    explicit Tape(const std::string &directory);

    uint32_t events() const { return (uint32_t)events_.size(); }
    const Event &event(uint32_t number) const { return events_[number - 1]; }
    const std::vector<File> &files() const { return files_; }
    sim::Kind kind() const { return kind_; }
    // The memory before the first event. A file that is created later has its first contents already.
    sim::Memory start() const;
    const sim::Recording &recording() const { return recording_; }
    // For each file no commit yet: none has returned, none was carried out.
    std::vector<sim::Bounds> no_commits() const
    {
        return std::vector<sim::Bounds>(files_.size(), {0, 0});
    }

  private:
    using Name = std::pair<uint32_t, uint32_t>; // a file: the process, and the file's number there

    struct Opening {
        uint64_t flags;
        std::string path;
        std::vector<char> contents;
    };

    void read();
    void end();
    void take(const stream_record &r, const char *payload);
    void open(const stream_record &r, const std::string &path);
    void fill(std::vector<char> &contents, const stream_record &r, const char *payload) const;
    void opened(Name name, Opening opening);
    void stored_elsewhere(uint32_t file, const std::vector<char> &contents);
    void happened(uint32_t file, const stream_record &r);
    void change(uint32_t file, uint64_t offset, const char *bytes, uint64_t size);
    std::vector<uint64_t> differences(uint32_t file, const std::vector<char> &now) const;
    void note(uint32_t file, const stream_record &r);
    uint32_t find(const std::string &path) const;
    uint32_t number(Name name) const;
    [[noreturn]] void damaged() const;
    void add(sim::Step::Kind kind, sim::Unit unit, uint32_t count = 0, uint64_t value = 0);

    std::string directory_;
    sim::Kind kind_ = sim::Kind::PMEM;
    std::vector<File> files_;
    std::vector<Event> events_;
    sim::Recording recording_;
    std::vector<std::vector<char>> first_, newest_; // contents
    std::vector<sim::Bounds> commits_;
    std::vector<std::vector<uint64_t>> epochs_; // of each file's commits
    std::map<Name, uint32_t> names_;
    std::map<Name, Opening> openings_; // files between their STREAM_OPEN and their EVENT_OPEN
};

} // namespace crash

#endif

// Turns the recorder's stream into steps of a sim::Recording. Containers are numbered in the order of their
// first opening, and other processes' numbers are translated.
//
// If the stream lacks the program's end, the files are compared with what was seen last. The differences and
// the end are added to the stream, so a later --from reads the same.
#include "pm/crash/tape.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

extern "C" {
#include "container/format.h"
}

namespace crash
{

static constexpr uint32_t NONE = UINT32_MAX;

Tape::Tape(const std::string &directory) : directory_(directory)
{
    read();
    if (files_.empty())
        throw Error("until the program ended it opened no container for writing through the shared "
                    "libpm. If it goes on in the background, run it in the foreground; if it is "
                    "linked with libpm.a, link it with libpm.so: `ldd PROGRAM` must show it");
    if (events_.back().kind != EVENT_END)
        end();
}

void Tape::read()
{
    const std::string path = directory_ + "/" + STREAM_FILE;
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw Error("there is no recording in " + directory_);
    stream_record r;
    std::vector<char> payload;
    bool started = false;
    while (in.read(reinterpret_cast<char *>(&r), sizeof r)) {
        payload.resize(r.size);
        if (!in.read(payload.data(), r.size))
            throw Error(path + " ends inside a record");
        started = true;
        take(r, payload.data());
    }
    if (!started)
        throw Error("the program did not load the recorder. Is it a static executable, or setuid? "
                    "Link it with the shared libpm");
}

sim::Memory Tape::start() const
{
    sim::Memory memory;
    memory.start(kind_, first_);
    return memory;
}

void Tape::add(sim::Step::Kind kind, sim::Unit unit, uint32_t count, uint64_t value)
{
    recording_.add({kind, recording_.now(), unit, count, nullptr, value});
}

uint32_t Tape::find(const std::string &path) const
{
    for (uint32_t f = 0; f < files_.size(); f++)
        if (files_[f].path == path && files_[f].until == NONE)
            return f;
    return NONE;
}

uint32_t Tape::number(Name name) const
{
    auto at = names_.find(name);
    if (at == names_.end())
        damaged();
    return at->second;
}

void Tape::damaged() const
{
    throw Error("the recording in " + directory_ + " is damaged");
}

void Tape::take(const stream_record &r, const char *payload)
{
    const Name name{r.process, r.file};
    switch (r.kind) {
    case STREAM_OPEN:
        open(r, std::string(payload, r.size));
        break;
    case STREAM_CONTENTS:
        fill(openings_[name].contents, r, payload);
        break;
    case STREAM_CHANGE:
        change(number(name), r.offset, payload, r.size);
        break;
    case STREAM_EVENT:
        if (r.value == EVENT_OPEN)
            if (auto opening = openings_.extract(name))
                opened(name, std::move(opening.mapped()));
        happened(number(name), r);
        break;
    case STREAM_COMMITTED:
    case STREAM_DURABLE:
        note(number(name), r);
        break;
    case STREAM_UNSAFE:
        throw Error(
            files_[number(name)].path +
            " was opened with PM_UNSAFE_POWER on an ordinary file, where no commit promises "
            "to survive a power failure. With --medium pmem it is taken for persistent "
            "memory");
    case STREAM_DELETED:
        if (uint32_t f = find(std::string(payload, r.size)); f != NONE)
            files_[f].until = recording_.now();
    }
}

void Tape::open(const stream_record &r, const std::string &path)
{
    openings_[{r.process, r.file}] = {r.value, path, std::vector<char>(r.offset)};
}

void Tape::fill(std::vector<char> &contents, const stream_record &r, const char *payload) const
{
    if (r.offset > contents.size() || r.size > contents.size() - r.offset)
        damaged();
    std::copy_n(payload, r.size, contents.begin() + (ptrdiff_t)r.offset);
}

// Called when the file's contents at its opening are known, just before the event EVENT_OPEN.
void Tape::opened(Name name, Opening opening)
{
    sim::Kind kind = opening.flags & STREAM_PMEM ? sim::Kind::PMEM : sim::Kind::FILE;
    if (!files_.empty() && kind != kind_)
        throw Error("some containers are on an ordinary file system and others are not; put all on "
                    "one, or choose with --medium");
    kind_ = kind;
    bool created = opening.flags & STREAM_CREATED;
    uint32_t f = find(opening.path);
    if (f != NONE && created) { // the program deleted it without pm_delete()
        files_[f].until = recording_.now();
        f = NONE;
    }
    if (f == NONE) {
        f = (uint32_t)files_.size();
        if (f == 1u << (32 - sim::UNIT_BITS))
            throw Error("the program opened too many containers");
        files_.push_back({opening.path, created ? recording_.now() + 1 : 0, NONE});
        names_[{0, f}] = f;
        first_.push_back(opening.contents);
        newest_.push_back(std::move(opening.contents));
        commits_.push_back({0, 0});
        epochs_.emplace_back();
    } else {
        stored_elsewhere(f, opening.contents);
    }
    names_[name] = f;
}

static bool was_closed(const std::vector<char> &contents)
{
    uint64_t mark = MARK_NONE;
    if (contents.size() >= FORMAT_MARK + sizeof mark)
        memcpy(&mark, contents.data() + FORMAT_MARK, sizeof mark);
    return mark == MARK_CLOSED;
}

// Another process has stored to the file, and the recorder did not see it. If that process closed the
// container, all was durable when this one opened it. Otherwise nobody knows what was.
void Tape::stored_elsewhere(uint32_t file, const std::vector<char> &contents)
{
    const std::vector<uint64_t> offsets = differences(file, contents);
    const uint32_t unit = sim::unit_bytes(kind_);
    const bool closed = !offsets.empty() && was_closed(contents);
    for (uint64_t at : offsets) {
        change(file, at, contents.data() + at, unit);
        if (kind_ == sim::Kind::PMEM && closed)
            add(sim::Step::QUEUE, sim::unit_of(file, at / unit), 1);
    }
    if (!closed)
        return;
    if (kind_ == sim::Kind::PMEM) {
        add(sim::Step::FENCE, 0);
    } else {
        add(sim::Step::BEGIN_SYNC, file);
        add(sim::Step::SYNC, file);
    }
}

void Tape::happened(uint32_t file, const stream_record &r)
{
    bool whole = r.value == EVENT_FENCE || r.value == EVENT_SYNC || r.value == EVENT_END;
    recording_.begin_event(whole);
    events_.push_back({(stream_event)r.value, file, r.output});
    const uint32_t unit = sim::unit_bytes(kind_);
    switch (r.value) {
    case EVENT_WRITE_BACK:
    case EVENT_COPY:
        if (kind_ == sim::Kind::PMEM && r.length > 0) {
            uint64_t first = r.offset / unit, last = (r.offset + r.length - 1) / unit;
            add(sim::Step::QUEUE, sim::unit_of(file, first), (uint32_t)(last - first + 1));
        }
        break;
    case EVENT_FENCE:
        add(sim::Step::FENCE, 0);
        break;
    case EVENT_SYNC: // on persistent memory libpm syncs only because the file has grown
        if (kind_ == sim::Kind::FILE) {
            add(sim::Step::BEGIN_SYNC, file);
            add(sim::Step::SYNC, file);
        } else {
            add(sim::Step::SYNC_SIZE, file);
        }
        break;
    case EVENT_RESIZE:
        add(sim::Step::RESIZE, file, 0, r.length);
        newest_[file].resize(r.length);
    }
}

void Tape::change(uint32_t file, uint64_t offset, const char *bytes, uint64_t size)
{
    const uint32_t unit = sim::unit_bytes(kind_);
    for (uint64_t at = 0; at < size; at += unit) {
        sim::Unit u = sim::unit_of(file, (offset + at) / unit);
        const char *kept = recording_.keep(bytes + at, unit);
        // The recorder saw the change at the event that follows.
        recording_.add(
            {sim::Step::CHANGE, recording_.now() + 1, u, 1, kept, sim::unit_hash(u, kept, unit)});
    }
    std::copy(bytes, bytes + size, newest_[file].begin() + (ptrdiff_t)offset);
}

// Offsets of the units that differ from those seen last.
std::vector<uint64_t> Tape::differences(uint32_t file, const std::vector<char> &now) const
{
    const std::vector<char> &before = newest_[file];
    if (now.size() != before.size())
        throw Error(files_[file].path + " was resized, but not by libpm");
    std::vector<uint64_t> offsets;
    for (uint64_t at = 0; at < now.size(); at += sim::unit_bytes(kind_))
        if (memcmp(now.data() + at, before.data() + at, sim::unit_bytes(kind_)) != 0)
            offsets.push_back(at);
    return offsets;
}

void Tape::note(uint32_t file, const stream_record &r)
{
    std::vector<uint64_t> &epochs = epochs_[file];
    if (r.kind == STREAM_COMMITTED)
        epochs.push_back(r.value);
    auto end = std::upper_bound(epochs.begin(), epochs.end(), r.value);
    commits_[file].upper = epochs.size();
    if (r.kind == STREAM_DURABLE)
        commits_[file].lower = std::max(commits_[file].lower, (uint64_t)(end - epochs.begin()));
    recording_.set_bounds(file, commits_[file]);
}

// Adds the program's end. The tool writes its own observations to the recorder's file.
void Tape::end()
{
    std::ofstream out(directory_ + "/" + STREAM_FILE, std::ios::binary | std::ios::app);
    auto observe = [&](const stream_record &r, const char *payload) {
        out.write(reinterpret_cast<const char *>(&r), sizeof r).write(payload, r.size);
        take(r, payload);
    };
    for (uint32_t f = 0; f < files_.size(); f++) {
        const std::string &path = files_[f].path;
        if (files_[f].until != NONE)
            continue;
        stream_record r{};
        r.file = f;
        std::ifstream in(path, std::ios::binary);
        if (!in) {
            r.kind = STREAM_DELETED;
            r.size = (uint32_t)path.size();
            observe(r, path.data());
            continue;
        }
        std::vector<char> now{std::istreambuf_iterator<char>(in), {}};
        now.resize((now.size() + STREAM_UNIT_MAX - 1) / STREAM_UNIT_MAX * STREAM_UNIT_MAX);
        r.kind = STREAM_CHANGE;
        r.size = sim::unit_bytes(kind_);
        for (uint64_t at : differences(f, now)) {
            r.offset = at;
            observe(r, now.data() + at);
        }
    }
    stream_record last{};
    last.kind = STREAM_EVENT;
    last.value = EVENT_END;
    last.output = std::filesystem::file_size(directory_ + "/" + STREAM_OUTPUT);
    observe(last, nullptr);
    if (!out.flush())
        throw Error("cannot write to " + directory_);
}

} // namespace crash

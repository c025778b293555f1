// Makes the image that a crash leaves. A Chooser asks for each dirty unit which of its versions is on the
// medium. Most fates are a fixed rule. Under Fate::SOME the seed first draws a mood, and then decides about
// the units. The segment table in memory says which units are log.
//
// The same memory and the same crash always give the same image. It takes time linear in the dirty units.
#include "sim/crash.hpp"

#include "sim/random.hpp"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

extern "C" {
#include "container/format.h"
}

namespace sim
{

namespace
{

// If at most this many units are dirty, all subsets are tried.
constexpr size_t SUBSETS_MAX = 3;

constexpr std::array<const char *, 7> names = {"lost",   "kept", "log",    "data",
                                               "subset", "some", "process"};

// True if the unit lies in a segment that the newest segment table calls log.
bool is_log(const Memory &m, Unit unit)
{
    format_header header;
    uint32_t f = file_of(unit);
    memcpy(&header, m.floor_of(f) + FORMAT_HEADER_A, sizeof header);
    if (header.segment_size < FORMAT_SEGMENT_MIN)
        return false; // something other than libpm has written to the file
    uint64_t segment = (uint64_t)number_of(unit) * m.bytes() / header.segment_size;
    uint64_t at = FORMAT_TABLE + segment * sizeof(uint64_t), word;
    memcpy(&word, m.newest(unit_of(f, at / m.bytes())) + at % m.bytes(), sizeof word);
    return segment_kind(word) == SEGMENT_LOG;
}

// The ways in which a seed decides. With uniform choices alone, a crash would hardly ever keep a whole
// record and lose one line that the record relies on.
enum class Mood {
    EACH,      // each unit by itself: lost, kept, an older version, or torn
    BUT_FEW,   // all kept, except one or two
    FEW,       // all lost, except one or two
    BLOCKS,    // all units in a run of 4 KiB, or of 256 KiB, are kept or all are lost
    LOG_EACH,  // data kept, each unit of the log by itself
    DATA_EACH, // log kept, each unit of data by itself
    OLD,       // all kept, but many in an older version
};
constexpr uint64_t MOODS = 7;

class Chooser
{
  public:
    Chooser(const Memory &memory, const Crash &crash, Image &image)
        : m_(memory), crash_(crash), image_(image), random_(crash.seed),
          mood_((Mood)random_.below(MOODS))
    {
        size_t n = m_.dirty().size();
        few_[0] = n ? random_.below(n) : 0;
        few_[1] = n && random_.below(2) ? random_.below(n) : few_[0];
        block_ = random_.below(2) ? 12 : 18;
    }

    void choose()
    {
        image_.choices.clear();
        image_.torn.clear();
        image_.torn.reserve(m_.dirty().size() * m_.bytes()); // so that the bytes do not move
        image_.floor_hash = m_.floor_hash();
        choose_sizes();
        for (size_t i = 0; i < m_.dirty().size(); i++) {
            const Dirty &d = m_.dirty()[i];
            if (crash_.fate == Fate::SOME)
                choose_some(d, i);
            else if (is_kept(d, i))
                keep(d, d.newest());
        }
        image_.hash = image_.floor_hash;
        for (uint64_t size : image_.sizes)
            image_.hash = mix(image_.hash + size);
    }

  private:
    bool is_kept(const Dirty &d, size_t i) const
    {
        switch (crash_.fate) {
        case Fate::KEPT:
            return true;
        case Fate::LOG:
            return is_log(m_, d.unit);
        case Fate::DATA:
            return !is_log(m_, d.unit);
        case Fate::SUBSET:
            return i < 64 && crash_.seed >> i & 1;
        default:
            return false;
        }
    }

    void keep(const Dirty &d, const Version &version)
    {
        if ((uint64_t)number_of(d.unit) * m_.bytes() >= image_.sizes[file_of(d.unit)])
            return; // lost with the end of the file
        const char *floor = m_.floor(d.unit);
        image_.floor_hash ^= unit_hash(d.unit, floor, m_.bytes()) ^ version.hash;
        image_.choices.push_back({d.unit, version});
    }

    void tear(const Dirty &d)
    {
        // Each word may be of any version, independently of the other words.
        char *to = image_.torn.data() + image_.torn.size();
        image_.torn.resize(image_.torn.size() + m_.bytes());
        for (uint32_t w = 0; w < m_.bytes(); w += 8) {
            uint64_t v = random_.below(d.versions.size() + 1);
            memcpy(to + w, (v == 0 ? m_.floor(d.unit) : d.versions[v - 1].bytes) + w, 8);
        }
        keep(d, {to, unit_hash(d.unit, to, m_.bytes())});
    }

    void choose_each(const Dirty &d)
    {
        switch (random_.below(m_.kind() == Kind::PMEM ? 4 : 3)) {
        case 0:
            break;
        case 1:
            keep(d, d.newest());
            break;
        case 2:
            keep(d, d.versions[random_.below(d.versions.size())]);
            break;
        default:
            tear(d);
        }
    }

    void choose_some(const Dirty &d, size_t i)
    {
        bool among = i == few_[0] || i == few_[1];
        uint64_t block = (uint64_t)d.unit * m_.bytes() >> block_;
        switch (mood_) {
        case Mood::EACH:
            choose_each(d);
            break;
        case Mood::BUT_FEW:
            if (among)
                choose_each(d);
            else
                keep(d, d.newest());
            break;
        case Mood::FEW:
            if (among)
                choose_each(d);
            break;
        case Mood::BLOCKS:
            if (mix(crash_.seed ^ mix(block)) & 1)
                keep(d, d.newest());
            break;
        case Mood::LOG_EACH:
        case Mood::DATA_EACH:
            if (is_log(m_, d.unit) == (mood_ == Mood::LOG_EACH))
                choose_each(d);
            else
                keep(d, d.newest());
            break;
        case Mood::OLD:
            keep(d, random_.below(2) ? d.newest() : d.versions[random_.below(d.versions.size())]);
        }
    }

    void choose_sizes()
    {
        image_.sizes.clear();
        for (uint32_t f = 0; f < m_.files(); f++) {
            const std::vector<uint64_t> &sizes = m_.sizes(f);
            uint64_t size = crash_.fate == Fate::LOST   ? sizes.front()
                            : crash_.fate == Fate::SOME ? sizes[random_.below(sizes.size())]
                                                        : sizes.back();
            image_.sizes.push_back(size);
        }
    }

    const Memory &m_;
    const Crash &crash_;
    Image &image_;
    Random random_;
    Mood mood_;
    size_t few_[2];
    unsigned block_; // log2 of a block's bytes
};

} // namespace

std::vector<Crash> power_failures(const Memory &memory, uint32_t event, uint64_t first,
                                  uint64_t seeds)
{
    std::vector<Crash> all = {{event, Fate::KEPT, 0}};
    if (memory.clean())
        return all;
    for (Fate fate : {Fate::LOST, Fate::LOG, Fate::DATA})
        all.push_back({event, fate, 0});
    size_t n = memory.dirty().size(); // the empty and the full subset were added above
    for (uint64_t subset = 1; n <= SUBSETS_MAX && subset + 1 < UINT64_C(1) << n; subset++)
        all.push_back({event, Fate::SUBSET, subset});
    for (uint64_t i = 0; i < seeds; i++)
        all.push_back({event, Fate::SOME, first + i});
    return all;
}

void choose(const Memory &memory, const Crash &crash, Image &image)
{
    Chooser(memory, crash, image).choose();
}

std::string to_string(const Crash &crash)
{
    std::string text = std::to_string(crash.event) + ":" + names[(size_t)crash.fate];
    bool has_seed = crash.fate == Fate::SUBSET || crash.fate == Fate::SOME;
    return has_seed ? text + ":" + std::to_string(crash.seed) : text;
}

std::optional<Crash> parse_crash(const std::string &text)
{
    Crash crash{};
    char name[16];
    int n = sscanf(text.c_str(), "%" SCNu32 ":%15[a-z]:%" SCNu64, &crash.event, name, &crash.seed);
    auto fate = std::find(names.begin(), names.end(), std::string(n < 2 ? "" : name));
    crash.fate = (Fate)(fate - names.begin());
    if (fate == names.end() || to_string(crash) != text)
        return std::nullopt;
    return crash;
}

} // namespace sim

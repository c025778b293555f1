// A depth-first search through crashes of crashes. Each depth has a recording, a memory and an image of its
// own. A crash is skipped if it leaves contents and bounds that were already visited at this depth or above.
//
// Seeds and nested crashes follow from a hash of the crashes up to here. So the path of a violation is
// enough to repeat it.
#include "sim/explorer.hpp"

#include "sim/random.hpp"

#include <algorithm>

namespace sim
{

// ---- sessions ----------------------------------------------------------------------------------

void Session::set(uint32_t container, Bounds bounds)
{
    bounds_[container] = bounds;
    if (Recording *r = device_.recording())
        r->set_bounds(container, bounds);
}

void Session::found(uint32_t container, uint64_t commits)
{
    const Bounds &b = bounds_[container];
    if (commits < b.lower || commits > b.upper)
        throw Violation("container " + std::to_string(container) + " is at commit " +
                        std::to_string(commits) + "; " + std::to_string(b.lower) +
                        " had returned and " + std::to_string(b.upper) + " begun");
    set(container, {commits, commits}); // it has recovered, so this state is durable now
}

void Session::begun(uint32_t container, uint64_t commits)
{
    set(container, {bounds_[container].lower, commits});
}

void Session::returned(uint32_t container, uint64_t commits)
{
    const Bounds &b = bounds_[container];
    set(container, {std::max(commits, b.lower), b.upper});
}

void Session::end()
{
    device_.tick();
    device_.record(nullptr);
}

// ---- exploring ---------------------------------------------------------------------------------

void Counts::operator+=(const Counts &other)
{
    events += other.events;
    crashes += other.crashes;
    states += other.states;
    deaths += other.deaths;
    recoveries += other.recoveries;
}

Explorer::Explorer(Device &device, Subject &subject, const Plan &plan, States &states)
    : device_(device), subject_(subject), plan_(plan), states_(states)
{
}

Explorer::Level &Explorer::level(size_t depth)
{
    while (levels_.size() <= depth)
        levels_.push_back(std::make_unique<Level>());
    return *levels_[depth];
}

uint64_t Explorer::path_hash() const
{
    uint64_t hash = 0;
    for (const Crash &c : path_)
        hash = mix(hash + c.event + ((uint64_t)c.fate << 32) + mix(c.seed));
    return hash;
}

void Explorer::run_first()
{
    Level &first = level(0);
    std::vector<Bounds> bounds(device_.paths().size(), {0, 0});
    {
        Session create(device_, bounds, 0, true); // creation is atomic by itself
        subject_.run(create);
    }
    first.memory.start(device_.kind(), device_.contents());
    first.recording.clear();
    device_.record(&first.recording, is_exhaustive());
    Session session(device_, bounds, plan_.transactions, true);
    subject_.run(session);
    device_.look_everywhere(first.recording.now() + 1);
    device_.record(nullptr);
    counts_.events = first.recording.now();
}

void Explorer::explore()
{
    run_first();
    visit_all(0, std::vector<Bounds>(device_.paths().size(), {0, 0}));
}

void Explorer::repeat(const std::vector<Crash> &crashes)
{
    run_first();
    std::vector<Bounds> bounds(device_.paths().size(), {0, 0});
    for (size_t i = 0; i < crashes.size(); i++) {
        const uint32_t last = level(i).recording.now() + 1;
        if (crashes[i].event == 0 || crashes[i].event > last)
            throw std::out_of_range("there is no event " + std::to_string(crashes[i].event) +
                                    " to crash at, but 1 to " + std::to_string(last));
        Cursor cursor(level(i).recording, level(i).memory, bounds);
        cursor.advance_to(crashes[i].event);
        bounds = cursor.bounds();
        (void)is_news(cursor, crashes[i], i); // makes the image
        strike(cursor, crashes[i], i, i + 1 < crashes.size());
        path_.push_back(crashes[i]);
    }
}

void Explorer::visit_all(size_t depth, std::vector<Bounds> bounds)
{
    Level &l = level(depth);
    Cursor cursor(l.recording, l.memory, std::move(bounds));
    for (uint32_t event = 1; event <= l.recording.now() + 1; event++) {
        cursor.advance_to(event);
        visit_event(cursor, event, depth);
    }
}

void Explorer::visit_event(Cursor &cursor, uint32_t event, size_t depth)
{
    const Recording &r = level(depth).recording;
    auto visit = [&](const Crash &crash) {
        if (!is_news(cursor, crash, depth))
            return;
        bool record = depth + 1 < plan_.depth && plan_.nested > 0;
        std::vector<Bounds> bounds = cursor.bounds();
        if (!strike(cursor, crash, depth, record))
            return;
        path_.push_back(crash);
        if (is_exhaustive())
            visit_all(depth + 1, std::move(bounds));
        else
            visit_some(depth + 1, std::move(bounds));
        path_.pop_back();
    };
    uint64_t seed = mix(path_hash() + event) % 1000000 * 1000; // short, so that people can type it
    for (const Crash &crash : power_failures(cursor.memory(), event, seed, plan_.seeds))
        visit(crash);
    if (!cursor.memory().clean() && (event > r.now() || r.is_whole(event)))
        visit({event, Fate::PROCESS, 0});
}

// Crash at plan_.nested events of the recording. The hash of the path to here chooses them.
void Explorer::visit_some(size_t depth, std::vector<Bounds> bounds)
{
    static constexpr Fate fates[] = {Fate::SOME, Fate::SOME, Fate::SOME, Fate::LOST,
                                     Fate::LOG,  Fate::DATA, Fate::KEPT, Fate::PROCESS};
    Level &l = level(depth);
    Random random(path_hash());
    std::vector<Crash> crashes;
    for (uint64_t i = 0; i < plan_.nested; i++) {
        Crash crash{1 + (uint32_t)random.below(l.recording.now() + 1), fates[random.below(8)],
                    random.below(1000000)};
        if (crash.fate == Fate::PROCESS && crash.event <= l.recording.now() &&
            !l.recording.is_whole(crash.event))
            crash.fate = Fate::SOME;
        crashes.push_back(crash);
    }
    std::sort(crashes.begin(), crashes.end(),
              [](const Crash &a, const Crash &b) { return a.event < b.event; });
    Cursor cursor(l.recording, l.memory, std::move(bounds));
    for (const Crash &crash : crashes) {
        cursor.advance_to(crash.event);
        if (!is_news(cursor, crash, depth))
            continue;
        bool record = depth + 1 < plan_.depth && mix(path_hash() + crash.event) % 16 == 0;
        std::vector<Bounds> before = cursor.bounds();
        if (!strike(cursor, crash, depth, record))
            continue;
        path_.push_back(crash);
        visit_some(depth + 1, std::move(before));
        path_.pop_back();
    }
}

// True if the state after the crash is new. For a power failure, it makes the level's image.
bool Explorer::is_news(const Cursor &cursor, const Crash &crash, size_t depth)
{
    const Memory &memory = cursor.memory();
    Image &image = level(depth).image;
    counts_.crashes++;
    uint64_t hash;
    if (crash.fate == Fate::PROCESS) {
        hash = mix(memory.whole_hash());
    } else {
        choose(memory, crash, image);
        hash = image.hash;
        counts_.states += states_.insert(hash).second;
    }
    uint64_t key = hash;
    for (const Bounds &b : cursor.bounds())
        key = mix(key ^ mix(b.lower) ^ (b.upper - b.lower));
    auto [at, is_new] = visited_.try_emplace(key, depth);
    if (!is_new && at->second <= depth)
        return false;
    at->second = depth;
    counts_.deaths += crash.fate == Fate::PROCESS;
    return true;
}

// Carry out the crash that is_news() was just asked about, and run the subject: recovery, checks, some
// transactions. Returns whether the run was recorded, as the next level.
bool Explorer::strike(Cursor &cursor, const Crash &crash, size_t depth, bool record)
{
    const Memory &memory = cursor.memory();
    bool power = crash.fate != Fate::PROCESS;
    Image &image = level(depth).image;
    path_.push_back(crash);
    uint64_t hash = path_hash();
    if (power)
        device_.load(memory, image);
    else
        device_.load_newest(memory);
    Level &next = level(depth + 1);
    if (record) {
        next.recording.clear();
        if (power)
            next.memory.start(memory, image);
        else
            next.memory.start(memory);
        device_.record(&next.recording, is_exhaustive());
    }
    // An error of recovery may show only when the container is used again.
    uint64_t more = hash % 4 == 0 ? 1 + hash / 4 % 3 : 0;
    Session session(device_, cursor.bounds(), more, hash / 64 % 4 == 0);
    subject_.run(session);
    if (record && device_.recording())
        device_.look_everywhere(next.recording.now() + 1);
    device_.record(nullptr);
    counts_.recoveries++;
    path_.pop_back();
    return record;
}

} // namespace sim

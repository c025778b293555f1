#include "nvmkv/ftl.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_set>

namespace nvmkv
{
namespace
{

constexpr size_t retired_max = 16384; // a power of two
constexpr std::chrono::seconds patience{2};

// How many objects the replacement of one extent may retire: its two objects, and all nodes on its path.
constexpr size_t retired_by_extent = 2 + address_bits / 4 - 1;

pm::options container_options(const Ftl::Options &ours)
{
    pm::options options;
    options.flags = ours.flags | PM_MOVABLE;
    options.layout = "nvmkv/1";
    options.max_size = ours.max_size;
    options.segment_size = ours.segment_size;
    if (!(ours.flags & PM_READONLY)) { // this code announces all stores: see announce()
        options.engine = ours.engine;
        options.tracker = PM_TRACKER_STORES;
        options.flags |= PM_ANNOUNCED;
    }
    return options;
}

} // namespace

void fail(int error, const std::string &what)
{
    throw std::system_error(error, std::generic_category(), what);
}

void fail_unfinished(const std::string &path)
{
    fail(ENODATA, path + ": its creation was cut short; create it once more, or delete it");
}

Range check_range(Range range)
{
    if (range.count == 0 || range.first >= sectors_end || range.count > sectors_end - range.first)
        fail(EINVAL, "sectors " + std::to_string(range.first) + " to " +
                         std::to_string(range.first + range.count) +
                         " are no part of the address space of 2^48");
    return range;
}

Range check_whole(uint64_t first, size_t bytes)
{
    if (bytes % sector_size != 0)
        fail(EINVAL, "sector " + std::to_string(first) + ": " + std::to_string(bytes) +
                         " bytes are no whole sectors of 512");
    return check_range({first, bytes / sector_size});
}

struct FtlRoot {
    // Every change stores to these counts, and announces the stores at its beginning.
    struct Counts {
        // Positions in the ring of retired objects, taken modulo retired_max. They only grow. The objects
        // in [freed, end) wait to be freed.
        uint64_t freed, end;
        uint64_t extents, sectors; // mapped
    } counts;
    RadixNode top;
    void *retired[retired_max];
};

// ---- Opening

Ftl::Ftl(const std::string &path, const Options &options)
    : path_(path), container_(path, container_options(options)), durability_(options.durability),
      readonly_(options.flags & PM_READONLY)
{
    root_ = container_.root<FtlRoot>();
    if (!root_) {
        if (!(options.flags & PM_CREATE))
            fail_unfinished(path);
        create();
    }
    map_ = std::make_unique<Radix>(container_.get(), &root_->top);
    free_until_ = root_->counts.end;
    if (root_->counts.freed != root_->counts.end && !readonly_) {
        announce(&root_->counts, sizeof root_->counts);
        free_retired();
        container_.commit();
    }
}

void Ftl::create()
{
    root_ = static_cast<FtlRoot *>(
        pm_malloc_typed(container_.get(), PM_TYPE(FtlRoot, top.children, retired), 1));
    if (!root_)
        throw pm::error();
    container_.set_root(root_);
    container_.commit();
}

Ftl::~Ftl()
{
    for (uint64_t sequence = reclaimed_ + 1; sequence <= started_; sequence++)
        delete changes_[sequence % changes_max].load();
}

// ---- Retired objects

// Forget the changes that no snapshot needs any more: a change must be visible, and no snapshot from before
// it may be held.
void Ftl::reclaim()
{
    const uint64_t visible = visible_.load();
    const uint64_t until = std::min(visible, readers_.oldest());
    while (reclaimed_ < until) {
        std::unique_ptr<Change> change(changes_[++reclaimed_ % changes_max].exchange(nullptr));
        free_until_ = change->retired_end;
    }
}

void Ftl::free_retired()
{
    for (; root_->counts.freed != free_until_; root_->counts.freed++)
        if (pm_free(root_->retired[root_->counts.freed % retired_max]) != 0)
            throw pm::error();
}

void Ftl::retire(void *object)
{
    void *&entry = root_->retired[root_->counts.end++ % retired_max];
    announce(&entry, sizeof entry);
    entry = object;
}

// Make room to retire so many objects, and to remember one change. Waits for readers, and for changes on
// their way to the medium.
void Ftl::make_room(size_t objects)
{
    if (objects > retired_max)
        fail(E2BIG, path_ + ": a change replaces too many extents at once; make it in parts");
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
        reclaim();
        if (root_->counts.end - free_until_ + objects <= retired_max &&
            started_ - reclaimed_ < changes_max)
            break;
        if (last_.container && visible_.load() < started_) { // perhaps no other thread waits for it
            const uint64_t sequence = started_;
            pm::container::wait(last_);
            show(sequence);
            continue;
        }
        if (std::chrono::steady_clock::now() > deadline)
            fail(ETIMEDOUT, path_ + ": a snapshot is held for too long; let go of it");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

// ---- Changing

void Ftl::check_ranges(std::span<const Replacement> change)
{
    std::vector<Range> ranges;
    for (const Replacement &replacement : change) {
        ranges.push_back(check_range(replacement.clear));
        if (replacement.put.data.empty())
            continue;
        const Range put = check_whole(replacement.put.first, replacement.put.data.size());
        if (put.first < ranges.back().first || put.end() > ranges.back().end())
            fail(EINVAL, "a write reaches beyond the range that it replaces");
    }
    std::ranges::sort(ranges, {}, &Range::first);
    for (size_t i = 1; i < ranges.size(); i++)
        if (meet(ranges[i - 1], ranges[i]))
            fail(EINVAL, "sector " + std::to_string(ranges[i].first) + " is changed twice at once");
}

// Find out what the change will replace.
Ftl::Plan Ftl::plan(std::span<const Replacement> change) const
{
    Plan plan{};
    for (const Replacement &replacement : change) {
        const Range clear = replacement.clear;
        Undo undo{clear, {}};
        collect(clear, undo.old);
        for (const Extent &extent : undo.old) {
            const bool in_place =
                !replacement.put.data.empty() && extent.first == replacement.put.first;
            const bool remnants = extent.first < clear.first || extent.end() > clear.end();
            plan.extents++;
            plan.retired += in_place ? 2 : retired_by_extent;
            plan.retired += remnants ? 2 * retired_by_extent : 0; // the next replacement may hit them
            const uint64_t first = std::min(undo.range.first, extent.first);
            undo.range = {first, std::max(undo.range.end(), extent.end()) - first};
        }
        plan.undos.push_back(std::move(undo));
    }

    // Two replacements may hit the same extent. Then one undo restores it for both.
    std::ranges::sort(plan.undos, {}, [](const Undo &u) { return u.range.first; });
    std::vector<Undo> disjoint;
    for (Undo &undo : plan.undos) {
        if (disjoint.empty() || !meet(disjoint.back().range, undo.range)) {
            disjoint.push_back(std::move(undo));
            continue;
        }
        Undo &last = disjoint.back();
        last.range.count = std::max(last.range.end(), undo.range.end()) - last.range.first;
        for (const Extent &extent : undo.old)
            if (std::ranges::find(last.old, extent.first, &Extent::first) == last.old.end())
                last.old.push_back(extent);
    }
    plan.undos = std::move(disjoint);
    return plan;
}

void Ftl::link(uint64_t first, std::span<const char> data)
{
    auto *copy = static_cast<char *>(pm_malloc(container_.get(), data.size()));
    auto *extent =
        static_cast<Extent *>(pm_malloc_typed(container_.get(), PM_TYPE(Extent, data), 1));
    if (!copy || !extent)
        throw pm::error();
    announce(copy, data.size());
    memcpy(copy, data.data(), data.size());
    announce(extent, sizeof *extent);
    *extent = {first, data.size() / sector_size, copy};
    map_->insert(extent);
    root_->counts.extents++;
    root_->counts.sectors += extent->count;
}

// Retire an extent that was replaced in the map, or removed. `extent` is a copy of it.
void Ftl::unlink(const Extent &extent)
{
    retire(extent.data);
    root_->counts.extents--;
    root_->counts.sectors -= extent.count;
}

void Ftl::apply(const Replacement &replacement)
{
    const Range clear = replacement.clear;
    const auto &[first, data] = replacement.put;
    for (uint64_t from = clear.end(); from > clear.first;) {
        const Extent *extent = map_->at_or_before(from - 1);
        if (!extent || extent->end() <= clear.first)
            break;
        const Extent old = *extent;
        from = old.first;
        // If the new extent goes to the same word, the word need not be cleared first.
        if (data.empty() || old.first != first)
            map_->remove(old.first, [this](void *node) { retire(node); });
        retire(const_cast<Extent *>(extent));
        unlink(old);
        if (old.first < clear.first)
            link(old.first, data_of(old).first((clear.first - old.first) * sector_size));
        if (old.end() > clear.end())
            link(clear.end(), data_of(old).subspan((clear.end() - old.first) * sector_size));
    }
    if (!data.empty())
        link(first, data);
}

// Roll back change `sequence`, which may have begun. This fails if libpm cannot roll back, or if a snapshot
// is not released. Then the change stays in the map, not committed and never visible. Readers go on taking
// it back, and no other change is possible.
void Ftl::take_back(uint64_t sequence)
{
    if (!readers_.block(patience) || pm_rollback(container_.get()) != 0) { // (5)
        failed_ = true;
    } else if (started_ == sequence) {
        started_ = sequence - 1;
        delete changes_[sequence % changes_max].exchange(nullptr);
    }
    readers_.unblock();
}

std::optional<Ftl::Ticket> Ftl::submit(std::span<const Replacement> change, bool if_unmapped)
{
    if (readonly_)
        fail(EROFS, path_ + ": opened read-only");
    check_ranges(change);
    std::scoped_lock lock(writing_);
    if (failed_)
        fail(EIO, path_ + ": a change could not be rolled back; close it and open it again");
    Plan plan = this->plan(change);
    if (if_unmapped && plan.extents > 0)
        return std::nullopt;
    make_room(plan.retired);
    auto record = std::make_unique<Change>(started_ + 1, std::move(plan.undos), 0);

    const uint64_t sequence = record->sequence;
    Change &published = *record;
    try {
        announce(&root_->counts, sizeof root_->counts);
        free_retired();
        changes_[sequence % changes_max].store(record.release(), std::memory_order_release);
        started_.store(sequence); // from here on readers take the change back (2)
        for (const Replacement &replacement : change)
            apply(replacement);
        published.retired_end = root_->counts.end;
        last_ = container_.commit_async();
    } catch (...) {
        take_back(sequence);
        throw;
    }
    for (const Replacement &replacement : change) {
        (replacement.put.data.empty() ? trims_ : writes_)++;
        bytes_written_ += replacement.put.data.size();
    }
    if (durability_ == Durability::async)
        show(sequence);
    return Ticket{last_, sequence};
}

// Make all changes up to `sequence` visible. Changes become durable in order, so all earlier ones are.
void Ftl::show(uint64_t sequence)
{
    uint64_t visible = visible_.load();
    while (visible < sequence && !visible_.compare_exchange_weak(visible, sequence))
        ;
}

void Ftl::wait(const Ticket &ticket)
{
    if (durability_ == Durability::async)
        return;
    pm::container::wait(ticket.commit);
    show(ticket.sequence);
}

void Ftl::flush()
{
    Ticket ticket;
    {
        std::scoped_lock lock(writing_);
        ticket = {last_, started_};
    }
    if (!ticket.commit.container) // nothing was changed
        return;
    pm::container::wait(ticket.commit);
    show(ticket.sequence);
}

// ---- Looking inside

Counters Ftl::counters() const
{
    return {readers_.reads(), readers_.bytes(), writes_, bytes_written_, trims_};
}

uint64_t Ftl::extents()
{
    std::scoped_lock lock(writing_);
    return root_->counts.extents;
}

uint64_t Ftl::sectors()
{
    std::scoped_lock lock(writing_);
    return root_->counts.sectors;
}

void Ftl::check()
{
    std::scoped_lock lock(writing_);
    if (pm_check(container_.get()) != 0)
        throw pm::error();
    auto require = [this](bool holds, const char *what) {
        if (!holds)
            throw std::runtime_error(path_ + ": " + what);
    };

    std::unordered_set<const void *> used = {root_};
    auto use = [&](const void *object) {
        require(used.insert(object).second, "an object is used twice");
    };
    uint64_t extents = 0, sectors = 0, end = 0;
    map_->walk(use, [&](const Extent *extent) {
        use(extent);
        use(extent->data);
        require(extent->count > 0 && extent->first >= end, "extents overlap");
        require(pm_usable_size(extent->data) >= extent->count * sector_size, "data is too short");
        end = extent->end();
        extents++;
        sectors += extent->count;
    });
    require(end <= sectors_end, "an extent reaches beyond the address space");
    require(extents == root_->counts.extents && sectors == root_->counts.sectors,
            "extents are miscounted");
    require(root_->counts.end - root_->counts.freed <= retired_max,
            "the ring of retired objects is damaged");
    for (uint64_t i = root_->counts.freed; i != root_->counts.end; i++)
        use(root_->retired[i % retired_max]);
    for (void *object = nullptr; (object = pm_next_object(container_.get(), object, nullptr));)
        require(used.erase(object) == 1, "an object is in use by nobody");
    require(used.empty(), "something in use is no object");
}

} // namespace nvmkv

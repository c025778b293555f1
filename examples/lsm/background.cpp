// The threads of the background. A step may fail, as on a full disk. Then writers that need it get its
// error, reads go on, and the thread tries again every second.
#include "lsm/store.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace lsm
{
namespace
{

constexpr auto retry_after = std::chrono::seconds(1);

// Of values that a collection copies at once, for all tables that need them are written anew.
constexpr size_t copied_min = 4 << 20;

} // namespace

// Take steps until the store closes. A step returns whether there was something to do.
template <class Step> void LsmStore::work(Worker worker, Step step)
{
    Guard guard(lock_);
    while (!stopping_) {
        const uint64_t seen = wishes_;
        guard.unlock();
        bool any = false;
        std::exception_ptr error;
        try {
            any = step();
        } catch (...) {
            error = std::current_exception();
        }
        guard.lock();
        if (error || any) {
            troubles_[worker] = error;
            changed_.notify_all();
        }
        if (error || !any) {
            rests_since_[worker] = seen;
            rests_.notify_all();
        }
        if (any && worker != keeper && !old_tables_.empty())
            want(); // until now this worker had them. The keeper deletes them
        const auto is_wanted = [&] { return stopping_ || (!error && wishes_ != seen); };
        const bool any_old =
            !old_buffers_.empty() || !old_tables_.empty(); // nobody says when readers go
        if (error || (!any && any_old && worker == keeper))
            wanted_.wait_for(guard, retry_after, is_wanted);
        else if (!any)
            wanted_.wait(guard, is_wanted);
    }
}

void LsmStore::want()
{
    wishes_++;
    wanted_.notify_all();
}

// If a step has no room in the container, and there will soon be some: take it again then.
template <class Step> bool LsmStore::if_room(Step step)
{
    const uint64_t freed = container_ ? container_->times_freed() : 0;
    try {
        return step();
    } catch (const Error &error) {
        std::lock_guard guard(lock_);
        if (error.code().value() != ENOSPC || options_.memtables != Memtables::key_lsm)
            throw;
        if (container_->times_freed() != freed)
            return true;
        if (!is_freeing())
            throw;
        awaits_room_ = true;
        return false;
    }
}

void LsmStore::begin_work()
{
    flusher_ = std::thread(
        [this] { work(flusher, [this] { return if_room([this] { return flush_step(); }); }); });
    merger_ = std::thread(
        [this] { work(merger, [this] { return if_room([this] { return merge_step(); }); }); });
    keeper_ = std::thread([this] { work(keeper, [this] { return keep_ready_step(); }); });
}

void LsmStore::end_work()
{
    {
        std::lock_guard guard(lock_);
        stopping_ = true;
        want();
    }
    for (std::thread *thread : {&flusher_, &merger_, &keeper_})
        thread->join();
}

Works LsmStore::works()
{
    return {storage_, options_, [this] { return new_number(); },
            [this] {
                std::lock_guard guard(lock_);
                return stopping_;
            }};
}

// Merge tables, or else move one, or else collect garbage. Nobody but the merger changes tables below level
// 0. So they are still there when the edit comes.
bool LsmStore::merge_step()
{
    uint64_t asked; // before the merge: what collect() asks for begins with one
    {
        std::lock_guard guard(lock_);
        asked = collections_asked_;
    }
    if (merge_tables())
        return true;
    std::shared_ptr<const Version> version;
    {
        std::lock_guard guard(lock_);
        if (broken_)
            return false;
        version = version_;
    }
    return move_tables(*version) || collect_step(*version, asked);
}

bool LsmStore::merge_tables()
{
    std::shared_ptr<const Version> version;
    std::optional<Compaction> what;
    std::optional<unsigned> whole;
    Sequence oldest;
    {
        std::lock_guard guard(lock_);
        if (broken_)
            return false;
        version = version_;
        if (whole_ && version->level(*whole_).empty()) {
            whole_.reset();
            return true;
        }
        whole = whole_;
        what =
            whole ? whole_level(*version, *whole) : next_compaction(*version, options_, cursors_);
        if (!what && must_leave_level0(*version, table_budget()))
            what = whole_level(*version, 0);
        oldest = oldest_snapshot();
    }
    if (!what)
        return false;
    const auto since = std::chrono::steady_clock::now();
    auto edit = merge(*what, *version, oldest, place_of(what->level + 1), works());
    if (!edit)
        return false;
    install(std::move(*edit), nullptr, [&] {
        if (whole == whole_)
            whole_.reset();
        merged_for_ += std::chrono::steady_clock::now() - since;
    });
    return true;
}

// A step towards the budget of the container.
bool LsmStore::move_tables(const Version &version)
{
    if (!container_)
        return false;
    uint64_t budget;
    {
        std::lock_guard guard(lock_);
        budget = table_budget();
    }
    const uint64_t freed = container_->times_freed();
    bool may_come = freed != full_at_;
    auto edit = move_table(version, budget, may_come, works());
    if (!may_come) // until some of it has been freed
        full_at_ = freed;
    if (edit)
        install(std::move(*edit), nullptr, [] {});
    return edit.has_value();
}

// All garbage is collected if that was asked for. `asked`: how often, by now.
bool LsmStore::collect_step(const Version &version, uint64_t asked)
{
    std::set<uint64_t> spared;
    double share;
    {
        std::lock_guard guard(lock_);
        spared = spared_;
        share = asked > collections_done_ ? 0 : options_.garbage_share;
    }
    const auto what = next_collection(version, values_, share,
                                      std::max(options_.memtable_bytes, copied_min), spared);
    std::exception_ptr error;
    uint64_t reading = 0; // this value file
    if (what)
        try {
            ValueWriter values = value_writer();
            if (auto edit = collect_values(*what, works(), values, reading))
                install(std::move(*edit), &values, [] {});
            return true;
        } catch (const Error &damage) {
            const int code = damage.code().value();
            const bool is_missing = reading && (code == ENOENT || code == EIO);
            if (!is_missing && code != EBADMSG)
                throw;
            error = std::current_exception(); // reads report it, too
        }
    std::lock_guard guard(lock_);
    if (reading)
        spared_.insert(reading);
    else if (what) // a table is damaged
        spared_.insert(what->files.begin(), what->files.end());
    if (error)
        damage_ = error;
    if (!what)
        collections_done_ = asked;
    changed_.notify_all();
    return what.has_value();
}

// Let an edit count. `also` changes more under the lock. A failure deletes the tables that the edit adds;
// those who made them keep no `values`. If the manifest was written but not synced, they stay: the edit may
// count after a crash.
void LsmStore::install(Edit edit, ValueWriter *values, const std::function<void()> &also)
{
    std::lock_guard edits(edits_lock_);
    std::shared_ptr<const Version> before;
    {
        std::lock_guard guard(lock_);
        before = version_;
        edit.next_number = next_number_;
    }
    const Tables old = before->all();
    const auto find = [&](uint64_t number) {
        return std::find_if(old.begin(), old.end(),
                            [&](const auto &t) { return t->info().number == number; });
    };
    bool unknown = false;
    Tables opened;
    std::shared_ptr<const Version> after;
    try {
        for (const auto &[level, info] : edit.added) {
            auto found = find(info.number); // it only goes down
            opened.push_back(found != old.end() ? *found : std::make_shared<Table>(storage_, info));
        }
        after = std::make_shared<const Version>(before->after(edit, opened));
        manifest_->append(edit, *after, unknown);
    } catch (...) {
        after.reset();
        opened.clear();
        for (const auto &[level, info] : edit.added)
            if (!unknown && find(info.number) == old.end())
                delete_table(storage_, info);
        if (unknown && values)
            values->keep();
        std::lock_guard guard(lock_);
        if (unknown)
            set_broken(std::current_exception());
        throw;
    }
    if (values)
        values->keep();
    Tables unused;
    for (uint64_t number : edit.removed)
        if (std::none_of(opened.begin(), opened.end(),
                         [&](const auto &t) { return t->info().number == number; }))
            unused.push_back(*find(number));
    for (const auto &table : unused)
        table->delete_when_unused();
    std::lock_guard guard(lock_);
    std::move(unused.begin(), unused.end(), std::back_inserter(old_tables_));
    version_ = std::move(after);
    also();
    changed_.notify_all();
    want();
}

// Tables leave room for memtables. And a merge needs room for new tables beside the old ones, in one piece
// each.
void LsmStore::set_budget(uint64_t bytes)
{
    budget_ = bytes;
    if (options_.memtables != Memtables::key_lsm || container_->max_bytes() == 0)
        return;
    const uint64_t all = container_->max_bytes(),
                   memtables = std::min(all, key_lsm_memtables * options_.memtable_bytes);
    budget_ = std::min(bytes, (all - memtables) / 4);
}

// Bytes that tables in the container may have.
uint64_t LsmStore::table_budget() const
{
    return options_.memtables == Memtables::key_lsm ? budget_ : 0;
}

void LsmStore::set_persistent_bytes(uint64_t bytes)
{
    if (bytes < memtable_min && options_.memtables != Memtables::key_lsm)
        throw Error(EINVAL, places_.directory + ": persistent_bytes must be at least 256 KiB");
    std::lock_guard guard(lock_);
    set_budget(bytes);
    want();
}

// For the background. Fails when the store does, or one of these workers.
template <class Holds>
void LsmStore::wait_until(Guard &guard, std::initializer_list<Worker> whom, Holds holds)
{
    while (!holds()) {
        if (broken_)
            std::rethrow_exception(broken_);
        for (const Worker worker : whom)
            if (troubles_[worker])
                std::rethrow_exception(troubles_[worker]);
        changed_.wait(guard);
    }
}

void LsmStore::collect()
{
    Guard guard(lock_);
    wait_until(guard, {merger}, [&] { return !whole_; }); // of another thread
    whole_ = 0;                                           // what it needs would be left alone
    damage_ = nullptr;
    spared_.clear();
    const uint64_t mine = ++collections_asked_;
    want();
    wait_until(guard, {merger}, [&] { return collections_done_ >= mine; });
    if (damage_)
        std::rethrow_exception(damage_);
}

void LsmStore::set_broken(std::exception_ptr error)
{
    broken_ = std::move(error);
    changed_.notify_all();
}

uint64_t LsmStore::new_number()
{
    std::lock_guard guard(lock_);
    return next_number_++;
}

Sequence LsmStore::oldest_snapshot() const
{
    return snapshots_.empty() ? last_sequence_ : *snapshots_.begin();
}

void LsmStore::compact()
{
    begin_memtable();
    Guard guard(lock_);
    struct Draining {
        unsigned &count;
        explicit Draining(unsigned &count) : count(count) { count++; }
        ~Draining() { count--; }
    } draining(draining_);
    want();
    const auto wait = [&](auto holds) { wait_until(guard, {flusher, merger, keeper}, holds); };
    wait([&] { return buffers_->size() == 1; });
    for (unsigned n = 0; n + 1 < levels; n++) {
        bool is_lowest = n > 0;
        for (unsigned below = n + 1; below < levels; below++)
            is_lowest &= version_->level(below).empty();
        if (is_lowest)
            return;
        wait([&] { return !whole_; }); // of another thread
        whole_ = n;
        want();
        wait([&] { return !whole_; });
    }
}

} // namespace lsm

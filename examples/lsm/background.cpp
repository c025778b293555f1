// The threads of the background. A step may fail, as on a full disk. Then writers that need it get its
// error, reads go on, and the thread tries again every second.
#include "lsm/store.hpp"

#include <algorithm>
#include <iterator>
#include <unistd.h>

namespace lsm
{
namespace
{

constexpr auto retry_after = std::chrono::seconds(1);

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

void LsmStore::begin_work()
{
    flusher_ = std::thread([this] { work(flusher, [this] { return flush_step(); }); });
    merger_ = std::thread([this] { work(merger, [this] { return merge_step(); }); });
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

bool LsmStore::merge_step()
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
        oldest = oldest_snapshot();
    }
    if (!what)
        return false;
    auto edit = merge(
        *what, *version, oldest, places_, options_, [&] { return new_number(); },
        [&] {
            std::lock_guard guard(lock_);
            return stopping_;
        });
    if (!edit)
        return false;
    install(std::move(*edit), [&] {
        if (whole == whole_)
            whole_.reset();
    });
    return true;
}

// Let an edit count. `also` changes more under the lock. A failure deletes the tables that the edit adds. If
// the manifest was written but not synced, they stay: the edit may count after a crash.
void LsmStore::install(Edit edit, const std::function<void()> &also)
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
    try {
        for (const auto &[level, info] : edit.added) {
            auto found = find(info.number); // it only goes down
            opened.push_back(found != old.end() ? *found
                                                : std::make_shared<Table>(places_, info, cache_));
        }
        manifest_->append(edit, unknown);
    } catch (...) {
        for (const auto &[level, info] : edit.added)
            if (!unknown && find(info.number) == old.end())
                unlink(table_path(places_, info).c_str());
        std::lock_guard guard(lock_);
        if (unknown)
            set_broken(std::current_exception());
        throw;
    }
    auto after = std::make_shared<const Version>(before->after(edit, opened));
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
    const auto wait_until = [&](auto holds) {
        while (!holds()) {
            for (const auto &error :
                 {broken_, troubles_[flusher], troubles_[merger], troubles_[keeper]})
                if (error)
                    std::rethrow_exception(error);
            changed_.wait(guard);
        }
    };
    wait_until([&] { return buffers_->size() == 1; });
    for (unsigned n = 0; n + 1 < levels; n++) {
        bool is_lowest = n > 0;
        for (unsigned below = n + 1; below < levels; below++)
            is_lowest &= version_->level(below).empty();
        if (is_lowest)
            return;
        wait_until([&] { return !whole_; }); // of another thread
        whole_ = n;
        want();
        wait_until([&] { return !whole_; });
    }
}

} // namespace lsm

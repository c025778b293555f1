// Reads pin what they need under the lock, and then go without it: memtables, then level 0, then further
// levels.
#include "lsm/store.hpp"

namespace lsm
{
namespace
{

// Shows of each key the version that the sequence number sees, and no deleted key.
//
// Forwards, the cursor stands at the version that is shown. Backwards, it stands before all versions of the
// key that is shown, and key and value are copies. (As LevelDB does.)
class StoreIterator : public Iterator
{
  public:
    StoreIterator(std::shared_ptr<const void> pinned, std::unique_ptr<Cursor> cursor,
                  Sequence sequence)
        : pinned_(std::move(pinned)), cursor_(std::move(cursor)), sequence_(sequence)
    {
    }

    bool valid() const override { return backward_ ? shown_ : cursor_->valid(); }
    std::string_view key() const override { return backward_ ? key_ : user_key(cursor_->key()); }
    std::string_view value() const override { return backward_ ? value_ : cursor_->value(); }

    void seek_to_first() override
    {
        cursor_->seek_to_first();
        settle();
    }

    void seek_to_last() override
    {
        cursor_->seek_to_last();
        settle_before();
    }

    void seek(std::string_view key) override
    {
        cursor_->seek(search_key(key, sequence_));
        settle();
    }

    void next() override
    {
        if (backward_) {
            cursor_->valid() ? cursor_->next() : cursor_->seek_to_first();
            while (cursor_->valid() && user_key(cursor_->key()) <= key_) // perhaps written since
                cursor_->next();
        } else {
            skip_key();
        }
        settle();
    }

    void prev() override
    {
        if (!backward_) {
            key_ = user_key(cursor_->key());
            do
                cursor_->prev();
            while (cursor_->valid() && user_key(cursor_->key()) == key_);
        }
        settle_before();
    }

  private:
    // Go on to the first version that is to be shown.
    void settle()
    {
        backward_ = false;
        while (cursor_->valid())
            if (sequence_of(cursor_->key()) > sequence_)
                cursor_->next();
            else if (kind_of(cursor_->key()) == Kind::deletion)
                skip_key();
            else
                return;
    }

    void skip_key()
    {
        key_ = user_key(cursor_->key());
        skip_versions();
    }

    void skip_versions()
    {
        while (cursor_->valid() && user_key(cursor_->key()) == key_)
            cursor_->next();
    }

    // Go back over whole keys, to the first that is to be shown. Its versions come from old to new.
    void settle_before()
    {
        backward_ = true;
        shown_ = false;
        while (cursor_->valid() && !shown_) {
            key_ = user_key(cursor_->key());
            for (; cursor_->valid() && user_key(cursor_->key()) == key_; cursor_->prev()) {
                if (sequence_of(cursor_->key()) > sequence_)
                    continue;
                shown_ = false; // also if the value cannot be read
                if (kind_of(cursor_->key()) == Kind::deletion)
                    continue;
                value_ = cursor_->value();
                shown_ = true;
            }
        }
    }

    std::shared_ptr<const void> pinned_; // goes after the cursor
    std::unique_ptr<Cursor> cursor_;
    Sequence sequence_;
    bool backward_ = false, shown_ = false;
    std::string key_, value_;
};

} // namespace

LsmStore::Pinned LsmStore::pin(const Snapshot *snapshot)
{
    std::lock_guard guard(lock_);
    return pinned(snapshot);
}

LsmStore::Pinned LsmStore::pinned(const Snapshot *snapshot) const
{
    return {buffers_, version_,
            snapshot ? static_cast<const StoreSnapshot *>(snapshot)->sequence : last_sequence_};
}

std::optional<std::string> LsmStore::get(std::string_view key, const Snapshot *snapshot)
{
    const Pinned p = pin(snapshot);
    for (const Buffer &buffer : *p.buffers)
        if (auto found = buffer.table->get(key, p.sequence))
            return found->kind == Kind::value ? std::optional(std::string(found->value))
                                              : std::nullopt;
    auto found = parallel_ ? parallel_->search(p.version->candidates(key), key, p.sequence)
                           : p.version->get(key, p.sequence);
    return found && found->kind == Kind::value ? std::optional(std::move(found->value))
                                               : std::nullopt;
}

std::unique_ptr<Iterator> LsmStore::iterator(const Snapshot *snapshot)
{
    // The user's snapshot may go before the iterator, which needs one of its own.
    struct Held {
        std::unique_ptr<Snapshot> own;
        Pinned p;
    };
    auto held = std::make_shared<Held>();
    {
        std::lock_guard guard(lock_);
        held->p = pinned(snapshot);
        held->own = snapshot_at(held->p.sequence);
    }
    const Pinned &p = held->p;
    const bool merging = options_.memtables == Memtables::merging;
    Cursors cursors;
    for (const Buffer &buffer : *p.buffers)
        cursors.push_back(buffer.table->cursor());
    p.version->add_cursors(cursors);
    return std::make_unique<StoreIterator>(
        held, merged(std::move(cursors), merging ? &container_->moves() : nullptr), p.sequence);
}

std::unique_ptr<Snapshot> LsmStore::snapshot()
{
    std::lock_guard guard(lock_);
    return snapshot_at(last_sequence_);
}

std::unique_ptr<Snapshot> LsmStore::snapshot_at(Sequence sequence)
{
    snapshots_.insert(sequence);
    return std::make_unique<StoreSnapshot>(*this, sequence);
}

StoreSnapshot::~StoreSnapshot()
{
    std::lock_guard guard(store_.lock_);
    store_.snapshots_.erase(store_.snapshots_.find(sequence));
}

std::optional<std::string> LsmStore::property(std::string_view name)
{
    std::lock_guard guard(lock_);
    std::string text;
    if (name == "stalls")
        return std::to_string(stalls_) + " " + std::to_string(longest_stall_us_) + " " +
               std::to_string(stalled_us_);
    if (name == "container_log")
        return std::to_string(container_ ? container_->bytes_logged() : 0);
    if (name == "memtables")
        for (const Buffer &buffer : *buffers_)
            text += (buffer.persistent() ? "container " : "dram ") +
                    std::to_string(buffer.table->bytes()) + "\n";
    if (name == "merging") {
        using std::chrono::microseconds;
        return std::to_string(std::chrono::duration_cast<microseconds>(merged_for_).count());
    }
    if (name == "container")
        return std::to_string(bytes_in_container(*version_));
    if (name == "values") {
        const ValueSpace space = value_space(*version_, values_);
        return std::to_string(space.files) + " " + std::to_string(space.bytes) + " " +
               std::to_string(space.needed);
    }
    if (name != "levels")
        return name == "memtables" ? std::optional(text) : std::nullopt;
    for (unsigned n = 0; n < levels; n++)
        text += std::to_string(n) + " " + std::to_string(version_->level(n).size()) + " " +
                std::to_string(version_->bytes(n)) + "\n";
    return text;
}

void LsmStore::check()
{
    const Pinned p = pin(nullptr);
    for (const auto &table : p.version->all())
        table->check();
    if (container_)
        container_->check();
}

} // namespace lsm

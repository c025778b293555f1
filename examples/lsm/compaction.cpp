// What may be dropped, in order of keys and then from new to old:
//
//   - the second copy of a version: if a list gets full while a memtable moves to it, the tables of both have
//     the pairs that had moved
//   - a version, if a newer one of its key is visible to the oldest snapshot, and so to all
//   - a deletion, if every snapshot sees it, and no deeper level may have its key
//
// An output ends between two user keys, so that no key is in two tables of a level (invariant 2 of
// version.hpp).
#include "lsm/compaction.hpp"

#include <unistd.h>
#include <utility>

namespace lsm
{
namespace
{

uint64_t most_bytes(unsigned level, const Options &options)
{
    uint64_t bytes = options.level_bytes;
    while (--level > 0)
        bytes *= 10;
    return bytes;
}

std::pair<std::string_view, std::string_view> range_of(const Tables &tables)
{
    std::string_view smallest = user_key(tables[0]->info().smallest),
                     largest = user_key(tables[0]->info().largest);
    for (const auto &table : tables) {
        smallest = std::min(smallest, user_key(table->info().smallest));
        largest = std::max(largest, user_key(table->info().largest));
    }
    return {smallest, largest};
}

Compaction of(const Version &version, unsigned level, Tables upper)
{
    auto [smallest, largest] = range_of(upper);
    Tables lower = version.overlapping(level + 1, smallest, largest);
    return {level, std::move(upper), std::move(lower)};
}

bool deeper_may_have(const Version &version, unsigned level, std::string_view key)
{
    for (unsigned n = level; n < levels; n++)
        if (!version.overlapping(n, key, key).empty())
            return true;
    return false;
}

// The tables being written. They are deleted if no edit takes them.
class Output
{
  public:
    Output(const Places &places, const Options &options, unsigned level,
           const std::function<uint64_t()> &new_number)
        : places_(places), options_(options), fast_(level < options.fast_levels),
          new_number_(new_number)
    {
    }

    ~Output()
    {
        for (const TableInfo &table : done_)
            unlink(table_path(places_, table).c_str());
    }

    void add(std::string_view key, std::string_view value, bool is_new_key)
    {
        if (builder_ && is_new_key && builder_->bytes() >= options_.table_bytes)
            end_table();
        if (!builder_)
            builder_ = std::make_unique<TableBuilder>(places_, new_number_(), fast_, options_);
        builder_->add(key, value);
    }

    std::vector<TableInfo> take()
    {
        if (builder_)
            end_table();
        sync_directory(places_.of_tables(fast_));
        return std::exchange(done_, {});
    }

  private:
    void end_table()
    {
        done_.push_back(builder_->finish());
        builder_.reset();
    }

    const Places &places_;
    const Options &options_;
    const bool fast_;
    const std::function<uint64_t()> &new_number_;
    std::unique_ptr<TableBuilder> builder_;
    std::vector<TableInfo> done_;
};

} // namespace

std::optional<Compaction> next_compaction(const Version &version, const Options &options,
                                          std::array<std::string, levels> &cursors)
{
    unsigned fullest = 0;
    double most = static_cast<double>(version.level(0).size()) / level0_merge;
    for (unsigned n = 1; n + 1 < levels; n++)
        if (double full =
                static_cast<double>(version.bytes(n)) / static_cast<double>(most_bytes(n, options));
            full > most) {
            most = full;
            fullest = n;
        }
    if (most < 1)
        return {};
    if (fullest == 0)
        return whole_level(version, 0);
    std::string &cursor = cursors[fullest];
    Tables upper;
    for (const auto &table : version.level(fullest))
        if (upper.empty() && (cursor.empty() || compare(table->info().smallest, cursor) > 0))
            upper.push_back(table);
    if (upper.empty())
        upper.push_back(version.level(fullest).front());
    cursor = upper.front()->info().largest;
    return of(version, fullest, std::move(upper));
}

Compaction whole_level(const Version &version, unsigned level)
{
    return of(version, level, version.level(level));
}

std::optional<Edit> merge(const Compaction &what, const Version &version, Sequence oldest,
                          const Places &places, const Options &options,
                          const std::function<uint64_t()> &new_number,
                          const std::function<bool()> &stop)
{
    constexpr unsigned ask_every = 1000; // pairs
    Edit edit;
    for (const Tables *tables : {&what.upper, &what.lower})
        for (const auto &table : *tables)
            edit.removed.push_back(table->info().number);
    const bool stays = what.upper[0]->info().fast == (what.level + 1 < options.fast_levels);
    if (what.upper.size() == 1 && what.lower.empty() &&
        stays) { // it overlaps nothing: it just goes down
        edit.added.emplace_back(what.level + 1, what.upper[0]->info());
        return edit;
    }

    Cursors cursors;
    if (what.level == 0)
        for (const auto &table : what.upper)
            cursors.push_back(table->cursor());
    else
        cursors.push_back(level_cursor(what.upper));
    if (!what.lower.empty())
        cursors.push_back(level_cursor(what.lower));
    auto from = merged(std::move(cursors));

    Output output(places, options, what.level + 1, new_number);
    std::string key, written;
    bool is_first = true, any_written = false;
    Sequence newer = sequence_max; // number of the version before, of the same key
    unsigned count = 0;
    for (from->seek_to_first(); from->valid(); from->next()) {
        if (++count % ask_every == 0 && stop())
            return {};
        const bool is_new_key = is_first || key != user_key(from->key());
        const Sequence sequence = sequence_of(from->key());
        if (!is_new_key && sequence == newer) // the same version again
            continue;
        if (is_new_key) {
            key = user_key(from->key());
            newer = sequence_max;
            is_first = false;
        }
        bool hidden = newer <= oldest;
        bool gone = kind_of(from->key()) == Kind::deletion && sequence <= oldest &&
                    !deeper_may_have(version, what.level + 2, key);
        newer = sequence;
        if (hidden || gone)
            continue;
        output.add(from->key(), from->value(), !any_written || written != key);
        written = key;
        any_written = true;
    }
    for (TableInfo &table : output.take())
        edit.added.emplace_back(what.level + 1, std::move(table));
    return edit;
}

} // namespace lsm

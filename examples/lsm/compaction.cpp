// Pairs come in order of keys, and then from new to old. What class Versions calls hidden is dropped. A
// deletion is dropped if every snapshot sees it and no deeper level may have its key. A list may get full
// while a memtable moves to it. Then the tables of both have the pairs that had moved, so these come twice.
//
// An output ends between two user keys, so that no key is in two tables of a level (invariant 2 of
// version.hpp).
#include "lsm/compaction.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{
namespace
{

// Of a table in the container. It gets there in one transaction, for which writers wait.
constexpr size_t container_table_bytes = 1 << 20;

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

// The tables being written.
class Output
{
  public:
    Output(const Works &works, TablePlace place)
        : works_(works), place_(place),
          table_bytes_(place == TablePlace::container
                           ? std::min(works.options.table_bytes, container_table_bytes)
                           : works.options.table_bytes),
          done_(works.storage)
    {
    }

    void add(std::string_view key, std::string_view value, bool is_new_key)
    {
        if (builder_ && is_new_key && builder_->bytes() >= table_bytes_)
            end_table();
        if (!builder_)
            builder_ = std::make_unique<TableBuilder>(works_.storage, works_.new_number(), place_,
                                                      works_.options);
        builder_->add(key, value);
    }

    std::vector<TableInfo> take()
    {
        if (builder_)
            end_table();
        return done_.take();
    }

  private:
    void end_table()
    {
        done_.add(builder_->finish());
        builder_.reset();
    }

    const Works &works_;
    const TablePlace place_;
    const size_t table_bytes_;
    std::unique_ptr<TableBuilder> builder_;
    NewTables done_;
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

bool Versions::are_hidden(std::string_view key)
{
    is_new_key_ = !any_ || key_ != user_key(key);
    if (is_new_key_) {
        key_ = user_key(key);
        any_ = true;
        newer_ = sequence_max;
    }
    const Sequence sequence = sequence_of(key), newer = std::exchange(newer_, sequence);
    return newer <= oldest_ || sequence == newer;
}

std::optional<Edit> merge(const Compaction &what, const Version &version, Sequence oldest,
                          TablePlace place, const Works &works)
{
    constexpr unsigned ask_every = 1000; // pairs
    Edit edit;
    for (const Tables *tables : {&what.upper, &what.lower})
        for (const auto &table : *tables)
            edit.removed.push_back(table->info().number);
    if (what.upper.size() == 1 && what.lower.empty() &&
        what.upper[0]->info().place == place) { // it overlaps nothing: it just goes down
        edit.added.emplace_back(what.level + 1, what.upper[0]->info());
        return edit;
    }

    constexpr auto as_they_are = Table::Values::addresses;
    Cursors cursors;
    if (what.level == 0)
        for (const auto &table : what.upper)
            cursors.push_back(table->cursor(as_they_are));
    else
        cursors.push_back(level_cursor(what.upper, as_they_are));
    if (!what.lower.empty())
        cursors.push_back(level_cursor(what.lower, as_they_are));
    auto from = merged(std::move(cursors));

    Output output(works, place);
    Versions versions(oldest);
    bool is_new_key = true; // since the last pair that was kept
    unsigned count = 0;
    for (from->seek_to_first(); from->valid(); from->next()) {
        if (++count % ask_every == 0 && works.stop())
            return {};
        const std::string_view key = from->key();
        const bool hidden = versions.are_hidden(key);
        is_new_key |= versions.is_new_key();
        const bool gone = kind_of(key) == Kind::deletion && sequence_of(key) <= oldest &&
                          !deeper_may_have(version, what.level + 2, user_key(key));
        if (hidden || gone)
            continue;
        output.add(key, from->value(), is_new_key);
        is_new_key = false;
    }
    for (TableInfo &table : output.take())
        edit.added.emplace_back(what.level + 1, std::move(table));
    return edit;
}

} // namespace lsm

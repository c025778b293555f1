// A get asks the tables of level 0 from new to old, then one table of each further level, found by halves.
#include "lsm/version.hpp"

#include <algorithm>

namespace lsm
{
namespace
{

// The first table whose last key is not before `key`.
size_t table_for(const Tables &tables, std::string_view key)
{
    return static_cast<size_t>(
        std::partition_point(tables.begin(), tables.end(),
                             [&](const auto &t) { return compare(t->info().largest, key) < 0; }) -
        tables.begin());
}

bool may_have(const Table &table, std::string_view key)
{
    return user_key(table.info().smallest) <= key && key <= user_key(table.info().largest) &&
           table.may_have(key);
}

class LevelCursor : public Cursor
{
  public:
    LevelCursor(const Tables &tables, Table::Values values) : tables_(tables), values_(values) {}

    bool valid() const override { return at_ && at_->valid(); }
    std::string_view key() const override { return at_->key(); }
    std::string_view value() const override { return at_->value(); }

    void seek_to_first() override
    {
        enter(0);
        if (at_)
            at_->seek_to_first();
    }

    void seek_to_last() override
    {
        enter(tables_.size() - 1);
        if (at_)
            at_->seek_to_last();
    }

    void seek(std::string_view key) override
    {
        enter(table_for(tables_, key));
        if (at_)
            at_->seek(key);
    }

    void next() override
    {
        at_->next();
        if (at_->valid())
            return;
        enter(table_ + 1);
        if (at_)
            at_->seek_to_first();
    }

    void prev() override
    {
        at_->prev();
        if (at_->valid())
            return;
        enter(table_ - 1); // before the first: no table
        if (at_)
            at_->seek_to_last();
    }

  private:
    void enter(size_t table)
    {
        table_ = table;
        at_ = table < tables_.size() ? tables_[table]->cursor(values_) : nullptr;
    }

    const Tables tables_;
    const Table::Values values_;
    size_t table_ = 0;
    std::unique_ptr<Cursor> at_;
};

enum Field : uint64_t {
    log_field = 1,
    next_number_field,
    last_sequence_field,
    added_field,
    removed_field,
    added_fast_field,
    container_field,
    fast_field,
    added_whole_field
};

// Tables without values, and not in the container, have the form that they always had.
void put_table(std::string &text, unsigned level, const TableInfo &table)
{
    const bool is_plain = table.values.empty() && !table.in_container();
    const bool is_fast = table.place == TablePlace::fast;
    put_varint(text, !is_plain ? added_whole_field : is_fast ? added_fast_field : added_field);
    for (const uint64_t number : {uint64_t(level), table.number, table.bytes})
        put_varint(text, number);
    put_string(text, table.smallest);
    put_string(text, table.largest);
    if (is_plain)
        return;
    put_varint(text, static_cast<uint64_t>(table.place));
    put_varint(text, table.values.size());
    for (const auto &[number, bytes] : table.values) {
        put_varint(text, number);
        put_varint(text, bytes);
    }
}

// The numbers of value files must ascend.
std::pair<unsigned, TableInfo> read_table(Reader &in, uint64_t field)
{
    const uint64_t level = in.varint();
    TableInfo table{in.varint(),
                    in.varint(),
                    std::string(in.string()),
                    std::string(in.string()),
                    field == added_fast_field ? TablePlace::fast : TablePlace::directory,
                    {}};
    in.ok &=
        level < levels && table.smallest.size() >= tag_bytes && table.largest.size() >= tag_bytes;
    if (field == added_whole_field) {
        const uint64_t place = in.varint();
        in.ok &= place <= static_cast<uint64_t>(TablePlace::container);
        table.place = static_cast<TablePlace>(place);
        uint64_t before = 0;
        for (uint64_t n = in.varint(); in.ok && n > 0; n--) {
            const uint64_t number = in.varint();
            table.values.emplace_back(number, in.varint());
            in.ok &= number > before;
            before = number;
        }
    }
    return {static_cast<unsigned>(level), std::move(table)};
}

} // namespace

std::string Edit::text() const
{
    std::string text;
    for (auto [field, value] : {std::pair{log_field, log},
                                {next_number_field, next_number},
                                {last_sequence_field, last_sequence},
                                {container_field, container_id},
                                {fast_field, fast_id}})
        if (value) {
            put_varint(text, field);
            put_varint(text, value);
        }
    for (const auto &[level, table] : added)
        put_table(text, level, table);
    for (uint64_t number : removed) {
        put_varint(text, removed_field);
        put_varint(text, number);
    }
    return text;
}

std::optional<Edit> Edit::of(std::string_view text)
{
    Edit edit;
    Reader in{text};
    while (in.ok && !in.rest.empty()) {
        switch (const uint64_t field = in.varint()) {
        case log_field:
            edit.log = in.varint();
            break;
        case next_number_field:
            edit.next_number = in.varint();
            break;
        case last_sequence_field:
            edit.last_sequence = in.varint();
            break;
        case container_field:
            edit.container_id = in.varint();
            break;
        case fast_field:
            edit.fast_id = in.varint();
            break;
        case added_field:
        case added_fast_field:
        case added_whole_field:
            edit.added.push_back(read_table(in, field));
            break;
        case removed_field:
            edit.removed.push_back(in.varint());
            break;
        default:
            in.ok = false;
        }
    }
    return in.ok ? std::optional(std::move(edit)) : std::nullopt;
}

Version Version::after(const Edit &edit, const Tables &opened) const
{
    Version next = *this;
    for (Tables &level : next.levels_)
        std::erase_if(level, [&](const auto &t) {
            return std::find(edit.removed.begin(), edit.removed.end(), t->info().number) !=
                   edit.removed.end();
        });
    for (size_t i = 0; i < opened.size(); i++)
        next.levels_[edit.added[i].first].push_back(opened[i]);
    std::sort(next.levels_[0].begin(), next.levels_[0].end(),
              [](const auto &a, const auto &b) { return a->info().number > b->info().number; });
    for (unsigned n = 1; n < levels; n++)
        std::sort(next.levels_[n].begin(), next.levels_[n].end(), [](const auto &a, const auto &b) {
            return compare(a->info().smallest, b->info().smallest) < 0;
        });
    return next;
}

// Call `visit` with each candidate, until it returns true.
template <class Visit> void Version::visit_candidates(std::string_view key, Visit visit) const
{
    for (const auto &table : levels_[0])
        if (may_have(*table, key) && visit(*table))
            return;
    const std::string newest = search_key(key, sequence_max);
    for (unsigned n = 1; n < levels; n++) {
        const size_t i = table_for(levels_[n], newest);
        if (i < levels_[n].size() && may_have(*levels_[n][i], key) && visit(*levels_[n][i]))
            return;
    }
}

std::optional<Table::Found> Version::get(std::string_view key, Sequence sequence) const
{
    std::optional<Table::Found> found;
    visit_candidates(key, [&](const Table &table) {
        found = table.get(key, sequence);
        return found.has_value();
    });
    return found;
}

std::vector<const Table *> Version::candidates(std::string_view key) const
{
    std::vector<const Table *> found;
    visit_candidates(key, [&](const Table &table) {
        found.push_back(&table);
        return false;
    });
    return found;
}

void Version::add_cursors(Cursors &to) const
{
    for (const auto &table : levels_[0])
        to.push_back(table->cursor());
    for (unsigned n = 1; n < levels; n++)
        if (!levels_[n].empty())
            to.push_back(level_cursor(levels_[n]));
}

uint64_t Version::bytes(unsigned n) const
{
    uint64_t bytes = 0;
    for (const auto &table : levels_[n])
        bytes += table->info().bytes;
    return bytes;
}

Tables Version::all() const
{
    Tables all;
    for (const Tables &level : levels_)
        all.insert(all.end(), level.begin(), level.end());
    return all;
}

std::vector<std::pair<unsigned, std::shared_ptr<Table>>> Version::with_levels() const
{
    std::vector<std::pair<unsigned, std::shared_ptr<Table>>> all;
    for (unsigned n = 0; n < levels; n++)
        for (const auto &table : levels_[n])
            all.emplace_back(n, table);
    return all;
}

Tables Version::overlapping(unsigned n, std::string_view smallest, std::string_view largest) const
{
    Tables found;
    for (const auto &table : levels_[n])
        if (user_key(table->info().smallest) <= largest &&
            smallest <= user_key(table->info().largest))
            found.push_back(table);
    return found;
}

std::unique_ptr<Cursor> level_cursor(const Tables &tables, Table::Values values)
{
    return std::make_unique<LevelCursor>(tables, values);
}

} // namespace lsm

#include "lsm/collect.hpp"

#include <algorithm>
#include <utility>

namespace lsm
{
namespace
{

struct Use {
    uint64_t bytes = 0, needed = 0;
    std::set<const Table *> tables;
    bool is_young = false; // a table of level 0 needs it

    double garbage() const { return 1 - static_cast<double>(needed) / static_cast<double>(bytes); }
};

std::map<uint64_t, Use> uses_of(const Version &version, ValueFiles &files)
{
    std::map<uint64_t, Use> uses;
    for (const auto &[level, table] : version.with_levels())
        for (const auto &[number, bytes] : table->info().values) {
            Use &use = uses[number];
            use.needed += bytes;
            use.tables.insert(table.get());
            use.is_young |= level == 0;
        }
    for (auto &[number, use] : uses)
        use.bytes = std::max(files.get(number)->bytes(), use.needed); // 0 if it is missing
    return uses;
}

} // namespace

ValueSpace value_space(const Version &version, ValueFiles &files)
{
    ValueSpace space;
    for (const auto &[number, use] : uses_of(version, files)) {
        space.files++;
        space.bytes += use.bytes;
        space.needed += use.needed;
    }
    return space;
}

std::optional<Collection> next_collection(const Version &version, ValueFiles &files, double share,
                                          uint64_t at_once, const std::set<uint64_t> &spared)
{
    const auto uses = uses_of(version, files);
    uint64_t bytes = 0, needed = 0;
    std::vector<std::pair<uint64_t, const Use *>> worst;
    for (const auto &[number, use] : uses) {
        bytes += use.bytes;
        needed += use.needed;
        if (use.garbage() > share && !use.is_young && !spared.contains(number))
            worst.emplace_back(number, &use);
    }
    if (worst.empty() || static_cast<double>(bytes - needed) <= share * static_cast<double>(bytes))
        return {};
    std::sort(worst.begin(), worst.end(), [](const auto &a, const auto &b) {
        return a.second->garbage() > b.second->garbage();
    });

    Collection what;
    std::set<const Table *> tables;
    uint64_t copied = 0;
    for (const auto &[number, use] : worst) {
        const auto known = std::count_if(use->tables.begin(), use->tables.end(),
                                         [&](const Table *t) { return tables.contains(t); });
        const bool is_near = 2 * static_cast<size_t>(known) >= use->tables.size();
        if (!tables.empty() && (!is_near || copied + use->needed > at_once))
            continue;
        what.files.insert(number);
        tables.insert(use->tables.begin(), use->tables.end());
        copied += use->needed;
    }
    for (auto &[level, table] : version.with_levels())
        if (tables.contains(table.get()))
            what.tables.emplace_back(level, table);
    return what;
}

std::optional<Edit> collect_values(const Collection &what, const Works &works, ValueWriter &values,
                                   uint64_t &reading)
{
    Edit edit;
    NewTables made(works.storage);
    for (const auto &[level, table] : what.tables) {
        TableBuilder builder(works.storage, works.new_number(), table->info().place, works.options);
        const auto at = table->cursor(Table::Values::addresses);
        for (at->seek_to_first(); at->valid(); at->next()) {
            const auto address =
                kind_of(at->key()) == Kind::address ? Address::of(at->value()) : std::nullopt;
            if (!address || !what.files.contains(address->number)) {
                builder.add(at->key(), at->value());
                continue;
            }
            reading = address->number;
            const std::string value = table->value_at(at->value());
            reading = 0;
            builder.add(at->key(), values.append(value).text());
        }
        made.add(builder.finish());
        edit.removed.push_back(table->info().number);
        if (works.stop())
            return {};
    }
    values.finish();
    for (TableInfo &table : made.take())
        edit.added.emplace_back(what.tables[edit.added.size()].first, std::move(table));
    return edit;
}

} // namespace lsm

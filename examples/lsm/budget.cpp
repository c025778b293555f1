#include "lsm/budget.hpp"

#include <algorithm>
#include <cerrno>

namespace lsm
{

uint64_t bytes_in_container(const Version &version)
{
    uint64_t bytes = 0;
    for (const auto &table : version.all())
        bytes += table->info().in_container() ? table->info().bytes : 0;
    return bytes;
}

// A level comes back when there is some room to spare. Else it would go again at once.
unsigned levels_in_container(const Version &version, uint64_t budget)
{
    uint64_t bytes = 0;
    for (unsigned n = 0; n < levels; n++) {
        bytes += version.bytes(n);
        const Tables &tables = version.level(n);
        const bool would_come =
            !tables.empty() && std::none_of(tables.begin(), tables.end(),
                                            [](const auto &t) { return t->info().in_container(); });
        if (bytes >= (would_come ? budget - budget / 8 : budget))
            return n;
    }
    return levels;
}

namespace
{

// From the deepest level out, or from the uppermost in.
std::optional<std::pair<unsigned, std::shared_ptr<Table>>>
table_in_wrong_place(const Version &version, unsigned in_container)
{
    for (unsigned n = levels; n-- > std::max(in_container, 1U);)
        for (const auto &table : version.level(n))
            if (table->info().in_container())
                return std::pair(n, table);
    for (unsigned n = 1; n < in_container; n++)
        for (const auto &table : version.level(n))
            if (!table->info().in_container())
                return std::pair(n, table);
    return {};
}

} // namespace

bool must_leave_level0(const Version &version, uint64_t budget)
{
    const Tables &young = version.level(0);
    return levels_in_container(version, budget) == 0 &&
           std::any_of(young.begin(), young.end(),
                       [](const auto &t) { return t->info().in_container(); });
}

std::optional<Edit> move_table(const Version &version, uint64_t budget, bool &may_come,
                               const Works &works)
{
    const auto wrong = table_in_wrong_place(version, levels_in_container(version, budget));
    if (!wrong)
        return {};
    const auto &[level, table] = *wrong;
    TableInfo info = table->info();
    const bool comes = !info.in_container();
    if (comes && !may_come)
        return {};
    info.place = comes ? TablePlace::container : TablePlace::directory;
    info.number = works.new_number();
    try {
        copy_table(*table, works.storage, info);
    } catch (const Error &error) {
        if (!comes || error.code().value() != ENOSPC)
            throw;
        may_come = false;
        return {};
    }
    Edit edit;
    edit.removed.push_back(table->info().number);
    edit.added.emplace_back(level, std::move(info));
    return edit;
}

} // namespace lsm

#include "driver/tables.h"

#include <algorithm>
#include <cmath>

namespace bench
{

std::optional<double> Quantity::of(const Row &row) const
{
    return denominator.empty() ? row.value(numerator) : row.ratio(numerator, denominator);
}

std::string Quantity::name() const
{
    return denominator.empty() ? numerator : numerator + " / " + denominator;
}

bool Target::applies_to(const Row &row) const
{
    return this->row.size() <= row.labels.size() &&
           std::equal(this->row.begin(), this->row.end(), row.labels.begin());
}

std::optional<bool> Target::met(const Row &row) const
{
    auto value = quantity.of(row);
    if (!value)
        return std::nullopt;
    double shown = std::round(*value * 100) / 100;
    return at_least ? shown >= limit : shown <= limit;
}

const Target *Table::target(const Row &row) const
{
    for (const Target &target : targets)
        if (target.applies_to(row))
            return &target;
    return nullptr;
}

namespace
{

const std::string by_transaction =
    "Each cell is libpm / libpmemobj = ratio, in ns per operation; the columns differ in the "
    "number of operations that one durable transaction holds. malloc makes nothing durable. "
    "**libpm loses where a small transaction stores to pages that the ones before did not store "
    "to**: each such page costs a page fault, which alone is more than a whole small transaction "
    "of libpmemobj.";

} // namespace

const std::vector<Table> &tables()
{
    static const std::vector<std::string> all = {"malloc", "libpm", "libpmemobj"};
    static const std::vector<std::string> both = {"libpm", "libpmemobj"};
    static const Quantity to_malloc = {"libpm", "malloc"}, to_pmemobj = {"libpm", "libpmemobj"};
    static const std::vector<std::string> cell = {"structure", "order", "keys"};
    static const std::vector<std::string> cell_batch = {"structure", "order", "keys",
                                                        "transaction"};
    static const std::vector<Table> tables = {
        {"lookup",
         "Lookup",
         "Of keys that are there. libpmemobj's default allocation classes spend 128 bytes on each "
         "object smaller than that, so that its nodes spread over more lines and pages.",
         cell,
         all,
         {to_malloc, to_pmemobj},
         {{to_malloc, 1.05}}},
        {"insert", "Insert", by_transaction, cell_batch, all, {to_pmemobj}, {}, " per transaction"},
        {"remove", "Remove", by_transaction, cell_batch, all, {to_pmemobj}, {}, " per transaction"},
        {"fault",
         "One fault",
         "A store to each page of 32 MiB in random order, and closing the pages again: libpm's "
         "commit (which flushes and checksums every page) and one mprotect for all. By default a "
         "commit keeps pages open for the next transaction and logs them ahead instead of "
         "closing them; with `concurrent_stores` it closes all of them. Log new: the log has to "
         "grow, and its pages to be mapped, as in the first transactions since pm_open().",
         {"step"},
         {"mprotect loop", "libpm", "libpm, concurrent_stores"},
         {{"libpm", "mprotect loop"}, {"libpm, concurrent_stores", "mprotect loop"}},
         {{{"libpm", "mprotect loop"}, 1.25, false, {"fault"}}}},
        {"allocate",
         "Allocation of 64 bytes",
         "Durable transactions of 1 and of 1000 calls; the commits are included. A pair is an "
         "allocation and, in a later transaction, its release, in random order; at once: both in "
         "the same transaction. The objects are not stored to.",
         {"step", "per transaction"},
         all,
         {to_malloc, {"libpmemobj", "libpm"}},
         {{{"libpmemobj", "libpm"}, 5, true, {"pair", "1000"}},
          {{"libpmemobj", "libpm"}, 5, true, {"pair at once", "1000"}}}},
        {"chase",
         "Pointer chase",
         "One hop through nodes of 64 bytes in random order: plain pointers in malloc'ed memory "
         "and in a container, the inlined pmemobj_direct() in a pool. In DRAM, where the pages "
         "happen to lie makes a difference of some percent even between two blocks of malloc.",
         {"size"},
         all,
         {to_malloc, {"libpmemobj", "malloc"}},
         {{to_malloc, 1.00}}},
        {"update",
         "Small transactions",
         "Durable updates of places in a committed array of 32 MiB, ns per transaction. Hot: "
         "always the same places; cold: others each time, at random. libpm is told nothing, "
         "libpmemobj each range beforehand; cold, libpm pays one page fault per update.",
         {"places", "updates", "each"},
         both,
         {to_pmemobj},
         {}},
        {"memory",
         "Volatile memory",
         "Growth of the process' private memory (RssAnon); percent of the bytes in use.",
         {"container"},
         {"libpm"},
         {},
         {{{"libpm", ""}, 1 << 20, false, {"empty"}},
          {{"libpm", ""}, 3, false, {"256 MiB in objects of 64 bytes"}}}},
        {"recovery",
         "Recovery",
         "pm_open() of a 1 GiB container whose last transaction touched 100 pages and was ended "
         "by SIGKILL. Restored are also the pages that earlier commits kept open. If the commit "
         "before wrote all of the container, recovery has to prove that all of it arrived.",
         {"the commits before", "measured by"},
         {"libpm"},
         {},
         {{{"libpm", ""}, 10e6, false, {"of 100 pages", "pm_open() by the clock"}},
          {{"libpm", ""}, 10e6, false, {"of 100 pages", "pm_stats.recovery_ns"}}}},
    };
    return tables;
}

} // namespace bench

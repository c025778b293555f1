/* Tables of the part `log`. */
#include "driver/tables.h"

namespace bench
{

std::vector<Table> log_tables()
{
    const std::vector<std::string> labels = {"pattern", "a commit"},
                                   rooms = {"redo", "roomy", "grows",
                                            "70 %", "80 %",  "70 %, 64 KiB"};
    const std::vector<Quantity> ratios = {{"grows", "roomy"}, {"70 %", "roomy"}, {"80 %", "roomy"}};
    const std::vector<std::string> workload = {"structure", "workload"};
    return {
        {.id = "values",
         .title = "The workloads of the log engine's paper",
         .note = "ns per operation on values of 128 bytes, each a commit, in memory. insert: of "
                 "new keys; update: "
                 "90 % of the updates are of 15 % of the keys. sps swaps two elements of an array: "
                 "any, or as "
                 "update has it. btree is a B-tree, where the paper has a B+ tree.",
         .labels = workload,
         .peers = {"undo/faults", "redo/faults", "log/faults", "redo/stores", "log/stores",
                   "libpmemobj"},
         .ratios = {{"redo/stores", "log/stores"},
                    {"redo/faults", "log/faults"},
                    {"undo/faults", "log/faults"},
                    {"libpmemobj", "log/stores"}}},
        {.id = "values_written",
         .title = "Bytes to the medium for each operation",
         .note = "What the cleaner writes included. Of libpmemobj: lines that it writes back, or copies past the cache.",
         .labels = workload,
         .peers = {"undo/faults", "redo/faults", "log/faults", "redo/stores", "log/stores",
                   "libpmemobj, counted"},
         .ratios = {{"log/stores", "redo/stores"},
                    {"log/faults", "undo/faults"},
                    {"log/stores", "libpmemobj, counted"}}},
        {.id = "objects",
         .title = "New objects",
         .note = "ns per object that is allocated, filled by memcpy and committed, in memory. log/put: "
                 "its bytes are handed over. floor: they are copied past the cache, and a fence. "
                 "replace: another object is freed in the same commit.",
         .labels = {"pattern", "bytes"},
         .peers = {"redo/stores", "log/stores", "log/put", "floor"},
         .ratios = {{"redo/stores", "floor"}, {"log/stores", "floor"}, {"log/put", "floor"}},
         .targets = {{{"redo/stores", "floor"}, 2, false, {"", "1024"}},
                     {{"log/stores", "floor"}, 2, false, {"", "1024"}},
                     {{"log/put", "floor"}, 1.6, false, {"", "4096"}}}},
        {.id = "bounded",
         .title = "Bounded memory",
         .note = "1 GiB of values of 128 bytes, in memory, with options.private_max of 128 MiB "
                 "(256 and 32 with --quick). In order, a load brings 16 pages at once.",
         .labels = {"what"},
         .peers = {"whole", "bounded"},
         .ratios = {{"bounded", "whole"}}},
        {.id = "cleaner",
         .title = "The log engine's cleaner",
         .note = "Processor time per update of a value of 128 bytes, of 64 MiB, in memory. roomy: "
                 "the file is "
                 "so long "
                 "from the beginning that nothing is cleaned. grows: as by default. 70 %: the file "
                 "cannot "
                 "grow, and the contents take so much of it; 64 KiB: in segments, and chunks, of "
                 "that size. 90/15: 90 % of the updates are of 15 "
                 "% of the "
                 "values.",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios},
        {.id = "cleaner_written",
         .title = "Bytes to the medium for each of these updates",
         .note = "What the cleaner writes included.",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios},
        {.id = "cleaner_slow",
         .title = "The slowest of 10,000 of these commits",
         .note =
             "Of the commits of 100 values there are only 5,242: here it is the slowest of all.",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios},
        {.id = "cleaner_file",
         .title = "The file, in shares of its contents",
         .note = "",
         .labels = labels,
         .peers = rooms},
        {.id = "cleaner_open",
         .title = "Opening of these containers",
         .note = "Processor time of pm_open(), 64 MiB of values. The file is in memory.",
         .labels = labels,
         .peers = rooms},
    };
}

} // namespace bench

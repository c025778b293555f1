/* Tables of the part `log`. */
#include "driver/tables.h"

namespace bench
{

std::vector<Table> log_tables()
{
    const std::vector<std::string> labels = {"pattern", "a commit"},
                                   rooms = {"redo", "roomy", "grows", "70 %", "80 %", "70 %, 64 KiB",
                                            "90 %, 64 KiB"};
    const Quantity by_growing = {"grows", "roomy"}, by_70 = {"70 %", "roomy"}, by_80 = {"80 %", "roomy"},
                   by_90 = {"90 %, 64 KiB", "roomy"};
    const std::vector<Quantity> ratios = {by_growing, by_70, by_80, by_90};
    const Quantity slow_redo = {"redo/stores", "log/stores"}, crash = {"bounded", ""},
                   disk = {"log/stores", "redo/stores"};
    const std::vector<std::string> fragments = {"log", "log, live words", "log, compacted",
                                                "log, 70 %", "redo", "libpmemobj"};
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
        {.id = "values_nvm",
         .title = "These workloads on slow memory",
         .note = "ns per operation. A delay stands in for slow persistent memory: 500 ns for a fence, and "
                 "1 GB/s for lines that are copied past the cache or written back. stalls: the next fence "
                 "waits for all of these lines. drains: the medium takes lines while the program works, "
                 "and a fence waits for the rest. libpmemobj has several fences in a commit. Loads are not "
                 "delayed. The paper has the log ahead of redo by 37 %.",
         .labels = {"structure", "workload", "lines"},
         .peers = {"undo/faults", "redo/stores", "log/stores", "libpmemobj"},
         .ratios = {slow_redo, {"undo/faults", "log/stores"}, {"libpmemobj", "log/stores"}},
         .targets = {{slow_redo, 1.2, true, {"geometric mean"}}}},
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
        {.id = "crash",
         .title = "Opening after a crash",
         .note = "1 GiB of values of 128 bytes, in memory, with options.private_max of 128 MiB. A process "
                 "stores to values, one a commit, and dies when the log has 64 MiB behind the last "
                 "checkpoint (256, 32 and 16 MiB with --quick). The stores are to random values, or to "
                 "values that lie together.",
         .labels = {"stores", "what"},
         .peers = {"bounded"},
         .targets = {{crash, 50e6, false, {"", "pm_open"}}}},
        {.id = "map",
         .title = "Memory for the map",
         .note = "The map, deltas, and bits of left lines that are in memory, in percent of 256 MiB of values. "
                 "private_max: 32 MiB. Some: one value of 1000, at random. A stored word makes a delta.",
         .labels = {"bytes of a value", "when"},
         .peers = {"default", "private_max"},
         .targets = {{{"default", ""}, 7, false, {"128"}},
                     {{"default", ""}, 1.5, false, {"1024"}},
                     {{"private_max", ""}, 7, false, {"128"}},
                     {{"private_max", ""}, 1.5, false, {"1024"}}}},
        {.id = "fragments",
         .title = "Fragmentation",
         .note = "The share of the bytes in use that are no object's; 32 MiB of live objects. "
                 "W1: 100 bytes. W2: 100 bytes, 90 % of the objects are freed, 130 bytes. W3: 100 "
                 "to 150 bytes, 90 % freed, 200 to 250 bytes. In each phase five times the live bytes are "
                 "allocated. In use are chunks with live words (log), these words alone (live words), "
                 "segments with objects (redo), and runs (libpmemobj). compacted: after pm_compact(). "
                 "70 %: the file cannot grow, and the objects take so much of it.",
         .labels = {"workload"},
         .peers = fragments,
         .targets = {{{"log", ""}, 4.5},
                     {{"log, live words", ""}, 4.5},
                     {{"log, compacted", ""}, 4.5},
                     {{"log, 70 %", ""}, 4.5}}},
        {.id = "file_updates",
         .title = "Bytes to the disk for an update",
         .note = "A B-tree on a file system. Each update is of a random key, and a commit. The bytes are "
                 "those that the disk was told to write from opening to closing, and what other programs "
                 "wrote meanwhile. append: a record of 512 bytes goes to a file, and fdatasync follows.",
         .labels = {"value", "a commit", "keys"},
         .peers = {"append", "redo/stores", "log/stores"},
         .ratios = {disk, {"log/stores", "append"}},
         .targets = {{disk, 0.5}}},
        {.id = "cleaner",
         .title = "The log engine's cleaner",
         .note = "Processor time per update of a value of 128 bytes, of 64 MiB, in memory. roomy: the file "
                 "is so long from the beginning that nothing is cleaned. grows: as by default. 70 %: the "
                 "file cannot grow, and the contents take so much of it; 64 KiB: in segments, and chunks, "
                 "of that size. 90/15: 90 % of the updates are of 15 % of the values. With chunks of 1 MiB "
                 "the contents cannot take 90 % of the file.",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios,
         .targets = {{by_90, 1.1, false, {"90/15", "1"}}}},
        {.id = "cleaner_written",
         .title = "Bytes to the medium for each of these updates",
         .note = "What the cleaner writes included.",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios},
        {.id = "cleaner_p999",
         .title = "The slowest of 1,000 of these commits",
         .note = "The 99.9th percentile, with the cleaner at work beside without (roomy).",
         .labels = labels,
         .peers = rooms,
         .ratios = ratios,
         .targets = {{by_growing, 2}, {by_70, 2}, {by_80, 2}, {by_90, 2}}},
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

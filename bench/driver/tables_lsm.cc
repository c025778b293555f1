/* Tables of the part `lsm`. All but one are views of the samples of `lsm`, whose labels are durability, where the
 * tables are, cores, bytes of a value, workload, figure. */
#include "driver/tables.h"

namespace bench
{
namespace
{

constexpr const char *leveldb = "LevelDB", *rocksdb = "RocksDB", *key_lsm = "key LSM";

std::function<bool(const Row &)> only(const char *durability, const char *workload)
{
    return [=](const Row &row) {
        return row.labels[0] == durability && (row.labels[4] == workload || !*workload) &&
               row.labels[5] != "merging" &&
               (row.labels[5] != "bytes written" || row.labels[0] == std::string("restart"));
    };
}

} // namespace

std::vector<Table> lsm_tables()
{
    const std::vector<std::string> labels = {"durability", "tables on", "cores",
                                             "value",      "workload",  "figure"};
    const std::vector<std::string> all = {leveldb,   rocksdb, "plain",   "immutable",
                                          "mutable", "NoSST", "merging", key_lsm};
    const std::vector<Quantity> ratios = {
        {leveldb, "immutable"}, {leveldb, "mutable"}, {leveldb, "NoSST"}, {rocksdb, "NoSST"},
        {"mutable", "merging"}, {"NoSST", "merging"}, {leveldb, key_lsm}, {"mutable", key_lsm}};
    const auto row = [](const char *durability, const char *tables, const char *cores,
                        const char *value, const char *workload, const char *figure) {
        return std::vector<std::string>{durability, tables, cores, value, workload, figure};
    };
    const char *const shipped = "as shipped", *const durable = "durable";
    const char *const fill = "fillrandom", *const read = "readrandom", *const mean = "mean";
    return {
        {.id = "lsm_put",
         .title = "Puts in random order, as shipped",
         .note = "Of 1 GiB of values, by one thread, in µs. Nobody syncs; NoSST and the "
                 "container's half of "
                 "mutable are durable per put all the same. Memtables of 64 MB, of 256 MB in the "
                 "container, "
                 "which is on /dev/shm. No compression. A ratio says how many times as long the "
                 "first takes.",
         .labels = labels,
         .peers = all,
         .ratios = ratios,
         .targets =
             {{{leveldb, "mutable"}, 1.5, true, row(shipped, "ext4", "both", "4 KB", fill, mean)},
              {{leveldb, "NoSST"}, 2, true, row(shipped, "ext4", "both", "4 KB", fill, mean)},
              {{rocksdb, "NoSST"}, 1.9, true, row(shipped, "ext4", "both", "4 KB", fill, mean)},
              {{leveldb, "NoSST"}, 1.2, true, row(shipped, "ext4", "both", "1 KB", fill, mean)},
              {{"mutable", "merging"}, 1, true, row(shipped, "ext4", "both", "4 KB", fill, mean)},
              {{"mutable", "merging"}, 1, true, row(shipped, "ext4", "both", "1 KB", fill, mean)},
              {{"mutable", "merging"},
               1,
               true,
               row(shipped, "ext4", "both", "4 KB", fill, "p99.9")},
              {{leveldb, key_lsm}, 1.7, true, row(shipped, "ext4", "both", "1 KB", fill, mean)},
              {{leveldb, "mutable"},
               5,
               true,
               row(shipped, "ext4", "both", "4 KB", fill, "longest")}},
         .samples = "lsm",
         .shows = only(shipped, fill)},
        {.id = "lsm_get",
         .title = "Gets of random keys",
         .note = "Of the pairs of the table before, by one thread, after the store was opened "
                 "again, in µs.",
         .labels = labels,
         .peers = all,
         .ratios = ratios,
         .targets =
             {{{leveldb, "NoSST"}, 2, true, row(shipped, "ext4", "both", "4 KB", read, mean)}},
         .samples = "lsm",
         .shows = only(shipped, read)},
        {.id = "lsm_durable",
         .title = "Puts in random order, each durable",
         .note =
             "The same puts, for some seconds. LevelDB, RocksDB, and ours with a log: with sync.",
         .labels = labels,
         .peers = all,
         .ratios = ratios,
         .targets =
             {{{leveldb, "NoSST"}, 2, true, row(durable, "ext4", "both", "1 KB", fill, mean)},
              {{leveldb, key_lsm}, 10, true, row(durable, "ext4", "both", "1 KB", fill, mean)},
              {{rocksdb, "NoSST"}, 2, true, row(durable, "ext4", "both", "1 KB", fill, mean)}},
         .samples = "lsm",
         .shows = only(durable, "")},
        {.id = "lsm_restart",
         .title = "Opening after SIGKILL",
         .note = "0.9 GiB of values of 4 KB are in a memtable of 1 GiB, when the program is "
                 "killed. `open` is the "
                 "time until the next one has the store open and has got one value, in µs. `bytes "
                 "written` of "
                 "fillrandom are those of the log for a put; for NoSST, what libpm logs.",
         .labels = labels,
         .peers = {leveldb, rocksdb, "plain", "NoSST"},
         .ratios = {{leveldb, "NoSST"}, {rocksdb, "NoSST"}},
         .targets =
             {{{leveldb, "NoSST"}, 100, true, row("restart", "ext4", "both", "4 KB", "open", mean)},
              {{rocksdb, "NoSST"}, 100, true, row("restart", "ext4", "both", "4 KB", "open", mean)},
              {{"NoSST", ""}, 10'000, false, row("restart", "ext4", "both", "4 KB", "open", mean)},
              {{leveldb, "NoSST"},
               10,
               true,
               row("restart", "ext4", "both", "4 KB", fill, "bytes written")}},
         .samples = "lsm",
         .shows = only("restart", "")},
        {.id = "lsm_ycsb",
         .title = "YCSB",
         .note = "10^6 records of 16 + 100 bytes, two threads, in µs an operation of each. Ours is "
                 "mutable, with the "
                 "tables of levels 0 and 1 on /dev/shm, the others on the disk.",
         .labels = labels,
         .peers = {leveldb, rocksdb, "mutable"},
         .ratios = {{leveldb, "mutable"}, {rocksdb, "mutable"}},
         .samples = "lsm",
         .shows = only("YCSB", "")},
        {.id = "lsm_clients",
         .title = "Reads and updates by 16 clients",
         .note = "500,000 records of 1 KB, reads and updates in equal numbers (YCSB A), in µs an "
                 "operation "
                 "of each client.",
         .labels = labels,
         .peers = {leveldb, rocksdb, "mutable", key_lsm},
         .ratios = {{leveldb, key_lsm}, {"mutable", key_lsm}},
         .targets = {{{leveldb, key_lsm},
                      1,
                      true,
                      row("16 clients", "ext4", "both", "1 KB", "ycsba", mean)}},
         .samples = "lsm",
         .shows = only("16 clients", "ycsba")},
        {.id = "lsm_merging",
         .title = "Time in compaction",
         .note = "How long tables were merged during the puts of the first table, in percent of "
                 "its time. "
                 "Writing memtables to level 0 does not count.",
         .labels = labels,
         .peers = {leveldb, "plain", "mutable", key_lsm},
         .ratios = {{leveldb, key_lsm}},
         .targets =
             {{{key_lsm, ""}, 6, false, row(shipped, "ext4", "both", "1 KB", fill, "merging")}},
         .samples = "lsm",
         .shows =
             [](const Row &row) {
                 return row.labels[0] == "as shipped" && row.labels[4] == "fillrandom" &&
                        row.labels[5] == "merging";
             }},
        {.id = "lsm_workers",
         .title = "Parallel reads",
         .note = "Gets of values of 64 KB from tables without filters, in µs.",
         .labels = labels,
         .peers = {"alone", "two workers"},
         .ratios = {{"alone", "two workers"}},
         .targets = {{{"alone", "two workers"},
                      0.95,
                      true,
                      row("workers", "ext4", "both", "64 KB", read, mean)}},
         .samples = "lsm",
         .shows = only("workers", read)},
        {.id = "lsm_parts",
         .title = "Where the time of a put and a get goes",
         .note = "4 KB, as shipped, in ns. The rest of a get is mostly the search of tables.",
         .labels = {"operation", "part"},
         .peers = {"dram", "mutable", "nosst"}},
    };
}

} // namespace bench

#include "driver/tables.h"

#include <algorithm>
#include <cmath>
#include <iterator>

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
           std::equal(this->row.begin(), this->row.end(), row.labels.begin(),
                      [](const std::string &ours, const std::string &theirs) {
                          return ours.empty() || ours == theirs;
                      });
}

std::optional<bool> Target::met(const Row &row) const
{
    auto value = quantity.of(row);
    if (!value)
        return std::nullopt;
    double shown = std::round(*value * 100) / 100;
    return at_least ? shown >= limit : shown <= limit;
}

std::vector<Row> Table::rows(Results &results) const
{
    std::vector<Row> shown;
    std::ranges::copy_if(results.rows(samples.empty() ? id : samples), std::back_inserter(shown),
                         shows);
    return shown;
}

std::vector<Target> Table::targets_of(const Row &row) const
{
    std::vector<Target> applying;
    std::ranges::copy_if(targets, std::back_inserter(applying),
                         [&](const Target &target) { return target.applies_to(row); });
    return applying;
}

namespace
{

using Labels = std::vector<std::string>;

const Labels modes = {"redo/stores", "redo/faults", "undo/faults", "log/stores", "log/faults"};

Labels with_modes(const Labels &before, const Labels &after)
{
    Labels all = before;
    all.insert(all.end(), modes.begin(), modes.end());
    all.insert(all.end(), after.begin(), after.end());
    return all;
}

/** Whether a label is one of some. */
auto shows_label(size_t label, const Labels &any)
{
    return [=](const Row &row) { return std::ranges::count(any, row.labels.at(label)) > 0; };
}

/** Tables of the structures, on memory that stands in for pmem. */
std::vector<Table> structure_tables()
{
    const Quantity to_floor = {"redo/stores", "floor"}, hand_to_floor = {"by hand", "floor"};
    const Quantity to_hand = {"redo/stores", "by hand"}, to_malloc = {"redo/stores", "malloc"};
    const Quantity by_stores = {"libpmemobj", "redo/stores"},
                   by_faults = {"libpmemobj", "redo/faults"};
    const Quantity log_to_floor = {"log/stores", "floor"}, by_log = {"libpmemobj", "log/stores"},
                   log_to_redo = {"log/stores", "redo/stores"};
    const Labels cell = {"structure", "order", "keys"};
    const Labels cell_batch = {"structure", "order", "keys", "a commit"};
    const Labels cell_written = {"structure", "order", "keys", "operation", "a commit"};
    const Labels all = with_modes({"malloc", "floor", "by hand"}, {"libpmemobj"});
    const Labels durable = with_modes({"floor", "by hand"}, {"libpmemobj"});
    const std::string size = "100000"; // keys

    const std::string note =
        "ns per operation, with 1 and with 1000 operations in each durable commit. malloc makes "
        "nothing durable; the floor is malloc and, at each commit, as many bytes as redo/stores "
        "logged copied past the cache into a file in memory, and one fence. By hand is a "
        "straightforward redo log besides, of as many bytes, with lines that stay in the cache if "
        "commits are small: it compares, makes a checksum, stores home and writes that back, but "
        "has not to find out which lines, and knows no allocation nor recovery.";
    const std::vector<Target> targets = {
        {to_floor, 1.3, false, {"", "random", size, "1"}},
        {by_stores, 8, true, {"rbtree", "random", size, "1"}},
        {by_stores, 8, true, {"hashmap", "random", size, "1"}},
        {by_faults, 1.01, true, {"", "sequential", size, "1000"}},
    };
    const std::string batch_note =
        "ns per operation by the number of operations in each durable commit, 10^5 keys. Where "
        "the lines of two modes cross is where to choose the other.";

    std::vector<Table> tables = {
        {"lookup",
         "Lookup",
         "Of keys that are there. libpmemobj's default allocation classes spend 128 bytes on each "
         "object smaller than that, so that its nodes spread over more lines and pages.",
         cell,
         with_modes({"malloc"}, {"libpmemobj"}),
         {to_malloc, by_stores, {"log/stores", "malloc"}},
         {{to_malloc, 1.05, false, {"", "random", size}},
          {by_stores, 1.3, true, {"", "random", size}}}},
    };
    for (const auto &[id, title] : {std::pair{"insert", "Insert"}, {"remove", "Remove"}})
        tables.push_back({.id = id,
                          .title = title,
                          .note = note,
                          .labels = cell_batch,
                          .peers = all,
                          .ratios = {to_floor, hand_to_floor, to_hand, by_stores, by_faults, log_to_floor,
                                     by_log},
                          .targets = targets,
                          .shows = shows_label(3, {"1", "1000"})});
    for (const auto &[id, title] :
         {std::pair{"insert", "Insert by size of commit"}, {"remove", "Remove by size of commit"}})
        tables.push_back({.id = std::string(id) + "_batch",
                          .title = title,
                          .note = batch_note,
                          .labels = cell_batch,
                          .peers = durable,
                          .pivot = " a commit",
                          .samples = id,
                          .shows = shows_label(2, {size})});
    const Quantity recording = {"redo/stores, movable", "redo/stores"};
    tables.push_back({.id = "insert_movable",
                      .title = "Recording of pointers",
                      .note = "Insertions, ns per operation, by the same code in a container that "
                              "is PM_MOVABLE and in one that is not, both in one process and in "
                              "turn: the median of many slices, of some ms each.",
                      .labels = cell_batch,
                      .peers = {"redo/stores", "redo/stores, movable"},
                      .ratios = {recording},
                      .targets = {{recording, 1.15, false, {"", "", size}}}});
    tables.push_back({.id = "log",
                      .title = "Bytes logged by a commit",
                      .note = "10^5 keys; by the number of operations in the commit.",
                      .labels = cell_written,
                      .peers = modes,
                      .pivot = " a commit",
                      .shows = shows_label(2, {size})});
    tables.push_back(
        {.id = "written",
         .title = "Write amplification",
         .note = "Bytes logged, and 64 for each line written back, for each byte of the key and "
                 "the value that an operation inserts or removes (16); 10^5 keys. The log engine's cleaner "
                 "included. Of libpmemobj: lines that it writes back, or copies past the cache.",
         .labels = cell_written,
         .peers = with_modes({}, {"libpmemobj, counted"}),
         .pivot = " a commit",
         .shows = shows_label(2, {size})});
    const std::string changes = "insert, remove", all_four = "all", three = "without the skip list";
    tables.push_back(
        {.id = "means",
         .title = "Geometric means of the structures",
         .note = "Random keys, ns per operation.",
         .labels = {"operation", "keys", "a commit", "structures"},
         .peers = all,
         .ratios = {to_floor, hand_to_floor, log_to_floor, by_stores, by_log, {"log/stores", "malloc"}},
         .targets = {{log_to_floor, 1.8, false, {changes, size, "1", all_four}},
                     {log_to_floor, 1.7, false, {changes, size, "1000", all_four}},
                     {by_log, 4, true, {changes, size, "1", three}},
                     {by_log, 3, true, {changes, "1000000", "1", three}},
                     {{"log/stores", "malloc"}, 1, false, {"lookup", size, "", all_four}}}});
    tables.push_back({.id = "means_written",
                      .title = "Geometric means of write amplification",
                      .note = "Random keys.",
                      .labels = {"operation", "keys", "a commit", "structures"},
                      .peers = with_modes({}, {"libpmemobj, counted"}),
                      .ratios = {log_to_redo, {"log/stores", "libpmemobj, counted"}},
                      .targets = {{log_to_redo, 0.5, false, {"", size, "", all_four}}}});
    return tables;
}

/** Tables of single steps. */
std::vector<Table> micro_tables()
{
    const Quantity pmemobj_by_stores = {"libpmemobj", "redo/stores"};
    const Quantity pmemobj_by_undo = {"libpmemobj", "undo/faults"};
    const Quantity bare_fault = {"undo/faults", "mprotect loop"};
    const Quantity moving = {"libpm", "what it needs"};
    const std::string concurrent = "undo/faults, concurrent_stores", full = "256 MiB in objects of "
                                                                            "64 bytes";
    return {
        {"fault",
         "One fault",
         "A store to each page of 32 MiB in random order, and closing the pages again: libpm's "
         "commit (undo flushes and checksums every page, redo compares it with home) and one "
         "mprotect for all. By default a commit keeps pages open for the next transaction instead "
         "of closing them; with `concurrent_stores` it closes all of them. Log new: the log has to "
         "grow, and its pages to be mapped, as in the first transactions since pm_open().",
         {"step"},
         {"mprotect loop", "undo/faults", concurrent, "redo/faults"},
         {bare_fault, {concurrent, "mprotect loop"}, {"redo/faults", "mprotect loop"}},
         {{bare_fault, 1.25, false, {"fault"}}}},
        {"allocate",
         "Allocation of 64 bytes",
         "Durable transactions of 1 and of 1000 calls; the commits are included. A pair is an "
         "allocation and, in a later transaction, its release, in random order; at once: both in "
         "the same transaction. The objects are not stored to.",
         {"step", "a commit"},
         with_modes({"malloc"}, {"libpmemobj"}),
         {pmemobj_by_undo, pmemobj_by_stores},
         {{pmemobj_by_undo, 5, true, {"pair", "1000"}},
          {pmemobj_by_undo, 5, true, {"pair at once", "1000"}}}},
        {"chase",
         "Pointer chase",
         "One hop through nodes of 64 bytes in random order: plain pointers in malloc'ed memory "
         "and in containers, the inlined pmemobj_direct() in a pool. In DRAM, where the pages "
         "happen to lie makes a difference of some percent even between two blocks of malloc.",
         {"size"},
         {"malloc", "undo/faults", "redo/faults", "libpmemobj"},
         {{"undo/faults", "malloc"}, {"redo/faults", "malloc"}, {"libpmemobj", "malloc"}},
         {{{"undo/faults", "malloc"}, 1.00}, {{"redo/faults", "malloc"}, 1.00}}},
        {"update",
         "Small transactions",
         "Durable updates of places in a committed array of 32 MiB, ns per transaction. Hot: "
         "always the same places; cold: others each time, at random. libpm is told nothing, "
         "libpmemobj each range beforehand; cold, `faults` pays one page fault per update.",
         {"places", "updates", "each"},
         with_modes({}, {"libpmemobj"}),
         {pmemobj_by_stores, pmemobj_by_undo}},
        {"memory",
         "Volatile memory",
         "Growth of the process' private memory (RssAnon); percent of the bytes in use. The redo "
         "engine's private pages are among it, up to options.private_max.",
         {"container"},
         modes,
         {},
         {{{"undo/faults", ""}, 1 << 20, false, {"empty"}},
          {{"undo/faults", ""}, 3, false, {full}}}},
        {"recovery",
         "Recovery",
         "pm_open() of a 1 GiB container whose last transaction touched 100 pages and was ended "
         "by SIGKILL. Restored are also the pages that earlier commits kept open. If the commit "
         "before wrote all of the container, recovery has to prove that all of it arrived.",
         {"the commits before", "measured by"},
         {"undo/faults", "redo/faults"},
         {},
         {{{"undo/faults", ""}, 10e6, false, {"of 100 pages", "pm_open() by the clock"}},
          {{"undo/faults", ""}, 10e6, false, {"of 100 pages", "pm_stats.recovery_ns"}}}},
        {"elsewhere",
         "At other addresses",
         "A container of 1 GiB with 16 million pointers. What the steps need: a bare fault whose "
         "handler calls mprotect, and for each page its first store in new memory, a copy, and the "
         "shifting of its pointers; for the move 0.3 s and one pass that shifts them in place.",
         {"step"},
         {"libpm", "what it needs"},
         {moving},
         {{{"libpm", ""}, 2e6, false, {"open where its pointers mean, to the first access"}},
          {{"libpm", ""}, 2e6, false, {"open elsewhere, to the first access"}},
          {moving, 1.25, false, {"a neighbourhood of 8 pages"}},
          {moving, 1.25, false, {"all pages, in scattered order"}},
          {{"libpm", ""}, 0.1, false, {"faults a page of that"}},
          {moving, 1, false, {"move on the medium"}},
          {{"libpm", ""}, 4e6, true, {"pointers a second of that"}}}},
    };
}

/** Tables of durable commits on an ordinary file system. */
std::vector<Table> file_tables()
{
    const Quantity to_lmdb = {"redo/stores", "LMDB"};
    const Quantity two_threads = {"2 threads", "1 thread"};
    const Quantity log_to_redo = {"log/stores", "redo/stores"};
    const Labels libpm = {"redo/stores", "redo/stores, group", "redo/faults", "redo/faults, group",
                          "log/stores",  "log/stores, group",  "log/faults",  "log/faults, group"};
    Labels all = libpm;
    all.insert(all.end(), {"LMDB", "SQLite", "LevelDB", "RocksDB"});

    return {
        {"file",
         "Commits on a file system",
         "Durable commits per second; 10^5 random 64-bit keys, half of the puts are updates, half "
         "insertions. libpm keeps the B-tree of examples/. Group: pm_commit_async() under the "
         "program's lock, pm_wait() outside of it. LMDB by its manual's defaults (no MDB_NOSYNC, "
         "no "
         "MDB_WRITEMAP), SQLite in WAL mode with synchronous=FULL, LevelDB and RocksDB with "
         "sync.",
         {"value", "puts a commit", "threads"},
         all,
         {to_lmdb, log_to_redo},
         {{to_lmdb, 1.5, true, {"", "", "1"}}, {log_to_redo, 1, true, {"", "1", "1"}}}},
        {"file_bare",
         "Commits relative to the bare disk",
         "The same, divided by how often per second 512 bytes could be written in place and "
         "synced, "
         "measured right before and after: a disk may change its speed tenfold between two runs.",
         {"value", "puts a commit", "threads"},
         all,
         {to_lmdb},
         {{to_lmdb, 1.5, true, {"", "", "1"}}}},
        {"file_threads",
         "Two threads",
         "The same commits per second, by one thread and by two.",
         {"database", "value", "puts a commit"},
         {"1 thread", "2 threads"},
         {two_threads},
         {{two_threads, 1.01, true, {"redo/stores, group"}}}},
        {"file_written",
         "Bytes written to the file system",
         "For each byte of a key or value put, from opening to closing, by one thread: sectors "
         "that "
         "the disk was told to write, the file system's journal included, and whatever other "
         "programs wrote meanwhile.",
         {"value", "puts a commit"},
         all,
         {to_lmdb}},
        {"file_rounds",
         "Waits for the medium",
         "fdatasync(2) per commit, those of checkpoints included.",
         {"value", "puts a commit", "threads"},
         libpm,
         {},
         {{{"redo/stores", ""}, 1.02, false, {"", "", "1"}},
          {{"redo/faults", ""}, 1.02, false, {"", "", "1"}}}},
    };
}

/** Tables of what marks cost. */
std::vector<Table> mark_tables()
{
    const Quantity to_clang = {"pmcc", "clang"}, to_discover = {"pmcc --discover", "clang"};
    return {
        {"marks",
         "Marks",
         "The same loops compiled by clang and, with marks before the stores, by pmcc; none of "
         "them "
         "touches a container. ns per store, but per word where words are counted.",
         {"loop"},
         {"clang", "pmcc", "difference"},
         {to_clang},
         {{{"difference", ""}, 2, false, {"a store to a marked line"}},
          {to_clang, 1.3, false, {"scattered stores to the heap"}},
          {to_clang, 1.3, false, {"an array filled"}},
          {to_clang, 1.05, false, {"words counted, sorted, printed"}}}},
        {"discover",
         "A program whose data could be discovered",
         "Compiled by clang and by pmcc --discover: memory from glibc and from libpm, and the "
         "marks "
         "of what is stored there. Nothing is committed. ns per allocation, or per node.",
         {"work"},
         {"clang", "pmcc --discover"},
         {to_discover},
         {{to_discover, 2, false, {"malloc, free"}},
          {to_discover, 2, false, {"1,000 live objects of 16 to 256 bytes"}},
          {to_discover, 2, false, {"100,000 live objects of 16 to 256 bytes"}}}},
        {"discovery",
         "Discovery of a tree",
         "A search tree of 10^6 malloc'ed nodes of 32 bytes, to which the root is set, moves into "
         "the container at commit; by hand: each node is copied into memory from pm_malloc() and "
         "freed. ns a node, the commit included.",
         {"step"},
         {"by hand", "discovery"},
         {{"discovery", "by hand"}},
         {{{"discovery", "by hand"}, 4, false}}},
        {"discovery_commit",
         "Discovery of a new node",
         "The commit alone, after one more node in that tree, beside 10^6 other malloc'ed objects "
         "of which 4 point at it. Without discovery the node comes from pm_malloc(), before.",
         {"step"},
         {"redo/stores", "discovery", "difference"},
         {},
         {{{"difference", ""}, 3000, false}}},
    };
}

/** Tables of METRADB. */
std::vector<Table> metradb_tables()
{
    Labels peers = {"METRADB", "hash map tx", "hash map atomic", "ctree", "btree", "rbtree"};
    std::vector<Quantity> ratios;
    for (size_t i = 1; i < peers.size(); i++)
        ratios.push_back({peers[i], peers[0]});
    peers.push_back("METRADB, 256 MiB");
    const Quantity two_threads = {"2 threads", "1 thread"};
    return {
        {"metradb",
         "METRADB",
         "Keys of 8 bytes, values of 1 KiB, in random order; each change is a durable transaction "
         "of "
         "its own; ns of processor time an operation, of which none waits. Fill: puts into an "
         "empty store, whose file and memory grow "
         "meanwhile (the pools of libpmemobj have their size from the beginning). Delete and put: "
         "of a random half, in a store in use. METRADB has memory for copies of all its pages "
         "(memory_max of 2 GiB), and in the last column what it takes by default.",
         {"operation"},
         peers,
         ratios},
        {.id = "metradb_threads",
         .title = "METRADB by threads",
         .note =
             "Operations a second of all threads together, each with a container, or a pool, of "
             "its own.",
         .labels = {"store", "operation"},
         .peers = {"1 thread", "2 threads"},
         .ratios = {two_threads}},
        {.id = "metradb_processors",
         .title = "METRADB by threads and processor time",
         .note = "The same operations for each second that a processor worked for one of the "
                 "threads: what they cost each other, whatever else the machine has to do.",
         .labels = {"store", "operation"},
         .peers = {"1 thread", "2 threads"},
         .ratios = {two_threads}},
        {"metradb_parts",
         "METRADB by parts",
         "Where the time of an operation goes, in percent. Each call between the parts is timed, "
         "and the cost of that taken off; processors overlap parts, so neighbours may trade some.",
         {"part"},
         {"fill", "get", "replace", "delete", "put"}},
    };
}

/** Tables of NVMKV. */
std::vector<Table> nvmkv_tables()
{
    const Labels all = {"NVMKV, sync",  "FTL, sync",  "LevelDB, sync",
                        "NVMKV, async", "FTL, async", "LevelDB, async"};
    const Quantity sync = {"NVMKV, sync", "LevelDB, sync"};
    const Quantity async = {"NVMKV, async", "LevelDB, async"};
    const Labels four = {"NVMKV, sync", "LevelDB, sync", "NVMKV, async", "LevelDB, async"};
    const char *const written =
        "For each byte of a key or value put. Handed on: what libpm logged, and 64 for each line "
        "that it wrote back (of files, in pages); what LevelDB gave to write(2). To the disk: "
        "sectors that it was told to write until the store was closed, the file system's journal "
        "included, and whatever other programs wrote meanwhile.";
    return {
        {"kv_put",
         "Puts",
         "Of new keys of 16 bytes, with values of 1 KiB, a second. Sync: a put returns when it "
         "survives a power failure; async: when it survives the process. The FTL is the address "
         "space that NVMKV writes to.",
         {"medium", "threads"},
         all,
         {sync, async}},
        {"kv_put_bare",
         "Sync puts relative to the bare disk",
         "Those to an ordinary file, divided by how often per second 512 bytes could be written in "
         "place and synced, measured right before and after.",
         {"threads"},
         {"NVMKV, sync", "FTL, sync", "LevelDB, sync"},
         {sync}},
        {"kv_get",
         "Gets",
         "Of random keys of those put async, a second, by as many threads. NVMKV without its "
         "cache, "
         "LevelDB with one of 8 MiB, and bloom filters.",
         {"medium", "threads"},
         {"NVMKV, async", "FTL, async", "LevelDB, async"},
         {async}},
        {"kv_io",
         "I/Os",
         "By one thread, counted where the store hands them to the layer below. Of NVMKV that is "
         "the "
         "address space; of LevelDB its files, reads and writes of compactions among them. Waits "
         "are fdatasync(2), or fences.",
         {"medium", "I/O"},
         all},
        {"kv_written", "Write amplification of puts", written, {"medium", "counted"}, all},
        {"kv_pools",
         "Pools",
         "Puts, and gets of random keys, a second, by two threads, of as many pools of one store, "
         "and of as many LevelDB databases.",
         {"medium", "operation", "pools"},
         four,
         {sync, async}},
        {"ycsb",
         "YCSB",
         "Operations a second by two threads on 40,000 records of 16 + 1024 bytes: A half updates, "
         "B 5 % updates, C reads, F half read-modify-writes (zipfian, 0.99), D 5 % insertions, "
         "reads of the latest. Cache: LevelDB's block cache, NVMKV's read cache. Sync: each put "
         "waits for the medium, after a load that did not.",
         {"medium", "workload", "cache"},
         four,
         {sync, async}},
        {"ycsb_written",
         "Write amplification of YCSB",
         "Bytes handed on for each byte of a key or value put.",
         {"medium", "workload", "cache"},
         four},
        {"ycsb_io",
         "I/Os of YCSB",
         "For each operation, async, counted as above.",
         {"medium", "workload", "cache"},
         {"NVMKV, reads", "LevelDB, reads", "NVMKV, writes", "LevelDB, writes"}},
        {"kv_collisions",
         "Collision cache",
         "20,000 pairs in a store of few regions; gets of 4096 of the keys, with the cache of "
         "where displaced keys are and without.",
         {"regions taken", "figure"},
         {"collision cache", "none"}},
    };
}

} // namespace

const std::vector<Table> &tables()
{
    static const std::vector<Table> tables = [] {
        std::vector<Table> all;
        for (auto part : {structure_tables, micro_tables, mark_tables, file_tables, metradb_tables,
                          nvmkv_tables, log_tables, lsm_tables, tiered_tables})
            std::ranges::copy(part(), std::back_inserter(all));
        return all;
    }();
    return tables;
}

} // namespace bench

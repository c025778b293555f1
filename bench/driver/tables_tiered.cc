/* Tables of the part `tiered`. NO-PM, ALL-PM and SELECT-PM are the paper's names (arXiv 1807.06417). */
#include "driver/tables.h"

namespace bench
{

std::vector<Table> tiered_tables()
{
    const char *const none = "no-pm", *const all = "all-pm", *const select = "select-pm";
    return {
        {.id = "kmeans",
         .title = "k-means, loading and iterating",
         .note =
             "Points of 12 dimensions, 8 clusters, 5 passes. no-pm reads Protocol Buffers from a "
             "file, and "
             "makes objects of them once; with limited memory, in each pass. The limit holds for "
             "everything, page cache and /dev/shm too; so the container is on the disk there.",
         .labels = {"points", "memory"},
         .peers = {none, all},
         .ratios = {{all, none}},
         .targets = {{{all, none}, 0.5}}},
        {.id = "graph",
         .title = "Graph search",
         .note = "20,000 nodes with 30 features, 2 KB of text and 5 edges each, whose in-degrees "
                 "follow a power law. "
                 "100 queries with 1 to 5 constraints.",
         .labels = {"step"},
         .peers = {none, all, select},
         .ratios = {{all, none}, {select, none}},
         .targets = {{{select, none}, 0.7, false, {"both"}}}},
        {.id = "person",
         .title = "Person search",
         .note = "Persons with an image of 10 KB each. A scan finds those of an age.",
         .labels = {"figure"},
         .peers = {all, select, "sqlite", "rocksdb"},
         .ratios = {{select, all}, {select, "sqlite"}, {select, "rocksdb"}}},
        {.id = "person_memory",
         .title = "Persistent memory of the persons",
         .note = "Bytes of the fields in persistent memory. values: the values alone. struct: a "
                 "plain C++ "
                 "struct of them. objects: all objects in the container. container: its file, with "
                 "log and free segments.",
         .labels = {"placement"},
         .peers = {"values", "struct", "objects", "container"},
         .ratios = {{"objects", "struct"}, {"container", "struct"}, {"objects", "values"}},
         .targets = {{{"objects", "struct"}, 1.1, false, {select}}}},
        {.id = "tiered_disk",
         .title = "What stands behind the tier disk",
         .note = "20,000 values, a hundred of them with one sync; then reads in random order.",
         .labels = {"value", "operation"},
         .peers = {"files", "rocksdb"},
         .ratios = {{"files", "rocksdb"}}},
        {.id = "tiered_placement",
         .title = "The placement that pm-tier finds",
         .note = "Persons of four fields, in persistent memory or on disk; all placements were "
                 "measured.",
         .labels = {"placement"},
         .peers = {"chosen", "best"},
         .ratios = {{"chosen", "best"}},
         .targets = {{{"chosen", "best"}, 1.05}}},
        {.id = "tiered_access",
         .title = "Reading a field in persistent memory",
         .note = "Of objects in the order in which they were made. raw: a struct of the same "
                 "length, in memory.",
         .labels = {"what"},
         .peers = {"raw", "tiered", "profiled"},
         .ratios = {{"tiered", "raw"}, {"profiled", "tiered"}},
         .targets = {{{"tiered", "raw"}, 1.1, false, {"read of a field"}},
                     {{"profiled", "tiered"}, 1.2, false, {"a point of k-means"}}}},
    };
}

} // namespace bench

/*
 * Turns the driver's figures into plots: for each a table of numbers (.dat) and a script (.gp) that
 * draws it as SVG and as PNG. Run gnuplot in the directory they are in. Everything a plot shows
 * comes from the JSON file; nothing is edited by hand.
 */
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench
{
namespace
{

using Labels = std::vector<std::string>;

using Rows = std::vector<nlohmann::json>;

struct Peer {
    const char *name, *colour;
    int point; // gnuplot's number of the symbol
};
using Peers = std::vector<Peer>;

/** In the order in which they are drawn; the colours are Okabe and Ito's. */
const Peers memory_peers = {
    {"malloc", "#999999", 1},      {"floor", "#56b4e9", 2},       {"by hand", "#cc79a7", 3},
    {"redo/stores", "#0072b2", 7}, {"redo/faults", "#009e73", 5}, {"undo/faults", "#e69f00", 9},
    {"libpmemobj", "#d55e00", 13},
};
const Peers file_peers = {
    {"redo/stores", "#0072b2", 7}, {"redo/stores, group", "#56b4e9", 6},
    {"redo/faults", "#009e73", 5}, {"LMDB", "#e69f00", 9},
    {"SQLite", "#f0e442", 11},     {"LevelDB", "#d55e00", 13},
};

const Peers metradb_peers = {
    {"METRADB", "#0072b2", 7}, {"hash map tx", "#d55e00", 13}, {"hash map atomic", "#e69f00", 9},
    {"ctree", "#009e73", 5},   {"btree", "#56b4e9", 2},        {"rbtree", "#999999", 1},
};
const Peers thread_peers = {
    {"1 thread", "#0072b2", 7},
    {"2 threads", "#56b4e9", 6},
};
const Peers part_peers = {
    {"fill", "#999999", 13},   {"put", "#0072b2", 7},    {"get", "#009e73", 5},
    {"replace", "#56b4e9", 6}, {"delete", "#e69f00", 9},
};
const Peers nvmkv_peers = {
    {"NVMKV, sync", "#0072b2", 7},  {"FTL, sync", "#999999", 5},  {"LevelDB, sync", "#d55e00", 13},
    {"NVMKV, async", "#56b4e9", 6}, {"FTL, async", "#cccccc", 4}, {"LevelDB, async", "#e69f00", 12},
};

const Peers lsm_peers = {
    {"LevelDB", "#d55e00", 13},  {"RocksDB", "#e69f00", 9}, {"plain", "#999999", 1},
    {"immutable", "#56b4e9", 6}, {"mutable", "#0072b2", 7}, {"NoSST", "#009e73", 5},
    {"merging", "#cc79a7", 3},   {"key LSM", "#7f7f7f", 5},
};
const Peers lsm_part_peers = {
    {"dram", "#999999", 1}, {"mutable", "#0072b2", 7}, {"nosst", "#009e73", 5}};

const char *const logarithmic = "set logscale y\nset format y '%.0s%c'\n";
const char *const linear = "set yrange [0:*]\n";
const char *const linear_many = "set yrange [0:*]\nset xtics rotate by -20\n"; // of many labels

/** Those that any of the rows has a figure of. */
Peers measured(const Peers &peers, const Rows &rows)
{
    Peers found;
    std::ranges::copy_if(peers, std::back_inserter(found), [&](const Peer &peer) {
        return std::ranges::any_of(
            rows, [&](const auto &row) { return row.at("peers").contains(peer.name); });
    });
    return found;
}

class Figures
{
  public:
    explicit Figures(const std::string &path) : json_(nlohmann::json::parse(std::ifstream(path))) {}

    /** The rows of a table whose labels begin with these; "" stands for any. */
    Rows rows(const std::string &table, const Labels &labels) const
    {
        Rows found;
        for (const auto &row : json_.at("tables").value(table, nlohmann::json::array())) {
            bool matches = true;
            for (size_t i = 0; i < labels.size(); i++)
                matches = matches && (labels[i].empty() || row.at("labels").at(i) == labels[i]);
            if (matches)
                found.push_back(row);
        }
        return found;
    }

  private:
    nlohmann::json json_;
};

class Writer
{
  public:
    Writer(const Figures &figures, std::string directory)
        : figures_(figures), directory_(std::move(directory))
    {
    }

    /** One group of bars for each row, named by one of its labels; a bar for each peer. */
    void bars(const std::string &name, const std::string &title, const std::string &axis,
              const char *scale, const Peers &peers, const Rows &rows, size_t label)
    {
        const Peers shown = measured(peers, rows);
        write_numbers(name, shown, rows, label);
        auto script = begin(name);
        script << "set title '" << title << "'\n"
               << "set ylabel '" << axis << "'\n"
               << scale << "set style data histograms\nset style histogram clustered gap 1\n"
               << "set style fill solid border rgb 'white'\n"
               << "set key outside bottom center horizontal\n";
        draw(script, name, "960,540", [&] {
            plot(script, name, shown, [](const Peer &peer, size_t column) {
                return std::to_string(column) + (column == 2 ? ":xtic(1)" : "") + " lc rgb '" +
                       peer.colour + "'";
            });
        });
    }

    /** For each structure a panel; in it a line for each peer, by the operations of a commit. */
    void lines(const std::string &name, const std::string &title, const std::string &table,
               const std::string &order)
    {
        std::vector<std::pair<std::string, Peers>> panels;
        for (const std::string structure : {"rbtree", "btree", "skiplist", "hashmap"}) {
            const Rows rows = figures_.rows(table, {structure, order, "100000"});
            // malloc, the first, has no commits.
            const Peers shown = measured({memory_peers.begin() + 1, memory_peers.end()}, rows);
            write_numbers(name + "-" + structure, shown, rows, 3);
            panels.emplace_back(structure, shown);
        }
        auto script = begin(name);
        script << "set logscale x\n"
               << logarithmic
               << "set xlabel 'operations in a commit'\nset ylabel 'ns an operation'\n"
               << "set key below\n";
        draw(script, name, "960,900", [&] {
            script << "set multiplot layout 2,2 title '" << title << "'\n";
            for (const auto &[structure, peers] : panels) {
                script << "set title '" << structure << "'\n";
                plot(script, name + "-" + structure, peers, [](const Peer &peer, size_t column) {
                    return "(strcol(1) + 0):" + std::to_string(column) + // for labels are quoted
                           " with linespoints lw 2 pt " + std::to_string(peer.point) + " lc rgb '" +
                           peer.colour + "'";
                });
            }
            script << "unset multiplot\n";
        });
    }

  private:
    /** A line of numbers for each row: a label, then a column for each peer. */
    void write_numbers(const std::string &name, const Peers &peers, const Rows &rows, size_t label)
    {
        std::ofstream out(directory_ + "/" + name + ".dat");
        out << "# label";
        for (const Peer &peer : peers)
            out << " \"" << peer.name << '"';
        out << '\n';
        for (const auto &row : rows) {
            out << '"' << row.at("labels").at(label).get<std::string>() << '"';
            for (const Peer &peer : peers) {
                auto found = row.at("peers").find(peer.name);
                out << ' ' << (found == row.at("peers").end() ? "?" : found->at("median").dump());
            }
            out << '\n';
        }
        require(out, name);
    }

    /** The command that plots the numbers; `style(peer, column)` says how to draw a column. */
    template <class Style>
    static void plot(std::ofstream &script, const std::string &name, const Peers &peers,
                     Style &&style)
    {
        for (size_t i = 0; i < peers.size(); i++)
            script << (i ? ", \\\n    " : "plot ") << '\'' << name << ".dat' using "
                   << style(peers[i], i + 2) << " title '" << peers[i].name << '\'';
        script << '\n';
    }

    std::ofstream begin(const std::string &name)
    {
        std::ofstream script(directory_ + "/" + name + ".gp");
        script << "reset\nset datafile missing '?'\nset grid ytics back lt 1 lc rgb '#dddddd'\nset "
                  "border 3\n"
               << "set tics nomirror\n";
        return script;
    }

    /** The commands that `panels` writes, once for each kind of file. */
    template <class Panels>
    void draw(std::ofstream &script, const std::string &name, const std::string &size,
              Panels &&panels)
    {
        for (const auto &[terminal, ending] : {std::pair{"svg", "svg"}, {"pngcairo", "png"}}) {
            script << "set terminal " << terminal << " size " << size
                   << " font 'DejaVu Sans,12' background rgb 'white'\n"
                   << "set output '" << name << '.' << ending << "'\n";
            panels();
        }
        require(script, name);
    }

    static void require(std::ofstream &out, const std::string &name)
    {
        if (!out.flush())
            throw std::runtime_error("could not write the files of " + name);
    }

    const Figures &figures_;
    std::string directory_;
};

void write_metradb_plots(const Figures &figures, Writer &writer)
{
    const std::string setting = ", 1 KiB, one durable transaction each (/dev/shm as pmem)";
    writer.bars("metradb", "METRADB and structures on libpmemobj" + setting, "ns an operation",
                linear, metradb_peers, figures.rows("metradb", {}), 0);
    writer.bars("metradb-threads", "METRADB by threads, a container each",
                "operations a second of processor time", linear, thread_peers,
                figures.rows("metradb_processors", {"METRADB"}), 1);
    writer.bars("metradb-parts", "Where the time of METRADB goes", "% of an operation", linear_many,
                part_peers, figures.rows("metradb_parts", {}), 0);
}

void write_nvmkv_plots(const Figures &figures, Writer &writer)
{
    writer.bars("nvmkv-put-bare", "Sync puts of 1 KiB, by threads (ordinary file)",
                "relative to the bare disk", linear, nvmkv_peers, figures.rows("kv_put_bare", {}),
                0);
    for (const auto &[medium, name] : {std::pair{"ordinary file", "file"}, {"memory", "memory"}}) {
        const std::string where = std::string(" (") + medium + ")", dash = std::string("-") + name;
        const std::string rate = "operations a second";
        writer.bars("nvmkv-put" + dash, "Puts of 1 KiB, by threads" + where, rate, logarithmic,
                    nvmkv_peers, figures.rows("kv_put", {medium}), 1);
        writer.bars("nvmkv-get" + dash, "Gets of 1 KiB, by threads" + where, rate, linear,
                    nvmkv_peers, figures.rows("kv_get", {medium}), 1);
        writer.bars("nvmkv-pools" + dash, "Puts, by pools or databases" + where, rate, logarithmic,
                    nvmkv_peers, figures.rows("kv_pools", {medium, "put"}), 2);
        writer.bars("nvmkv-ycsb" + dash, "YCSB, cache of 8 MiB" + where, rate, linear, nvmkv_peers,
                    figures.rows("ycsb", {medium, "", "8 MiB"}), 1);
        writer.bars("nvmkv-ycsb-written" + dash, "YCSB A, bytes written a byte, by cache" + where,
                    "bytes written a byte", linear, nvmkv_peers,
                    figures.rows("ycsb_written", {medium, "A"}), 2);
    }
}

void write_lsm_plots(const Figures &figures, Writer &writer)
{
    const auto draw = [&](const char *name, const char *title, const char *scale, const char *table,
                          const Labels &labels, size_t label) {
        writer.bars(name, title, "µs", scale, lsm_peers, figures.rows(table, labels), label);
    };
    draw("lsm-put", "A put in random order, as shipped, by size of the value", logarithmic,
         "lsm_put", {"as shipped", "ext4", "both", "", "fillrandom", "mean"}, 3);
    draw("lsm-put-longest", "The longest put, as shipped, by size of the value", logarithmic,
         "lsm_put", {"as shipped", "ext4", "both", "", "fillrandom", "longest"}, 3);
    draw("lsm-get", "A get of a random key, by size of the value", linear, "lsm_get",
         {"as shipped", "ext4", "both", "", "readrandom", "mean"}, 3);
    draw("lsm-durable", "A durable put, by size of the value (tables on ext4)", logarithmic,
         "lsm_durable", {"durable", "ext4", "both", "", "fillrandom", "mean"}, 3);
    draw("lsm-restart", "Opening after SIGKILL, memtable of 0.9 GiB", logarithmic, "lsm_restart",
         {"restart", "", "", "", "open", "mean"}, 4);
    draw("lsm-ycsb", "YCSB, 100 B, two threads, tables split", linear, "lsm_ycsb",
         {"YCSB", "", "", "", "", "mean"}, 4);
    writer.bars("lsm-parts", "Where the time of a put of 4 KB goes", "ns", linear_many,
                lsm_part_peers, figures.rows("lsm_parts", {"put"}), 1);
}

void write_libpm_plots(const Figures &figures, Writer &writer)
{
    const std::string medium = ", /dev/shm as pmem)", size = "100000";
    const std::string random = " (10^5 random keys" + medium;
    const std::string sequential = " (10^5 keys in order" + medium;
    const std::string axis = "ns an operation", one = ", one durable commit each";
    writer.bars("lookup", "Lookup" + random, axis, logarithmic, memory_peers,
                figures.rows("lookup", {"", "random", size}), 0);
    writer.bars("insert", "Insert" + one + random, axis, logarithmic, memory_peers,
                figures.rows("insert", {"", "random", size, "1"}), 0);
    writer.bars("remove", "Remove" + one + random, axis, logarithmic, memory_peers,
                figures.rows("remove", {"", "random", size, "1"}), 0);
    const std::string by_commit = " by operations in a commit";
    writer.lines("batch-insert", "Insert" + by_commit + random, "insert_batch", "random");
    writer.lines("batch-remove", "Remove" + by_commit + random, "remove_batch", "random");
    writer.lines("batch-insert-sequential", "Insert" + by_commit + sequential, "insert_batch",
                 "sequential");
    writer.bars("file", "Durable commits on a file system, of one put of 100 bytes, by threads",
                "relative to the bare disk", linear, file_peers,
                figures.rows("file_bare", {"100 B", "1"}), 2);
}

/** Of what was measured. */
void write_plots(const Figures &figures, const std::string &directory)
{
    Writer writer(figures, directory);
    if (!figures.rows("insert", {}).empty())
        write_libpm_plots(figures, writer);
    if (!figures.rows("metradb", {}).empty())
        write_metradb_plots(figures, writer);
    if (!figures.rows("kv_put", {}).empty())
        write_nvmkv_plots(figures, writer);
    if (!figures.rows("lsm_put", {}).empty())
        write_lsm_plots(figures, writer);
}

} // namespace
} // namespace bench

int main(int argc, char **argv)
{
    std::string json, directory;
    CLI::App app("Write scripts for gnuplot");
    app.add_option("json", json, "what the driver wrote")->required()->check(CLI::ExistingFile);
    app.add_option("directory", directory, "for the scripts")
        ->required()
        ->check(CLI::ExistingDirectory);
    CLI11_PARSE(app, argc, argv);
    try {
        bench::write_plots(bench::Figures(json), directory);
    } catch (const std::exception &error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

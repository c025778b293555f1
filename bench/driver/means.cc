#include "driver/means.h"

#include <algorithm>
#include <cmath>

namespace bench
{
namespace
{

/** For each peer and repetition the mean of the rows' values; a peer that lacks any has none. */
void add_mean(Results &results, const std::string &table, const std::vector<std::string> &labels,
              const std::vector<Row> &rows)
{
    if (rows.empty())
        return;
    for (const auto &[peer, first] : rows.front().peers) {
        size_t repetitions = first.size();
        for (const Row &row : rows) {
            auto found = row.peers.find(peer);
            repetitions =
                std::min(repetitions, found == row.peers.end() ? 0 : found->second.size());
        }
        for (size_t i = 0; i < repetitions; i++) {
            double logarithms = 0;
            uint64_t operations = 0;
            for (const Row &row : rows) {
                logarithms += std::log(row.peers.at(peer)[i]);
                operations += row.operations;
            }
            results.add({table, labels, peer,
                         std::exp(logarithms / static_cast<double>(rows.size())), rows.front().unit,
                         operations});
        }
    }
}

/** The log engine's goal on slow memory is one for all workloads. */
void add_slow_memory(Results &results)
{
    for (const char *takes : {"stalls", "drains"}) {
        std::vector<Row> chosen;
        for (const Row &row : results.rows("values_nvm"))
            if (row.labels.back() == takes)
                chosen.push_back(row);
        add_mean(results, "values_nvm", {"geometric mean", "", takes}, chosen);
    }
}

void add_structures(Results &results)
{
    const auto random = [&](const char *table, const std::string &keys, const std::string &commit,
                            bool all, std::vector<Row> &chosen) {
        for (const Row &row : results.rows(table))
            if (row.labels[1] == "random" && row.labels[2] == keys &&
                (commit.empty() || row.labels.back() == commit) &&
                (all || row.labels[0] != "skiplist"))
                chosen.push_back(row);
    };
    for (const char *keys : {"10000", "100000", "1000000"})
        for (bool all : {true, false}) {
            const std::string structures = all ? "all" : "without the skip list";
            std::vector<Row> lookups;
            random("lookup", keys, "", all, lookups);
            add_mean(results, "means", {"lookup", keys, "", structures}, lookups);
            for (const char *commit : {"1", "1000"}) {
                const std::vector<std::string> labels = {"insert, remove", keys, commit,
                                                         structures};
                std::vector<Row> changes, written;
                random("insert", keys, commit, all, changes);
                random("remove", keys, commit, all, changes);
                add_mean(results, "means", labels, changes);
                random("written", keys, commit, all, written);
                add_mean(results, "means_written", labels, written);
            }
        }
}

} // namespace

void add_means(Results &results)
{
    add_structures(results);
    add_slow_memory(results);
}

} // namespace bench

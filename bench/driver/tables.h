/* What the tables are called, compare and promise. The figures come from Results. */
#pragma once

#include "driver/results.h"

#include <functional>

namespace bench
{

/** A quotient of two peers' figures, or one peer's figure itself. */
struct Quantity {
    std::string numerator;
    std::string denominator; // empty: 1

    std::optional<double> of(const Row &row) const;
    std::string name() const;
};

struct Target {
    Quantity quantity;
    double limit;
    bool at_least = false;             // else at most
    std::vector<std::string> row = {}; // the first labels of the rows that it is about; "": any

    bool applies_to(const Row &row) const;

    /** Compares to two decimals, which is what the tables show. Empty if it was not measured. */
    std::optional<bool> met(const Row &row) const;
};

struct Table {
    std::string id;
    std::string title;
    std::string note;
    std::vector<std::string> labels; // headings of the row labels
    std::vector<std::string> peers;
    std::vector<Quantity> ratios = {};
    std::vector<Target> targets = {};
    std::string pivot = {};   // the last label becomes columns, each headed with this text
    std::string samples = {}; // the table that its samples name; empty: `id`
    std::function<bool(const Row &)> shows = [](const Row &) { return true; };

    std::vector<Row> rows(Results &results) const;
    std::vector<Target> targets_of(const Row &row) const;
};

const std::vector<Table> &tables();

std::vector<Table> log_tables();    /* tables_log.cc */
std::vector<Table> lsm_tables();    /* tables_lsm.cc */
std::vector<Table> tiered_tables(); /* tables_tiered.cc */

} // namespace bench

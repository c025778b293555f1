/* Samples of all repetitions, by table, row and peer. */
#pragma once

#include "harness/sample.h"

#include <map>
#include <optional>

namespace bench
{

/** The middle value; of an even number the mean of the two. `values` must not be empty. */
double median(std::vector<double> values);

struct Row {
    std::vector<std::string> labels;
    std::string unit;
    uint64_t operations = 0;                          // behind each value, at least
    std::map<std::string, std::vector<double>> peers; // one value per repetition

    std::optional<double> value(const std::string &peer) const;

    /** The median of the ratios within each repetition, which drifts of the machine leave alone. */
    std::optional<double> ratio(const std::string &numerator, const std::string &denominator) const;
};

class Results
{
  public:
    void add(const Sample &sample);

    /** The rows of a table in the order in which they were first measured. */
    const std::vector<Row> &rows(const std::string &table) { return tables_[table]; }

  private:
    std::map<std::string, std::vector<Row>> tables_;
};

} // namespace bench

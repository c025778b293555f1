#include "driver/results.h"

#include <algorithm>

namespace bench
{

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    size_t count = values.size();
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

std::optional<double> Row::value(const std::string &peer) const
{
    auto found = peers.find(peer);
    if (found == peers.end())
        return std::nullopt;
    return median(found->second);
}

std::optional<double> Row::ratio(const std::string &numerator, const std::string &denominator) const
{
    auto top = peers.find(numerator), bottom = peers.find(denominator);
    if (top == peers.end() || bottom == peers.end())
        return std::nullopt;
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(top->second.size(), bottom->second.size()); i++)
        ratios.push_back(top->second[i] / bottom->second[i]);
    return median(ratios);
}

void Results::add(const Sample &sample)
{
    std::vector<Row> &rows = tables_[sample.table];
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row &r) { return r.labels == sample.row; });
    if (row == rows.end())
        row = rows.insert(rows.end(), Row{sample.row, sample.unit, sample.operations, {}});
    row->operations = std::min(row->operations, sample.operations);
    row->peers[sample.peer].push_back(sample.value);
}

} // namespace bench

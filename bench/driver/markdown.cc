#include "driver/markdown.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

namespace bench
{
namespace
{

using Line = std::vector<std::string>;

const std::string missing = "–";

std::string decimal(double value, int digits)
{
    std::ostringstream text;
    text << std::fixed << std::setprecision(digits) << value;
    return text.str();
}

/** Three digits or so. */
std::string short_number(double value)
{
    return decimal(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string with_unit(double value, const std::string &unit)
{
    if (unit == "bytes" || (unit == "B" && value >= 1e4))
        return decimal(value / 1024, 0) + " KiB";
    if (unit == "ns" && value >= 1e6)
        return short_number(value / 1e6) + " ms";
    if (unit == "ns" && value >= 1e4)
        return short_number(value / 1e3) + " µs";
    return short_number(value) + " " + unit;
}

std::string show(std::optional<double> value, const std::string &unit)
{
    return value ? with_unit(*value, unit) : missing;
}

std::string show_ratio(std::optional<double> ratio)
{
    return ratio ? decimal(*ratio, 2) + "×" : missing;
}

std::string show_limit(const Target &target, const std::string &unit)
{
    bool ratio = !target.quantity.denominator.empty();
    return (target.at_least ? "≥ " : "≤ ") +
           (ratio ? decimal(target.limit, 2) + "×" : with_unit(target.limit, unit));
}

void write_line(std::ostream &out, const Line &line)
{
    out << '|';
    for (const std::string &cell : line)
        out << ' ' << cell << " |";
    out << '\n';
}

/** The labels to the left, the figures to the right. */
void write_head(std::ostream &out, const Line &head, size_t labels)
{
    write_line(out, head);
    out << '|';
    for (size_t i = 0; i < head.size(); i++)
        out << (i < labels ? " --- |" : " ---: |");
    out << '\n';
}

/** One line for each row: figures, ratios, target. */
void write_plain(std::ostream &out, const Table &table, const std::vector<Row> &rows)
{
    Line head = table.labels;
    head.insert(head.end(), table.peers.begin(), table.peers.end());
    for (const Quantity &ratio : table.ratios)
        head.push_back(ratio.name());
    head.push_back("operations");
    if (!table.targets.empty())
        head.insert(head.end(), {"target", "verdict"});
    write_head(out, head, table.labels.size());

    for (const Row &row : rows) {
        Line line = row.labels;
        for (const std::string &peer : table.peers)
            line.push_back(show(row.value(peer), row.unit));
        for (const Quantity &ratio : table.ratios)
            line.push_back(show_ratio(ratio.of(row)));
        line.push_back(std::to_string(row.operations));
        if (!table.targets.empty()) {
            std::string limits, verdicts;
            for (const Target &target : table.targets_of(row)) {
                auto met = target.met(row);
                const char *separator = limits.empty() ? "" : "; ";
                limits += separator + target.quantity.name() + " " + show_limit(target, row.unit);
                verdicts += separator + (!met ? missing : *met ? "met" : "**missed**");
            }
            line.insert(line.end(), {limits, verdicts});
        }
        write_line(out, line);
    }
}

/** Rows that differ in the last label only become one line for each peer, that label its columns.
 */
void write_pivot(std::ostream &out, const Table &table, const std::vector<Row> &rows)
{
    Line columns;
    for (const Row &row : rows)
        if (std::find(columns.begin(), columns.end(), row.labels.back()) == columns.end())
            columns.push_back(row.labels.back());

    Line head(table.labels.begin(), table.labels.end() - 1);
    head.push_back("peer");
    for (const std::string &column : columns)
        head.push_back(column + table.pivot);
    write_head(out, head, table.labels.size());

    auto same_line = [](const Row &a, const Row &b) {
        return std::equal(a.labels.begin(), a.labels.end() - 1, b.labels.begin());
    };
    // Not all rows of a line need be neighbours.
    for (auto row = rows.begin(); row != rows.end(); ++row) {
        auto of_line = [&](const Row &r) { return same_line(*row, r); };
        if (std::find_if(rows.begin(), row, of_line) != row)
            continue;
        for (const std::string &peer : table.peers) {
            Line line(row->labels.begin(), row->labels.end() - 1);
            line.push_back(peer);
            for (const std::string &column : columns) {
                auto cell = std::find_if(row, rows.end(), [&](const Row &r) {
                    return of_line(r) && r.labels.back() == column;
                });
                line.push_back(cell == rows.end() ? missing : show(cell->value(peer), cell->unit));
            }
            write_line(out, line);
        }
    }
}

} // namespace

void write_markdown(std::ostream &out, const Table &table, const std::vector<Row> &rows)
{
    out << "\n## " << table.title << "\n\n";
    if (!table.note.empty())
        out << table.note << "\n\n";
    if (table.pivot.empty())
        write_plain(out, table, rows);
    else
        write_pivot(out, table, rows);
}

} // namespace bench

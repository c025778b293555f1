// A placement for people: a table, and a drawing.
#include "placement.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace pm_tier
{
namespace
{

__attribute__((format(printf, 1, 2))) std::string print(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return text;
}

std::string time_text(double ns)
{
    const char *const units[] = {"ns", "us", "ms", "s"};
    unsigned unit = 0;
    while (ns >= 999.5 && unit < 3) { // which would be printed as 1e+03
        ns /= 1000;
        unit++;
    }
    return ns >= 999.5 ? print("%.0f s", ns) : print("%.3g %s", ns, units[unit]);
}

std::string full_name(const field_use &field)
{
    return field.type + "." + field.name;
}

constexpr int row_height = 28, left = 260, column = 130, top = 60;

} // namespace

std::string table(const problem &problem, const solution &solution)
{
    size_t width = 5;
    for (const field_use &field : problem.fields)
        width = std::max(width, full_name(field).size());
    std::string text =
        print("%-*s %12s %12s %10s", int(width), "field", "reads", "writes", "bytes");
    for (const tier_cost &tier : problem.tiers)
        text += print(" %12s", tier.name.c_str());
    text += "  tier\n";
    for (size_t f = 0; f < problem.fields.size(); f++) {
        const field_use &field = problem.fields[f];
        text += print("%-*s %12.0f %12.0f %10.1f", int(width), full_name(field).c_str(),
                      field.reads, field.writes, field.bytes);
        for (size_t t = 0; t < problem.tiers.size(); t++)
            text +=
                print(" %12s",
                      problem.is_possible(f, t) ? time_text(problem.cost_ns(f, t)).c_str() : "-");
        text += "  " + problem.tiers[solution.tier_of[f]].name + "\n";
    }
    text += print("records: %.0f bytes of pm, %.0f for each object\n",
                  problem.objects * problem.record_bytes, problem.record_bytes);
    for (size_t t = 0; t < problem.tiers.size(); t++) {
        double used = problem.records(t);
        for (size_t f = 0; f < problem.fields.size(); f++)
            used += solution.tier_of[f] == t ? problem.bytes(f, t) : 0;
        const double capacity = problem.tiers[t].capacity;
        text += print("%s: %.0f bytes", problem.tiers[t].name.c_str(), used);
        text += std::isinf(capacity) ? "\n" : print(" of %.0f\n", capacity);
    }
    return text + "All accesses together: " + time_text(solution.cost_ns) + "\n";
}

// A row for each field, a column for each tier, and the cost of each choice in its cell.
std::string picture(const problem &problem, const solution &solution)
{
    const int width = left + column * int(problem.tiers.size()) + 20;
    const int height = top + row_height * int(problem.fields.size()) + 20;
    std::string svg =
        print("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
              "font-family=\"sans-serif\" font-size=\"13\">\n",
              width, height) +
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" +
        print("<text x=\"10\" y=\"22\" font-size=\"15\">Where each field of %.0f objects "
              "goes; all accesses take %s</text>\n",
              problem.objects, time_text(solution.cost_ns).c_str());
    for (size_t t = 0; t < problem.tiers.size(); t++)
        svg += print("<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                     left + column * int(t) + column / 2, top - 10, problem.tiers[t].name.c_str());
    for (size_t f = 0; f < problem.fields.size(); f++) {
        const int y = top + row_height * int(f);
        svg += print("<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left - 10, y + 18,
                     full_name(problem.fields[f]).c_str());
        for (size_t t = 0; t < problem.tiers.size(); t++) {
            const bool is_chosen = solution.tier_of[f] == t;
            svg += print("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
                         left + column * int(t) + 2, y + 2, column - 4, row_height - 4,
                         is_chosen ? "#2b7bba" : "#eeeeee");
            if (problem.is_possible(f, t))
                svg += print(
                    "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"%s\">%s</text>\n",
                    left + column * int(t) + column / 2, y + 18, is_chosen ? "white" : "#555555",
                    time_text(problem.cost_ns(f, t)).c_str());
        }
    }
    return svg + "</svg>\n";
}

} // namespace pm_tier

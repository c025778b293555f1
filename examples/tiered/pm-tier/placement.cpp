#include "placement.hpp"

#include "tiered/slot.hpp"

#include <algorithm>
#include <coin/Cbc_C_Interface.h>
#include <memory>

namespace pm_tier
{
namespace
{

// Variables: x(f,t) at f * tiers + t, and then, if `with_shortage`, what each capacity lacks.
class program
{
  public:
    program(const problem &problem, bool with_shortage) : model_(Cbc_newModel(), Cbc_deleteModel)
    {
        const size_t fields = problem.fields.size(), tiers = problem.tiers.size();
        Cbc_setParameter(model_.get(), "logLevel", "0");
        // CBC 2.10.8 substitutes wrongly there: it called a placement optimal that costs 18 % more.
        Cbc_setParameter(model_.get(), "preprocess", "off");
        for (size_t f = 0; f < fields; f++)
            for (size_t t = 0; t < tiers; t++)
                add_variable(problem.is_possible(f, t) ? 1 : 0,
                             with_shortage ? 0 : problem.cost_ns(f, t), true);
        for (size_t t = 0; with_shortage && t < tiers; t++)
            add_variable(INFINITY, 1, false);
        for (size_t f = 0; f < fields; f++) {
            std::vector<int> columns;
            for (size_t t = 0; t < tiers; t++)
                columns.push_back(static_cast<int>(f * tiers + t));
            add_row(columns, std::vector<double>(tiers, 1), 'E', 1);
        }
        for (size_t t = 0; t < tiers; t++) {
            if (std::isinf(problem.tiers[t].capacity))
                continue;
            std::vector<int> columns;
            std::vector<double> factors;
            for (size_t f = 0; f < fields; f++) {
                columns.push_back(static_cast<int>(f * tiers + t));
                factors.push_back(problem.bytes(f, t));
            }
            if (with_shortage) {
                columns.push_back(static_cast<int>(fields * tiers + t));
                factors.push_back(-1);
            }
            add_row(columns, factors, 'L', problem.tiers[t].capacity - problem.records(t));
        }
    }

    bool solve()
    {
        Cbc_solve(model_.get());
        return Cbc_isProvenOptimal(model_.get());
    }
    double value(size_t variable) const { return Cbc_getColSolution(model_.get())[variable]; }

  private:
    void add_variable(double most, double cost, bool is_integer)
    {
        Cbc_addCol(model_.get(), "", 0, most, cost, is_integer, 0, nullptr, nullptr);
    }
    void add_row(std::vector<int> &columns, const std::vector<double> &factors, char sense,
                 double right)
    {
        Cbc_addRow(model_.get(), "", static_cast<int>(columns.size()), columns.data(),
                   factors.data(), sense, right);
    }

    std::unique_ptr<void, void (*)(void *)> model_;
};

void demand_tiers(const problem &problem)
{
    for (size_t f = 0; f < problem.fields.size(); f++) {
        bool any = false;
        for (size_t t = 0; t < problem.tiers.size(); t++)
            any |= problem.is_possible(f, t);
        if (!any)
            throw failure("field " + problem.fields[f].type + "." + problem.fields[f].name +
                          " may be in no tier that was measured; measure its tiers");
    }
}

// The bytes that each tier lacks, of the placement that lacks fewest.
std::vector<double> shortages(const problem &problem)
{
    const size_t fields = problem.fields.size(), tiers = problem.tiers.size();
    std::vector<double> bytes(tiers);
    if (fields == 0) { // CBC prints its log if no variable is an integer
        for (size_t t = 0; t < tiers; t++)
            bytes[t] = std::max(0.0, problem.records(t) - problem.tiers[t].capacity);
        return bytes;
    }
    program missing(problem, true);
    if (missing.solve())
        for (size_t t = 0; t < tiers; t++)
            bytes[t] = missing.value(fields * tiers + t);
    return bytes;
}

[[noreturn]] void explain(const problem &problem, const std::vector<double> &shortages)
{
    std::string text;
    for (size_t t = 0; t < problem.tiers.size(); t++)
        if (const double bytes = std::ceil(shortages[t] - 0.001); bytes > 0) // CBC rounds
            text += (text.empty() ? "" : "; ") + problem.tiers[t].name + " is short by " +
                    std::to_string(std::llround(bytes)) + " bytes";
    throw failure("no placement has room for " + std::to_string(std::llround(problem.objects)) +
                  " objects, whose records alone take " +
                  std::to_string(std::llround(problem.objects * problem.record_bytes)) +
                  " bytes of pm: " + text + "; raise a capacity, or give a field another tier");
}

} // namespace

bool problem::is_possible(size_t field, size_t tier) const
{
    const auto &possible = fields[field].tiers;
    return possible.empty() || std::ranges::find(possible, tiers[tier].name) != possible.end();
}

double problem::cost_ns(size_t field, size_t tier) const
{
    const field_use &f = fields[field];
    const tier_cost &t = tiers[tier];
    return f.reads * (t.read_ns + f.bytes * t.read_ns_per_byte) +
           f.writes * (t.write_ns + f.bytes * t.write_ns_per_byte) +
           (f.reads + f.writes) * f.recomputation_ns * t.loss_probability;
}

double problem::bytes(size_t field, size_t tier) const
{
    const field_use &f = fields[field];
    if (tiers[tier].name != "pm")
        return f.bytes * objects;
    if (f.is_in_record || f.bytes <= tiered::slot_inline_max)
        return 0;
    return std::ceil(f.bytes / 16) * 16 * objects; // an object of libpm
}

double problem::records(size_t tier) const
{
    return tiers[tier].name == "pm" ? record_bytes * objects : 0;
}

solution solve(const problem &problem)
{
    demand_tiers(problem);
    solution found{{}, 0};
    if (problem.fields.empty()) {
        const std::vector<double> missing = shortages(problem);
        if (std::ranges::any_of(missing, [](double bytes) { return bytes > 0; }))
            explain(problem, missing);
        return found;
    }
    program placing(problem, false);
    if (!placing.solve())
        explain(problem, shortages(problem));
    for (size_t f = 0; f < problem.fields.size(); f++) {
        size_t tier = 0;
        while (placing.value(f * problem.tiers.size() + tier) < 0.5)
            tier++;
        found.tier_of.push_back(tier);
        found.cost_ns += problem.cost_ns(f, tier);
    }
    return found;
}

} // namespace pm_tier

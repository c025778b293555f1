#include "inputs.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace pm_tier
{
namespace
{

using nlohmann::json;

std::string list(const std::vector<std::string> &names)
{
    std::string text;
    for (const std::string &name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text;
}

// A JSON file, with the remedy for all that is wrong with it.
class file
{
  public:
    file(const std::string &path, const std::string &remedy) : path_(path), remedy_(remedy) {}

    [[noreturn]] void refuse(const std::string &what) const
    {
        throw failure(path_ + ": " + what + "; " + remedy_);
    }

    json read() const
    {
        std::ifstream in(path_);
        if (!in || in.peek() == EOF)
            throw failure(path_ + ": cannot be read, or is empty; is the path right?");
        try {
            return json::parse(in);
        } catch (const json::parse_error &error) {
            refuse("is not JSON at byte " + std::to_string(error.byte));
        } catch (const json::exception &) {
            refuse("has a number that is too large");
        }
    }

    const json &part(const json &in, const std::string &name, const char *key,
                     json::value_t type) const
    {
        const json *found = in.is_object() && in.contains(key) ? &in.at(key) : nullptr;
        if (!found || found->type() != type)
            refuse(name + " has no \"" + key + "\", or not as " +
                   (type == json::value_t::array ? "an array" : "a string"));
        return *found;
    }

    std::string text(const json &in, const std::string &name, const char *key) const
    {
        return part(in, name, key, json::value_t::string);
    }

    double number(const json &in, const std::string &name, const char *key,
                  double most = INFINITY) const
    {
        const json found = in.is_object() && in.contains(key) ? in.at(key) : json();
        if (!found.is_number() || !(found >= 0) || found > most)
            refuse(name + " has no \"" + key + "\", or not as a number from 0 " +
                   (std::isinf(most) ? "on" : "to 1"));
        return found;
    }

  private:
    const std::string path_, remedy_;
};

// The field of a placement, which must be one that a placement may have.
void demand_free(const file &from, const durable &type, const std::string &name)
{
    const std::string full_name = type.full_name() + "." + name;
    const auto field = std::ranges::find(type.members, name, &member::name);
    if (field == type.members.end())
        from.refuse("has the field " + full_name + ", which the header has not");
    if (field->is == kind::handle || field->is == kind::durable)
        from.refuse("has the field " + full_name + ", which has no tier: it lies in the record");
    if (!field->tiers.empty())
        from.refuse("has the field " + full_name + ", whose PM_TIER decides");
}

} // namespace

std::vector<tier_cost> read_tiers(const std::string &path)
{
    const file from(path, "make it anew with `pm-tier measure`");
    const json all = from.read();
    if (!all.is_array() || all.empty())
        from.refuse("is not an array of tiers");
    std::vector<tier_cost> tiers;
    for (const json &one : all) {
        tier_cost tier;
        tier.name = from.text(one, "tier " + std::to_string(tiers.size()), "name");
        if (std::ranges::find(tiers, tier.name, &tier_cost::name) != tiers.end())
            from.refuse("has the tier \"" + tier.name + "\" twice");
        const std::string name = "tier \"" + tier.name + "\"";
        tier.read_ns = from.number(one, name, "read_ns");
        tier.write_ns = from.number(one, name, "write_ns");
        tier.read_ns_per_byte = from.number(one, name, "read_ns_per_byte");
        tier.write_ns_per_byte = from.number(one, name, "write_ns_per_byte");
        if (one.contains("loss_probability"))
            tier.loss_probability = from.number(one, name, "loss_probability", 1);
        tiers.push_back(tier);
    }
    return tiers;
}

std::map<std::string, field_counts> read_profile(const std::string &path)
{
    const file from(path, "run the program again, compiled with -DTIERED_PROFILE");
    const json all = from.read();
    if (!all.is_array())
        from.refuse("is not an array of types");
    std::map<std::string, field_counts> counts;
    for (const json &one : all) {
        const std::string type = from.text(one, "a type", "type");
        for (const json &field : from.part(one, type, "fields", json::value_t::array)) {
            const std::string name = type + "." + from.text(field, "a field of " + type, "name");
            counts[name] = {from.number(field, name, "reads"), from.number(field, name, "writes"),
                            from.number(field, name, "read_bytes"),
                            from.number(field, name, "written_bytes")};
        }
    }
    return counts;
}

placement read_placement(const std::string &path, const std::vector<durable> &types,
                         const std::vector<std::string> &tiers)
{
    const file from(path, "make it anew with `pm-tier place`");
    const json all = from.read();
    if (!all.is_object())
        from.refuse("is not an object of types");
    placement placed;
    for (const auto &[name, fields] : all.items()) {
        const auto type = std::ranges::find(types, name, &durable::full_name);
        if (type == types.end())
            from.refuse("has the type " + name + ", which the header has not");
        if (!fields.is_object())
            from.refuse("has no object of fields for the type " + name);
        for (const auto &[field, tier] : fields.items()) {
            demand_free(from, *type, field);
            if (!tier.is_string() ||
                std::ranges::find(tiers, tier.get<std::string>()) == tiers.end())
                from.refuse("has the unknown tier " + tier.dump() + " for " + name + "." + field +
                            " (known are " + list(tiers) + ", and those of --tier)");
            placed[name][field] = tier;
        }
    }
    return placed;
}

std::map<std::string, double> read_numbers(const std::vector<std::string> &words,
                                           const std::string &option, double most,
                                           const std::vector<std::string> &names)
{
    std::map<std::string, double> found;
    for (const std::string &word : words) {
        const size_t at = std::min(word.find('='), word.size());
        const std::string name = word.substr(0, at),
                          number = word.substr(std::min(at + 1, word.size()));
        char *end = nullptr;
        const double value = strtod(number.c_str(), &end);
        if (number.empty() || *end || !std::isfinite(value) || value < 0 || value > most)
            throw failure(option + " " + word + ": is not NAME=NUMBER; write a number from 0 " +
                          (std::isinf(most) ? "on" : "to 1"));
        if (std::ranges::find(names, name) == names.end())
            throw failure(option + " " + word + ": `" + name + "` is unknown; write one of " +
                          list(names));
        found[name] = value;
    }
    return found;
}

} // namespace pm_tier

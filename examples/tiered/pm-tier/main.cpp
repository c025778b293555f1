// pm-tier: durable classes from annotated structs, and where their fields belong.
#include "measure.hpp"
#include "placement.hpp"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

namespace
{

using namespace pm_tier;
using nlohmann::json;

void write_file(const std::string &path, const std::string &text)
{
    if (path == "-") {
        std::cout << text;
        return;
    }
    std::ofstream out(path);
    out << text;
    if (!out.flush())
        throw failure(path + ": cannot be written; is there room, and may you?");
}

json read_json(const std::string &path)
{
    std::ifstream in(path);
    if (!in)
        throw failure(path + ": cannot be read; is the path right?");
    try {
        return json::parse(in);
    } catch (const json::exception &error) {
        throw failure(path + ": is not what pm-tier writes: " + error.what() + "; make it anew");
    }
}

// key=number
std::map<std::string, double> numbers(const std::vector<std::string> &words, const char *option)
{
    std::map<std::string, double> found;
    for (const std::string &word : words) {
        const size_t at = word.find('=');
        char *end = nullptr;
        const double number = at == std::string::npos ? 0 : strtod(word.c_str() + at + 1, &end);
        if (at == std::string::npos || end == word.c_str() + at + 1 || *end || number < 0)
            throw failure(std::string(option) + " " + word + ": is not NAME=NUMBER");
        found[word.substr(0, at)] = number;
    }
    return found;
}

struct generate_options {
    input from;
    std::string output, placement;
};

void generate(generate_options &o)
{
    placement placed;
    if (!o.placement.empty())
        placed = read_json(o.placement).get<placement>();
    const std::string text = write_classes(o.from.header, read_header(o.from), placed);
    write_file(o.output.empty() ? output_name(o.from.header) : o.output, text);
}

void measure_tiers(const std::string &pm, const std::string &disk, const std::string &output)
{
    json tiers = json::array();
    for (const tier_cost &one : measure(pm, disk))
        tiers.push_back({{"name", one.name},
                         {"read_ns", one.read_ns},
                         {"write_ns", one.write_ns},
                         {"read_ns_per_byte", one.read_ns_per_byte},
                         {"write_ns_per_byte", one.write_ns_per_byte},
                         {"loss_probability", one.loss_probability}});
    write_file(output, tiers.dump(2) + "\n");
}

struct place_options {
    input from;
    std::string profile, tiers, output = "placement.json", picture;
    double objects = 1;
    std::vector<std::string> capacities, losses, recomputations;
};

// The bytes of a field's value: those of its type, or as the profile has seen them.
double bytes_of(const member &field, const json &counts)
{
    if (field.is == kind::scalar || field.is == kind::array)
        return double(field.bytes);
    const double writes = counts.value("writes", 0.0), reads = counts.value("reads", 0.0);
    if (writes > 0)
        return counts.value("written_bytes", 0.0) / writes;
    return reads > 0 ? counts.value("read_bytes", 0.0) / reads : 0;
}

problem read_problem(const place_options &o)
{
    problem made;
    made.objects = o.objects;
    const auto capacities = numbers(o.capacities, "--capacity"),
               losses = numbers(o.losses, "--loss"),
               recomputations = numbers(o.recomputations, "--recomputation");
    for (const json &one : read_json(o.tiers)) {
        tier_cost tier{one.at("name"),
                       one.at("read_ns"),
                       one.at("write_ns"),
                       one.at("read_ns_per_byte"),
                       one.at("write_ns_per_byte"),
                       one.value("loss_probability", 0.0),
                       0};
        if (const auto found = capacities.find(tier.name); found != capacities.end())
            tier.capacity = found->second;
        if (const auto found = losses.find(tier.name); found != losses.end())
            tier.loss_probability = found->second;
        made.tiers.push_back(tier);
    }
    const json profile = read_json(o.profile);
    for (const durable &type : read_header(o.from)) {
        for (const member &field : type.members) {
            if (field.is == kind::handle || field.is == kind::durable)
                continue;
            json counts;
            for (const json &of_type : profile)
                for (const json &one : of_type.at("fields"))
                    if (of_type.at("type") == type.full_name() && one.at("name") == field.name)
                        counts = one;
            if (counts.is_null())
                throw failure(o.profile + ": has no counts of " + type.full_name() + "." +
                              field.name +
                              "; run the program again, compiled with -DTIERED_PROFILE");
            field_use use{
                type.full_name(),        field.name, counts.at("reads"), counts.at("writes"),
                bytes_of(field, counts), 1e9,        field.tiers};
            if (const auto found = recomputations.find(use.type + "." + use.name);
                found != recomputations.end())
                use.recomputation_ns = found->second * 1e9;
            made.fields.push_back(use);
        }
    }
    return made;
}

void place(const place_options &o)
{
    const problem asked = read_problem(o);
    const solution found = solve(asked);
    placement placed;
    for (size_t f = 0; f < asked.fields.size(); f++)
        if (asked.fields[f].tiers.empty())
            placed[asked.fields[f].type][asked.fields[f].name] = asked.tiers[found.tier_of[f]].name;
    write_file(o.output, json(placed).dump(2) + "\n");
    std::cout << table(asked, found);
    if (!o.picture.empty())
        write_file(o.picture, picture(asked, found));
}

void add_input(CLI::App &command, input &from)
{
    from.tiers = {"dram", "pm", "disk"};
    command.add_option("header", from.header, "with annotated structs")->required();
    command
        .add_option_function<std::vector<std::string>>(
            "--tier",
            [&from](const std::vector<std::string> &names) {
                from.tiers.insert(from.tiers.end(), names.begin(), names.end());
            },
            "a tier of the program's own")
        ->allow_extra_args(false);
    command.add_option("arguments", from.arguments, "for clang, behind --");
}

} // namespace

int main(int argc, char **argv)
{
    CLI::App app("Durable classes from annotated structs, and where their fields belong.",
                 "pm-tier");
    app.require_subcommand(1);

    generate_options g;
    CLI::App *command = app.add_subcommand("generate", "write the durable classes of a header");
    add_input(*command, g.from);
    command->add_option("-o,--output", g.output, "default: NAME.durable.hpp");
    command->add_option("--placement", g.placement, "a file that `pm-tier place` has written");
    command->callback([&] { generate(g); });

    std::string pm = "/dev/shm", disk = ".", tiers = "tiers.json";
    command = app.add_subcommand("measure", "measure the access time of each tier here");
    command->add_option("--pm", pm, "a directory in persistent memory")->capture_default_str();
    command->add_option("--disk", disk, "a directory on the disk")->capture_default_str();
    command->add_option("-o,--output", tiers)->capture_default_str();
    command->callback([&] { measure_tiers(pm, disk, tiers); });

    place_options p;
    command = app.add_subcommand("place", "find the cheapest tier for each field without a tag");
    add_input(*command, p.from);
    command->add_option("--profile", p.profile, "counts of a build with -DTIERED_PROFILE")
        ->required();
    command->add_option("--tiers", p.tiers, "what `pm-tier measure` has written")->required();
    command->add_option("--objects", p.objects, "how many there will be")
        ->check(CLI::PositiveNumber);
    command->add_option("--capacity", p.capacities, "TIER=BYTES; else without a limit")
        ->allow_extra_args(false);
    command->add_option("--loss", p.losses, "TIER=PROBABILITY that an access finds the field lost")
        ->allow_extra_args(false);
    command
        ->add_option("--recomputation", p.recomputations,
                     "TYPE.FIELD=SECONDS to compute a lost field again; default 1")
        ->allow_extra_args(false);
    command->add_option("-o,--output", p.output)->capture_default_str();
    command->add_option("--picture", p.picture, "an SVG file");
    command->callback([&] { place(p); });

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError &error) {
        return app.exit(error);
    } catch (const std::exception &error) {
        std::cerr << "pm-tier: " << error.what() << "\n";
        return 1;
    }
    return 0;
}

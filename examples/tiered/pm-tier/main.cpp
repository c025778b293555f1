// pm-tier: durable classes from annotated structs, and where their fields belong.
#include "inputs.hpp"
#include "measure.hpp"

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

struct generate_options {
    input from;
    std::string output, placement;
};

void generate(generate_options &o)
{
    const std::vector<durable> types = read_header(o.from);
    placement placed;
    if (!o.placement.empty())
        placed = read_placement(o.placement, types, o.from.tiers);
    const std::string text = write_classes(o.from.header, types, placed);
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
double bytes_of(const member &field, const field_counts &counts)
{
    if (field.is == kind::scalar || field.is == kind::array)
        return double(field.bytes);
    if (counts.writes > 0)
        return counts.written_bytes / counts.writes;
    return counts.reads > 0 ? counts.read_bytes / counts.reads : 0;
}

void add_type(problem &to, const durable &type, const std::map<std::string, field_counts> &profile,
              const std::string &profile_path)
{
    to.record_bytes += double(record_bytes(type));
    for (const member &field : type.members) {
        if (field.is == kind::handle || field.is == kind::durable)
            continue;
        const std::string name = type.full_name() + "." + field.name;
        const auto found = profile.find(name);
        if (found == profile.end())
            throw failure(profile_path + ": has no counts of " + name +
                          "; run the program again, compiled with -DTIERED_PROFILE");
        const field_counts &counts = found->second;
        to.fields.push_back({type.full_name(), field.name, counts.reads, counts.writes,
                             bytes_of(field, counts), 1e9, field.tiers, is_in_record(field)});
    }
}

problem read_problem(const place_options &o)
{
    problem made;
    if (!std::isfinite(o.objects) || o.objects <= 0)
        throw failure("--objects " + std::to_string(o.objects) +
                      ": is not a number above 0; write how many objects there will be");
    made.objects = o.objects;
    made.tiers = read_tiers(o.tiers);
    const auto profile = read_profile(o.profile);
    for (const durable &type : read_header(o.from))
        add_type(made, type, profile, o.profile);

    std::vector<std::string> tiers, fields;
    for (const tier_cost &tier : made.tiers)
        tiers.push_back(tier.name);
    for (const field_use &field : made.fields)
        fields.push_back(field.type + "." + field.name);
    const auto capacities = read_numbers(o.capacities, "--capacity", INFINITY, tiers),
               losses = read_numbers(o.losses, "--loss", 1, tiers),
               seconds = read_numbers(o.recomputations, "--recomputation", INFINITY, fields);
    const auto set = [](double &to, const auto &numbers, const std::string &name, double unit) {
        if (const auto found = numbers.find(name); found != numbers.end())
            to = found->second * unit;
    };
    for (tier_cost &tier : made.tiers) {
        set(tier.capacity, capacities, tier.name, 1);
        set(tier.loss_probability, losses, tier.name, 1);
    }
    for (field_use &field : made.fields)
        set(field.recomputation_ns, seconds, field.type + "." + field.name, 1e9);
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
    command->add_option("--objects", p.objects, "how many there will be");
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

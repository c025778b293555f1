#include "lsm/places.hpp"

#include "lsm/file.hpp"

#include <sstream>

namespace lsm
{
namespace
{

constexpr char file_name[] = "PLACES";
constexpr std::pair<Memtables, const char *> modes[] = {
    {Memtables::dram, "dram"},
    {Memtables::immutable_persistent, "immutable"},
    {Memtables::mutable_persistent, "mutable"},
    {Memtables::persistent_only, "nosst"},
};

} // namespace

std::optional<Memtables> memtables_of(std::string_view name)
{
    for (const auto &[mode, its_name] : modes)
        if (name == its_name)
            return mode;
    return {};
}

Places Places::read(const std::string &directory)
{
    Places places;
    places.directory = directory;
    const std::string path = directory + "/" + file_name;
    if (!exists(path))
        return places;
    std::istringstream lines(read_whole(path));
    for (std::string word, rest; lines >> word;) {
        if (word == "container")
            lines >> places.container_id;
        if (!lines || lines.get() != ' ' || !std::getline(lines, rest) || rest.empty())
            damaged(path, 0, "a line ends too early");
        if (word == "container")
            places.container = rest;
        else if (word == "fast")
            places.fast = rest;
        else if (auto mode = memtables_of(rest); word == "memtables" && mode)
            places.memtables = *mode;
        else
            damaged(path, 0, "a line makes no sense: " + word + " " + rest);
    }
    return places;
}

void Places::write() const
{
    std::string text;
    for (const auto &[mode, name] : modes)
        if (mode == memtables)
            text += std::string("memtables ") + name + "\n";
    if (!container.empty())
        text += "container " + std::to_string(container_id) + " " + container + "\n";
    if (!fast.empty())
        text += "fast " + fast + "\n";
    replace(directory, file_name, text);
}

} // namespace lsm

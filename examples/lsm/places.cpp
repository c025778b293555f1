#include "lsm/places.hpp"

#include "lsm/file.hpp"

#include <cerrno>
#include <random>
#include <sstream>

namespace lsm
{
namespace
{

constexpr char file_name[] = "PLACES", owner_name[] = "OWNER";
constexpr std::pair<Memtables, const char *> modes[] = {
    {Memtables::dram, "dram"},
    {Memtables::immutable_persistent, "immutable"},
    {Memtables::mutable_persistent, "mutable"},
    {Memtables::persistent_only, "nosst"},
    {Memtables::merging, "merging"},
    {Memtables::key_lsm, "keylsm"},
};
constexpr char nobody[] = "nobody"; // until the manifest has our number

std::string owner_path(const std::string &fast)
{
    return fast + "/" + owner_name;
}

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
        if (word != "memtables")
            lines >> (word == "fast" ? places.fast_id : places.container_id);
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
        text += "fast " + std::to_string(fast_id) + " " + fast + "\n";
    replace(directory, file_name, text);
}

void Places::begin_fast()
{
    if (exists(owner_path(fast)) && read_whole(owner_path(fast)) != nobody)
        throw Error(EEXIST, fast + ": has tables of another store; choose another directory");
    std::random_device random;
    fast_id = uint64_t(random()) << 32 | random();
    replace(fast, owner_name, nobody);
}

void Places::claim_fast() const
{
    const std::string owner = read_whole(owner_path(fast)), ours = std::to_string(fast_id);
    if (owner == nobody)
        replace(fast, owner_name, ours);
    else if (owner != ours)
        throw Error(EBADMSG, fast + ": has tables of another store; restore those of " + directory +
                                 " from a backup");
}

} // namespace lsm

#include "lsm/places.hpp"

#include "lsm/file.hpp"

#include <sstream>

namespace lsm
{
namespace
{

constexpr char file_name[] = "PLACES";

} // namespace

Places Places::read(const std::string &directory)
{
    Places places{directory, {}, {}, 0};
    const std::string path = directory + "/" + file_name;
    if (!exists(path))
        return places;
    std::istringstream lines(read_whole(path));
    for (std::string word; lines >> word;) {
        if (word == "container")
            lines >> places.container_id;
        else if (word != "fast")
            damaged(path, 0, "a line is neither `container ID PATH` nor `fast PATH`");
        std::string &to = word == "fast" ? places.fast : places.container;
        if (!lines || lines.get() != ' ' || !std::getline(lines, to) || to.empty())
            damaged(path, 0, "a line has no path");
    }
    return places;
}

void Places::write() const
{
    std::string text;
    if (!container.empty())
        text += "container " + std::to_string(container_id) + " " + container + "\n";
    if (!fast.empty())
        text += "fast " + fast + "\n";
    replace(directory, file_name, text);
}

} // namespace lsm

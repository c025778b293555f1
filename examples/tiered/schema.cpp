#include "tiered/schema.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <sstream>

namespace tiered
{
namespace
{

// A library may be loaded, and enter its types, while another thread opens a store.
struct type_list {
    std::mutex lock;
    std::vector<const schema *> schemas;
};

// Constructors of static objects use it, in any order.
type_list &registry()
{
    static type_list types;
    return types;
}

struct stored_field {
    std::string where, type; // "slot" or "record"; the order of fields is part of the layout
    size_t offset;
};

// A line: name, place, offset, type. The first line is the record's length.
std::map<std::string, stored_field> parse(std::string_view text)
{
    std::map<std::string, stored_field> fields;
    std::istringstream lines{std::string(text)};
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) {
        std::istringstream words(line);
        std::string name;
        stored_field one;
        words >> name >> one.where >> one.offset;
        std::getline(words >> std::ws, one.type);
        fields[name] = one;
    }
    return fields;
}

} // namespace

schema::schema(std::string_view name, size_t record_bytes, std::vector<field> fields,
               access_counts *counts)
    : name_(name), record_bytes_(record_bytes), fields_(std::move(fields)), counts_(counts)
{
    std::lock_guard guard(registry().lock);
    registry().schemas.push_back(this);
}

std::vector<const schema *> schema::all()
{
    std::lock_guard guard(registry().lock);
    return registry().schemas;
}

std::string schema::text() const
{
    std::ostringstream text;
    text << record_bytes_ << '\n';
    for (const field &one : fields_)
        text << one.name << (one.in_slot ? " slot " : " record ") << one.offset << ' ' << one.type
             << '\n';
    return text.str();
}

std::string schema::difference(std::string_view stored_text) const
{
    const std::string mine = text();
    if (mine == stored_text)
        return {};
    auto stored = parse(stored_text);
    std::ostringstream words;
    const auto say = [&](std::string_view field) -> std::ostream & {
        return words << (words.tellp() > 0 ? "; " : "") << "field `" << field << '`';
    };
    for (const auto &[name, now] : parse(mine)) {
        const auto before = stored.find(name);
        if (before == stored.end()) {
            say(name) << " is new";
            continue;
        }
        const stored_field then = before->second;
        stored.erase(before);
        if (then.type != now.type)
            say(name) << " was `" << then.type << "` and is `" << now.type << '`';
        else if (then.where != now.where)
            say(name) << " was in the " << then.where << " and is in the " << now.where
                      << ", as its tiers have changed";
        else if (then.offset != now.offset)
            say(name) << " was at byte " << then.offset << " and is at byte " << now.offset;
    }
    for (const auto &[name, gone] : stored)
        say(name) << " is gone";
    return words.tellp() > 0 ? words.str() : "its records have another length";
}

} // namespace tiered

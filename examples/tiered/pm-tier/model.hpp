// What the reader finds in a header, and the writer turns into classes.
#ifndef EXAMPLES_TIERED_PM_TIER_MODEL_HPP
#define EXAMPLES_TIERED_PM_TIER_MODEL_HPP

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace pm_tier
{

/// Bad input; what() names file and line, what is wrong, and the remedy.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

enum class kind { scalar, array, vector, string, handle, durable };

struct member {
    std::string name;
    kind is;
    std::string type; // for the schema: as clang spells it, and what an enum is made of
    std::string
        element; // for the classes: of the scalar or the elements; or a durable type's full name
    size_t count = 0;               // of an array
    size_t bytes = 0;               // of a scalar or an array
    size_t align = 1;               // of the same
    std::vector<std::string> tiers; // empty: left to the profile
    std::string where;              // file:line and name, for messages
};

struct durable {
    std::string scope; // its namespace, "a::b"; empty: the global one
    std::string name;
    std::string header; // another one that declares it, which the input includes; else empty
    std::vector<member> members;
    std::string where; // file:line and name, for messages

    std::string full_name() const { return scope.empty() ? name : scope + "::" + name; }
};

/// Full name of a type, then field, then tier.
using placement = std::map<std::string, std::map<std::string, std::string>>;

struct input {
    std::string header;
    std::vector<std::string> tiers;     // known ones
    std::vector<std::string> arguments; // for clang
};

/// All annotated types of a header and of those that it includes, in their order.
std::vector<durable> read_header(const input &from);

/// The text of the header with the durable classes.
std::string write_classes(const std::string &header, const std::vector<durable> &types,
                          const placement &placed);

/// person.hpp -> person.durable.hpp
std::string output_name(const std::string &header);

/// True if the field lies in the record itself: short, and in pm only.
bool is_in_record(const member &field);

/// What an object takes in pm wherever its fields are. An embedded object is an object of its own.
size_t record_bytes(const durable &type);

} // namespace pm_tier

#endif

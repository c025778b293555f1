// Writes the durable classes.
#include "model.hpp"

#include "tiered/slot.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

namespace pm_tier
{
namespace
{

constexpr size_t in_record_max = 256; // bytes of an array

using words = std::vector<std::pair<std::string, std::string>>;

// The text with each $(name) replaced.
std::string fill(std::string text, const words &values)
{
    for (const auto &[name, value] : values) {
        const std::string mark = "$(" + name + ")";
        for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
            text.replace(at, mark.size(), value);
    }
    return text;
}

// a::b::person -> ::a::b::durable::person
std::string class_of(const std::string &full_name)
{
    const size_t at = full_name.rfind("::");
    return at == std::string::npos
               ? "::durable::" + full_name
               : "::" + full_name.substr(0, at) + "::durable" + full_name.substr(at);
}

std::string record_of(const std::string &full_name)
{
    return class_of(full_name) + "_record";
}

std::string record_type(const member &field)
{
    if (field.is == kind::handle)
        return record_of(field.element) + " *";
    if (field.is == kind::durable)
        return record_of(field.element) + " ";
    if (!is_in_record(field))
        return "::tiered::slot ";
    return field.is == kind::array
               ? "::std::array<" + field.element + ", " + std::to_string(field.count) + "> "
               : field.element + " ";
}

// The expressions of a getter and a setter. A type of the user may have any name, so all names begin with ::
struct accessors {
    const char *result, *read_bytes, *get;
    const char *parameter, *written_bytes, *set; // NULL: there is no setter
};

constexpr accessors scalar_in_record = {"$(element)",       "sizeof($(element))",
                                        "record_->$(name)", "$(element)",
                                        "sizeof value",     "record_->$(name) = value"};

constexpr accessors array_in_record = {"::std::span<const $(element), $(count)>",
                                       "sizeof record_->$(name)",
                                       "record_->$(name)",
                                       "::std::span<const $(element), $(count)>",
                                       "value.size_bytes()",
                                       "::std::ranges::copy(value, record_->$(name).begin())"};

constexpr accessors scalar_in_slot = {
    "$(element)",
    "sizeof($(element))",
    "::tiered::get_scalar<$(element)>(record_->$(name), durable_type(), $(index))",
    "$(element)",
    "sizeof value",
    "::tiered::set_scalar(record_->$(name), value, durable_type(), $(index))"};

constexpr accessors elements_in_slot = {
    "::tiered::view<$(element)>",
    "record_->$(name).length",
    "::tiered::get_elements<$(element)>(record_->$(name), durable_type(), $(index), $(count))",
    "::std::span<const $(element)$(extent)>",
    "value.size_bytes()",
    "::tiered::set_elements<$(element)>(record_->$(name), value, durable_type(), $(index))"};

constexpr accessors string_in_slot = {
    "::tiered::text",
    "record_->$(name).length",
    "::tiered::text(::tiered::get_elements<char>(record_->$(name), durable_type(), $(index)))",
    "::std::string_view",
    "value.size()",
    "::tiered::set_elements<char>(record_->$(name), value, durable_type(), $(index))"};

constexpr accessors handle_in_record = {
    "$(object)",
    "sizeof(void *)",
    "$(object)(record_->$(name))",
    "$(object)",
    "sizeof(void *)",
    "record_->$(name) = ::tiered::of_store(record_, value.durable_record())"};

constexpr accessors durable_in_record = {
    "$(object)", "sizeof record_->$(name)", "$(object)(&record_->$(name))", nullptr, nullptr,
    nullptr};

const accessors &accessors_of(const member &field)
{
    switch (field.is) {
    case kind::scalar:
        return is_in_record(field) ? scalar_in_record : scalar_in_slot;
    case kind::array:
        return is_in_record(field) ? array_in_record : elements_in_slot;
    case kind::vector:
        return elements_in_slot;
    case kind::string:
        return string_in_slot;
    case kind::handle:
        return handle_in_record;
    case kind::durable:
        break;
    }
    return durable_in_record;
}

words words_of(const durable &type, const member &field, size_t index)
{
    const accessors &of = accessors_of(field);
    const bool is_array = field.is == kind::array,
               is_object = field.is == kind::handle || field.is == kind::durable;
    return {{"result", of.result},
            {"read_bytes", of.read_bytes},
            {"get", of.get},
            {"parameter", of.set ? of.parameter : ""},
            {"written_bytes", of.set ? of.written_bytes : ""},
            {"set", of.set ? of.set : ""},
            {"class", type.name},
            {"name", field.name},
            {"element", field.element},
            {"object", is_object ? class_of(field.element) : ""},
            {"count", std::to_string(field.count)},
            {"extent", is_array ? ", " + std::to_string(field.count) : ""},
            {"index", std::to_string(index)}};
}

constexpr const char *getter = R"(
    $(result) $(name)() const;
)";

constexpr const char *setter = R"(    void set_$(name)($(parameter) value) const;
)";

constexpr const char *getter_body = R"(
inline $(result) $(class)::$(name)() const
{
    ::tiered::count_read(durable_counts[$(index)], $(read_bytes));
    return $(get);
}
)";

constexpr const char *setter_body = R"(inline void $(class)::set_$(name)($(parameter) value) const
{
    ::tiered::count_write(durable_counts[$(index)], $(written_bytes));
    $(set);
}
)";

constexpr const char *forward = R"(
namespace $(namespace)
{
struct $(class)_record;
class $(class);
}
)";

constexpr const char *class_begin = R"(
namespace $(namespace)
{
class $(class) : public ::tiered::object<$(record)>
{
  public:
    using durable_record_type = $(record);
    using ::tiered::object<$(record)>::object;
    static const ::tiered::schema &durable_type() { return durable_schema; }
)";

constexpr const char *class_end = R"(
  private:
    static inline ::tiered::access_counts durable_counts[$(fields)];
    static const ::tiered::schema durable_schema;
};
}
)";

constexpr const char *record_end = R"(};
static_assert(sizeof($(class)_record) <= ::tiered::record_bytes_max,
              "the record of $(type) is longer than a block: give fields another tier than "
              "\"pm\" alone, and write handles for embedded objects");
}
)";

std::string namespace_of(const durable &type)
{
    return type.scope.empty() ? "durable" : type.scope + "::durable";
}

words words_of(const durable &type)
{
    return {{"namespace", namespace_of(type)},
            {"class", type.name},
            {"type", type.full_name()},
            {"record", record_of(type.full_name())},
            {"fields", std::to_string(type.members.size())}};
}

// Headers may include one another, and so do the generated ones. Each type must be complete where code needs
// it, in any order of inclusion. So a generated header has
//
//     1. its classes, which need declarations of other types only
//     2. its records, each behind the headers of the objects that it embeds
//     3. the other headers, so that all classes are complete
//     4. the bodies of getters and setters, which need all of this
class writer
{
  public:
    writer(const std::vector<durable> &types, const placement &placed, std::ostream &out)
        : types_(types), placed_(placed), out_(out)
    {
        for (const durable &type : types)
            if (type.header.empty())
                mine_.push_back(type);
    }

    void write()
    {
        for (const durable &type : types_)
            out_ << fill(forward, words_of(type));
        for (const durable &type : mine_)
            write_class(type);
        for (const durable &type : mine_)
            write_record(type);
        for (const durable &type : types_)
            include(type);
        for (const durable &type : mine_)
            write_bodies(type);
    }

  private:
    const durable &embedded(const member &field) const
    {
        return *std::ranges::find(types_, field.element, &durable::full_name);
    }

    void include(const durable &type)
    {
        if (!type.header.empty() && included_.insert(type.header).second)
            out_ << "\n#include \"" << output_name(type.header) << "\"\n";
    }

    void write_class(const durable &type) const
    {
        out_ << fill(class_begin, words_of(type));
        for (size_t i = 0; i < type.members.size(); i++) {
            const member &field = type.members[i];
            if (field.is == kind::durable)
                out_ << "\n    /// It lives and dies with this object.";
            out_ << fill(getter, words_of(type, field, i));
            if (accessors_of(field).set)
                out_ << fill(setter, words_of(type, field, i));
        }
        out_ << fill(class_end, words_of(type));
    }

    void write_record(const durable &type)
    {
        for (const member &field : type.members)
            if (field.is == kind::durable)
                include(embedded(field));
        out_ << "\nnamespace " << namespace_of(type) << "\n{\nstruct " << type.name
             << "_record {\n";
        for (const member &field : type.members)
            out_ << "    " << record_type(field) << field.name << "{};\n";
        out_ << fill(record_end, words_of(type));
    }

    void write_bodies(const durable &type) const
    {
        const std::string record = record_of(type.full_name());
        out_ << "\nnamespace " << namespace_of(type) << "\n{\n\ninline const ::tiered::schema "
             << type.name << "::durable_schema(\n    \"" << type.full_name() << "\", sizeof("
             << record << "), {";
        write_fields(type, record, "", "");
        out_ << "\n    }, ::tiered::is_profiled ? durable_counts : nullptr);\n";
        for (size_t i = 0; i < type.members.size(); i++) {
            out_ << fill(getter_body, words_of(type, type.members[i], i));
            if (accessors_of(type.members[i]).set)
                out_ << fill(setter_body, words_of(type, type.members[i], i));
        }
        out_ << "\n}\n";
    }

    // The fields of embedded objects come last, so that a field's index is its place in the struct.
    void write_fields(const durable &type, const std::string &record, const std::string &path,
                      const std::string &offset) const
    {
        for (const member &field : type.members) {
            out_ << "\n        {\"" << path << field.name << "\", \"" << field.type << "\", "
                 << offset << "offsetof(" << record << ", " << field.name << "), "
                 << (is_in_record(field) ? "false" : "true") << ", {";
            const std::vector<std::string> tiers = tiers_of(type, field);
            for (size_t i = 0; i < tiers.size() && !is_in_record(field); i++)
                out_ << (i > 0 ? ", " : "") << '"' << tiers[i] << '"';
            out_ << "}},";
        }
        for (const member &field : type.members) {
            if (field.is != kind::durable)
                continue;
            write_fields(embedded(field), record_of(field.element), path + field.name + ".",
                         offset + "offsetof(" + record + ", " + field.name + ") + ");
        }
    }

    std::vector<std::string> tiers_of(const durable &type, const member &field) const
    {
        if (!field.tiers.empty())
            return field.tiers;
        const auto of_type = placed_.find(type.full_name());
        // A field that is placed in "pm" keeps its slot, and may leave for the disk. So a new placement needs
        // no new layout, and existing stores open.
        if (of_type != placed_.end()) {
            const auto found = of_type->second.find(field.name);
            if (found != of_type->second.end() && found->second != "pm")
                return {found->second};
        }
        return {"pm", "disk"};
    }

    const std::vector<durable> &types_; // with those of headers that this one includes
    std::vector<durable> mine_;
    const placement &placed_;
    std::ostream &out_;
    std::set<std::string> included_;
};

} // namespace

std::string output_name(const std::string &header)
{
    return std::filesystem::path(header).stem().string() + ".durable.hpp";
}

bool is_in_record(const member &field)
{
    if (field.is == kind::handle || field.is == kind::durable)
        return true;
    return field.tiers == std::vector<std::string>{"pm"} &&
           (field.is == kind::scalar || (field.is == kind::array && field.bytes <= in_record_max));
}

size_t record_bytes(const durable &type)
{
    const auto up = [](size_t bytes, size_t align) { return (bytes + align - 1) / align * align; };
    size_t end = 0, most = 1;
    for (const member &field : type.members) {
        if (field.is == kind::durable)
            continue;
        size_t bytes = sizeof(tiered::slot), align = alignof(tiered::slot);
        if (field.is == kind::handle)
            bytes = align = sizeof(void *);
        else if (is_in_record(field))
            bytes = field.bytes, align = field.align;
        end = up(end, align) + bytes;
        most = std::max(most, align);
    }
    return up(end, most);
}

std::string write_classes(const std::string &header, const std::vector<durable> &types,
                          const placement &placed)
{
    const std::string name = std::filesystem::path(header).filename();
    std::ostringstream out;
    out << "// Durable classes of " << name << ". Generated by pm-tier; changes belong there.\n"
        << "#pragma once\n\n#include \"" << name << "\"\n\n"
        << "#include <algorithm>\n#include <array>\n#include <cstddef>\n#include "
           "<tiered/generated.hpp>\n\n";
    writer(types, placed, out).write();
    return out.str();
}

} // namespace pm_tier

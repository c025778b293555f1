// Writes the durable classes.
#include "model.hpp"

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

std::string record_type(const member &field)
{
    if (field.is == kind::handle)
        return class_of(field.element) + "_record *";
    if (field.is == kind::durable)
        return class_of(field.element) + "_record ";
    if (!is_in_record(field))
        return "tiered::slot ";
    return field.is == kind::array
               ? "std::array<" + field.element + ", " + std::to_string(field.count) + "> "
               : field.type + " ";
}

const char *const scalar_in_record = R"(
    $(type) $(name)() const
    {
        tiered::count_read($(class)_counts[$(index)], sizeof($(type)));
        return record_->$(name);
    }
    void set_$(name)($(type) value) const
    {
        tiered::count_write($(class)_counts[$(index)], sizeof value);
        record_->$(name) = value;
    }
)";

const char *const array_in_record = R"(
    std::span<const $(element), $(count)> $(name)() const
    {
        tiered::count_read($(class)_counts[$(index)], sizeof record_->$(name));
        return record_->$(name);
    }
    void set_$(name)(std::span<const $(element), $(count)> value) const
    {
        tiered::count_write($(class)_counts[$(index)], value.size_bytes());
        std::ranges::copy(value, record_->$(name).begin());
    }
)";

const char *const scalar_in_slot = R"(
    $(type) $(name)() const
    {
        tiered::count_read($(class)_counts[$(index)], sizeof($(type)));
        return tiered::get_scalar<$(type)>(record_->$(name), durable_type(), $(index));
    }
    void set_$(name)($(type) value) const
    {
        tiered::count_write($(class)_counts[$(index)], sizeof value);
        tiered::set_scalar(record_->$(name), value, durable_type(), $(index));
    }
)";

const char *const elements_in_slot = R"(
    tiered::view<$(element)> $(name)() const
    {
        tiered::count_read($(class)_counts[$(index)], record_->$(name).length);
        return tiered::get_elements<$(element)>(record_->$(name), durable_type(), $(index), $(count));
    }
    void set_$(name)(std::span<const $(element)$(extent)> value) const
    {
        tiered::count_write($(class)_counts[$(index)], value.size_bytes());
        tiered::set_elements<$(element)>(record_->$(name), value, durable_type(), $(index));
    }
)";

const char *const string_in_slot = R"(
    tiered::text $(name)() const
    {
        tiered::count_read($(class)_counts[$(index)], record_->$(name).length);
        return tiered::text(tiered::get_elements<char>(record_->$(name), durable_type(), $(index)));
    }
    void set_$(name)(std::string_view value) const
    {
        tiered::count_write($(class)_counts[$(index)], value.size());
        tiered::set_elements<char>(record_->$(name), value, durable_type(), $(index));
    }
)";

const char *const handle_in_record = R"(
    $(object) $(name)() const;
    void set_$(name)($(object) value) const;
)";

const char *const handle_bodies = R"(
inline $(object) $(class)::$(name)() const
{
    tiered::count_read($(class)_counts[$(index)], sizeof(void *));
    return $(object)(record_->$(name));
}
inline void $(class)::set_$(name)($(object) value) const
{
    tiered::count_write($(class)_counts[$(index)], sizeof(void *));
    record_->$(name) = value.durable_record();
}
)";

const char *const durable_in_record = R"(
    /// It lives and dies with this object.
    $(object) $(name)() const { return $(object)(&record_->$(name)); }
)";

const char *accessors_of(const member &field)
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
        return durable_in_record;
    }
    return "";
}

words words_of(const durable &type, const member &field, size_t index)
{
    const bool is_array = field.is == kind::array;
    return {{"class", type.name},
            {"name", field.name},
            {"type", field.type},
            {"element", field.element},
            {"object", field.element.empty() ? "" : class_of(field.element)},
            {"count", std::to_string(field.count)},
            {"extent", is_array ? ", " + std::to_string(field.count) : ""},
            {"index", std::to_string(index)}};
}

std::string namespace_of(const durable &type)
{
    return type.scope.empty() ? "durable" : type.scope + "::durable";
}

class writer
{
  public:
    writer(const std::vector<durable> &types, const placement &placed)
        : types_(types), placed_(placed)
    {
        for (const durable &type : types)
            if (type.header.empty())
                mine_.push_back(type);
        for (const auto &[name, fields] : placed) {
            const auto type = std::ranges::find(types, name, &durable::full_name);
            for (const auto &[field, tier] : fields)
                if (type == types.end() ||
                    std::ranges::find(type->members, field, &member::name) == type->members.end())
                    throw failure("the placement has a field " + name + "." + field +
                                  " that the header has not; make a new placement");
        }
    }

    void write(std::ostream &out) const
    {
        for (const durable &type : mine_)
            out << "namespace " << namespace_of(type) << "\n{\nstruct " << type.name
                << "_record;\nclass " << type.name << ";\n}\n";
        for (const durable &type : mine_)
            write_class(out, type);
        for (const durable &type : mine_)
            write_bodies(out, type);
    }

  private:
    void write_class(std::ostream &out, const durable &type) const
    {
        out << "\nnamespace " << namespace_of(type) << "\n{\n\nstruct " << type.name
            << "_record {\n";
        for (const member &field : type.members)
            out << "    " << record_type(field) << field.name << "{};\n";
        out << "};\n\ninline tiered::access_counts " << type.name << "_counts["
            << type.members.size() << "];\n\nclass " << type.name << " : public tiered::object<"
            << type.name << "_record>\n{\n  public:\n    using durable_record_type = " << type.name
            << "_record;\n    using object::object;\n    static const tiered::schema "
               "&durable_type();\n";
        for (size_t i = 0; i < type.members.size(); i++)
            out << fill(accessors_of(type.members[i]), words_of(type, type.members[i], i));
        out << "};\n\n}\n";
    }

    void write_bodies(std::ostream &out, const durable &type) const
    {
        out << "\nnamespace " << namespace_of(type) << "\n{\n\ninline const tiered::schema "
            << type.name << "_schema(\n    \"" << type.full_name() << "\", sizeof(" << type.name
            << "_record), {";
        write_fields(out, type, type.name + "_record", "", "");
        out << "\n    }, tiered::is_profiled ? " << type.name << "_counts : nullptr);\n\n"
            << "inline const tiered::schema &" << type.name << "::durable_type()\n{\n    return "
            << type.name << "_schema;\n}\n";
        for (size_t i = 0; i < type.members.size(); i++)
            if (type.members[i].is == kind::handle)
                out << fill(handle_bodies, words_of(type, type.members[i], i));
        out << "\n}\n";
    }

    // The fields of embedded objects come last, so that a field's index is its place in the struct.
    void write_fields(std::ostream &out, const durable &type, const std::string &record,
                      const std::string &path, const std::string &offset) const
    {
        for (const member &field : type.members) {
            out << "\n        {\"" << path << field.name << "\", \"" << field.type << "\", "
                << offset << "offsetof(" << record << ", " << field.name << "), "
                << (is_in_record(field) ? "false" : "true") << ", {";
            const std::vector<std::string> tiers = tiers_of(type, field);
            for (size_t i = 0; i < tiers.size() && !is_in_record(field); i++)
                out << (i > 0 ? ", " : "") << '"' << tiers[i] << '"';
            out << "}},";
        }
        for (const member &field : type.members) {
            if (field.is != kind::durable)
                continue;
            const auto inner = std::ranges::find(types_, field.element, &durable::full_name);
            write_fields(out, *inner, class_of(field.element) + "_record", path + field.name + ".",
                         offset + "offsetof(" + record + ", " + field.name + ") + ");
        }
    }

    std::vector<std::string> tiers_of(const durable &type, const member &field) const
    {
        if (!field.tiers.empty())
            return field.tiers;
        const auto of_type = placed_.find(type.full_name());
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

std::string write_classes(const std::string &header, const std::vector<durable> &types,
                          const placement &placed)
{
    const std::string name = std::filesystem::path(header).filename();
    std::ostringstream out;
    out << "// Durable classes of " << name << ". Generated by pm-tier; changes belong there.\n"
        << "#pragma once\n\n#include \"" << name << "\"\n\n"
        << "#include <algorithm>\n#include <array>\n#include <cstddef>\n#include "
           "<tiered/generated.hpp>\n\n";
    std::set<std::string> included;
    for (const durable &type : types)
        if (!type.header.empty() && included.insert(type.header).second)
            out << "#include \"" << output_name(type.header) << "\"\n";
    writer(types, placed).write(out);
    return out.str();
}

} // namespace pm_tier

// Reads annotated structs, with libclang.
#include "model.hpp"

#include <algorithm>
#include <clang-c/Index.h>
#include <functional>
#include <memory>
#include <sstream>

namespace pm_tier
{
namespace
{

constexpr const char *durable_mark = "pm::durable", *tier_mark = "pm::tier ";

std::string text_of(CXString from)
{
    const char *text = clang_getCString(from);
    std::string copy = text ? text : "";
    clang_disposeString(from);
    return copy;
}

std::string spelling(CXCursor cursor)
{
    return text_of(clang_getCursorSpelling(cursor));
}

std::string file_of(CXCursor cursor, unsigned *line = nullptr)
{
    CXFile file;
    clang_getSpellingLocation(clang_getCursorLocation(cursor), &file, line, nullptr, nullptr);
    return text_of(clang_getFileName(file));
}

std::string where_of(CXCursor cursor)
{
    unsigned line;
    const std::string file = file_of(cursor, &line);
    return file + ":" + std::to_string(line);
}

void for_each_child(CXCursor parent, const std::function<void(CXCursor)> &each)
{
    clang_visitChildren(
        parent,
        [](CXCursor child, CXCursor, CXClientData context) {
            (*static_cast<const std::function<void(CXCursor)> *>(context))(child);
            return CXChildVisit_Continue;
        },
        const_cast<std::function<void(CXCursor)> *>(&each));
}

std::vector<std::string> annotations_of(CXCursor of)
{
    std::vector<std::string> found;
    for_each_child(of, [&](CXCursor child) {
        if (clang_getCursorKind(child) == CXCursor_AnnotateAttr)
            found.push_back(spelling(child));
    });
    return found;
}

bool is_durable(CXCursor type)
{
    const auto marks = annotations_of(clang_getCursorDefinition(type));
    return std::ranges::find(marks, durable_mark) != marks.end();
}

std::string scope_of(CXCursor of)
{
    std::string scope;
    for (CXCursor at = clang_getCursorSemanticParent(of);
         clang_getCursorKind(at) == CXCursor_Namespace; at = clang_getCursorSemanticParent(at))
        if (!clang_Cursor_isInlineNamespace(at))
            scope = spelling(at) + (scope.empty() ? "" : "::") + scope;
    return scope;
}

std::string full_name(CXCursor type)
{
    const std::string scope = scope_of(type);
    return scope.empty() ? spelling(type) : scope + "::" + spelling(type);
}

bool is_scalar(CXType type)
{
    return type.kind == CXType_Enum ||
           (type.kind >= CXType_Bool && type.kind <= CXType_Double && type.kind != CXType_NullPtr);
}

class header_reader
{
  public:
    explicit header_reader(const input &from) : from_(from) {}

    void read(CXCursor parent)
    {
        for_each_child(parent, [this](CXCursor child) {
            switch (clang_getCursorKind(child)) {
            case CXCursor_Namespace:
            case CXCursor_LinkageSpec:
                read(child);
                break;
            case CXCursor_StructDecl:
            case CXCursor_ClassDecl:
                if (clang_isCursorDefinition(child) && is_durable(child))
                    types.push_back(read_type(child));
                break;
            default:
                break;
            }
        });
    }

    std::vector<durable> types;

  private:
    durable read_type(CXCursor from)
    {
        durable type;
        type.name = spelling(from);
        type.scope = scope_of(from);
        if (!clang_Location_isFromMainFile(clang_getCursorLocation(from)))
            type.header = file_of(from);
        for_each_child(from, [&](CXCursor child) {
            const auto is = clang_getCursorKind(child);
            if (is == CXCursor_CXXBaseSpecifier)
                throw failure(
                    where_of(child) + ": `" + type.name +
                    "` has a base class, whose fields have no tiers; make the base a field");
            if (is == CXCursor_FieldDecl)
                type.members.push_back(read_field(child));
        });
        if (type.members.empty())
            throw failure(where_of(from) + ": `" + type.name +
                          "` has no field; give it one, or remove PM_DURABLE");
        return type;
    }

    member read_field(CXCursor from)
    {
        member field;
        field.name = spelling(from);
        field.where = where_of(from) + ": field `" + field.name + "`";
        if (field.name == spelling(clang_getCursorSemanticParent(from)))
            throw failure(field.where + " has its type's name, and so would its getter; rename it");
        if (clang_Cursor_isBitField(from))
            throw failure(field.where + " is a bit field; give it a type of its own");
        for (const std::string &mark : annotations_of(from))
            if (mark.starts_with(tier_mark))
                read_tiers(field, mark.substr(std::string_view(tier_mark).size()));
        classify(field, clang_getCursorType(from));
        if (!field.tiers.empty() && (field.is == kind::durable || field.is == kind::handle))
            throw failure(field.where +
                          (field.is == kind::durable
                               ? " is a durable object; tag the fields of its type instead"
                               : " is a handle, which is always in pm; remove the tag"));
        return field;
    }

    // The annotation has the macro's arguments as they were written: "pm", "disk"
    void read_tiers(member &field, const std::string &arguments)
    {
        if (!field.tiers.empty())
            throw failure(field.where + " has two tags; write PM_TIER once, with all tiers");
        std::istringstream words(arguments);
        for (std::string word; std::getline(words >> std::ws, word, ',');) {
            word.erase(word.find_last_not_of(" \t\n") + 1);
            if (word.size() < 3 || word.front() != '"' || word.back() != '"')
                throw failure(field.where + ": PM_TIER(" + arguments +
                              ") has something else than strings; write PM_TIER(\"pm\")");
            const std::string tier = word.substr(1, word.size() - 2);
            if (std::ranges::find(from_.tiers, tier) == from_.tiers.end())
                throw failure(field.where + ": the tier \"" + tier +
                              "\" is unknown; dram, pm and disk are known, and those of --tier");
            if (std::ranges::find(field.tiers, tier) != field.tiers.end())
                throw failure(field.where + " names the tier \"" + tier + "\" twice; remove one");
            field.tiers.push_back(tier);
        }
        if (field.tiers.empty() || field.tiers.size() > 4)
            throw failure(field.where + ": PM_TIER needs one to four tiers");
    }

    void classify(member &field, CXType written)
    {
        const CXType type = clang_getCanonicalType(written);
        const CXCursor declared = clang_getTypeDeclaration(type);
        field.type = text_of(clang_getTypeSpelling(type));
        field.bytes = static_cast<size_t>(clang_Type_getSizeOf(type));
        const std::string name = scope_of(declared) == "std" ? spelling(declared) : "";
        if (clang_isConstQualifiedType(type))
            throw failure(field.where + " is const, and could never be set; remove const");
        if (type.kind == CXType_LValueReference || type.kind == CXType_RValueReference)
            throw failure(field.where +
                          " is a reference; use tiered::handle<T> for another durable object");
        if (type.kind == CXType_Pointer) {
            throw failure(field.where +
                          " is a pointer to memory that the next run does not have; use "
                          "tiered::handle<T> for a durable object, else the value itself");
        } else if (is_scalar(type)) {
            field.is = kind::scalar;
        } else if (type.kind == CXType_ConstantArray) {
            field.is = kind::array;
            set_element(field, clang_getArrayElementType(type));
            field.count = static_cast<size_t>(clang_getArraySize(type));
        } else if (name == "array") {
            field.is = kind::array;
            const CXType element = clang_Type_getTemplateArgumentAsType(type, 0);
            set_element(field, element);
            field.count = field.bytes / static_cast<size_t>(clang_Type_getSizeOf(element));
        } else if (name == "vector") {
            field.is = kind::vector;
            set_element(field, clang_Type_getTemplateArgumentAsType(type, 0));
            if (field.element == "bool")
                throw failure(field.where +
                              " is a std::vector<bool>, which has no elements in memory; "
                              "use std::vector<uint8_t>");
        } else if (name == "basic_string" &&
                   clang_Type_getSizeOf(clang_Type_getTemplateArgumentAsType(type, 0)) == 1) {
            field.is = kind::string;
        } else if (full_name(declared) == "tiered::handle") {
            field.is = kind::handle;
            set_durable(field,
                        clang_getTypeDeclaration(clang_Type_getTemplateArgumentAsType(type, 0)));
        } else if (type.kind == CXType_Record) {
            field.is = kind::durable;
            set_durable(field, declared);
        } else {
            refuse(field);
        }
    }

    void set_element(member &field, CXType element)
    {
        const CXType type = clang_getCanonicalType(element);
        if (!is_scalar(type))
            refuse(field);
        field.element = text_of(clang_getTypeSpelling(type));
    }

    void set_durable(member &field, CXCursor type)
    {
        if (!is_durable(type))
            refuse(field);
        field.element = full_name(type);
    }

    [[noreturn]] static void refuse(const member &field)
    {
        throw failure(field.where + " has the type `" + field.type +
                      "`; possible are arithmetic types, enums, arrays and std::vector of those, "
                      "std::string, types that are PM_DURABLE, and tiered::handle of those");
    }

    const input &from_;
};

// Errors of clang, as clang prints them.
void demand_no_errors(CXTranslationUnit unit)
{
    std::string errors;
    for (unsigned i = 0; i < clang_getNumDiagnostics(unit); i++) {
        CXDiagnostic one = clang_getDiagnostic(unit, i);
        if (clang_getDiagnosticSeverity(one) >= CXDiagnostic_Error)
            errors +=
                text_of(clang_formatDiagnostic(one, clang_defaultDiagnosticDisplayOptions())) +
                "\n";
        clang_disposeDiagnostic(one);
    }
    if (!errors.empty())
        throw failure(errors + "give clang what it lacks behind --, for instance -- -I include");
}

} // namespace

std::vector<durable> read_header(const input &from)
{
    std::vector<const char *> arguments = {"-xc++", "-std=c++20",
                                           "-Wno-pragma-once-outside-header"};
    for (const std::string &argument : from.arguments)
        arguments.push_back(argument.c_str());
    const std::unique_ptr<void, void (*)(CXIndex)> index(clang_createIndex(0, 0),
                                                         clang_disposeIndex);
    CXTranslationUnit parsed = nullptr;
    if (clang_parseTranslationUnit2(
            index.get(), from.header.c_str(), arguments.data(), static_cast<int>(arguments.size()),
            nullptr, 0, CXTranslationUnit_SkipFunctionBodies, &parsed) != CXError_Success)
        throw failure(from.header + ": cannot be read; is the path right?");
    const std::unique_ptr<CXTranslationUnitImpl, void (*)(CXTranslationUnit)> unit(
        parsed, clang_disposeTranslationUnit);
    demand_no_errors(parsed);
    header_reader reader(from);
    reader.read(clang_getTranslationUnitCursor(parsed));
    if (reader.types.empty())
        throw failure(from.header + ": has no struct that is PM_DURABLE; annotate one");
    return reader.types;
}

} // namespace pm_tier

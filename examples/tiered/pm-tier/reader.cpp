// Reads annotated structs, with libclang.
#include "model.hpp"

#include <algorithm>
#include <clang-c/Index.h>
#include <filesystem>
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

CXFile file_of(CXCursor cursor, unsigned *line = nullptr)
{
    CXFile file;
    clang_getExpansionLocation(clang_getCursorLocation(cursor), &file, line, nullptr, nullptr);
    return file;
}

// A path as the user gave it: clang puts "./" before a file of the current directory.
std::string path_of(CXFile file)
{
    const std::string path = text_of(clang_getFileName(file));
    return path.starts_with("./") ? path.substr(2) : path;
}

std::string where_of(CXCursor cursor)
{
    unsigned line;
    const CXFile file = file_of(cursor, &line);
    return path_of(file) + ":" + std::to_string(line);
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
           (type.kind >= CXType_Bool && type.kind <= CXType_LongDouble &&
            type.kind != CXType_NullPtr) ||
           text_of(clang_getTypeSpelling(type)) == "char8_t"; // libclang has no kind for it
}

bool is_type(CXCursor cursor)
{
    switch (clang_getCursorKind(cursor)) {
    case CXCursor_StructDecl:
    case CXCursor_ClassDecl:
    case CXCursor_UnionDecl:
    case CXCursor_ClassTemplate:
    case CXCursor_ClassTemplatePartialSpecialization:
        return true;
    default:
        return false;
    }
}

bool is_template(CXCursor type)
{
    const auto is = clang_getCursorKind(type);
    return is == CXCursor_ClassTemplate || is == CXCursor_ClassTemplatePartialSpecialization ||
           !clang_Cursor_isNull(clang_getSpecializedCursorTemplate(type));
}

// `int a = 5;` or `int a{5};`. libclang shows the initialiser like the length in `int a[5]`, so look at the
// text behind the name.
bool has_initialiser(CXCursor field)
{
    const CXTranslationUnit unit = clang_Cursor_getTranslationUnit(field);
    CXToken *tokens = nullptr;
    unsigned count = 0;
    clang_tokenize(unit,
                   clang_getRange(clang_getCursorLocation(field),
                                  clang_getRangeEnd(clang_getCursorExtent(field))),
                   &tokens, &count);
    bool found = false;
    int depth = 0;
    for (unsigned i = 0; i < count; i++) {
        const std::string text = text_of(clang_getTokenSpelling(unit, tokens[i]));
        depth += (text == "[") - (text == "]");
        found |= depth == 0 && (text == "=" || text == "{");
    }
    clang_disposeTokens(unit, tokens, count);
    return found;
}

// True if code outside of its classes cannot name it.
bool is_private(CXCursor type)
{
    for (; clang_getCursorKind(type) == CXCursor_EnumDecl || is_type(type);
         type = clang_getCursorSemanticParent(type)) {
        const auto access = clang_getCXXAccessSpecifier(type);
        if (access == CX_CXXPrivate || access == CX_CXXProtected)
            return true;
    }
    return false;
}

class header_reader
{
  public:
    header_reader(const input &from, CXFile header) : from_(from), header_(header) {}

    void read(CXCursor parent)
    {
        for_each_child(parent, [this](CXCursor child) {
            const auto is = clang_getCursorKind(child);
            if (!is_type(child) && is != CXCursor_Namespace && is != CXCursor_LinkageSpec)
                return;
            if (is_type(child) && clang_isCursorDefinition(child) && is_durable(child))
                types.push_back(read_type(child));
            read(child);
        });
    }

    std::vector<durable> types;

  private:
    durable read_type(CXCursor from)
    {
        durable type;
        type.name = spelling(from);
        type.scope = scope_of(from);
        type.where = where_of(from) + ": `" + type.name + "`";
        demand_plain(type, from);
        if (!clang_File_isEqual(file_of(from), header_))
            type.header = path_of(file_of(from));
        for_each_child(from, [&](CXCursor child) {
            const auto is = clang_getCursorKind(child);
            const std::string where = where_of(child) + ": `" + type.name + "`";
            if (is == CXCursor_CXXBaseSpecifier)
                throw failure(
                    where + " has a base class, whose fields have no tiers; make the base a field");
            if (clang_CXXMethod_isVirtual(child))
                throw failure(where + " has a virtual function, but its objects have no table of "
                                      "functions in a file; remove `virtual`");
            if (clang_Cursor_isAnonymousRecordDecl(child))
                throw failure(where +
                              " has a struct or union without a name; write its fields as "
                              "fields of `" +
                              type.name + "`");
            if (is == CXCursor_FieldDecl)
                type.members.push_back(read_field(child));
        });
        if (type.members.empty())
            throw failure(type.where + " has no field; give it one, or remove PM_DURABLE");
        demand_free_names(type);
        return type;
    }

    static void demand_plain(const durable &type, CXCursor from)
    {
        if (is_template(from))
            throw failure(type.where + " is a template, and PM_DURABLE; write the struct out");
        if (is_type(clang_getCursorSemanticParent(from)))
            throw failure(type.where + " is PM_DURABLE inside another type; move it out, to a "
                                       "namespace");
        if (clang_getCursorKind(from) == CXCursor_UnionDecl)
            throw failure(type.where + " is a union, whose fields have no places of their own; "
                                       "write a struct");
        if (text_of(clang_getTypeSpelling(clang_getCursorType(from))).find('(') !=
            std::string::npos)
            throw failure(type.where + " is in a namespace without a name, or has none itself; "
                                       "give it a name");
        if (type.name == "durable")
            throw failure(type.where + " has the name of the namespace of generated classes; "
                                       "rename it");
    }

    // The class of the type has a getter and a setter for each field, and names of its own.
    static void demand_free_names(const durable &type)
    {
        for (const member &field : type.members) {
            const std::string setter = "set_" + field.name;
            if (field.name == type.name || setter == type.name)
                throw failure(field.where + " would have a " +
                              (setter == type.name ? "setter" : "getter") +
                              " with its type's name; rename it");
            if (field.name.starts_with("durable_") || field.name == "record_" ||
                field.name == type.name + "_record")
                throw failure(field.where +
                              " has a name that the generated class needs itself; rename it");
            const auto same = std::ranges::find(type.members, setter, &member::name);
            if (same != type.members.end())
                throw failure(same->where + " has the name of the setter of `" + field.name +
                              "`; rename it");
        }
    }

    member read_field(CXCursor from)
    {
        member field;
        field.name = spelling(from);
        field.where = where_of(from) + ": field `" + field.name + "`";
        if (clang_Cursor_isBitField(from))
            throw failure(field.where + " is a bit field; give it a type of its own");
        for (const std::string &mark : annotations_of(from))
            if (mark.starts_with(tier_mark))
                read_tiers(field, mark.substr(std::string_view(tier_mark).size()));
        classify(field, clang_getCursorType(from));
        if (has_initialiser(from))
            throw failure(field.where + " has an initialiser, but a new object has zeros; remove "
                                        "it, and set the field of each new object");
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
        demand_unqualified(field, type);
        if (type.kind == CXType_LValueReference || type.kind == CXType_RValueReference)
            throw failure(field.where +
                          " is a reference; use tiered::handle<T> for another durable object");
        if (type.kind == CXType_Pointer) {
            throw failure(field.where +
                          " is a pointer to memory that the next run does not have; use "
                          "tiered::handle<T> for a durable object, else the value itself");
        } else if (is_scalar(type)) {
            field.is = kind::scalar;
            set_element(field, type);
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
        } else if (name == "basic_string") {
            field.is = kind::string;
            set_element(field, clang_Type_getTemplateArgumentAsType(type, 0));
            if (field.element != "char")
                refuse(field);
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

    static void demand_unqualified(const member &field, CXType type)
    {
        if (clang_isConstQualifiedType(type))
            throw failure(field.where + " is const, and could never be set; remove const");
        if (clang_isVolatileQualifiedType(type))
            throw failure(field.where +
                          " is volatile, but its getter returns a copy; remove volatile");
    }

    void set_element(member &field, CXType element)
    {
        const CXType type = clang_getCanonicalType(element);
        demand_unqualified(field, type);
        if (!is_scalar(type))
            refuse(field);
        field.element = text_of(clang_getTypeSpelling(type));
        field.align = static_cast<size_t>(clang_Type_getAlignOf(type));
        if (type.kind == CXType_Enum)
            set_enum(field, clang_getTypeDeclaration(type));
    }

    // The schema names the underlying type: a store must refuse an enum of another length.
    static void set_enum(member &field, CXCursor type)
    {
        if (field.element.find('(') != std::string::npos)
            throw failure(field.where + " has an enum without a name, or in a namespace without "
                                        "one; give it a name");
        if (is_private(type))
            throw failure(field.where + " has the private enum `" + field.element +
                          "`, which the generated class cannot use; make it public");
        field.element.insert(0, "::");
        field.type += " : " + text_of(clang_getTypeSpelling(
                                  clang_getCanonicalType(clang_getEnumDeclIntegerType(type))));
    }

    void set_durable(member &field, CXCursor type)
    {
        if (clang_Cursor_isNull(clang_getCursorDefinition(type)))
            throw failure(field.where + ": `" + full_name(type) +
                          "` is declared, but not defined; include its header");
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
    const CXFile header_;
};

// Errors of clang, as clang prints them. The first one decides on the remedy: others may be its consequences.
void demand_no_errors(CXTranslationUnit unit)
{
    std::string errors, first;
    for (unsigned i = 0; i < clang_getNumDiagnostics(unit); i++) {
        CXDiagnostic one = clang_getDiagnostic(unit, i);
        if (clang_getDiagnosticSeverity(one) >= CXDiagnostic_Error) {
            if (errors.empty())
                first = text_of(clang_getDiagnosticSpelling(one));
            errors +=
                text_of(clang_formatDiagnostic(one, clang_defaultDiagnosticDisplayOptions())) +
                "\n";
        }
        clang_disposeDiagnostic(one);
    }
    if (errors.empty())
        return;
    for (const char *lack : {"file not found", "unknown type name", "undeclared identifier",
                             "no type named", "no template named", "no member named"})
        if (first.find(lack) != std::string::npos)
            throw failure(errors +
                          "give clang what it lacks behind --, for instance -- -I include");
    throw failure(errors + "clang cannot compile the header; mend it");
}

// Both types would have the record `q_record`.
void demand_free_records(const std::vector<durable> &types)
{
    for (const durable &type : types) {
        const auto same =
            std::ranges::find(types, type.full_name() + "_record", &durable::full_name);
        if (same != types.end())
            throw failure(same->where + " has the name of the record of `" + type.name +
                          "`; rename one of them");
    }
}

} // namespace

std::vector<durable> read_header(const input &from)
{
    const std::filesystem::path header = from.header;
    if (!std::filesystem::is_regular_file(header))
        throw failure(from.header + ": cannot be read; is the path right?");
    std::vector<const char *> arguments = {"-xc++", "-std=c++20"};
    for (const std::string &argument : from.arguments)
        arguments.push_back(argument.c_str());
    // Headers may include one another. So clang reads a file that includes the header; the file exists in
    // memory only.
    const std::string main_path = header.parent_path() / "pm-tier.cpp",
                      main_text = "#include \"" + header.filename().string() + "\"\n";
    CXUnsavedFile main_file{main_path.c_str(), main_text.c_str(), main_text.size()};
    const std::unique_ptr<void, void (*)(CXIndex)> index(clang_createIndex(0, 0),
                                                         clang_disposeIndex);
    CXTranslationUnit parsed = nullptr;
    if (clang_parseTranslationUnit2(
            index.get(), main_path.c_str(), arguments.data(), static_cast<int>(arguments.size()),
            &main_file, 1, CXTranslationUnit_SkipFunctionBodies, &parsed) != CXError_Success)
        throw failure(from.header + ": clang cannot read it; are the arguments behind -- right?");
    const std::unique_ptr<CXTranslationUnitImpl, void (*)(CXTranslationUnit)> unit(
        parsed, clang_disposeTranslationUnit);
    demand_no_errors(parsed);
    header_reader reader(from, clang_getFile(parsed, from.header.c_str()));
    reader.read(clang_getTranslationUnitCursor(parsed));
    demand_free_records(reader.types);
    if (reader.types.empty())
        throw failure(from.header + ": has no struct that is PM_DURABLE; annotate one");
    return reader.types;
}

} // namespace pm_tier

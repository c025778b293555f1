// docs/messages.md has every message of the library: this program extracts them from the source, and prints
// the page. As a test it compares the page with what it prints.
//
//   test_messages SOURCE-DIRECTORY           compare
//   test_messages SOURCE-DIRECTORY --print   print the page
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace
{

std::string read(const fs::path &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// The end of a literal that begins at `i`, behind its last quote.
size_t literal_end(const std::string &text, size_t i)
{
    const char quote = text[i++];
    for (; i < text.size() && text[i] != quote; i++)
        i += text[i] == '\\';
    return i + 1;
}

std::string without_comments(const std::string &text)
{
    std::string code;
    for (size_t i = 0; i < text.size();) {
        if (text.compare(i, 2, "/*") == 0) {
            i = text.find("*/", i) + 2;
        } else if (text[i] == '"' || text[i] == '\'') {
            const size_t end = literal_end(text, i);
            code += text.substr(i, end - i);
            i = end;
        } else {
            code += text[i++];
        }
    }
    return code;
}

// The arguments of a call whose parenthesis is at `i`.
std::vector<std::string> arguments(const std::string &code, size_t i)
{
    std::vector<std::string> all(1);
    for (int depth = 0; i < code.size(); i++) {
        const char c = code[i];
        if (c == '"' || c == '\'') {
            const size_t end = literal_end(code, i);
            all.back() += code.substr(i, end - i);
            i = end - 1;
            continue;
        }
        if (c == '(' && depth++ == 0)
            continue;
        if (c == ')' && --depth == 0)
            break;
        if (c == ',' && depth == 1)
            all.emplace_back();
        else
            all.back() += c;
    }
    return all;
}

using Macros = std::map<std::string, std::string>; // of literals

// The text of adjacent literals, each conversion replaced by what a reader sees. Empty if there are none.
std::string text_of(const std::string &argument, const Macros &macros)
{
    std::string text;
    for (size_t i = 0; i < argument.size(); i++) {
        if (argument[i] == '"') {
            const size_t end = literal_end(argument, i);
            text += argument.substr(i + 1, end - i - 2);
            i = end - 1;
        } else if (isalpha(argument[i]) || argument[i] == '_') {
            size_t end = i;
            while (end < argument.size() && (isalnum(argument[end]) || argument[end] == '_'))
                end++;
            const std::string name = argument.substr(i, end - i);
            if (name.starts_with("PRI"))
                text += name;
            else if (auto macro = macros.find(name); macro != macros.end())
                text += macro->second;
            i = end - 1;
        }
    }
    text = std::regex_replace(text, std::regex("%#?(PRI[xX]64|l*x)|%p"), "0x…");
    text = std::regex_replace(text, std::regex("%(PRI[du]64|[lz]*[ud]|04o|\\.0f)"), "N");
    text = std::regex_replace(text, std::regex("%\\.?\\*?s"), "…");
    text = std::regex_replace(text, std::regex("%c"), "…");
    text = std::regex_replace(text, std::regex("\\\\(.)"), "$1");
    text = std::regex_replace(text, std::regex("\\|"), "\\|");
    if (text.starts_with("…: "))
        text = "FILE" + text.substr(3);
    return text;
}

// The branches of `condition ? this : that`; or all of it.
std::vector<std::string> branches(const std::string &argument)
{
    std::vector<std::string> all(1);
    for (size_t i = 0; i < argument.size(); i++)
        if (argument[i] == '"' || argument[i] == '\'') {
            const size_t end = literal_end(argument, i);
            all.back() += argument.substr(i, end - i);
            i = end - 1;
        } else if (argument[i] == '?' || argument[i] == ':') {
            all.emplace_back();
        } else {
            all.back() += argument[i];
        }
    return all;
}

Macros macros_of(const fs::path &source)
{
    static const std::regex definition("#define +([A-Z_]+)((?:\\s|\\\\\n|\"(?:[^\"\\\\]|\\\\.)*\")+)\\n");
    Macros macros;
    for (const auto &entry : fs::recursive_directory_iterator(source / "src")) {
        if (entry.path().extension() != ".h" && entry.path().extension() != ".c")
            continue;
        const std::string code = without_comments(read(entry.path()));
        for (std::sregex_iterator found(code.begin(), code.end(), definition), end; found != end; ++found)
            macros[(*found)[1]] = text_of((*found)[2], {});
    }
    return macros;
}

bool is_constant(const std::string &text)
{
    static const std::regex pattern("\\s*(E[A-Z]+)\\s*");
    return std::regex_match(text, pattern);
}

// Of a function that completes the message.
bool is_frame(const std::string &text)
{
    static const std::set<std::string> frames = {"FILE: …", "FILE: offset N: …; restore the file from a backup"};
    return frames.contains(text);
}

struct Message {
    std::string text, error;
    auto operator<=>(const Message &) const = default;
};

// By the folder of src/ that they come from.
using Messages = std::map<std::string, std::set<Message>>;

Messages extract(const fs::path &source)
{
    static const std::regex call(
        "\\b((?:pm__fail|pm__fail_null|pm__fail_system|pm__fail_because|container_fail)(_at)?|panic|panic_address|bad_option|container_damaged|damaged_log)\\(");
    const Macros macros = macros_of(source);
    Messages messages;
    for (const auto &entry : fs::recursive_directory_iterator(source / "src")) {
        const fs::path &path = entry.path();
        const std::string folder = fs::relative(path, source / "src").begin()->string();
        if (path.extension() != ".c" || folder == "sim")
            continue;
        const std::string code = without_comments(read(path));
        for (std::sregex_iterator found(code.begin(), code.end(), call), end; found != end; ++found) {
            const std::string name = (*found)[1];
            const auto all = arguments(code, (size_t)found->position() + (size_t)found->length() - 1);
            const bool has_place = (*found)[2].matched || name == "container_damaged";
            const std::string place = has_place ? "FILE: offset N: " : ""; // which the function adds
            const bool of_system = name.starts_with("pm__fail_system") || name.starts_with("container_fail");
            std::string error = of_system                     ? "of the system"
                                : name.starts_with("panic")   ? "ends the process"
                                : name == "bad_option"        ? "EINVAL"
                                : name.find("damaged") < name.size() ? "EBADMSG"
                                                              : "";
            for (const std::string &argument : all) {
                if (error.empty() && is_constant(argument))
                    error = std::regex_replace(argument, std::regex("\\s"), "");
                bool is_message = false;
                for (const std::string &branch : branches(argument)) {
                    std::string text = text_of(branch, macros);
                    if (!text.empty())
                        text = place + text;
                    if (text.find(' ') == std::string::npos || text.size() < 8)
                        continue;
                    is_message = true;
                    if (!is_frame(text))
                        messages[folder].insert({text, error.empty() ? "of the system" : error});
                }
                if (is_message)
                    break;
            }
        }
    }
    return messages;
}

// A message names its own remedy behind a semicolon. Where it has none, errno says what to do.
std::string remedy(const Message &m)
{
    static const std::map<std::string, std::string> remedies = {
        {"EINVAL", "correct the call: libpm.h says what it takes"},
        {"EBADMSG", "restore the file from a backup"},
        {"ENOMEM", "free memory, and repeat the call"},
        {"of the system", "as the reason says"},
        {"ends the process", "as the message says, then start the program again"},
        {"EEXIST", "choose another name"},
        {"ENOENT", "see what else uses this name"},
        {"ENOTSUP", "use another build, or another machine"},
        {"EROFS", "open it for writing"},
        {"ENOSPC", "use fewer libraries"},
        {"EFAULT", "compile that code with pmcc, or call pm_dirty(); then commit again"}};
    const size_t own = m.text.find("; ");
    if (own != std::string::npos)
        return m.text.substr(own + 2);
    if (m.text.find("a bug of libpm") != std::string::npos)
        return "report it, with the file";
    const auto found = remedies.find(m.error);
    return found == remedies.end() ? "" : found->second;
}

std::string page(const fs::path &source)
{
    std::ostringstream out;
    out << "# All messages\n\n"
           "*For everybody who has got a message, and wants to know what it means for the data.* A test extracts this page from the "
           "source (`tests/unit/messages.cpp`), so that no message is missing.\n\n"
           "- A call that failed has changed nothing. After a message that *ends the process*, the file has the last commit.\n"
           "- FILE is the container's path. N and … stand for numbers and texts.\n"
           "- Where errno is *of the system*, the message goes on with the system's reason, and a remedy if libpm knows one.\n";
    static const std::map<std::string, std::string> titles = {
        {"allocator", "Objects"},   {"api", "Calls"},        {"base", "The process"}, {"container", "Files"},
        {"discovery", "Discovery"}, {"pointer", "Pointers"}, {"runtime", "The heap"}, {"txn", "Transactions"}};
    for (const auto &[folder, messages] : extract(source)) {
        const auto title = titles.find(folder);
        out << "\n## " << (title == titles.end() ? folder : title->second)
            << "\n\n| message | errno | what to do |\n| --- | --- | --- |\n";
        for (const Message &m : messages)
            out << "| " << m.text.substr(0, m.text.find("; ")) << " | " << m.error << " | " << remedy(m) << " |\n";
    }
    out << "\n## Remedies for reasons of the system\n\n| errno | what to do |\n| --- | --- |\n";
    const std::string code = without_comments(read(source / "src/base/error.c"));
    static const std::regex remedy_of("case (E[A-Z]+):\\s*return ([^;]*\"[^;]*;[^;]*);");
    for (std::sregex_iterator found(code.begin(), code.end(), remedy_of), end; found != end; ++found)
        out << "| " << (*found)[1] << " | " << text_of((*found)[2], {}).substr(2) << " |\n";
    return out.str();
}

} // namespace

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    const fs::path source = arguments[1];
    const std::string now = page(source);
    if (count > 2 && strcmp(arguments[2], "--print") == 0) {
        std::cout << now;
        return 0;
    }
    if (now == read(source / "docs/messages.md"))
        return 0;
    std::cerr << "docs/messages.md lacks a message, or has one that is gone: write it anew by\n  " << arguments[0] << ' '
              << arguments[1] << " --print >docs/messages.md\n";
    return 1;
}

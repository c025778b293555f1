// How the source and the pages are written:
//
//   layers   a file of src/ includes headers of its own folder and of lower ones (docs/internals/overview.md)
//   head     a file of the library, the pass or the tool opens with a comment
//   width    a line has 110 columns at most
//   prose    of the sentences in comments and pages few are long, and few lean on words that stand for others.
//            The limits are above what the tree has; a sentence that fails is printed, with its file
//
//   test_style SOURCE-DIRECTORY
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace
{

constexpr size_t COLUMNS = 110, WORDS = 25, LEANING = 4;
constexpr double LONG_SHARE = 0.05, LEANING_SHARE = 0.01;

bool failed;

void fail(const fs::path &file, const std::string &what)
{
    std::cerr << file.string() << ": " << what << "\n";
    failed = true;
}

std::string read(const fs::path &path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<fs::path> files(const fs::path &top, std::initializer_list<const char *> folders, const std::regex &names)
{
    std::vector<fs::path> all;
    for (const char *folder : folders)
        for (const auto &entry : fs::recursive_directory_iterator(top / folder))
            if (entry.is_regular_file() && std::regex_search(entry.path().filename().string(), names))
                all.push_back(entry.path());
    std::sort(all.begin(), all.end());
    return all;
}

// ---- layers ------------------------------------------------------------------------------------------------

// The rank of a folder of src/; runtime and sim see all others, and only the api sees them.
int rank(const std::string &folder)
{
    static const std::vector<std::string> layers = {"base",    "backend", "container", "words",     "pages",   "address",
                                                    "txn",     "track",   "allocator", "pointer",   "discovery", "api"};
    return (int)(std::find(layers.begin(), layers.end(), folder) - layers.begin());
}

void check_layers(const fs::path &top)
{
    static const std::regex include("^#include \"([a-z]+)/");
    for (const fs::path &file : files(top, {"src"}, std::regex("\\.[ch]$"))) {
        const std::string own = fs::relative(file, top / "src").begin()->string();
        std::istringstream lines(read(file));
        for (std::string line; std::getline(lines, line);)
            if (std::smatch found; std::regex_search(line, found, include) && rank(found[1]) > rank(own))
                fail(file, "includes a header of a layer above: " + line);
    }
}

// ---- head --------------------------------------------------------------------------------------------------

void check_head(const fs::path &file, const std::string &text)
{
    if (!text.starts_with("/*") && !text.starts_with("//"))
        fail(file, "does not open with a comment that says what the file is");
}

// ---- width -------------------------------------------------------------------------------------------------

// UTF-8 has more bytes than columns.
size_t columns(const std::string &line)
{
    return (size_t)std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

void check_width(const fs::path &file)
{
    std::istringstream lines(read(file));
    size_t number = 1;
    for (std::string line; std::getline(lines, line); number++)
        if (columns(line) > COLUMNS)
            fail(file, "line " + std::to_string(number) + " has more than " + std::to_string(COLUMNS) + " columns");
}

// ---- prose -------------------------------------------------------------------------------------------------

// Paragraphs and items of Markdown, without code, tables and headings.
std::vector<std::string> blocks(const std::string &text)
{
    static const std::regex item("^\\s*([-*]|[0-9]+\\.) ");
    std::vector<std::string> all(1);
    std::istringstream lines(text);
    bool is_code = false;
    for (std::string line; std::getline(lines, line);) {
        is_code ^= line.starts_with("```");
        const bool is_prose = !is_code && line.find_first_not_of(" \t") != std::string::npos &&
                              !line.starts_with("    ") && !line.starts_with("```") && !std::ispunct(line[0]);
        const bool is_emphasis = !is_code && (line.starts_with("*") || line.starts_with("`") || line.starts_with("[") ||
                                              line.starts_with("- ") || line.starts_with("("));
        if (!(is_prose || is_emphasis) || std::regex_search(line, item))
            all.emplace_back();
        if (is_prose || is_emphasis)
            all.back() += std::regex_replace(line, item, "") + " ";
    }
    return all;
}

// The text of comments between the usual slashes and stars.
std::string comments(const std::string &code)
{
    static const std::regex star("(^|\n)[ \t]*\\* ?");
    std::string text;
    for (size_t from = 0; (from = code.find("/*", from)) != std::string::npos;) {
        const size_t end = std::min(code.find("*/", from), code.size());
        text += std::regex_replace(code.substr(from + 2, end - from - 2), star, "$1") + "\n\n";
        from = end;
    }
    return text;
}

struct Prose {
    explicit Prose(const char *of) : kind(of) {}
    std::string kind;
    size_t sentences = 0;
    std::vector<std::string> long_ones, leaning;
};

void look_at_sentence(Prose &prose, const fs::path &file, const std::string &sentence)
{
    static const std::regex word("[A-Za-z0-9_'%/.-]*[A-Za-z0-9]");
    static const std::regex pronoun("\\b(that|those|what|which|whose|such|so|it|its|ones|some|others)\\b", std::regex::icase);
    const auto count = [&](const std::regex &what) {
        return (size_t)std::distance(std::sregex_iterator(sentence.begin(), sentence.end(), what), std::sregex_iterator());
    };
    const size_t words = count(word);
    if (words < 3)
        return;
    prose.sentences++;
    if (words > WORDS)
        prose.long_ones.push_back(file.string() + ": " + sentence);
    if (count(pronoun) >= LEANING)
        prose.leaning.push_back(file.string() + ": " + sentence);
}

void look_at(Prose &prose, const fs::path &file, const std::string &markdown)
{
    static const std::regex code("`[^`]*`"), link("\\[([^\\]]*)\\]\\([^)]*\\)"), end("([.!?][\"')*_]*|:(?= +[A-Z])) +");
    for (std::string block : blocks(markdown)) {
        block = std::regex_replace(std::regex_replace(block, code, "x"), link, "$1");
        for (std::sregex_token_iterator sentence(block.begin(), block.end(), end, -1), last; sentence != last; ++sentence)
            look_at_sentence(prose, file, *sentence);
    }
}

void judge(const Prose &prose, const char *what, const std::vector<std::string> &found, double most)
{
    if ((double)found.size() <= most * (double)prose.sentences)
        return;
    failed = true;
    std::cerr << prose.kind << ": " << found.size() << " of " << prose.sentences << " sentences " << what << ", more than "
              << 100 * most << " %:\n";
    for (const std::string &sentence : found)
        std::cerr << "  " << sentence << "\n";
}

} // namespace

int main(int count, char **arguments)
{
    if (count < 2)
        return 2;
    const fs::path top = arguments[1];
    check_layers(top);
    Prose code("comments"), pages("pages");
    for (const fs::path &file :
         files(top, {"src", "include", "llvm-pass", "tools", "examples"}, std::regex("\\.(c|h|cc|cpp|hpp|def)$"))) {
        if (!file.string().starts_with((top / "examples").string())) // there a README says what a file is
            check_head(file, read(file));
        check_width(file);
        look_at(code, file, comments(read(file)));
    }
    look_at(pages, top / "README.md", read(top / "README.md"));
    for (const fs::path &file : files(top, {"docs"}, std::regex("\\.md$")))
        if (file.parent_path().filename() != "results")
            look_at(pages, file, read(file));
    for (const Prose *prose : {&code, &pages}) {
        judge(*prose, "have more than 25 words", prose->long_ones, LONG_SHARE);
        judge(*prose, "lean on four words or more that stand for others", prose->leaning, LEANING_SHARE);
    }
    return failed;
}

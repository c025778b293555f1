/*
 * Writes a C file of subjects made up at random: `random_program SEED`. Their stores land where the
 * seed says, all within reach of m; commits stand among them.
 */
#include "random.hpp"

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace
{

class Writer : Random
{
  public:
    explicit Writer(uint64_t seed) : Random(seed) {}

    void subject(int number)
    {
        std::cout
            << "SUBJECT_MORE(random_" << number << ")\n{\n"
            << "    char *p = m + (n & 7) * 24, local[512] = {0};\n    long x = n;\n    (void)p;\n";
        block(1, 5 + below(8));
        std::cout << "    m[8000] = local[x & 255];\n}\n\n";
    }

  private:
    std::ostream &line(int depth) { return std::cout << std::string(4 * depth, ' '); }

    /* A place that all enclosing loops may move: at most 3 deep, below 100 * 24 bytes each. */
    std::string place()
    {
        std::string text = any({"p", "p", "m", "local"});
        if (text == "local")
            return "(local + " + std::to_string(below(200)) + ")";
        text += " + " + std::to_string(below(3) ? below(16) * 8 : below(600));
        for (const std::string &i : loops_)
            if (below(2))
                text += " + " + i + " * " + any({"1", "4", "8", "8", "24"});
        return "(" + text + ")";
    }

    void block(int depth, uint64_t count)
    {
        for (uint64_t i = 0; i < count; i++)
            statement(depth);
    }

    void loop(int depth)
    {
        std::string i = "i" + std::to_string(depth);
        const char *bound =
            loops_.empty() ? any({"n", "n", "37", "n / 3", "(x & 31)"}) : any({"5", "(x & 7)"});
        if (below(3))
            line(depth) << "for (long " << i << " = 0, e = " << bound << "; " << i << " < e; " << i
                        << "++) {\n";
        else
            line(depth) << "for (int " << i << " = (int)" << bound << " - 1; " << i << " >= 0; "
                        << i << "--) {\n";
        loops_.push_back(i);
        block(depth + 1, 1 + below(3));
        loops_.pop_back();
        line(depth) << "}\n";
    }

    void statement(int depth)
    {
        const char *type = any({"char", "u16", "u32", "u64", "u64", "u32", "u16", "words"});
        switch (depth < 4 ? below(12) : below(6)) {
        case 0:
            line(depth) << "commit();\n";
            break;
        case 1:
            line(depth) << "memset(" << place() << ", (int)x, " << below(90) + 1 << ");\n";
            break;
        case 2:
            line(depth) << "memmove(" << place() << ", " << place() << ", "
                        << any({"5", "16", "40", "x & 31", "n"}) << ");\n";
            break;
        case 3:
            line(depth) << "x = x * 5 + *(u32 *)" << place() << ";\n";
            break;
        case 9:
        case 10:
        case 11:
            if (below(3) == 0) {
                line(depth) << "if (x & " << (1 << below(5)) << ") {\n";
                block(depth + 1, 1 + below(3));
                line(depth) << "}\n";
                break;
            }
            loop(depth);
            break;
        default:
            line(depth) << "*(" << type << " *)" << place()
                        << (type == std::string("words") ? " = (words){{(u64)x, 2, 3, 4, 5}}"
                                                         : any({" = x", " += x + 1", " ^= 1"}))
                        << ";\n";
        }
    }

    std::vector<std::string> loops_; // the counters of those we are in
};

} // namespace

int main(int, char **argv)
{
    uint64_t seed = strtoull(argv[1], nullptr, 10);
    Writer writer(seed);
    std::cout << "/* seed " << seed << " */\n"
              << "#include \"subject.h\"\n#include <string.h>\n"
              << "typedef unsigned short u16 __attribute__((aligned(1), may_alias));\n"
              << "typedef unsigned u32 __attribute__((aligned(1), may_alias));\n"
              << "typedef unsigned long u64 __attribute__((aligned(1), may_alias));\n"
              << "typedef struct { u64 w[5]; } __attribute__((aligned(1), may_alias)) words;\n\n";
    for (int number = 0; number < 40; number++)
        writer.subject(static_cast<int>(seed) * 1000 + number);
}

#include "common/lines.hpp"

#include "common/text.h"

#include <cstdio>
#include <iostream>
#include <stdexcept>

namespace text
{

bool Lines::next(std::vector<std::string> &fields)
{
    std::string line;
    if (!std::getline(std::cin, line)) {
        if (ferror(stdin))
            throw std::runtime_error("cannot read standard input");
        return false;
    }
    number_++;
    fields.clear();
    for (size_t begin = 0, end = 0; end != line.npos; begin = end + 1) {
        end = line.find('\t', begin);
        std::string field = line.substr(begin, end == line.npos ? end : end - begin);
        size_t size = field.size();
        if (!text_decode(field.data(), &size, false))
            refuse("a backslash stands before t, n, another one, or x and two digits");
        field.resize(size);
        fields.push_back(std::move(field));
    }
    return true;
}

void Lines::refuse(const std::string &why) const
{
    throw std::runtime_error("standard input, line " + std::to_string(number_) + ": " + why);
}

void print_line(std::initializer_list<std::string_view> fields)
{
    bool first = true;
    for (std::string_view field : fields) {
        if (!first)
            putchar('\t');
        first = false;
        text_print(stdout, field.data(), field.size(), false);
    }
    putchar('\n');
}

} // namespace text

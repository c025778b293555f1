// The shells in C++ read and print pairs as lines of fields, with tabs between. A field can hold any bytes
// (common/text.h).
#ifndef EXAMPLES_COMMON_LINES_HPP
#define EXAMPLES_COMMON_LINES_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace text
{

/// The lines of standard input.
class Lines
{
  public:
    /// Get the fields of the next line. False if there is none. On failure throws std::runtime_error, which
    /// names the line.
    bool next(std::vector<std::string> &fields);
    /// Throws std::runtime_error: the last line is wrong.
    [[noreturn]] void refuse(const std::string &why) const;

  private:
    size_t number_ = 0;
};

void print_line(std::initializer_list<std::string_view> fields);

} // namespace text

#endif

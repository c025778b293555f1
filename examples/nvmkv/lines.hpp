// Lines of fields with tabs between, in which any byte can be written (common/text.h): how the shell
// reads and prints pairs.
#ifndef EXAMPLES_NVMKV_LINES_HPP
#define EXAMPLES_NVMKV_LINES_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace nvmkv
{

/// Those of standard input.
class Lines
{
  public:
    /// The fields of the next line; false if there is none. What fails is a std::runtime_error that
    /// names the line.
    bool next(std::vector<std::string> &fields);
    /// Something is wrong with the last one.
    [[noreturn]] void refuse(const std::string &why) const;

  private:
    size_t number_ = 0;
};

void print_line(std::initializer_list<std::string_view> fields);

} // namespace nvmkv

#endif

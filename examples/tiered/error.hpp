// A failure: code() is its errno, what() says the file or field, what is wrong, and the remedy.
#ifndef EXAMPLES_TIERED_ERROR_HPP
#define EXAMPLES_TIERED_ERROR_HPP

#include <stdexcept>
#include <string>
#include <system_error>

namespace tiered
{

class error : public std::system_error
{
  public:
    error(int number, const std::string &message)
        : std::system_error(number, std::generic_category()), message_(message)
    {
    }
    const char *what() const noexcept override { return message_.what(); }

  private:
    std::runtime_error message_; // whose copies cannot fail
};

/// Call; failures of libpm and of the standard library become ours.
template <class Call> auto as_error(Call call)
{
    try {
        return call();
    } catch (const std::system_error &failure) {
        throw error(failure.code().value(), failure.what());
    }
}

} // namespace tiered

#endif

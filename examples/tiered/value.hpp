// The result of a slot's getter. It shows a value in the container where the value lies, and is then valid
// until the next commit or rollback, or until the field is set. It owns a copy of any other value.
#ifndef EXAMPLES_TIERED_VALUE_HPP
#define EXAMPLES_TIERED_VALUE_HPP

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace tiered
{

/// Elements of a std::vector or std::array. A std::span that may own what it shows.
template <class T> class view : public std::span<const T>
{
  public:
    view() = default;
    explicit view(std::span<const T> elements) : std::span<const T>(elements) {}
    view(std::unique_ptr<T[]> elements, size_t count)
        : std::span<const T>(elements.get(), count), own_(std::move(elements))
    {
    }
    bool is_copy() const { return own_ != nullptr; }

  private:
    std::unique_ptr<T[]> own_;
};

/// A std::string.
class text : public std::string_view
{
  public:
    text() = default;
    explicit text(view<char> characters)
        : std::string_view(characters.data(), characters.size()), own_(std::move(characters))
    {
    }
    bool is_copy() const { return own_.is_copy(); }

  private:
    view<char> own_;
};

} // namespace tiered

#endif

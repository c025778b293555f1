// Durable collections: the standard library's, with an allocator that allocates in the store. So their
// iterators are those that every algorithm knows. A collection lies in the store, as a root (store::root) or
// within another collection, and its changes belong to the store's transaction.
//
// Their form in the file is libstdc++'s. A store that was made with another library is refused.
#ifndef EXAMPLES_TIERED_COLLECTIONS_HPP
#define EXAMPLES_TIERED_COLLECTIONS_HPP

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

namespace tiered
{

struct store_root;

/// The store in which an allocator without a store allocates: the one of the innermost `use` of this thread,
/// else the one last opened.
store_root *current_root();

void *allocate_in(store_root *root, size_t bytes); // throws tiered::error: ENOSPC
void release(void *memory) noexcept;

template <class T> class allocator
{
  public:
    using value_type = T;

    allocator() : root_(current_root()) {}
    explicit allocator(store_root *root) : root_(root) {}
    template <class U> allocator(const allocator<U> &other) : root_(other.root()) {}

    T *allocate(size_t count) { return static_cast<T *>(allocate_in(root_, count * sizeof(T))); }
    void deallocate(T *memory, size_t) noexcept { release(memory); }

    /// Strings and collections within a collection are of its store, too.
    template <class U, class... Arguments> void construct(U *at, Arguments &&...arguments)
    {
        std::uninitialized_construct_using_allocator(at, *this,
                                                     std::forward<Arguments>(arguments)...);
    }

    store_root *root() const { return root_; }
    template <class U> bool operator==(const allocator<U> &other) const
    {
        return root_ == other.root();
    }

  private:
    store_root *root_; // in the container, which lies at the same address in every run
};

using string = std::basic_string<char, std::char_traits<char>, allocator<char>>;

/// So that strings of any kind can be looked up without a copy.
struct text_hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

template <class K> struct hash : std::hash<K> {
};
template <> struct hash<string> : text_hash {
};

template <class T> using vector = std::vector<T, allocator<T>>;
template <class T> using list = std::list<T, allocator<T>>;
template <class K, class T, class Less = std::less<>>
using map = std::map<K, T, Less, allocator<std::pair<const K, T>>>;
template <class K, class T, class Hash = hash<K>, class Equal = std::equal_to<>>
using hash_map = std::unordered_map<K, T, Hash, Equal, allocator<std::pair<const K, T>>>;

/// False for what has no meaning in the next run: pointers, and collections that allocate elsewhere.
template <class T> constexpr bool can_last = !std::is_pointer_v<T>;
template <class A, class B>
constexpr bool can_last<std::pair<A, B>> = can_last<std::remove_const_t<A>> && can_last<B>;
template <class T>
    requires requires { typename T::allocator_type; }
constexpr bool can_last<T> =
    can_last<typename T::value_type> &&
    std::is_same_v<typename T::allocator_type, allocator<typename T::allocator_type::value_type>>;

} // namespace tiered

#endif

// C++: what its templates do is compiled here and so marked.
#include "subject.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

namespace
{

struct Base {
    virtual ~Base() = default;
    virtual long value() const { return 1; }
    long a = 5;
};
struct Derived : Base {
    explicit Derived(long n) : array{n, n + 1} {}
    long value() const override { return array[0]; }
    std::array<long, 20> array;
};

/** Hands out memory from where it is told, as one that calls pm_malloc() would. */
template <class T> struct Allocator {
    using value_type = T;
    char **next;
    explicit Allocator(char **from) : next(from) {}
    template <class U> Allocator(const Allocator<U> &other) : next(other.next) {}
    T *allocate(size_t count)
    {
        char *result = *next;
        *next += (count * sizeof(T) + 15) & ~size_t{15};
        return reinterpret_cast<T *>(result);
    }
    void deallocate(T *, size_t) {}
    bool operator==(const Allocator &) const = default;
};

[[gnu::noinline]] void throw_at(long i, long n)
{
    if (i == n)
        throw std::runtime_error("enough");
}

} // namespace

SUBJECT(constructs)
{
    auto *object = new (m + 8) Derived(n);
    commit();
    object->array[19] = object->value() + 1000;
}

SUBJECT(grows_vector)
{
    char *next = m;
    std::vector<long, Allocator<long>> vector{Allocator<long>(&next)};
    for (long i = 0; i < n; i++)
        vector.push_back(i * i);
    std::sort(vector.begin(), vector.end(), std::greater<>());
}

SUBJECT(runs_algorithms)
{
    std::span<int> numbers(reinterpret_cast<int *>(m), n);
    std::fill(numbers.begin(), numbers.end(), 77);
    commit();
    std::generate(numbers.begin(), numbers.end(), [i = 1000]() mutable { return i++; });
    commit();
    std::reverse(numbers.begin(), numbers.begin() + (n & ~1));
}

SUBJECT(throws)
{
    auto *numbers = reinterpret_cast<long *>(m);
    try {
        for (long i = 0; i < n; i++) {
            throw_at(i, 20);
            numbers[i] = i;
        }
    } catch (const std::exception &) {
        numbers[200] = 1;
    }
}

SUBJECT(counts)
{
    auto *counter = new (m) std::atomic<long>(n);
    commit();
    *counter += 5;
    commit();
    counter->fetch_or(1L << 40);
}

struct Big {
    long words[30];
};
[[gnu::noinline]] static Big make_big(long n)
{
    Big big;
    for (long &word : big.words)
        word = n++;
    return big;
}
SUBJECT(returns_in_place)
{
    new (m + 32) Big(make_big(n));
}

SUBJECT(swaps)
{
    auto *a = reinterpret_cast<Big *>(m), *b = reinterpret_cast<Big *>(m + 2048);
    *a = make_big(n);
    *b = make_big(n + 500);
    commit();
    std::swap(*a, *b);
}

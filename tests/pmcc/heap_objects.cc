// Every operator of C++ that allocates, called by expressions and by name, and what the library makes
// of them.
#include "mock_heap.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

namespace
{

struct alignas(64) Aligned {
    char bytes[64];
};

template <class T> T *checked(T *p)
{
    assert(is_mocked(p));
    return static_cast<T *>(keep(p));
}

constexpr std::align_val_t alignment{128};

} // namespace

USE(uses_new, "malloc free malloc free")
{
    delete checked(new int(5));
    delete[] checked(new int[10]);
}
USE(uses_nothrow_new, "malloc free malloc free")
{
    delete checked(new (std::nothrow) int(5));
    delete[] checked(new (std::nothrow) int[10]);
}
USE(uses_aligned_new, "memalign free memalign free memalign free memalign free")
{
    delete checked(new Aligned);
    delete[] checked(new Aligned[2]);
    delete checked(new (std::nothrow) Aligned);
    delete[] checked(new (std::nothrow) Aligned[2]);
}
USE(uses_operators, "malloc free malloc free malloc free malloc free")
{
    operator delete(checked(operator new(10)), size_t{10});
    operator delete[](checked(operator new[](10)), size_t{10});
    operator delete(checked(operator new(10)), std::nothrow);
    operator delete[](checked(operator new[](10)), std::nothrow);
}
USE(uses_aligned_operators, "memalign free memalign free memalign free memalign free")
{
    operator delete(checked(operator new(10, alignment)), 10, alignment);
    operator delete[](checked(operator new[](10, alignment)), 10, alignment);
    operator delete(checked(operator new(10, alignment)), alignment, std::nothrow);
    operator delete[](checked(operator new[](10, alignment)), alignment, std::nothrow);
}
USE(uses_pointers_to_operators, "malloc free")
{
    void *(*allocate)(size_t) = operator new;
    void (*release)(void *) = operator delete;
    release(checked(allocate(0)));
}

USE(uses_vector, "malloc malloc free free")
{
    std::vector<int> numbers;
    numbers.push_back(1);
    checked(numbers.data());
    numbers.push_back(2);
    checked(numbers.data());
}
USE(uses_shared, "malloc free")
{
    auto shared = std::make_shared<int>(5);
    keep(shared.get());
}
/* Whose members are compiled with the program, when it is told so. */
USE(uses_string, "malloc malloc free free")
{
    std::string text(100, 'a');
    checked(text.data());
    text.append(text);
    checked(text.data());
}

namespace
{
int handled;
}

USE(throws_bad_alloc, "malloc")
{
    try {
        keep(operator new(size_t{1} << 40));
        assert(false);
    } catch (const std::bad_alloc &) {
    }
}
USE(calls_new_handler, "malloc malloc malloc")
{
    std::set_new_handler([] {
        if (++handled == 2)
            std::set_new_handler(nullptr);
    });
    assert(keep(new (std::nothrow) char[size_t{1} << 40]) == nullptr);
    assert(handled == 2);
    handled = 0;
}

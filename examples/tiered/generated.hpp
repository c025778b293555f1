// What the getters and setters of generated classes call.
#ifndef EXAMPLES_TIERED_GENERATED_HPP
#define EXAMPLES_TIERED_GENERATED_HPP

#include "tiered/store.hpp"
#include "tiered/value.hpp"

#include <cstring>

namespace tiered
{

template <class T> T get_scalar(const slot &from, const schema &type, unsigned field)
{
    T value{};
    if (from.tier == tier_pm) [[likely]]
        memcpy(&value, from.value(), sizeof value);
    else if (from.tier != tier_none &&
             !store::read(from, std::as_writable_bytes(std::span(&value, 1)), type, field))
        value = {};
    return value;
}

template <class T> void set_scalar(slot &to, T value, const schema &type, unsigned field)
{
    store::set(to, std::as_bytes(std::span(&value, 1)), type, field);
}

/// `count_if_empty`: elements of a field that was never set.
template <class T>
view<T> get_elements(const slot &from, const schema &type, unsigned field,
                     size_t count_if_empty = 0)
{
    const size_t count = from.length / sizeof(T);
    if (from.tier == tier_pm) [[likely]] {
        return view<T>({static_cast<const T *>(from.value()), count});
    }
    if (from.tier != tier_none) {
        auto copy = std::make_unique_for_overwrite<T[]>(count);
        if (store::read(from, std::as_writable_bytes(std::span(copy.get(), count)), type, field))
            return view<T>(std::move(copy), count);
    }
    return view<T>(std::make_unique<T[]>(count_if_empty), count_if_empty);
}

template <class T>
void set_elements(slot &to, std::span<const T> elements, const schema &type, unsigned field)
{
    store::set(to, std::as_bytes(elements), type, field);
}

/// EINVAL: the object is of another store than its holder.
void demand_store(const void *holder, const void *object);

template <class Record> Record *of_store(const void *holder, Record *object)
{
    demand_store(holder, object);
    return object;
}

} // namespace tiered

#endif

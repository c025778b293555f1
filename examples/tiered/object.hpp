// The base of generated classes. An object is a pointer to its record: copying it copies the reference. It
// keeps its meaning in every run. Names begin with durable_, so that fields may have all others.
#ifndef EXAMPLES_TIERED_OBJECT_HPP
#define EXAMPLES_TIERED_OBJECT_HPP

#include <cstdint>
#include <functional>

namespace tiered
{

template <class Record> class object
{
  public:
    object() = default;
    explicit object(Record *record) : record_(record) {}

    explicit operator bool() const { return record_; }
    bool operator==(const object &) const = default;
    auto operator<=>(const object &) const = default; // by address
    /// The same in every run, as long as the object is not destroyed. See store::find().
    uint64_t durable_id() const { return reinterpret_cast<uintptr_t>(record_); }
    Record *durable_record() const { return record_; }

  protected:
    Record *record_ = nullptr;
};

} // namespace tiered

/// So that objects can be keys of hash tables.
template <class T>
    requires requires { typename T::durable_record_type; }
struct std::hash<T> {
    size_t operator()(const T &object) const { return object.durable_id(); }
};

#endif

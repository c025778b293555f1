// A batch has the form of the log from the beginning.
#include "lsm/batch.hpp"

#include <cerrno>

namespace lsm
{
namespace
{

constexpr size_t count_at = 8, entries_at = 12;
constexpr uint32_t synced_bit = UINT32_C(1) << 31;

void demand_length(const char *what, size_t length, size_t most)
{
    if (length > most)
        throw Error(EINVAL, std::string(what) + " of " + std::to_string(length) +
                                " bytes; at most " + std::to_string(most) + " are possible");
}

void demand_lengths(std::string_view key, std::string_view value)
{
    demand_length("a key", key.size(), key_max);
    demand_length("a value", value.size(), value_max);
}

void add(std::string &text, uint32_t entries)
{
    auto count = fixed_at<uint32_t>(text.data() + count_at) + entries;
    memcpy(text.data() + count_at, &count, sizeof count);
}

} // namespace

void Batch::put(std::string_view key, std::string_view value)
{
    demand_lengths(key, value);
    text_.push_back(static_cast<char>(Kind::value));
    put_string(text_, key);
    put_string(text_, value);
    add(text_, 1);
}

void Batch::remove(std::string_view key)
{
    demand_lengths(key, {});
    text_.push_back(static_cast<char>(Kind::deletion));
    put_string(text_, key);
    add(text_, 1);
}

void Batch::clear()
{
    text_.assign(entries_at, '\0');
}

uint32_t Batch::count() const
{
    return fixed_at<uint32_t>(text_.data() + count_at);
}

Entries::Entries(Kind kind, std::string_view key, std::string_view value)
    : kind_(kind), key_(key), value_(value)
{
    demand_lengths(key, value);
}

void Entries::append_to(Batch &batch) const
{
    if (batch_)
        BatchAccess::append(batch, *batch_);
    else if (kind_ == Kind::value)
        batch.put(key_, value_);
    else
        batch.remove(key_);
}

Sequence Entries::each(Sequence first, const EachEntry &each) const
{
    if (batch_)
        return read_batch(BatchAccess::text(*batch_), first, each);
    each(first, kind_, key_, value_);
    return first + 1;
}

Sequence BatchAccess::sequence(std::string_view text)
{
    return Reader{text}.fixed<Sequence>();
}

bool BatchAccess::is_synced(std::string_view text)
{
    return text.size() >= entries_at && fixed_at<uint32_t>(text.data() + count_at) & synced_bit;
}

void BatchAccess::set_sequence(Batch &batch, Sequence sequence, bool is_synced)
{
    const uint32_t count = batch.count() | (is_synced ? synced_bit : 0);
    memcpy(batch.text_.data(), &sequence, sizeof sequence);
    memcpy(batch.text_.data() + count_at, &count, sizeof count);
}

void BatchAccess::append(Batch &to, const Batch &from)
{
    to.text_.append(from.text_, entries_at);
    add(to.text_, from.count());
}

Sequence read_batch(std::string_view text, Sequence first, const EachEntry &each)
{
    Reader in{text};
    in.fixed<Sequence>();
    Sequence sequence = first;
    auto count = in.fixed<uint32_t>() & ~synced_bit;
    for (; in.ok && count > 0; count--, sequence++) {
        auto kind = in.fixed<uint8_t>();
        std::string_view key = in.string(), value = kind ? in.string() : std::string_view();
        if (in.ok && kind <= 1)
            each(sequence, static_cast<Kind>(kind), key, value);
        in.ok &= kind <= 1;
    }
    return in.ok && in.rest.empty() ? sequence : 0;
}

} // namespace lsm

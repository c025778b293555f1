// Reading takes the whole file into memory: a log is about as large as the memtable that it stands for.
#include "lsm/log.hpp"

#include "lsm/bytes.hpp"
#include "lsm/lsm.hpp"

#include <cerrno>
#include <xxhash.h>

namespace lsm
{
namespace
{

constexpr size_t checksum_bytes = 8, head_bytes = checksum_bytes + 4 + 8;

uint64_t checksum(std::string_view bytes)
{
    return XXH3_64bits(bytes.data(), bytes.size());
}

// The bytes of the record at `offset`, or no value if it does not hold.
std::optional<std::string_view> record_at(std::string_view text, uint64_t offset)
{
    Reader head{text.substr(offset)};
    auto sum = head.fixed<uint64_t>();
    std::string_view covered = head.rest;
    auto length = head.fixed<uint32_t>();
    auto place = head.fixed<uint64_t>();
    std::string_view bytes = head.bytes(length);
    if (!head.ok || place != offset ||
        checksum(covered.substr(0, head_bytes - checksum_bytes + length)) != sum)
        return {};
    return bytes;
}

bool some_record_behind(std::string_view text, uint64_t offset)
{
    while (++offset + head_bytes <= text.size())
        if (fixed_at<uint64_t>(text.data() + offset + head_bytes - 8) == offset &&
            record_at(text, offset))
            return true;
    return false;
}

} // namespace

void Log::append(std::string_view record)
{
    if (record.size() > UINT32_MAX)
        throw Error(EINVAL, file_.path() + ": a record of more than 4 GiB; write smaller batches");
    std::string head;
    put_fixed(head, static_cast<uint32_t>(record.size()));
    put_fixed(head, file_.size());
    std::string whole;
    whole.reserve(head_bytes + record.size());
    whole.append(checksum_bytes, '\0').append(head).append(record);
    uint64_t sum = checksum(std::string_view(whole).substr(checksum_bytes));
    memcpy(whole.data(), &sum, sizeof sum);
    is_synced_ = false;
    file_.append(whole);
}

void Log::sync()
{
    std::lock_guard guard(syncing_);
    if (failure_)
        std::rethrow_exception(failure_);
    try {
        if (!is_synced_)
            file_.sync();
        is_synced_ = true;
    } catch (...) {
        failure_ = std::current_exception();
        throw;
    }
}

bool read_log(const std::string &path, const std::function<void(std::string_view)> &each)
{
    const std::string text = read_whole(path);
    uint64_t offset = 0;
    while (offset < text.size()) {
        auto record = record_at(text, offset);
        if (!record && some_record_behind(text, offset))
            damaged(path, offset, "a record of the log is damaged");
        if (!record)
            return false;
        each(*record);
        offset += head_bytes + record->size();
    }
    return true;
}

} // namespace lsm

#include "hostile/log_file.hpp"

extern "C" {
#include "base/checksum.h"
}

#include <algorithm>
#include <stdexcept>

namespace hostile
{

LogFile::LogFile(Bytes file) : bytes(std::move(file))
{
    auto header = at<format_header>(bytes, FORMAT_HEADER_A);
    if (header.version != FORMAT_VERSION_LOG || header.segment_size == 0)
        throw std::runtime_error("not a log container");
    chunk_size_ = log_chunk_size(header.segment_size);
    seed_ = header.id[0] ^ header.id[1];
}

uint64_t LogFile::max_lines() const
{
    return at<format_header>(bytes, FORMAT_HEADER_A).max_size / PM_LINE;
}

uint64_t LogFile::sum_of(uint64_t offset) const
{
    auto head = at<log_part>(bytes, offset);
    uint64_t size = log_part_summed(&head) * PM_LINE;
    if (size > LOG_PART_LINES * PM_LINE || size > bytes.size() - offset)
        return ~head.checksum; // no part is that long
    Bytes part = bytes.substr(offset, size);
    put(part, offsetof(log_part, checksum), uint64_t{0});
    return checksum_mix(checksum(part.data(), part.size(), 0), seed_, offset / PM_LINE);
}

std::vector<LogPart> LogFile::parts() const
{
    std::vector<LogPart> found;
    for (uint64_t chunk = 1; chunk < chunks(); chunk++) {
        const uint64_t word = chunk_word(chunk), end = (chunk + 1) * chunk_size_;
        uint64_t epoch = 0, number = 0;
        for (uint64_t offset = chunk * chunk_size_ + PM_LINE;
             word != 0 && offset + 2 * PM_LINE <= end;) {
            LogPart part = {offset, at<log_part>(bytes, offset), {}};
            const bool certain = offset / PM_LINE % (chunk_size_ / PM_LINE) < log_chunk_end(word);
            if (log_part_lines(&part.head, offset / PM_LINE, (end - offset) / PM_LINE) == 0 ||
                part.head.checksum != sum_of(offset) || part.head.epoch < epoch ||
                (part.head.epoch == epoch && log_part_number(&part.head) <= number) ||
                (!certain && part.head.generation != log_chunk_generation(word)))
                break;
            epoch = part.head.epoch;
            number = log_part_number(&part.head);
            for (uint64_t i = 0; i < part.head.runs; i++)
                part.runs.push_back(
                    at<uint64_t>(bytes, offset + offsetof(log_part, run) + i * sizeof(uint64_t)));
            found.push_back(part);
            offset = part.end();
        }
    }
    std::sort(found.begin(), found.end(), [](const LogPart &a, const LogPart &b) {
        return a.head.epoch != b.head.epoch ? a.head.epoch < b.head.epoch
                                            : log_part_number(&a.head) < log_part_number(&b.head);
    });
    return found;
}

uint64_t LogFile::newest_epoch() const
{
    return parts().back().head.epoch;
}

std::vector<LogPart> LogFile::record(uint64_t epoch) const
{
    std::vector<LogPart> all = parts();
    std::erase_if(all, [&](const LogPart &part) { return part.head.epoch != epoch; });
    return all;
}

std::map<uint64_t, uint64_t> LogFile::places() const
{
    std::map<uint64_t, uint64_t> places;
    uint32_t least = 0; // older generations do not count (L14)
    for (const LogPart &part : parts())
        if (part.head.number & LOG_ANEW)
            least = std::max(least, part.head.generation);
    for (const LogPart &part : parts()) {
        if (part.head.generation < least)
            continue;
        uint64_t place = part.contents() / PM_LINE;
        for (uint64_t run : part.runs)
            for (uint64_t i = 0; i < run_count(run) && place * PM_LINE < part.end(); i++)
                places[run_line(run) + i] = place++;
    }
    return places;
}

uint64_t LogFile::piece_of(uint64_t line) const
{
    std::map<uint64_t, uint64_t> all = places();
    return all.count(line) ? all[line] * PM_LINE : 0;
}

Bytes LogFile::contents(uint64_t line, uint64_t count) const
{
    const std::map<uint64_t, uint64_t> all = places();
    Bytes contents(count * PM_LINE, 0);
    for (uint64_t i = 0; i < count; i++)
        if (auto place = all.find(line + i); place != all.end())
            contents.replace(i * PM_LINE, PM_LINE, bytes, place->second * PM_LINE, PM_LINE);
    return contents;
}

uint64_t LogFile::map_sum() const
{
    uint64_t sum = 0;
    for (auto [line, place] : places())
        sum += log_map_term(seed_, line, (uint32_t)place);
    return sum;
}

void LogFile::seal_part(uint64_t offset)
{
    const LogPart part = {offset, at<log_part>(bytes, offset), {}};
    if (log_part_has_pages(&part.head)) {
        const uint64_t sum =
            checksum(bytes.data() + part.contents(), part.end() - part.contents(), 0);
        put(bytes, offset + offsetof(log_part, run) + sizeof sum, sum);
    }
    put(bytes, offset + offsetof(log_part, checksum), sum_of(offset));
}

void LogFile::seal_newest()
{
    const uint64_t sum = map_sum();
    for (const LogPart &part : newest()) {
        put(bytes, part.offset + offsetof(log_part, map), sum);
        seal_part(part.offset);
    }
}

uint64_t LogFile::append(const std::vector<uint64_t> &runs, char fill)
{
    const LogPart last = newest().back();
    const uint64_t offset = last.end();
    log_part head = last.head;
    head.fenced = head.epoch++;
    head.number = LOG_LAST;
    head.run[0] = head.run[1] = 0;
    head.runs = (uint16_t)runs.size();
    head.lines = 0;
    for (uint64_t run : runs)
        head.lines = (uint16_t)(head.lines + run_count(run));
    const uint64_t table = log_part_head(head.runs) * PM_LINE;
    bytes.replace(offset, table, table, 0);
    put(bytes, offset, head);
    for (size_t i = 0; i < runs.size(); i++)
        put(bytes, offset + offsetof(log_part, run) + i * sizeof(uint64_t), runs[i]);
    bytes.replace(offset + table, head.lines * PM_LINE, head.lines * PM_LINE, fill);
    seal_part(offset);
    seal_newest();
    return offset;
}

void LogFile::forge_word(uint64_t offset, uint64_t word)
{
    const uint64_t piece = piece_of(offset / PM_LINE), where = piece + offset % PM_LINE;
    if (piece == 0)
        throw std::runtime_error("this word is in no record");
    const std::vector<LogPart> all = parts();
    put(bytes, where, word);
    for (const LogPart &part : all)
        if (where >= part.offset && where < part.end())
            seal_part(part.offset);
}

} // namespace hostile

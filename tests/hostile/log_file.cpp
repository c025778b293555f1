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
    if (header.version < FORMAT_LOG_OLDEST || header.segment_size == 0)
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
            for (uint64_t i = 0; i < part.head.words; i++)
                part.table.push_back(
                    at<uint64_t>(bytes, offset + offsetof(log_part, table) + i * sizeof(uint64_t)));
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

std::map<uint64_t, LogFile::Place> LogFile::places() const
{
    std::map<uint64_t, Place> places;
    const auto header = at<format_header>(bytes, FORMAT_HEADER_A);
    const bool keeps = header.version <= FORMAT_LOG_KEEPING;
    uint32_t least = 0; // older generations do not count
    for (const LogPart &part : parts())
        if (keeps && part.head.number & LOG_ANEW)
            least = std::max(least, part.head.generation);
    for (const LogPart &part : parts()) {
        if (part.head.generation < least)
            continue;
        uint64_t place = part.contents() / PM_LINE;
        part.for_each_entry([&](uint64_t entry, uint64_t where) {
            if (log_is_delta(entry)) {
                places[run_line(entry)].mask = log_delta_mask(entry);
                places[run_line(entry)].word = where + 1;
                return;
            }
            for (uint64_t i = 0; i < run_count(entry) && place * PM_LINE < part.end(); i++)
                places[run_line(entry) + i] = {place++};
        });
    }
    if (keeps)
        return places;
    std::map<uint64_t, Place> owned;
    for (auto &piece : places)
        if (has_owner(places, piece.first))
            owned.insert(piece);
    return owned;
}

uint64_t LogFile::word_of(const std::map<uint64_t, Place> &pieces, uint64_t offset) const
{
    const uint64_t where = place_in(pieces, offset);
    return where == 0 ? 0 : at<uint64_t>(bytes, where);
}

bool LogFile::has_owner(const std::map<uint64_t, Place> &pieces, uint64_t line) const
{
    const auto header = at<format_header>(bytes, FORMAT_HEADER_A);
    const uint64_t segment = line * PM_LINE / header.segment_size,
                   begin = segment * header.segment_size;
    const uint64_t table = word_of(pieces, FORMAT_TABLE + segment * sizeof(uint64_t)),
                   size = segment_argument(table) * (uint64_t)FORMAT_GRANULARITY_MIN;
    if (segment < header.meta_segments || segment_kind(table) != SEGMENT_SLAB)
        return segment < header.meta_segments || table != 0;
    if (header.granularity == 0 || size == 0 || size > header.segment_size / 2 ||
        size % header.granularity != 0)
        return true; // no slab is like that
    const struct slab_shape shape = slab_shape(header.segment_size, (uint32_t)size);
    const uint64_t from = line * PM_LINE - begin, to = from + PM_LINE;
    if (from < bitmap_words(shape.objects) * sizeof(uint64_t))
        return true;
    if (from < shape.header_bytes)
        return false;
    for (uint64_t slot = (from - shape.header_bytes) / size;
         slot < shape.objects && shape.header_bytes + slot * size < to; slot++) {
        const uint64_t word = word_of(pieces, begin + slot / BITMAP_SLOTS * sizeof(uint64_t));
        if (seal_payload(word) >> slot % BITMAP_SLOTS & 1)
            return true;
    }
    return false;
}

uint64_t LogFile::place_in(const std::map<uint64_t, Place> &all, uint64_t offset) const
{
    auto found = all.find(offset / PM_LINE);
    if (found == all.end())
        return 0;
    const uint64_t mask = found->second.mask, word = offset % PM_LINE / sizeof(uint64_t);
    if (mask >> word & 1)
        return (found->second.word + log_count_words(mask & ((1u << word) - 1))) * sizeof(uint64_t);
    return found->second.base * PM_LINE + offset % PM_LINE;
}

uint64_t LogFile::place_of(uint64_t offset) const
{
    return place_in(places(), offset);
}

Bytes LogFile::contents(uint64_t line, uint64_t count) const
{
    const std::map<uint64_t, Place> all = places();
    Bytes contents(count * PM_LINE, 0);
    for (uint64_t i = 0; i < count; i++)
        if (auto found = all.find(line + i); found != all.end()) {
            const Place &place = found->second;
            contents.replace(i * PM_LINE, PM_LINE, bytes, place.base * PM_LINE, PM_LINE);
            uint64_t from = place.word * sizeof(uint64_t);
            for (uint64_t word = 0; word < PM_LINE_WORDS; word++)
                if (place.mask >> word & 1) {
                    put(contents, i * PM_LINE + word * sizeof(uint64_t), at<uint64_t>(bytes, from));
                    from += sizeof(uint64_t);
                }
        }
    return contents;
}

uint64_t LogFile::map_sum() const
{
    uint64_t sum = 0;
    for (auto [line, place] : places()) {
        sum += log_map_term(seed_, line, place.base);
        if (place.mask != 0)
            sum += log_map_term(seed_, line, log_delta_place(place.word));
    }
    return sum;
}

void LogFile::seal_part(uint64_t offset)
{
    const LogPart part = {offset, at<log_part>(bytes, offset), {}};
    if (log_part_has_pages(&part.head)) {
        const uint64_t sum =
            checksum(bytes.data() + part.contents(), part.end() - part.contents(), 0);
        put(bytes, offset + offsetof(log_part, table) + sizeof sum, sum);
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

void LogFile::seal_image(uint64_t offset)
{
    const auto image = at<log_image>(bytes, offset);
    const uint64_t size = log_image_lines(&image) * PM_LINE;
    if (size > LOG_IMAGE_LINES * PM_LINE || offset > bytes.size() || size > bytes.size() - offset)
        return; // no image is that long
    put(bytes, offset, uint64_t{0});
    put(bytes, offset,
        checksum_mix(checksum(bytes.data() + offset, size, 0), seed_, offset / PM_LINE));
}

void LogFile::seal_units(uint64_t offset)
{
    const uint64_t contents = offset + PM_LINE;
    const auto root = at<log_root>(bytes, contents);
    if (root.units > max_lines() / LOG_UNIT_LINES || root.chunks > bytes.size() / PM_LINE)
        return;
    for (uint64_t i = 0; i < root.units; i++) {
        const uint64_t where = contents + (log_root_words(root.chunks, i)) * sizeof(uint64_t);
        auto unit = at<log_root_unit>(bytes, where);
        if (unit.place == 0)
            continue;
        unit.sum = (uint32_t)at<uint64_t>(bytes, unit.place * uint64_t{PM_LINE});
        put(bytes, where, unit);
    }
    seal_image(offset);
}

uint64_t LogFile::places_sum(uint64_t unit, uint64_t offset) const
{
    const uint64_t first = unit * LOG_UNIT_LINES, words = offset + PM_LINE;
    const auto image = at<log_image>(bytes, offset);
    uint64_t sum = 0;
    if (!(image.packed & LOG_RUNS)) {
        for (uint64_t i = 0; i < LOG_UNIT_LINES; i++)
            sum +=
                log_map_term(seed_, first + i, at<uint32_t>(bytes, words + i * sizeof(uint32_t)));
        return sum;
    }
    for (uint64_t i = 0; i < std::min<uint64_t>(image.runs, LOG_TABLE_WORDS); i++) {
        const auto run = at<uint64_t>(bytes, words + i * sizeof(uint64_t));
        for (uint64_t n = 0; n < std::min(log_unit_run_count(run), LOG_UNIT_LINES); n++)
            sum += log_map_term(seed_, first + log_unit_run_line(run) + n,
                                log_unit_run_place(run) + n);
    }
    return sum;
}

uint64_t LogFile::unit_sum(uint64_t unit, uint64_t offset) const
{
    const auto image = at<log_image>(bytes, offset);
    const uint64_t first = unit * LOG_UNIT_LINES, words = offset + PM_LINE,
                   fixed = log_place_words(&image) + log_left_words(&image);
    uint64_t sum = places_sum(unit, offset);
    for (uint64_t i = fixed; i < std::min<uint64_t>(image.words, fixed + LOG_UNIT_LINES); i++) {
        const auto delta = at<uint64_t>(bytes, words + i * sizeof(uint64_t));
        sum += log_map_term(seed_, first + log_unit_delta_line(delta),
                            log_delta_place(log_unit_delta_word(delta)));
    }
    return sum;
}

void LogFile::seal_checkpoint()
{
    const auto word = at<uint64_t>(bytes, FORMAT_STATE + offsetof(format_state, checkpoint));
    const uint64_t offset = seal_payload(word) * PM_LINE, contents = offset + PM_LINE;
    const auto root = at<log_root>(bytes, contents);
    if (word == 0 || root.units > max_lines() / LOG_UNIT_LINES)
        return;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < root.units; i++) {
        const auto unit =
            at<log_root_unit>(bytes, contents + log_root_words(root.chunks, i) * sizeof(uint64_t));
        if (unit.place != 0)
            sum += unit_sum(i, unit.place * PM_LINE);
    }
    put(bytes, contents + offsetof(log_root, map), sum);
    seal_units(offset);
}

uint64_t LogFile::append(const std::vector<uint64_t> &words, char fill)
{
    const LogPart last = newest().back();
    const uint64_t offset = last.end();
    log_part head = last.head;
    head.fenced = head.epoch++;
    head.number = LOG_LAST;
    head.table[0] = head.table[1] = 0;
    head.words = (uint16_t)words.size();
    head.lines = 0;
    for (size_t i = 0; i < words.size(); i += log_entry_words(words[i]))
        head.lines = (uint16_t)(head.lines + log_entry_lines(words[i]));
    const uint64_t table = log_part_head(head.words) * PM_LINE;
    bytes.replace(offset, table, table, 0);
    put(bytes, offset, head);
    for (size_t i = 0; i < words.size(); i++)
        put(bytes, offset + offsetof(log_part, table) + i * sizeof(uint64_t), words[i]);
    bytes.replace(offset + table, head.lines * PM_LINE, head.lines * PM_LINE, fill);
    seal_part(offset);
    seal_newest();
    return offset;
}

void LogFile::forge_word(uint64_t offset, uint64_t word)
{
    const uint64_t where = place_of(offset);
    if (where == 0)
        throw std::runtime_error("this word is in no record");
    const std::vector<LogPart> all = parts();
    put(bytes, where, word);
    for (const LogPart &part : all)
        if (where >= part.offset && where < part.end())
            seal_part(part.offset);
    seal_newest();
}

} // namespace hostile

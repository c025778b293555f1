#include "hostile/anatomy.hpp"

#include "common/format.hpp"

#include <algorithm>
#include <map>

extern "C" {
#include "container/format_log.h"
}

namespace hostile
{

namespace
{

// Pieces are added in order; what is between two is unused.
class Collector
{
  public:
    void add(Kind kind, uint64_t offset, uint64_t bytes, uint64_t epoch = 0)
    {
        skip_to(offset);
        pieces.push_back({kind, offset, bytes, epoch});
        end = offset + bytes;
    }
    void skip_to(uint64_t offset)
    {
        if (offset > end)
            pieces.push_back({Kind::unused, end, offset - end, 0});
        end = std::max(end, offset);
    }
    std::vector<Piece> pieces;

  private:
    uint64_t end = 0;
};

uint64_t table_word(const Bytes &file, uint64_t segment)
{
    return at<uint64_t>(file, FORMAT_TABLE + segment * sizeof(uint64_t));
}

void add_state(Collector &out)
{
    out.add(Kind::header, FORMAT_HEADER_A, sizeof(format_header));
    out.add(Kind::header, FORMAT_HEADER_B, sizeof(format_header));
    out.add(Kind::guard, FORMAT_GUARD, sizeof(format_guard));
    out.add(Kind::base_epoch, FORMAT_STATE, sizeof(uint64_t));
    out.add(Kind::fenced, FORMAT_STATE + offsetof(format_state, fenced_epoch),
            2 * sizeof(uint64_t));
    out.add(Kind::mark, FORMAT_MARK, sizeof(uint64_t));
}

// Returns the segments that it takes.
uint64_t add_metadata(const Geometry &g, Collector &out)
{
    add_state(out);
    out.add(Kind::root, FORMAT_STATE + offsetof(format_state, root_offset), 2 * sizeof(uint64_t));
    out.add(Kind::place, FORMAT_STATE + offsetof(format_state, base), 3 * sizeof(uint64_t));
    out.add(Kind::sums, FORMAT_STATE + offsetof(format_state, sums), sizeof(uint64_t));
    // Two of them, which are like the others; flipping each bit of all would take minutes.
    out.add(Kind::place, FORMAT_MODULES, 2 * sizeof(format_module));
    out.add(Kind::object, FORMAT_MODULES + 2 * sizeof(format_module),
            (FORMAT_MODULES_MAX - 2) * sizeof(format_module));
    out.add(Kind::table, FORMAT_TABLE, g.segments_max * sizeof(uint64_t));
    uint64_t segments = format_meta_segments(g.segment_size, g.segments_max * g.segment_size);
    out.skip_to(segments * g.segment_size);
    return segments;
}

void add_slab(const Bytes &file, const Geometry &g, uint64_t segment, Collector &out)
{
    uint64_t start = segment * g.segment_size;
    uint64_t size = uint64_t{segment_argument(table_word(file, segment))} * FORMAT_GRANULARITY_MIN;
    if (size == 0 || size > g.segment_size / 2)
        return;
    struct slab_shape shape = slab_shape(g.segment_size, (uint32_t)size);
    out.add(Kind::bitmap, start, bitmap_words(shape.objects) * sizeof(uint64_t));
    for (uint64_t slot = 0; slot < shape.objects; slot++)
        if (at<uint64_t>(file, start + slot / BITMAP_SLOTS * 8) >> slot % BITMAP_SLOTS & 1)
            out.add(Kind::object, start + shape.header_bytes + slot * size, size);
}

void add_parts(const Bytes &file, const Geometry &g, uint64_t segment, Collector &out)
{
    uint64_t offset = segment * g.segment_size, end = offset + g.segment_size;
    while (end - offset > sizeof(redo_part)) {
        redo_part part = at<redo_part>(file, offset);
        if (part.epoch == 0 || part.bytes == 0 || part.bytes > end - offset - sizeof part)
            return;
        out.add(Kind::part, offset, sizeof part + part.bytes, part.epoch);
        offset = std::min(end, align_up(offset + sizeof part + part.bytes, PM_LINE));
    }
}

// A segment of the undo engine's log: its slots are number `first` and on of its half.
void add_slots(const Bytes &file, const Geometry &g, uint64_t segment, uint64_t first,
               const Bytes &record, Collector &out)
{
    uint64_t start = segment * g.segment_size, count = log_segment_slots(g.segment_size);
    uint64_t record_slots = divide_up(record.size(), PM_PAGE);
    auto is_image = [&](uint64_t i) {
        return first + i >= record_slots &&
               at<log_descriptor>(file, start + i * sizeof(log_descriptor)).epoch != 0;
    };
    for (uint64_t i = 0; i < count; i++)
        if (is_image(i)) {
            uint64_t offset = start + i * sizeof(log_descriptor);
            out.add(Kind::descriptor, offset, offsetof(log_descriptor, unused),
                    at<log_descriptor>(file, offset).epoch);
        }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t offset = start + log_segment_first_slot(g.segment_size) + i * PM_PAGE;
        if (is_image(i))
            out.add(Kind::image, offset, PM_PAGE,
                    at<log_descriptor>(file, start + i * sizeof(log_descriptor)).epoch);
        else if (first + i < record_slots)
            out.add(Kind::record, offset, std::min(record.size() - (first + i) * PM_PAGE, PM_PAGE),
                    at<uint64_t>(record, offsetof(log_record, epoch)));
    }
}

// What a line of a log container has, from the words of the segment table that the log has last.
class Lines
{
  public:
    Lines(const Bytes &file, const Geometry &g) : file_(file), g_(g) {}
    void add(uint64_t line, uint64_t offset) { newest_[line] = offset; }
    Kind kind_of(uint64_t line) const
    {
        const uint64_t offset = line * PM_LINE, segment = offset / g_.segment_size;
        if (offset < FORMAT_STATE + PM_PAGE)
            return offset < FORMAT_MODULES ? Kind::root : Kind::place;
        if (offset < FORMAT_TABLE + g_.segments_max * sizeof(uint64_t))
            return Kind::table;
        const uint64_t word = table_word(segment),
                       size = uint64_t{segment_argument(word)} * FORMAT_GRANULARITY_MIN;
        if (segment_kind(word) == SEGMENT_MAP)
            return Kind::map;
        if (segment_kind(word) != SEGMENT_SLAB || size == 0 || size > g_.segment_size / 2)
            return Kind::object;
        const struct slab_shape shape = slab_shape(g_.segment_size, (uint32_t)size);
        return offset % g_.segment_size < bitmap_words(shape.objects) * sizeof(uint64_t)
                   ? Kind::bitmap
                   : Kind::object;
    }

  private:
    uint64_t table_word(uint64_t segment) const
    {
        const uint64_t offset = FORMAT_TABLE + segment * sizeof(uint64_t);
        auto found = newest_.find(offset / PM_LINE);
        return found == newest_.end() ? 0 : at<uint64_t>(file_, found->second + offset % PM_LINE);
    }

    const Bytes &file_;
    const Geometry &g_;
    std::map<uint64_t, uint64_t> newest_; // where in the file; of lines of the segment table
};

// Call `visit(offset, part)` for all that looks like a part in a chunk of a log container.
template <typename Visit>
void for_each_part(const Bytes &file, uint64_t chunk, uint64_t size, Visit visit)
{
    for (uint64_t at_line = 1, n; at_line < size / PM_LINE; at_line += n) {
        const uint64_t offset = chunk + at_line * PM_LINE;
        const log_part part = at<log_part>(file, offset);
        n = log_part_lines(&part, at_line, size / PM_LINE - at_line);
        if (n == 0)
            break;
        visit(offset, part);
    }
}

// Call `visit(offset, bytes)` for all that looks like an image in such a chunk.
template <typename Visit>
void for_each_image(const Bytes &file, uint64_t chunk, uint64_t size, Visit visit)
{
    for (uint64_t offset = chunk + PM_LINE, n; offset < chunk + size; offset += n) {
        const log_image image = at<log_image>(file, offset);
        n = log_image_lines(&image) * PM_LINE;
        if (image.words == 0 || n > LOG_IMAGE_LINES * PM_LINE || n > chunk + size - offset)
            break;
        visit(offset, n);
    }
}

// Call `visit(line, offset)` for each line of a part's contents.
template <typename Visit>
void for_each_line(const Bytes &file, uint64_t offset, const log_part &part, Visit visit)
{
    uint64_t from = log_part_contents(&part, offset / PM_LINE) * PM_LINE;
    const uint64_t end = from + part.lines * PM_LINE;
    for (uint64_t i = 0, entry; i < part.words; i += log_entry_words(entry)) {
        entry = at<uint64_t>(file, offset + offsetof(log_part, table) + i * sizeof entry);
        for (uint64_t n = 0; n < log_entry_lines(entry) && from < end; n++, from += PM_LINE)
            visit(run_line(entry) + n, from);
    }
}

void add_chunks(const Bytes &file, const Geometry &g, Collector &out)
{
    Lines lines(file, g);
    std::map<uint64_t, uint64_t> epochs; // of the lines of the table
    const uint64_t size = log_chunk_size(g.segment_size), end = file.size() / size * size;
    auto has_images = [&](uint64_t chunk) {
        return log_chunk_has_images(at<uint64_t>(file, chunk));
    };
    auto add_to_table = [&](uint64_t offset, const log_part &part) {
        for_each_line(file, offset, part, [&](uint64_t line, uint64_t at) {
            if (lines.kind_of(line) == Kind::table && part.epoch >= epochs[line]) {
                epochs[line] = part.epoch;
                lines.add(line, at);
            }
        });
    };
    auto add_part = [&](uint64_t offset, const log_part &part) {
        out.add(Kind::part, offset, log_part_head(part.words) * PM_LINE, part.epoch);
        out.skip_to(log_part_contents(&part, offset / PM_LINE) * PM_LINE);
        for_each_line(file, offset, part, [&](uint64_t line, uint64_t at) {
            out.add(lines.kind_of(line), at, PM_LINE, part.epoch);
        });
    };
    for (uint64_t chunk = size; chunk < end; chunk += size)
        if (!has_images(chunk))
            for_each_part(file, chunk, size, add_to_table);
    for (uint64_t chunk = size; chunk < end; chunk += size) {
        out.add(Kind::chunk, chunk, sizeof(uint64_t));
        if (has_images(chunk))
            for_each_image(file, chunk, size, [&](uint64_t offset, uint64_t bytes) {
                out.add(Kind::unit, offset, bytes);
            });
        else
            for_each_part(file, chunk, size, add_part);
    }
    out.skip_to(end);
}

bool is_usable(const Bytes &file, const format_header &h)
{
    return is_power_of_two(h.segment_size) && h.segment_size >= FORMAT_SEGMENT_MIN &&
           h.segment_size <= FORMAT_SEGMENT_MAX && h.max_size <= FORMAT_SIZE_MAX &&
           FORMAT_TABLE + h.max_size / h.segment_size * sizeof(uint64_t) <= file.size();
}

} // namespace

std::optional<Geometry> geometry_of(const Bytes &file)
{
    for (uint64_t offset : {FORMAT_HEADER_A, FORMAT_HEADER_B}) {
        format_header h = at<format_header>(file, offset);
        if (is_usable(file, h))
            return Geometry{h.segment_size, h.max_size / h.segment_size,
                            std::min(file.size(), h.max_size) / h.segment_size, h.id[0] ^ h.id[1]};
    }
    return std::nullopt;
}

std::vector<uint64_t> log_segments(const Bytes &file, const Geometry &g, unsigned half)
{
    std::vector<uint64_t> segments;
    for (uint64_t i = 0; i < g.segments; i++) {
        uint64_t word = table_word(file, i);
        if (segment_kind(word) == SEGMENT_LOG && segment_log_half(word) == half)
            segments.push_back(i);
    }
    std::sort(segments.begin(), segments.end(), [&](uint64_t a, uint64_t b) {
        uint32_t x = segment_argument(table_word(file, a));
        uint32_t y = segment_argument(table_word(file, b));
        return x != y ? x < y : a < b;
    });
    return segments;
}

uint64_t slot_offset(const Geometry &g, const std::vector<uint64_t> &half, uint64_t slot)
{
    uint64_t per_segment = log_segment_slots(g.segment_size);
    return half[slot / per_segment] * g.segment_size + log_segment_first_slot(g.segment_size) +
           slot % per_segment * PM_PAGE;
}

uint64_t descriptor_offset(const Geometry &g, const std::vector<uint64_t> &half, uint64_t slot)
{
    uint64_t per_segment = log_segment_slots(g.segment_size);
    return half[slot / per_segment] * g.segment_size + slot % per_segment * sizeof(log_descriptor);
}

Bytes record_at(const Bytes &file, const Geometry &g, const std::vector<uint64_t> &half)
{
    uint64_t capacity = half.size() * log_segment_slots(g.segment_size);
    if (capacity == 0)
        return {};
    log_record head = at<log_record>(file, slot_offset(g, half, 0));
    if (__builtin_memcmp(head.magic, RECORD_MAGIC, sizeof head.magic) != 0 ||
        head.bytes < sizeof head || head.bytes > capacity * PM_PAGE)
        return {};
    Bytes record;
    for (uint64_t slot = 0; record.size() < head.bytes; slot++)
        record +=
            file.substr(slot_offset(g, half, slot), std::min(head.bytes - record.size(), PM_PAGE));
    return record;
}

std::vector<Proved> listed_pages(const Bytes &record)
{
    log_record head = at<log_record>(record, 0);
    std::vector<Proved> pages;
    for (uint64_t i = sizeof head + (head.clears + head.words) * sizeof(record_word);
         i < record.size(); i += sizeof(record_page))
        pages.push_back({i, at<record_page>(record, i).page * PM_PAGE, PM_PAGE});
    return pages;
}

std::vector<Proved> fresh_ranges(const Bytes &file, uint64_t offset)
{
    redo_part part = at<redo_part>(file, offset);
    std::vector<Proved> ranges;
    uint64_t from = (uint64_t{part.clears} + part.words) * sizeof(record_word);
    for (uint64_t i = 0; i < part.fresh && from + sizeof(redo_fresh) <= part.bytes; i++) {
        redo_fresh fresh = at<redo_fresh>(file, offset + sizeof part + from);
        ranges.push_back({offset + sizeof part + from, fresh.offset, fresh.bytes});
        from += sizeof fresh;
    }
    return ranges;
}

bool log_is_redo(const Bytes &file)
{
    return at<uint64_t>(file, FORMAT_STATE) & BASE_REDO;
}

uint64_t base_epoch(const Bytes &file)
{
    return at<uint64_t>(file, FORMAT_STATE) & (BASE_REDO - 1);
}

bool is_log(const Bytes &file)
{
    for (uint64_t offset : {FORMAT_HEADER_A, FORMAT_HEADER_B}) {
        format_header h = at<format_header>(file, offset);
        if (is_usable(file, h))
            return h.version >= FORMAT_LOG_OLDEST;
    }
    return false;
}

std::vector<Piece> pieces_of(const Bytes &file)
{
    std::optional<Geometry> g = geometry_of(file);
    Collector out;
    if (!g)
        return {};
    if (is_log(file)) {
        add_state(out);
        out.add(Kind::generation, FORMAT_STATE + offsetof(format_state, incarnation),
                sizeof(uint64_t));
        out.add(Kind::checkpoint, FORMAT_STATE + offsetof(format_state, checkpoint),
                sizeof(uint64_t));
        add_chunks(file, *g, out);
        return out.pieces;
    }
    uint64_t first_data = add_metadata(*g, out);
    std::vector<uint64_t> halves[2] = {log_segments(file, *g, 0), log_segments(file, *g, 1)};
    Bytes records[2] = {record_at(file, *g, halves[0]), record_at(file, *g, halves[1])};
    for (uint64_t i = first_data; i < g->segments; i++) {
        uint64_t word = table_word(file, i);
        unsigned half = segment_log_half(word);
        switch (segment_kind(word)) {
        case SEGMENT_SLAB:
            add_slab(file, *g, i, out);
            break;
        case SEGMENT_MAP:
            out.add(Kind::map, i * g->segment_size, g->segment_size);
            break;
        case SEGMENT_LARGE:
        case SEGMENT_MORE:
            out.add(Kind::object, i * g->segment_size, g->segment_size);
            break;
        case SEGMENT_LOG:
            if (log_is_redo(file)) {
                add_parts(file, *g, i, out);
            } else {
                auto found = std::find(halves[half].begin(), halves[half].end(), i);
                uint64_t first = (uint64_t)(found - halves[half].begin());
                add_slots(file, *g, i, first * log_segment_slots(g->segment_size), records[half],
                          out);
            }
            break;
        default: // free
            break;
        }
        out.skip_to((i + 1) * g->segment_size);
    }
    return out.pieces;
}

} // namespace hostile

// Seals and checksums made right: what somebody would do who means harm.
#include "hostile/anatomy.hpp"
#include "hostile/log_file.hpp"

#include "common/format.hpp"

#include <algorithm>
#include <tuple>

namespace hostile
{

namespace
{

void reseal(Bytes &file, uint64_t offset)
{
    put(file, offset, seal(seal_payload(at<uint64_t>(file, offset))));
}

void repair_headers(Bytes &file)
{
    for (uint64_t offset : {FORMAT_HEADER_A, FORMAT_HEADER_B}) {
        uint64_t bytes = offsetof(format_header, checksum);
        if (file.size() >= offset + sizeof(format_header))
            put(file, offset + bytes,
                checksum(file.data() + offset, bytes,
                         at<format_header>(file, offset).version));
    }
}

bool is_inside(const Bytes &file, uint64_t offset, uint64_t bytes)
{
    return offset <= file.size() && bytes <= file.size() - offset;
}

void repair_images(Bytes &file, const Geometry &g, const std::vector<uint64_t> &half,
                   uint64_t first)
{
    for (uint64_t slot = first; slot < half.size() * log_segment_slots(g.segment_size); slot++) {
        uint64_t offset = descriptor_offset(g, half, slot);
        log_descriptor d = at<log_descriptor>(file, offset);
        if (d.epoch == 0)
            continue;
        uint64_t sum = checksum(file.data() + slot_offset(g, half, slot), PM_PAGE, g.seed);
        d.sum = checksum_mix(sum, d.epoch, d.page);
        put(file, offset, d);
    }
}

void repair_record(Bytes &file, const Geometry &g, const std::vector<uint64_t> &half, bool contents)
{
    Bytes record = record_at(file, g, half);
    if (record.empty())
        return;
    log_record head = at<log_record>(record, 0);
    for (const Proved &page : contents ? listed_pages(record) : std::vector<Proved>{})
        if (is_inside(file, page.offset, PM_PAGE))
            put(record, page.entry + offsetof(record_page, sum),
                checksum(file.data() + page.offset, PM_PAGE, g.seed));
    head.checksum = 0;
    put(record, 0, head);
    head.checksum = checksum(record.data(), record.size(), g.seed);
    put(record, 0, head);
    for (uint64_t i = 0; i < record.size(); i += PM_PAGE)
        record.copy(file.data() + slot_offset(g, half, i / PM_PAGE),
                    std::min(record.size() - i, PM_PAGE), i);
}

// Part by part in the order of records, since each names the checksum of the one before.
void repair_parts(Bytes &file, const Geometry &g, bool contents)
{
    std::vector<uint64_t> parts;
    for (const Piece &piece : pieces_of(file))
        if (piece.kind == Kind::part)
            parts.push_back(piece.offset);
    std::sort(parts.begin(), parts.end(), [&](uint64_t a, uint64_t b) {
        redo_part x = at<redo_part>(file, a), y = at<redo_part>(file, b);
        return std::tie(x.epoch, x.number, a) < std::tie(y.epoch, y.number, b);
    });
    redo_part before{};
    for (uint64_t offset : parts) {
        for (const Proved &fresh : contents ? fresh_ranges(file, offset) : std::vector<Proved>{})
            if (is_inside(file, fresh.offset, fresh.bytes))
                put(file, fresh.entry + offsetof(redo_fresh, sum),
                    checksum(file.data() + fresh.offset, fresh.bytes, 0));
        redo_part part = at<redo_part>(file, offset);
        if (part.epoch == before.epoch && part.number == before.number + 1)
            part.previous = before.checksum;
        part.checksum = 0;
        put(file, offset, part);
        uint64_t sum = checksum(file.data() + offset, sizeof part + part.bytes, 0);
        part.checksum = checksum_mix(sum, g.seed, offset);
        put(file, offset, part);
        before = part;
    }
}

// Each line of metadata has words that are sealed. The newest record has the sum over the map, and so has the
// root of a checkpoint.
void repair_log(Bytes &file, const Geometry &g)
{
    reseal(file, FORMAT_STATE + offsetof(format_state, incarnation));
    const auto checkpoint = at<uint64_t>(file, FORMAT_STATE + offsetof(format_state, checkpoint));
    if (checkpoint != 0)
        reseal(file, FORMAT_STATE + offsetof(format_state, checkpoint));
    const std::vector<Piece> pieces = pieces_of(file);
    for (const Piece &piece : pieces)
        if (piece.kind == Kind::chunk || piece.kind == Kind::root || piece.kind == Kind::table ||
            piece.kind == Kind::bitmap || piece.kind == Kind::map)
            for (uint64_t i = 0; i < piece.bytes; i += sizeof(uint64_t))
                reseal(file, piece.offset + i);
    const auto first = at<format_header>(file, FORMAT_HEADER_A);
    if (first.version != FORMAT_VERSION_LOG || first.segment_size != g.segment_size)
        return; // the other copy counts, which LogFile does not know
    LogFile log(file);
    for (const Piece &piece : pieces)
        if (piece.kind == Kind::part)
            log.seal_part(piece.offset);
        else if (piece.kind == Kind::unit)
            log.seal_image(piece.offset);
    log.seal_checkpoint();
    if (!log.parts().empty())
        log.seal_newest();
    file = log.bytes;
}

} // namespace

void repair_sums(Bytes &file)
{
    std::optional<Geometry> found = geometry_of(file);
    if (!found)
        return;
    const Geometry g = *found;
    struct sums sums = {0, 0};
    auto add = [&](uint32_t &sum, auto term, uint64_t offset, uint64_t bytes) {
        for (uint64_t end = offset + bytes; offset < end; offset += sizeof(uint64_t))
            sum += term(g.seed, offset, at<uint64_t>(file, offset));
    };
    add(sums.fixed, sums_term, FORMAT_STATE + offsetof(format_state, root_offset),
        2 * sizeof(uint64_t));
    add(sums.fixed, sums_term, FORMAT_MODULES, FORMAT_MODULES_MAX * sizeof(format_module));
    add(sums.fixed, sums_table_term, FORMAT_TABLE, g.segments_max * sizeof(uint64_t));
    const std::vector<Piece> pieces = pieces_of(file);
    for (const Piece &piece : pieces)
        if (piece.kind == Kind::bitmap || piece.kind == Kind::map)
            add(sums.rest, sums_term, piece.offset, piece.bytes);
    const uint64_t word = sums_word(sums);
    put(file, FORMAT_STATE + offsetof(format_state, sums), word);
    for (const Piece &piece : pieces)
        if (piece.kind == Kind::part && at<redo_part>(file, piece.offset).number == 0)
            put(file, piece.offset + offsetof(redo_part, previous), word);
    for (unsigned h : {0u, 1u}) {
        std::vector<uint64_t> half = log_segments(file, g, h);
        if (!log_is_redo(file) && !record_at(file, g, half).empty())
            put(file, slot_offset(g, half, 0) + offsetof(log_record, sums), word);
    }
}

void repair(Bytes &file, bool contents)
{
    repair_headers(file);
    std::optional<Geometry> g = geometry_of(file);
    if (!g)
        return;
    reseal(file, FORMAT_STATE);
    reseal(file, FORMAT_STATE + offsetof(format_state, fenced_epoch));
    reseal(file, FORMAT_STATE + offsetof(format_state, fenced_images));
    reseal(file, FORMAT_MARK);
    reseal(file, FORMAT_STATE + offsetof(format_state, root_offset));
    reseal(file, FORMAT_STATE + offsetof(format_state, root_size));
    for (uint64_t field : {offsetof(format_state, base), offsetof(format_state, target),
                           offsetof(format_state, movable)})
        reseal(file, FORMAT_STATE + field);
    for (uint64_t field : {offsetof(format_guard, epoch), offsetof(format_guard, base),
                           offsetof(format_guard, movable)})
        reseal(file, FORMAT_GUARD + field);
    if (is_log(file)) {
        repair_log(file, *g);
        return;
    }
    for (uint64_t i = 0; i < g->segments_max; i++)
        reseal(file, FORMAT_TABLE + i * sizeof(uint64_t));
    for (const Piece &piece : pieces_of(file))
        if (piece.kind == Kind::bitmap || piece.kind == Kind::map)
            for (uint64_t i = 0; i < piece.bytes; i += sizeof(uint64_t))
                reseal(file, piece.offset + i);
    repair_sums(file);
    if (log_is_redo(file)) {
        repair_parts(file, *g, contents);
        return;
    }
    for (unsigned h : {0u, 1u}) {
        std::vector<uint64_t> half = log_segments(file, *g, h);
        repair_images(file, *g, half, divide_up(record_at(file, *g, half).size(), PM_PAGE));
        repair_record(file, *g, half, contents);
    }
}

} // namespace hostile

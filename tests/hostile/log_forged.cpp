// Log containers that no libpm writes, with every checksum right: somebody means harm, or a bug wrote them.
// libpm refuses the forgery with path and offset, or the forgery does no harm. Then all calls return, and the
// container can be closed and opened again.
//
// Each forgery is tried twice. First the state page says that the newest record was fenced. Then it says
// nothing, so that a bad newest record looks like a torn one.
#include "common/process.hpp"
#include "hostile/calls.hpp"
#include "hostile/life.hpp"
#include "hostile/log_file.hpp"
#include "hostile/memory_file.hpp"

extern "C" {
#include "base/checksum.h"
}

#include <cerrno>
#include <iostream>
#include <unistd.h>

using namespace hostile;

namespace
{

constexpr uint64_t SEGMENTS = 64;
constexpr uint64_t EPOCH_MAX = UINT64_C(1) << (SEAL_BITS - 2); // as txn/recovery.h has it

pm_options how(unsigned flags)
{
    pm_options o = test::small(flags);
    o.max_size = SEGMENTS * o.segment_size;
    return o;
}

} // namespace

// Leaves a container with objects of all sizes, pointers, and a newest record of three parts.
CHILD_PROCESS(leaves_a_large_record)
{
    Life life(1);
    pm_options options = how(PM_CREATE | PM_MOVABLE);
    pm_container *c = pm_open(arguments[0].c_str(), &options);
    CHILD_REQUIRE(c);
    Life::begin(c);
    for (int i = 0; i < 30; i++)
        CHILD_REQUIRE(life.change(c) && pm_commit(c) == 0);
    void *large = pm_calloc(c, 1, 190000);
    CHILD_REQUIRE(large);
    memset(large, 1, 190000);
    CHILD_REQUIRE(pm_commit(c) == 0);
    _exit(0);
}

namespace
{

// What becomes of a forgery while the state page says that the newest record was fenced.
enum Fate { REFUSED, HARMLESS, READABLE }; // readable: refused to a writer

struct Forgery {
    const char *name;
    Fate fate;
    void (*forge)(LogFile &file);
};

LogPart first_part(const LogFile &file)
{
    return file.newest().front();
}

LogPart last_part(const LogFile &file)
{
    return file.newest().back();
}

// Change a part's header, and let its checksum fit.
template <typename Edit> void edit(LogFile &file, const LogPart &part, Edit change)
{
    auto head = at<log_part>(file.bytes, part.offset);
    change(head);
    put(file.bytes, part.offset, head);
    file.seal_part(part.offset);
}

template <typename Edit> void edit_newest(LogFile &file, Edit change)
{
    for (const LogPart &part : file.newest())
        edit(file, part, change);
}

// Let the newest record's last part begin with this run, instead of one that is as long.
void put_run(LogFile &file, uint64_t line, uint64_t count)
{
    const LogPart part = last_part(file);
    put(file.bytes, part.offset + offsetof(log_part, table), redo_run(line, count));
    file.seal_part(part.offset);
    file.seal_newest();
}

void move_run(LogFile &file, uint64_t line)
{
    put_run(file, line, run_count(last_part(file).runs()[0]));
}

void put_chunk_word(LogFile &file, uint64_t generation, uint64_t end)
{
    const uint64_t chunk = file.chunk_of(last_part(file).offset);
    put(file.bytes, chunk * file.chunk_size(), log_chunk_word(generation, end));
}

uint64_t generation_of(const LogFile &file)
{
    return last_part(file).head.generation;
}

// The place of a segment's word in the table; the segment is the first of that kind.
uint64_t table_word_of(const LogFile &file, enum segment_kind kind)
{
    for (uint64_t i = 1; i < SEGMENTS; i++) {
        const uint64_t offset = FORMAT_TABLE + i * sizeof(uint64_t), place = file.place_of(offset);
        if (place && segment_kind(at<uint64_t>(file.bytes, place)) == kind)
            return offset;
    }
    FAIL("no such segment");
    return 0;
}

template <enum segment_kind kind, unsigned other, uint64_t argument>
void forge_table(LogFile &file)
{
    file.forge_word(table_word_of(file, kind), segment_word(static_cast<enum segment_kind>(other), argument));
}

uint64_t a_line(const LogFile &file)
{
    return run_line(last_part(file).runs()[0]);
}

// From here on it is a container of version 5, in which freed lines keep their pieces.
void keep_freed(LogFile &file)
{
    auto header = at<format_header>(file.bytes, FORMAT_HEADER_A);
    header.version = FORMAT_LOG_KEEPING;
    header.checksum = checksum(&header, offsetof(format_header, checksum), header.version);
    put(file.bytes, FORMAT_HEADER_A, header);
    put(file.bytes, FORMAT_HEADER_B, header);
    file.seal_newest();
}

// A record in a chunk of its own that says that older generations do not count.
void append_anew(LogFile &file, uint64_t generations)
{
    keep_freed(file);
    const uint64_t chunk = file.bytes.size();
    log_part head = last_part(file).head;
    const char contents[PM_LINE] = {7};
    head.table[0] = redo_run(a_line(file), 1);
    head.table[1] = 0;
    head.words = head.lines = 1;
    head.fenced = head.epoch++;
    head.number = LOG_LAST | LOG_ANEW;
    head.generation += (uint32_t)generations;
    file.bytes.resize(chunk + file.chunk_size());
    put(file.bytes, chunk, log_chunk_word(head.generation, 1));
    put(file.bytes, chunk + PM_LINE, head);
    file.bytes.replace(chunk + 2 * PM_LINE, PM_LINE, contents, PM_LINE);
    file.seal_part(chunk + PM_LINE);
    file.seal_newest();
}

// A record in a chunk of its own, with one part of whole pages. They have what they had. `change` makes the
// header wrong, before its checksum is right. The state page says that the record was fenced.
template <typename Change>
void append_pages(LogFile &file, uint64_t line, uint64_t lines, Change change)
{
    const uint64_t chunk = file.bytes.size(), contents = chunk + PM_PAGE;
    const Bytes pages = file.contents(line, lines);
    log_part head = last_part(file).head;
    head.table[0] = redo_run(line, lines);
    head.words = 1;
    head.lines = (uint16_t)lines;
    head.fenced = head.epoch++;
    head.number = LOG_LAST | LOG_PAGES;
    file.bytes.resize(chunk + file.chunk_size());
    file.bytes.replace(contents, pages.size(), pages);
    put(file.bytes, chunk, log_chunk_word(head.generation, 1));
    put(file.bytes, chunk + PM_LINE, head);
    file.seal_part(chunk + PM_LINE);
    file.seal_newest();
    head = at<log_part>(file.bytes, chunk + PM_LINE);
    change(head);
    put(file.bytes, chunk + PM_LINE, head);
    put(file.bytes, chunk + PM_LINE, file.sum_of(chunk + PM_LINE));
    put(file.bytes, FORMAT_STATE + offsetof(format_state, fenced_epoch), seal(head.epoch));
}

void append_pages(LogFile &file, uint64_t line, uint64_t lines)
{
    append_pages(file, line, lines, [](log_part &) {});
}

// A record that was fenced, with this table.
void append_table(LogFile &file, const std::vector<uint64_t> &words)
{
    file.append(words, 7);
    put(file.bytes, FORMAT_STATE + offsetof(format_state, fenced_epoch),
        seal(last_part(file).head.epoch));
}

// A page of the large object, and lines of it. A chunk has room for 15.
constexpr uint64_t PAGES = 15 * PM_PAGE_LINES;

uint64_t a_page(const LogFile &file)
{
    return align_up(a_line(file), PM_PAGE_LINES);
}

// The first page of a segment of that kind.
uint64_t page_of(const LogFile &file, enum segment_kind kind)
{
    const uint64_t segment = (table_word_of(file, kind) - FORMAT_TABLE) / sizeof(uint64_t);
    return segment * how(0).segment_size / PM_LINE;
}

constexpr uint64_t ROOT = FORMAT_STATE + offsetof(format_state, root_offset);

const Forgery forgeries[] = {
    {"nothing", HARMLESS, [](LogFile &) {}},
    {"an honest record more", HARMLESS, [](LogFile &f) { f.append({redo_run(a_line(f), 1)}, 7); }},

    // runs
    {"a run begins behind the container", REFUSED, [](LogFile &f) { move_run(f, f.max_lines()); }},
    {"a run ends a line behind the container", REFUSED,
     [](LogFile &f) { move_run(f, f.max_lines() - run_count(last_part(f).runs()[0]) + 1); }},
    {"a run of the largest line", REFUSED,
     [](LogFile &f) { move_run(f, (UINT64_C(1) << 40) - 1); }},
    {"the last line of the container", HARMLESS,
     [](LogFile &f) { f.append({redo_run(f.max_lines() - 1, 1)}, 7); }},
    {"a run of the header", REFUSED, [](LogFile &f) { move_run(f, 0); }},
    {"a run of the guard", REFUSED, [](LogFile &f) { move_run(f, FORMAT_GUARD / PM_LINE); }},
    {"a run of the words that are changed in place", REFUSED,
     [](LogFile &f) { move_run(f, FORMAT_STATE / PM_LINE); }},
    {"a run of as many lines as one can have", REFUSED,
     [](LogFile &f) { put_run(f, a_line(f), RUN_LINES_MAX); }},
    {"runs overlap", HARMLESS,
     [](LogFile &f) { f.append({redo_run(a_line(f), 3), redo_run(a_line(f) + 1, 3)}, 7); }},
    {"a line comes ten times", HARMLESS,
     [](LogFile &f) { f.append(std::vector<uint64_t>(10, redo_run(a_line(f), 1)), 7); }},
    {"a run is a line longer than the part says", REFUSED,
     [](LogFile &f) { put_run(f, a_line(f), run_count(last_part(f).runs()[0]) + 1); }},
    {"a run is a line shorter than the part says", REFUSED,
     [](LogFile &f) { put_run(f, a_line(f), run_count(last_part(f).runs()[0]) - 1); }},
    {"a part has a line more than its runs", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.lines++; }); }},
    {"a part has a line less than its runs", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.lines--; }); }},
    {"a part has no runs", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.words = 0, h.lines = 0; }); }},
    {"a part has no lines", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.lines = 0; }); }},
    {"a part has all lines that a number can have", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.lines = UINT16_MAX; }); }},
    {"a part has a line more than a part may have", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.lines = LOG_PART_LINES; }); }},
    {"a part has as many runs as a number can have", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.words = UINT16_MAX; }); }},
    {"a part reaches beyond its chunk", REFUSED,
     [](LogFile &f) {
         const LogPart part = last_part(f);
         const uint64_t room =
             f.chunk_size() / PM_LINE - part.offset / PM_LINE % (f.chunk_size() / PM_LINE);
         f.bytes.resize(f.bytes.size() + f.chunk_size());
         put(f.bytes, part.offset + offsetof(log_part, table), redo_run(a_line(f), room - 1));
         edit(f, part, [&](log_part &h) { h.words = 1, h.lines = (uint16_t)(room - 1); });
     }},

    // numbers
    {"the first part is missing", REFUSED,
     [](LogFile &f) { edit(f, first_part(f), [](log_part &h) { h.number = 7; }); }},
    {"a number is missing", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.number++; }); }},
    {"numbers begin with one", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.number++; }); }},
    {"all numbers are the largest", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.number |= ~LOG_LAST; }); }},
    {"no part is the last", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.number &= ~LOG_LAST; }); }},
    {"each part is the last", HARMLESS,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.number |= LOG_LAST; }); }},

    // generations that do not count any more
    {"a container of version 5", HARMLESS, keep_freed},
    {"older generations do not count, and there are none", HARMLESS,
     [](LogFile &f) {
         keep_freed(f);
         edit_newest(f, [](log_part &h) { h.number |= LOG_ANEW; });
         f.seal_newest();
     }},
    {"older generations do not count, and all else is of one", HARMLESS,
     [](LogFile &f) { append_anew(f, 1); }},
    {"the same by the last generation", READABLE,
     [](LogFile &f) { append_anew(f, UINT32_MAX - generation_of(f)); }},
    {"a part of the newest record only says that older generations do not count", HARMLESS,
     [](LogFile &f) {
         keep_freed(f);
         edit(f, last_part(f), [](log_part &h) { h.number |= LOG_ANEW; });
         f.seal_newest();
     }},
    {"what does not count is in the same chunk", REFUSED,
     [](LogFile &f) {
         keep_freed(f);
         f.append({redo_run(a_line(f), 1)}, 7);
         const uint64_t lines = f.chunk_size() / PM_LINE;
         put_chunk_word(f, generation_of(f), last_part(f).end() / PM_LINE % lines);
         edit_newest(f, [](log_part &h) { h.generation++, h.number |= LOG_ANEW; });
         f.seal_newest();
     }},

    // deltas
    {"a delta", HARMLESS, [](LogFile &f) { append_table(f, {log_delta(a_line(f), 5), 1, 2}); }},
    {"a delta of all words", HARMLESS,
     [](LogFile &f) { append_table(f, {log_delta(a_line(f), 0xFF), 1, 2, 3, 4, 5, 6, 7, 8}); }},
    {"a delta behind the run of its line", HARMLESS,
     [](LogFile &f) { append_table(f, {redo_run(a_line(f), 1), log_delta(a_line(f), 1), 1}); }},
    {"a delta in front of the run of its line", HARMLESS,
     [](LogFile &f) { append_table(f, {log_delta(a_line(f), 1), 1, redo_run(a_line(f), 1)}); }},
    {"two deltas of a line", HARMLESS,
     [](LogFile &f) { append_table(f, {log_delta(a_line(f), 1), 1, log_delta(a_line(f), 2), 2}); }},
    {"a delta of the last line, which is in no run", HARMLESS,
     [](LogFile &f) { append_table(f, {log_delta(f.max_lines() - 1, 1), 1}); }},
    {"a delta behind the container", REFUSED,
     [](LogFile &f) { append_table(f, {log_delta(f.max_lines(), 1), 1}); }},
    {"a delta of the header", REFUSED, [](LogFile &f) { append_table(f, {log_delta(0, 1), 1}); }},
    {"a delta of the words that are changed in place", REFUSED,
     [](LogFile &f) { append_table(f, {log_delta(FORMAT_STATE / PM_LINE, 1), 1}); }},
    {"a delta of no words", REFUSED, [](LogFile &f) { append_table(f, {log_delta(a_line(f), 0)}); }},
    {"a delta with a word less than it says", REFUSED,
     [](LogFile &f) { append_table(f, {log_delta(a_line(f), 7), 1, 2}); }},
    {"a delta without its words", REFUSED,
     [](LogFile &f) { append_table(f, {redo_run(a_line(f), 1), log_delta(a_line(f), 1)}); }},
    {"a delta with a bit that means nothing", REFUSED,
     [](LogFile &f) { append_table(f, {log_delta(a_line(f), 1) | UINT64_C(1) << 48, 1}); }},

    // parts of whole pages
    {"pages of an object", HARMLESS, [](LogFile &f) { append_pages(f, a_page(f), PAGES); }},
    {"one page", HARMLESS, [](LogFile &f) { append_pages(f, a_page(f), PM_PAGE_LINES); }},
    {"pages of a bitmap", HARMLESS,
     [](LogFile &f) { append_pages(f, page_of(f, SEGMENT_SLAB), PAGES); }},
    {"pages of a pointer map", HARMLESS,
     [](LogFile &f) { append_pages(f, page_of(f, SEGMENT_MAP), PAGES); }},
    {"pages of the segment table", REFUSED,
     [](LogFile &f) { append_pages(f, align_up(FORMAT_TABLE, PM_PAGE) / PM_LINE, PM_PAGE_LINES); }},
    {"the last pages of the metadata", REFUSED,
     [](LogFile &f) { append_pages(f, how(0).segment_size / PM_LINE - PM_PAGE_LINES, PM_PAGE_LINES); }},
    {"the last pages of the container", HARMLESS,
     [](LogFile &f) { append_pages(f, f.max_lines() - PAGES, PAGES); }},
    {"pages up to one behind the container", REFUSED,
     [](LogFile &f) { append_pages(f, f.max_lines() - PAGES + PM_PAGE_LINES, PAGES); }},
    {"pages that begin at a line behind", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f) + 1, PAGES); }},
    {"pages and a line", REFUSED, [](LogFile &f) { append_pages(f, a_page(f), PM_PAGE_LINES + 1); }},
    {"no pages", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.lines = 0; }); }},
    {"a page less than the run has", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.lines -= PM_PAGE_LINES; }); }},
    {"pages that reach into the next chunk", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES + PM_PAGE_LINES); }},
    {"all pages that a number can count", REFUSED,
     [](LogFile &f) {
         append_pages(f, a_page(f), PAGES, [](log_part &h) { h.lines = UINT16_MAX & ~63; });
     }},
    {"pages with another sum", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.table[1]++; }); }},
    {"pages in two runs", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.words = 2; }); }},
    {"pages in no run", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.words = 0; }); }},
    {"pages that say they are none", REFUSED,
     [](LogFile &f) { append_pages(f, a_page(f), PAGES, [](log_part &h) { h.number = LOG_LAST; }); }},
    {"pages, and older generations do not count", HARMLESS,
     [](LogFile &f) {
         keep_freed(f);
         append_pages(f, a_page(f), PAGES);
         const LogPart part = last_part(f);
         put_chunk_word(f, part.head.generation + 1, 1);
         edit(f, part, [](log_part &h) { h.generation++, h.number |= LOG_ANEW; });
         f.seal_newest();
     }},

    // epochs
    {"epoch 0", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.epoch = h.fenced = 0; }); }},
    {"the last epoch", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.epoch = EPOCH_MAX; }); }},
    {"the last epoch, and the one before was fenced", HARMLESS,
     [](LogFile &f) {
         edit_newest(f, [](log_part &h) { h.fenced = EPOCH_MAX - 1, h.epoch = EPOCH_MAX; });
     }},
    {"an epoch beyond the last", REFUSED,
     [](LogFile &f) {
         edit_newest(f, [](log_part &h) { h.fenced = EPOCH_MAX, h.epoch = EPOCH_MAX + 1; });
     }},
    {"the largest number as an epoch", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.epoch = UINT64_MAX; }); }},
    {"an epoch that does not follow", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.epoch += 2; }); }},
    {"parts of two epochs", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.epoch++; }); }},
    {"a record calls itself fenced", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.fenced = h.epoch; }); }},
    {"a record calls a later one fenced", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.fenced = UINT64_MAX; }); }},
    {"a record calls nothing fenced", HARMLESS,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.fenced = 0; }); }},

    // the other fields
    {"base for the next addresses", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.base++; }); }},
    {"base for no addresses", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.base = 0; }); }},
    {"base for the largest addresses", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.base = UINT32_MAX; }); }},
    {"the next generation", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.generation++; }); }},
    {"no generation", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.generation = 0; }); }},
    {"another sum of the map", REFUSED,
     [](LogFile &f) { edit_newest(f, [](log_part &h) { h.map++; }); }},
    {"another sum of the map in the last part", REFUSED,
     [](LogFile &f) { edit(f, last_part(f), [](log_part &h) { h.map ^= 1; }); }},
    // chunks
    {"a chunk ends a line behind itself", REFUSED,
     [](LogFile &f) { put_chunk_word(f, generation_of(f), f.chunk_size() / PM_LINE + 1); }},
    {"a chunk ends far behind itself", REFUSED,
     [](LogFile &f) { put_chunk_word(f, generation_of(f), (1 << LOG_END_BITS) - 1); }},
    {"a chunk ends before it begins", REFUSED,
     [](LogFile &f) { put_chunk_word(f, generation_of(f), 0); }},
    {"a chunk ends in a part", HARMLESS,
     [](LogFile &f) { put_chunk_word(f, generation_of(f), 3); }},
    {"a chunk ends behind its last part", REFUSED,
     [](LogFile &f) { put_chunk_word(f, generation_of(f), f.chunk_size() / PM_LINE); }},
    {"a chunk of the next generation", REFUSED,
     [](LogFile &f) { put_chunk_word(f, generation_of(f) + 1, 1); }},
    {"a chunk of the last generation", REFUSED,
     [](LogFile &f) { put_chunk_word(f, UINT32_MAX, 1); }},
    {"a chunk of the last generation that is valid whatever it is", READABLE,
     [](LogFile &f) { put_chunk_word(f, UINT32_MAX, 2); }},
    {"a void chunk has a header", HARMLESS,
     [](LogFile &f) {
         f.bytes.resize(f.bytes.size() + f.chunk_size());
         put(f.bytes, f.bytes.size() - f.chunk_size(), log_chunk_word(generation_of(f), 1));
     }},

    // tables: pm_check() reports some of those that open
    {"the table's seals are wrong", REFUSED,
     [](LogFile &f) {
         f.forge_word(table_word_of(f, SEGMENT_SLAB), segment_word(SEGMENT_SLAB, 4) ^ 1 << 4);
     }},
    {"no segment is in use", REFUSED,
     [](LogFile &f) {
         for (uint64_t i = 0; i < SEGMENTS; i++)
             if (f.place_of(FORMAT_TABLE + i * 8))
                 f.forge_word(FORMAT_TABLE + i * 8, 0);
     }},
    {"no segment is metadata", REFUSED, [](LogFile &f) { f.forge_word(FORMAT_TABLE, 0); }},
    {"the metadata is a slab", REFUSED,
     [](LogFile &f) { f.forge_word(FORMAT_TABLE, segment_word(SEGMENT_SLAB, 4)); }},
    {"a slab is metadata", REFUSED, forge_table<SEGMENT_SLAB, SEGMENT_META, 0>},
    {"a slab of objects without a size", REFUSED, forge_table<SEGMENT_SLAB, SEGMENT_SLAB, 0>},
    {"a slab of objects larger than itself", REFUSED,
     forge_table<SEGMENT_SLAB, SEGMENT_SLAB, UINT32_MAX>},
    {"a slab is a part of the log", HARMLESS, forge_table<SEGMENT_SLAB, SEGMENT_LOG, 0>},
    {"a slab is free", HARMLESS, forge_table<SEGMENT_SLAB, SEGMENT_FREE, 0>},
    {"a kind that does not exist", REFUSED, forge_table<SEGMENT_SLAB, 15, 0>},
    {"a large object without an end", REFUSED,
     forge_table<SEGMENT_LARGE, SEGMENT_LARGE, UINT32_MAX>},
    {"a large object of nothing", REFUSED, forge_table<SEGMENT_LARGE, SEGMENT_LARGE, 0>},
    {"the end of a large object without a beginning", REFUSED,
     forge_table<SEGMENT_LARGE, SEGMENT_MORE, UINT32_MAX>},
    {"a map of other segments", HARMLESS, forge_table<SEGMENT_MAP, SEGMENT_MAP, 1>},
    {"a map of segments that do not exist", REFUSED,
     forge_table<SEGMENT_MAP, SEGMENT_MAP, UINT32_MAX>},
    {"the root is behind the container", REFUSED,
     [](LogFile &f) { f.forge_word(ROOT, seal(f.max_lines() * PM_LINE)); }},
    {"the root is metadata", HARMLESS, [](LogFile &f) { f.forge_word(ROOT, seal(FORMAT_TABLE)); }},
    {"the root is larger than its object", REFUSED,
     [](LogFile &f) { f.forge_word(ROOT + 8, seal((UINT64_C(1) << SEAL_BITS) - 1)); }},

    // the state page
    {"an incarnation beyond all", REFUSED,
     [](LogFile &f) {
         put(f.bytes, FORMAT_STATE + offsetof(format_state, incarnation), seal(UINT64_C(1) << 32));
     }},
    {"the last incarnation", READABLE,
     [](LogFile &f) {
         put(f.bytes, FORMAT_STATE + offsetof(format_state, incarnation), seal(UINT32_MAX));
     }},
    {"a base epoch above all records", REFUSED,
     [](LogFile &f) { put(f.bytes, FORMAT_STATE, seal(f.newest_epoch() + 1)); }},
    {"a base epoch at the end of all epochs", REFUSED,
     [](LogFile &f) { put(f.bytes, FORMAT_STATE, seal(EPOCH_MAX)); }},
    {"a base epoch of another engine", REFUSED,
     [](LogFile &f) { put(f.bytes, FORMAT_STATE, seal(1 | BASE_REDO)); }},
};

class Forger
{
  public:
    Forger()
    {
        test::Directory directory;
        const std::string path = directory / "c.pm";
        REQUIRE_CLEAN(test::run("leaves_a_large_record", {path}));
        whole_ = test::read_file(path);
        const LogFile file(whole_);
        REQUIRE(file.newest().size() >= 3);
        const uint64_t end = file.newest().back().end();
        REQUIRE(file.chunk_of(end) ==
                file.chunk_of(end + 30 * PM_LINE)); // there is room for another
        REQUIRE(file.parts().size() > 30);
    }

    // False: it is refused.
    bool opens(const Forgery &forgery, bool fenced, unsigned flags)
    {
        LogFile file(whole_);
        forgery.forge(file);
        if (!fenced)
            put(file.bytes, FORMAT_STATE + offsetof(format_state, fenced_epoch), uint64_t{0});
        file_.fill(file.bytes);
        pm_options options = how(flags | PM_ACCEPT_COPY);
        test::Container c(pm_open(file_.path(), &options));
        if (!c) {
            const int error = errno;
            const std::string message = pm_errormsg();
            INFO("errno " << error << ", message: " << message);
            REQUIRE(error == EBADMSG);
            REQUIRE(message.find(file_.path()) == 0);
            REQUIRE(message.find("offset") != std::string::npos);
            return false;
        }
        call_all(c.release(), {file_.path(), !(flags & PM_READONLY), false});
        return true;
    }

    // What calls have left can be opened again, or is refused.
    void reopens()
    {
        pm_options options = how(PM_ACCEPT_COPY | PM_READONLY);
        test::Container c(pm_open(file_.path(), &options));
        REQUIRE((c || errno == EBADMSG));
        if (c)
            pm_check(c.get());
    }

  private:
    Bytes whole_;
    MemoryFile file_;
};

} // namespace

TEST_CASE("the checksums that tests compute are those of libpm")
{
    test::Directory directory;
    const std::string path = directory / "c.pm";
    REQUIRE_CLEAN(test::run("leaves_a_large_record", {path}));
    LogFile file(test::read_file(path));
    const Bytes before = file.bytes;
    file.seal_newest();
    const bool same = file.bytes == before;
    REQUIRE(same);
}

TEST_CASE("forged records, chunks and tables")
{
    const bool fenced = GENERATE(true, false);
    const unsigned flags = GENERATE(0u, (unsigned)PM_READONLY, (unsigned)PM_MOVABLE);
    Forger forger;
    uint64_t refused = 0;
    for (const Forgery &forgery : forgeries) {
        INFO(forgery.name << (fenced ? ", fenced" : "")
                          << (flags == PM_READONLY ? ", to a reader" : ""));
        const bool opens = forger.opens(forgery, fenced, flags);
        if (fenced)
            CHECK(opens == (forgery.fate == HARMLESS ||
                            (forgery.fate == READABLE && flags == PM_READONLY)));
        if (opens)
            forger.reopens();
        refused += !opens;
    }
    std::cout << refused << " of " << std::size(forgeries) << " refused\n";
    REQUIRE(refused >= 20);
}

/*
 * The bytes of a container of the log engine. The log is the home: what a commit appends stays where it is,
 * and for each line the newest piece counts (docs/internals/log.md, whose rules L1 ... are meant below).
 *
 *     chunk 0          header copy A | header copy B, guard | state page, as in format.h
 *     any other chunk  a line for its header | part | part | ... of commit records
 *
 * A line's number is its place in the container, not in the file. The container has objects, root, segment
 * table, bitmaps and pointer map where format.h has them. A line without a piece is zero, and so are all
 * lines of a new container, except that the segment table names the metadata's segments.
 */
#ifndef PM_CONTAINER_FORMAT_LOG_H
#define PM_CONTAINER_FORMAT_LOG_H

#include "container/format.h"

/* No chunk is larger; those of a container with smaller segments have a segment's size. */
#define LOG_CHUNK_MAX (UINT64_C(1) << 20)

static inline uint64_t log_chunk_size(uint64_t segment_size)
{
    return min_u64(segment_size, LOG_CHUNK_MAX);
}

/*
 * The first line of a chunk. Its word is 0 if the chunk is void. Otherwise it has a generation, in bits
 * 24..55, and in bits 0..23 the line up to which the parts are valid whatever their generation (L3).
 * Sealed.
 */
struct log_chunk {
    uint64_t word;
    uint64_t unused[7];
};

#define LOG_END_BITS 24

static inline uint64_t log_chunk_word(uint64_t generation, uint64_t end)
{
    return seal(generation << LOG_END_BITS | end);
}

static inline uint64_t log_chunk_end(uint64_t word)
{
    return word & ((UINT64_C(1) << LOG_END_BITS) - 1);
}

static inline uint32_t log_chunk_generation(uint64_t word)
{
    return (uint32_t)(seal_payload(word) >> LOG_END_BITS);
}

static_assert(LOG_CHUNK_MAX / PM_LINE < UINT64_C(1) << LOG_END_BITS, "a line's number fits");
static_assert(LOG_END_BITS + 32 == SEAL_BITS, "a word is full");

/*
 * A part of a commit record, in lines:
 *
 *   header, with the first runs of lines | further runs, 8 bytes each | contents of those lines
 *
 * A part lies in one chunk. Parts of one record have ascending numbers; the last one says that it is. In a
 * chunk parts have ascending epochs, and ascending numbers of an epoch. Metadata has no sums of its own, as
 * it has in other containers: its lines are in the map as all others are.
 */
struct log_part {
    uint64_t
        checksum; /* of the part with this field zero, mixed with its place and the container's seed */
    uint64_t epoch;
    uint64_t fenced; /* when the record was written, everything up to this epoch was durable (L2) */
    uint64_t map;    /* log_map_term() of all lines after this commit, added up */
    uint32_t generation; /* of its writer (L4) */
    uint32_t base;       /* log_base() of the address that the pointers mean after this commit */
    uint32_t number;     /* and LOG_LAST, LOG_ANEW, LOG_PAGES */
    uint16_t runs, lines;
    uint64_t run[2]; /* redo_run() values; those that do not fit are behind, and the last line is filled up
                        with zeros */
};

/* In `number`: this part is the record's last one; pieces of older generations count no more (L14); this part
 * has whole pages. */
#define LOG_LAST  (UINT32_C(1) << 31)
#define LOG_ANEW  (UINT32_C(1) << 30)
#define LOG_PAGES (UINT32_C(1) << 29)

/* A part is at most this long, header included. One of whole pages may fill its chunk. */
#define LOG_PART_LINES 1024u

/*
 * A part of whole pages has one run, of LOG_PAGES_MIN lines or more, from the start of a page on. Its
 * contents begin at the next page of the file behind the header. So they can be mapped. The lines in between
 * are whatever they were. The part's checksum is of the header alone; run[1] is the checksum of the contents.
 */
#define LOG_PAGES_MIN (16 * PM_PAGE_LINES)

static_assert(sizeof(struct log_part) == PM_LINE, "format");
static_assert(sizeof(struct log_chunk) == PM_LINE, "format");
static_assert(LOG_CHUNK_MAX / PM_LINE <= UINT16_MAX, "format");

/* Lines before the contents. */
static inline uint64_t log_part_head(uint64_t runs)
{
    return divide_up(offsetof(struct log_part, run) + runs * sizeof(uint64_t), PM_LINE);
}

static inline bool log_part_has_pages(const struct log_part *part)
{
    return part->number & LOG_PAGES;
}

/* The line where the contents begin of a part that is at line `at`, counted from the start of any page. */
static inline uint64_t log_part_contents(const struct log_part *part, uint64_t at)
{
    return log_part_has_pages(part) ? align_up(at + 1, PM_PAGE_LINES)
                                    : at + log_part_head(part->runs);
}

/* Lines that the part's checksum is of. */
static inline uint64_t log_part_summed(const struct log_part *part)
{
    return log_part_has_pages(part) ? 1 : log_part_head(part->runs) + part->lines;
}

/* Lines of what may be a part at line `at`, with `room` lines left in its chunk; 0: it cannot be one. Nothing
 * else of it has been checked. */
static inline uint64_t log_part_lines(const struct log_part *part, uint64_t at, uint64_t room)
{
    uint64_t lines = log_part_contents(part, at) - at + part->lines;
    bool fits = log_part_has_pages(part) ? part->runs == 1 && part->lines % PM_PAGE_LINES == 0
                                         : part->runs > 0 && lines <= LOG_PART_LINES;
    return fits && lines <= room ? lines : 0;
}

static inline uint32_t log_part_number(const struct log_part *part)
{
    return part->number & ~(LOG_LAST | LOG_ANEW | LOG_PAGES);
}

/*
 * The *map* says where the newest piece of each line is: in which line of the file, 0 for none. The sum over
 * the map is in each record. So recovery notices if any piece is missing or stale, whatever became of its
 * chunk. 32 bits reach 256 GiB of file.
 */
#define LOG_FILE_MAX ((uint64_t)PM_LINE << 32)

static inline uint64_t log_map_term(uint64_t seed, uint64_t line, uint32_t place)
{
    unsigned __int128 product =
        (unsigned __int128)((line ^ seed) * UINT64_C(0x9E3779B97F4A7C15) | 1) *
        (place * UINT64_C(0xD1342543DE82EF95));
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* How a line's term changes when its newest piece moves. */
static inline uint64_t log_map_change(uint64_t seed, uint64_t line, uint32_t from, uint32_t to)
{
    return log_map_term(seed, line, to) - log_map_term(seed, line, from);
}

/* Pointers mean a slot of the arena: its number. */
static inline uint32_t log_base(uint64_t address)
{
    return (uint32_t)(address >> 30);
}

#endif

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
 * 24..55, and in bits 0..23 the line up to which the parts are valid whatever their generation (L3), or
 * LOG_END_IMAGES. Sealed.
 *
 * `begun` is the epoch of the commit that began to fill the chunk, and 0 if that is not known. A void chunk
 * has 0 there. So if only the word of a new header is durable, `begun` is 0 (K3). In older containers it is
 * always 0.
 */
struct log_chunk {
    uint64_t word;
    uint64_t begun;
    uint64_t unused[6];
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

/* The chunk has no records. It has images of the map, as checkpoints leave them. */
#define LOG_END_IMAGES ((UINT64_C(1) << LOG_END_BITS) - 1)

static inline bool log_chunk_has_images(uint64_t word)
{
    return log_chunk_end(word) == LOG_END_IMAGES;
}

static_assert(LOG_CHUNK_MAX / PM_LINE < LOG_END_IMAGES, "a line's number fits");
static_assert(LOG_END_BITS + 32 == SEAL_BITS, "a word is full");

/*
 * A part of a commit record, in lines:
 *
 *   header, with the first words of the table | the other words | contents of the runs' lines
 *
 * The table has two kinds of entries: a run of lines whose contents follow, or a delta. A part lies in one
 * chunk. Parts of one record have ascending numbers; the last one says that it is. In a chunk parts have
 * ascending epochs, and ascending numbers of an epoch. Metadata has no sums of its own, as it has in other
 * containers: its lines are in the map as all others are.
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
    uint16_t words;      /* of the table */
    uint16_t lines;      /* of its runs */
    uint64_t table[2];   /* what does not fit is behind; the last line is filled up with zeros */
};

/*
 * A *delta* has the words of a line that have changed since the line was logged as a whole. It has all of
 * them, so an older delta of the line is not needed any more (L16). The first word says which ones, a bit for
 * each in bits 40..47, and the line's number in bits 0..39. The changed words follow, the lowest first. In a
 * run, as redo_run() makes it, bit 63 is clear, because no part has so many lines.
 */
#define LOG_DELTA (UINT64_C(1) << 63)

/* A longer one saves little, and keeps two places in use. With six words a commit wrote 6 % more, since the
 * cleaner had more to move, and took 10 % longer. */
#define LOG_DELTA_WORDS_MAX 4u

static inline uint64_t log_delta(uint64_t line, uint64_t mask)
{
    return LOG_DELTA | mask << 40 | line;
}

static inline bool log_is_delta(uint64_t entry)
{
    return entry & LOG_DELTA;
}

static inline uint32_t log_delta_mask(uint64_t entry)
{
    return (uint32_t)(entry >> 40) & 0xFF;
}

/* How many words a mask says. A table, for not every processor counts bits: a function would have nine
 * instructions, three times for each line of a commit. */
#define LOG_MASK_2(n) n, n + 1, n + 1, n + 2
#define LOG_MASK_4(n) LOG_MASK_2(n), LOG_MASK_2(n + 1), LOG_MASK_2(n + 1), LOG_MASK_2(n + 2)
#define LOG_MASK_6(n) LOG_MASK_4(n), LOG_MASK_4(n + 1), LOG_MASK_4(n + 1), LOG_MASK_4(n + 2)
static const uint8_t log_mask_words[256] = {LOG_MASK_6(0), LOG_MASK_6(1), LOG_MASK_6(1), LOG_MASK_6(2)};

static inline uint32_t log_count_words(uint32_t mask)
{
    return log_mask_words[mask];
}

/* Words of an entry of the table, and lines that it has in the contents. */
static inline uint32_t log_entry_words(uint64_t entry)
{
    return log_is_delta(entry) ? 1 + log_count_words(log_delta_mask(entry)) : 1;
}

static inline uint64_t log_entry_lines(uint64_t entry)
{
    return log_is_delta(entry) ? 0 : run_count(entry);
}

/* Copy the words of a line that a delta has. Returns the end of the copy. */
static inline uint64_t *log_put_delta(uint64_t *to, uint64_t line, uint32_t mask,
                                      const void *contents)
{
    *to++ = log_delta(line, mask);
    for (; mask != 0; mask &= mask - 1)
        *to++ = ((const uint64_t *)contents)[__builtin_ctz(mask)];
    return to;
}

/* Write the words of a delta, which follow it in the table, to the line. */
static inline void log_apply_delta(uint64_t *line, uint32_t mask, const uint64_t *words)
{
    for (; mask != 0; mask &= mask - 1)
        line[__builtin_ctz(mask)] = *words++;
}

/* In `number`. LOG_LAST: this part is the record's last one. LOG_ANEW: pieces of older generations count no
 * more, as compactions of FORMAT_LOG_KEEPING said. LOG_PAGES: this part has whole pages. */
#define LOG_LAST  (UINT32_C(1) << 31)
#define LOG_ANEW  (UINT32_C(1) << 30)
#define LOG_PAGES (UINT32_C(1) << 29)

/* A part is at most this long, header included. One of whole pages may fill its chunk. */
#define LOG_PART_LINES 1024u

/*
 * A part of whole pages has one run, of LOG_PAGES_MIN lines or more, from the start of a page on. Its
 * contents begin at the next page of the file behind the header. So they can be mapped. The lines in between
 * are whatever they were. The part's checksum is of the header alone; table[1] is that of the contents.
 */
#define LOG_PAGES_MIN (16 * PM_PAGE_LINES)

static_assert(sizeof(struct log_part) == PM_LINE, "format");
static_assert(sizeof(struct log_chunk) == PM_LINE, "format");
static_assert(LOG_CHUNK_MAX / PM_LINE <= UINT16_MAX, "format");

/* The word of the file where the table of a part begins that is at line `place`. */
static inline uint64_t log_table_word(uint64_t place)
{
    return (place * PM_LINE + offsetof(struct log_part, table)) / sizeof(uint64_t);
}

/* Lines before the contents. */
static inline uint64_t log_part_head(uint64_t words)
{
    return divide_up(offsetof(struct log_part, table) + words * sizeof(uint64_t), PM_LINE);
}

static inline bool log_part_has_pages(const struct log_part *part)
{
    return part->number & LOG_PAGES;
}

/* The line where the contents begin of a part that is at line `at`, counted from the start of any page. */
static inline uint64_t log_part_contents(const struct log_part *part, uint64_t at)
{
    return log_part_has_pages(part) ? align_up(at + 1, PM_PAGE_LINES)
                                    : at + log_part_head(part->words);
}

/* Lines that the part's checksum is of. */
static inline uint64_t log_part_summed(const struct log_part *part)
{
    return log_part_has_pages(part) ? 1 : log_part_head(part->words) + part->lines;
}

/* Lines of what may be a part at line `at`, with `room` lines left in its chunk; 0: it cannot be one. Nothing
 * else of it has been checked. */
static inline uint64_t log_part_lines(const struct log_part *part, uint64_t at, uint64_t room)
{
    uint64_t lines = log_part_contents(part, at) - at + part->lines;
    bool fits = log_part_has_pages(part) ? part->words == 1 && part->lines % PM_PAGE_LINES == 0
                                         : part->words > 0 && lines <= LOG_PART_LINES;
    return fits && lines <= room ? lines : 0;
}

static inline uint32_t log_part_number(const struct log_part *part)
{
    return part->number & ~(LOG_LAST | LOG_ANEW | LOG_PAGES);
}

/*
 * The *map* says where the newest pieces of each line are: in which line of the file the line is as a whole,
 * 0 for nowhere; and at which word of the file its delta is, if it has one. The sum over the map is in each
 * record. So recovery notices if any piece is missing or stale, whatever became of its chunk. A bit of 32
 * says that there is a delta, so 128 GiB of file can be reached.
 */
#define LOG_FILE_MAX ((uint64_t)PM_LINE << 31)

/* The most bytes of a file whose container has so many addresses. Lines with the largest deltas take 3.3
 * times as much as without, and half of what is in use may be dead. A process reserves addresses for all. */
static inline uint64_t log_file_max(uint64_t max_size)
{
    return max_u64(UINT64_C(64) << 20, min_u64(8 * max_size, LOG_FILE_MAX));
}

static inline uint64_t log_line_hash(uint64_t seed, uint64_t line)
{
    return (line ^ seed) * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

/* What a piece adds to the sum, that is in line `place` of the file; for a delta, log_delta_place(). */
static inline uint64_t log_place_term(uint64_t line_hash, uint64_t place)
{
    unsigned __int128 product =
        (unsigned __int128)line_hash * (place * UINT64_C(0xD1342543DE82EF95));
    return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

static inline uint64_t log_map_term(uint64_t seed, uint64_t line, uint64_t place)
{
    return log_place_term(log_line_hash(seed, line), place);
}

/* A word of the file, as a place that no line has. */
static inline uint64_t log_delta_place(uint64_t word)
{
    return UINT64_C(1) << 40 | word;
}

/*
 * A *checkpoint* says what the map was after a commit, so that nobody needs to read the records up to there.
 * The map is cut into units of LOG_UNIT_LINES lines. Each unit that has anything has an image, and a root
 * says where the images are. Images and roots lie in chunks of their own, each with this header.
 */
struct log_image {
    uint64_t checksum; /* as that of a part */
    uint64_t epoch;    /* the map, or this unit of it, is as this commit left it */
    uint32_t number;   /* the unit's; or which piece of a root it is, and LOG_ROOT */
    uint32_t words;    /* behind this header */
    uint32_t next;     /* of a piece of a root: in which line of the file the next one is; 0: none is */
    uint16_t packed;   /* of a unit's: LOG_RUNS, LOG_NONE_LEFT. 0 up to FORMAT_LOG_UNPACKED */
    uint16_t runs;     /* LOG_RUNS: how many */
    uint64_t unused[4];
};

#define LOG_UNIT_LINES UINT64_C(1024)
#define LOG_ROOT       (UINT32_C(1) << 31)

/*
 * The words of a unit's image:
 *
 *   places: where the file has each line as a whole │ left: which lines have no owner, but pieces │ deltas
 *
 * Places are a table, four bytes for each line, 0 for nowhere. Or they are runs, log_unit_run(), if that
 * takes fewer words. Left are a bit for each line, or nothing if all bits are zero. A delta is
 * log_unit_delta(), of each line that has one. Runs and deltas are in ascending order.
 */
#define LOG_RUNS        1u /* there are runs instead of the table */
#define LOG_NONE_LEFT   2u /* there are no bits */

#define LOG_TABLE_WORDS (LOG_UNIT_LINES * sizeof(uint32_t) / sizeof(uint64_t))
#define LOG_LEFT_WORDS  (LOG_UNIT_LINES / 64)

static inline uint64_t log_place_words(const struct log_image *image)
{
    return image->packed & LOG_RUNS ? image->runs : LOG_TABLE_WORDS;
}

static inline uint64_t log_left_words(const struct log_image *image)
{
    return image->packed & LOG_NONE_LEFT ? 0 : LOG_LEFT_WORDS;
}

/* So many lines of the unit lie one behind the other in the file. */
static inline uint64_t log_unit_run(uint64_t line_in_unit, uint64_t count, uint64_t place)
{
    return line_in_unit << 48 | count << 32 | place;
}

static inline uint64_t log_unit_run_line(uint64_t run)
{
    return run >> 48;
}

static inline uint64_t log_unit_run_count(uint64_t run)
{
    return run >> 32 & UINT16_MAX;
}

static inline uint32_t log_unit_run_place(uint64_t run)
{
    return (uint32_t)run;
}

static inline uint64_t log_unit_delta(uint64_t line_in_unit, uint64_t mask, uint64_t word)
{
    return line_in_unit << 48 | mask << 40 | word;
}

static inline uint64_t log_unit_delta_line(uint64_t delta)
{
    return delta >> 48;
}

static inline uint64_t log_unit_delta_word(uint64_t delta)
{
    return delta & ((UINT64_C(1) << 40) - 1);
}

/* The words of a root: those of its pieces, one piece after the other. Behind this head there is a word for
 * each chunk, then one for each unit, and then a byte for each unit: how many lines its image has. So an
 * opening needs no image to know what each chunk has. Up to FORMAT_LOG_UNPACKED there are no bytes. */
struct log_root {
    uint64_t map;    /* log_map_term() of all lines, added up */
    uint64_t lines;  /* that have pieces */
    uint32_t base;   /* as in a part */
    uint32_t chunks; /* of the file, up to the last one in use, or more */
    uint32_t units;
    uint32_t segments; /* of the container */
};

struct log_root_chunk {
    uint32_t end;  /* the line where its records end; 0: it has none */
    uint32_t live; /* words of pieces in it that count */
};

/* The half of the image's checksum tells an image from an older one that was at the same place. */
struct log_root_unit {
    uint32_t place; /* the line of the file where the unit's image is; 0: it has none */
    uint32_t sum;   /* the lower half of the image's checksum */
};

static inline struct log_root_chunk *log_root_chunks(struct log_root *root)
{
    return (struct log_root_chunk *)(root + 1);
}

static inline struct log_root_unit *log_root_units(struct log_root *root)
{
    return (struct log_root_unit *)(log_root_chunks(root) + root->chunks);
}

static inline uint8_t *log_root_lines(struct log_root *root)
{
    return (uint8_t *)(log_root_units(root) + root->units);
}

/* Words of a root up to those bytes, and with them. */
static inline uint64_t log_root_words(uint64_t chunks, uint64_t units)
{
    return sizeof(struct log_root) / sizeof(uint64_t) + chunks + units;
}

static inline uint64_t log_root_words_with_lines(uint64_t chunks, uint64_t units)
{
    return log_root_words(chunks, units) + divide_up(units, sizeof(uint64_t));
}

/* Lines of an image that is not packed and has no deltas. Lines of the longest image. Words of a piece of a
 * root. */
#define LOG_TABLE_LINES (1 + (LOG_TABLE_WORDS + LOG_LEFT_WORDS) * sizeof(uint64_t) / PM_LINE)
#define LOG_IMAGE_LINES (LOG_TABLE_LINES + LOG_UNIT_LINES * sizeof(uint64_t) / PM_LINE)
#define LOG_ROOT_WORDS  ((LOG_IMAGE_LINES - 1) * PM_LINE / sizeof(uint64_t))

static inline uint64_t log_image_lines(const struct log_image *image)
{
    return 1 + divide_up(image->words * sizeof(uint64_t), PM_LINE);
}

static_assert(sizeof(struct log_image) == PM_LINE, "format");
static_assert((LOG_TABLE_WORDS + LOG_LEFT_WORDS) * sizeof(uint64_t) % PM_LINE == 0, "format");
static_assert(LOG_IMAGE_LINES <= UINT8_MAX, "format");
static_assert(sizeof(struct log_root) % sizeof(uint64_t) == 0 &&
                  sizeof(struct log_root_chunk) == 8 && sizeof(struct log_root_unit) == 8,
              "format");
static_assert(FORMAT_SEGMENT_MIN / PM_LINE % LOG_UNIT_LINES == 0, "a container has whole units");

/* The first line that is ever logged. In front are the headers, and words that are changed in place. */
#define LOG_LINE_MIN ((FORMAT_STATE + PM_LINE) / PM_LINE)

/* Pointers mean a slot of the arena: its number. */
static inline uint32_t log_base(uint64_t address)
{
    return (uint32_t)(address >> 30);
}

#endif

/*
 * The bytes on the medium. docs/format.md describes them for humans; the static_asserts below pin
 * them. Little-endian; all offsets are bytes from the start of the file unless a name says pages,
 * segments or slots.
 *
 *     segment 0 ..         metadata: header copy A | header copy B, guard | state page | segment table
 *     any other segment    as its word in the segment table says: free, a slab of objects of one
 *                          size, a run holding one large object, a part of the log (dlog), or of the
 *                          pointer map
 *
 * Three kinds of metadata, by how they change:
 *
 *     header       written at creation only; each copy has a checksum
 *     in place     sealed words of the state page:
 *                  - base epoch (recovery, close) and, in the same round, who has the file open
 *                  - base address and the other words of a relocation, each with its own round
 *                  - the words that say what was fenced, without a round
 *     journaled    root, modules, segment table, bitmaps, pointer map: sealed words, changed by commit
 *                  records only; sums over them are in each record and in the state page
 *                  (container/sums.h)
 *
 * A damaged sector may come back as zeros, or with older contents. If zero has no meaning for a word,
 * libpm does not accept zero there. Words that are changed in place have a guard in another sector.
 */
#ifndef PM_CONTAINER_FORMAT_H
#define PM_CONTAINER_FORMAT_H

#include "base/bits.h"
#include "base/seal.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT_MAGIC           "LIBPM\r\n\x1a" /* shows damage by text-mode transfers, as PNG's does */
#define FORMAT_VERSION         3u
#define FORMAT_VERSION_OLDEST  2u /* without sums and guard; the first open for writing adds them */
#define FORMAT_VERSION_LOG     9u /* a container of the log engine */
#define FORMAT_LOG_UNPACKED    8u /* likewise, but images of its checkpoints are longer; it stays so */
#define FORMAT_LOG_BARE_ROOTS  7u /* likewise, but its checkpoints are not used; it stays so */
#define FORMAT_LOG_UNCHECKED   6u /* likewise, but without checkpoints; it stays so */
#define FORMAT_LOG_KEEPING     5u /* likewise, but freed lines keep their pieces; it stays so */
#define FORMAT_LOG_OLDEST      4u /* likewise, but without deltas; it stays so */

#define FORMAT_SEGMENT_MIN     (UINT64_C(64) << 10)
#define FORMAT_SEGMENT_MAX     (UINT64_C(1) << 30)
#define FORMAT_SIZE_MAX        (UINT64_C(4) << 40)
#define FORMAT_GRANULARITY_MIN 16u
#define FORMAT_GRANULARITY_MAX 4096u
#define FORMAT_LAYOUT_BYTES    128u

/* ---- metadata ---------------------------------------------------------------------------- */

struct format_header {
    char magic[8];
    uint32_t version;
    uint32_t page_size;    /* PM_PAGE */
    uint64_t header_bytes; /* sizeof(struct format_header) */
    uint64_t id[2];        /* random; seeds every checksum, so that containers do not mix */
    uint64_t segment_size; /* bytes */
    uint64_t max_size;     /* bytes; a multiple of segment_size */
    uint32_t granularity;  /* bytes */
    uint32_t meta_segments;
    char layout[FORMAT_LAYOUT_BYTES]; /* NUL-padded */
    uint64_t checksum;                /* of all bytes before it */
};

/* The base epoch of a new container. */
#define EPOCH_CREATED UINT64_C(1)

struct format_state {
    uint64_t base_epoch;    /* sealed, never 0; the log's contents of this and older epochs are void;
                               and BASE_REDO: the log of later epochs is the redo engine's */
    uint64_t fenced_epoch;  /* sealed; see below */
    uint64_t fenced_images; /* sealed; undo: fenced_images() */
    uint64_t mark;          /* sealed; see below */
    uint64_t
        incarnation; /* sealed; log engine: number of openings for writing, and of compactions (L4) */
    uint64_t checkpoint; /* sealed; log engine: where the file has the root of a checkpoint; 0: nowhere */
    uint64_t unused[2];
    uint64_t root_offset; /* sealed, journaled; 0: no root */
    uint64_t root_size;   /* sealed, journaled; bytes */
    uint64_t unused_too[6];
    uint64_t base;    /* sealed; the pointers mean this address of the container's first byte */
    uint64_t target;  /* sealed; not 0: pointers are being relocated there, and some have arrived */
    uint64_t movable; /* sealed; enum movable */
    uint64_t unused_three[5];
    uint64_t sums; /* sums_word() of the last commit; if the log counts, its newest record has it */
};

/*
 * A second copy of words of the state page, in a sector of its own. If an older copy has replaced the
 * state page, the guard contradicts it. The guard is written after the words it guards, and fenced
 * before they change again.
 */
struct format_guard {
    uint64_t epoch;   /* sealed, never 0; this commit, and all before it, are durable */
    uint64_t base;    /* sealed; as the state page's, unless pointers are being relocated */
    uint64_t movable; /* sealed; as the state page's, or its value before */
};

enum movable {
    MOVABLE_NEVER = 0,
    MOVABLE_NOW = 1,  /* all programs that wrote here vouched that pointers are in the map */
    MOVABLE_ONCE = 2, /* was MOVABLE_NOW, until a program wrote here that did not vouch */
};

#define BASE_REDO (UINT64_C(1) << (SEAL_BITS - 1))

/*
 * Two words say what the log must hold. Without them a damaged record would look like a record torn by a
 * crash, and recovery would take the commit before it for the last. They are stored after the fence that
 * they report, and no fence waits for them. So after a power failure they may say less than is true,
 * never more.
 *
 *     fenced_epoch    this epoch's commit, and all before it, was fenced
 *     fenced_images   bits 30..55: lower bits of an epoch. All slots below bits 0..29 were fenced, in
 *                     the half of the log that serves this epoch
 */
#define FENCED_SLOT_BITS 30

static inline uint64_t fenced_images(uint64_t epoch, uint64_t slots)
{
    uint64_t payload = epoch << FENCED_SLOT_BITS | slots;
    return seal(seal_payload(payload));
}

static_assert(FORMAT_SIZE_MAX / PM_PAGE <= UINT64_C(1) << FENCED_SLOT_BITS, "slots fit");

/*
 * The mark says whether a program has the file open for writing, and identifies the file. So libpm
 * recognises a copy that was made meanwhile (container/identity.c). The mark is stored with the base
 * epoch: at open before the first store, at close after the last.
 *
 *   MARK_NONE    written by a libpm that had no marks
 *   MARK_CLOSED  nobody has
 *   MARK_OPEN    somebody has, or had when it ended
 *       bit  54      MARK_LASTING: inode numbers last on its file system
 *       bits 27..53  hash of its birth time; 0: the file system has none
 *       bits  0..26  hash of its inode number
 */
#define MARK_NONE      UINT64_C(0)
#define MARK_CLOSED    seal(1)
#define MARK_OPEN      (UINT64_C(1) << 55)
#define MARK_LASTING   (UINT64_C(1) << 54)
#define MARK_HASH_BITS 27

static inline uint64_t mark_open(bool lasting, uint64_t birth, uint64_t inode)
{
    return seal(MARK_OPEN | (lasting ? MARK_LASTING : 0) | birth << MARK_HASH_BITS | inode);
}

static inline uint64_t mark_birth(uint64_t mark)
{
    return mark >> MARK_HASH_BITS & ((UINT64_C(1) << MARK_HASH_BITS) - 1);
}

static inline uint64_t mark_inode(uint64_t mark)
{
    return mark & ((UINT64_C(1) << MARK_HASH_BITS) - 1);
}

static inline bool mark_is_valid(uint64_t mark)
{
    return mark == MARK_NONE || mark == MARK_CLOSED || (seal_is_valid(mark) && mark & MARK_OPEN);
}

static_assert(2 * MARK_HASH_BITS + 2 == SEAL_BITS, "format");

/*
 * A program or library into which pointers of the container lead. `base` is the module's address when
 * the first of these pointers was committed. Home keeps the pointers for that address; in another run
 * the module lies elsewhere. Every word is sealed and journaled; text has 7 bytes a word.
 */
struct format_module {
    uint64_t id;        /* derived from its build-id; 0: no module */
    uint64_t base;      /* address of its first byte, a page's */
    uint64_t size;      /* bytes, whole pages */
    uint64_t name[5];   /* of its file, without directories; cut off if it is longer */
    uint64_t first;     /* bytes from the first byte to the target of the first pointer */
    uint64_t symbol[7]; /* the target's name, text as `name`; none if it is not exported */
};

#define FORMAT_MODULES_MAX 30

#define FORMAT_HEADER_A    UINT64_C(0)
#define FORMAT_HEADER_B    PM_PAGE
#define FORMAT_GUARD       (FORMAT_HEADER_B + PM_PAGE / 2)
#define FORMAT_STATE       (2 * PM_PAGE)
#define FORMAT_MARK        (FORMAT_STATE + offsetof(struct format_state, mark))
#define FORMAT_MODULES     (FORMAT_STATE + 256)
#define FORMAT_TABLE       (3 * PM_PAGE) /* one word for each segment up to max_size */

static_assert(sizeof(struct format_header) == 200, "format");
static_assert(offsetof(struct format_header, layout) == 64, "format");
static_assert(offsetof(struct format_header, checksum) == 192, "format");
static_assert(sizeof(struct format_state) == 200, "format");
static_assert(offsetof(struct format_state, mark) == 24, "in the line of base_epoch");
static_assert(offsetof(struct format_state, root_offset) == 64, "a line apart from base_epoch");
static_assert(offsetof(struct format_state, base) == 128, "format");
static_assert(offsetof(struct format_state, sums) == 192, "a line apart from base_epoch");
static_assert(FORMAT_HEADER_B + sizeof(struct format_header) <= FORMAT_GUARD, "format");
static_assert(FORMAT_GUARD + sizeof(struct format_guard) <= FORMAT_STATE, "format");
static_assert(sizeof(struct format_state) <= FORMAT_MODULES - FORMAT_STATE, "format");
static_assert(sizeof(struct format_module) == 128, "format");
static_assert(FORMAT_MODULES + FORMAT_MODULES_MAX * sizeof(struct format_module) == FORMAT_TABLE,
              "format");

/* Segments taken by metadata: the fixed pages and the table. */
static inline uint64_t format_meta_segments(uint64_t segment_size, uint64_t max_size)
{
    return divide_up(FORMAT_TABLE + max_size / segment_size * sizeof(uint64_t), segment_size);
}

/* ---- words of the segment table ------------------------------------------------------------
 *
 *   bits  0..3   kind
 *   bits  4..35  argument of the kind
 *   bits 36..55  zero, but for SEGMENT_LOG
 *   bits 56..63  seal
 */

enum segment_kind {
    SEGMENT_FREE = 0, /* the whole word is zero */
    SEGMENT_META = 1,
    SEGMENT_SLAB = 2,  /* argument: object size in units of FORMAT_GRANULARITY_MIN */
    SEGMENT_LARGE = 3, /* first of a run that holds one object; argument: segments of the run */
    SEGMENT_MORE = 4,  /* later segment of a run; argument: segments back to the first */
    SEGMENT_LOG = 5,   /* argument: order within its half of the log; bit 36: which half */
    SEGMENT_MAP = 6,   /* argument: the group of segments whose pointers it maps */
};

#define SEGMENT_LOG_HALF_SHIFT 36

static inline uint64_t segment_word(enum segment_kind kind, uint64_t argument)
{
    return seal((uint64_t)kind | argument << 4);
}

static inline uint64_t segment_log_word(unsigned half, uint32_t order)
{
    return seal((uint64_t)SEGMENT_LOG | (uint64_t)order << 4 |
                (uint64_t)half << SEGMENT_LOG_HALF_SHIFT);
}

static inline enum segment_kind segment_kind(uint64_t word)
{
    return (enum segment_kind)(word & 15);
}

/* Whether a large object lies in the segment, or a part of one. */
static inline bool segment_is_large(uint64_t word)
{
    return segment_kind(word) == SEGMENT_LARGE || segment_kind(word) == SEGMENT_MORE;
}

/* Whether objects lie in the segment. */
static inline bool segment_is_data(uint64_t word)
{
    return segment_kind(word) == SEGMENT_SLAB || segment_is_large(word);
}

static inline uint32_t segment_argument(uint64_t word)
{
    return (uint32_t)(word >> 4);
}

static inline unsigned segment_log_half(uint64_t word)
{
    return word >> SEGMENT_LOG_HALF_SHIFT & 1;
}

/* ---- slabs ---------------------------------------------------------------------------------
 *
 *   | bitmap: one bit an object, 1 = in use | padding to a page | object 0 | object 1 | ...
 *
 * The bitmap's words are sealed, so each has the bits of BITMAP_SLOTS objects.
 *
 * The objects begin on a page, so an object whose size is a multiple of an alignment up to a page
 * is aligned to it.
 */

#define BITMAP_SLOTS ((uint32_t)SEAL_BITS)

static inline uint32_t bitmap_words(uint64_t slots)
{
    return (uint32_t)divide_up(slots, BITMAP_SLOTS);
}

/* Whether slot `slot` is in use. */
static inline bool bitmap_has(const uint64_t *bitmap, uint32_t slot)
{
    return bitmap[slot / BITMAP_SLOTS] >> slot % BITMAP_SLOTS & 1;
}

/* The bits of slots [first, end) that are in word `word`. */
static inline uint64_t bitmap_mask(uint32_t word, uint64_t first, uint64_t end)
{
    uint64_t low = (uint64_t)word * BITMAP_SLOTS;
    first = max_u64(first, low);
    end = min_u64(end, low + BITMAP_SLOTS);
    return first < end ? bits_between(first - low, end - low) : 0;
}

struct slab_shape {
    uint32_t object_size;  /* bytes */
    uint32_t objects;      /* how many fit */
    uint32_t header_bytes; /* bitmap and padding */
};

static inline struct slab_shape slab_shape(uint64_t segment_size, uint32_t object_size)
{
    /* The bitmap never needs more pages than if the whole segment were objects. */
    uint64_t most = segment_size / object_size;
    uint64_t header = align_up(bitmap_words(most) * sizeof(uint64_t), PM_PAGE);
    return (struct slab_shape){.object_size = object_size,
                               .objects = (uint32_t)((segment_size - header) / object_size),
                               .header_bytes = (uint32_t)header};
}

/* ---- the pointer map -----------------------------------------------------------------------
 *
 * A segment of sealed words, each of 56 bits. Bit i of word w is set if the 8 bytes at (w * 56 + i) * 8
 * of the group hold a pointer. So a map segment describes 56 segments: group g has the segments
 * [56 g, 56 g + 56).
 */

#define MAP_WORD_BYTES     (SEAL_BITS * 8u) /* bytes of data that a word of the map describes */
#define MAP_WORD_LINES     (MAP_WORD_BYTES / PM_LINE)
#define MAP_GROUP_SEGMENTS SEAL_BITS

static inline uint32_t format_map_groups(uint64_t segments)
{
    return (uint32_t)divide_up(segments, MAP_GROUP_SEGMENTS);
}

/* ---- the log -------------------------------------------------------------------------------
 *
 * The undo engine uses two halves. With half e % 2 recovery can go back to the start of epoch e. The half
 * holds commit record e - 1, then pre-images of the pages that e changed. A half is a row of slots of one
 * page each, over all its segments by their order; a segment holds
 *
 *   | descriptors, one a slot | padding to a page | slot 0 | slot 1 | ... | slot n - 1
 *
 * The record fills the first slots of the half, as many as it needs. Its bytes run on from slot to slot;
 * the descriptors of its slots are not used. A slot holds a pre-image of epoch e if and only if its
 * descriptor has that epoch and its checksum fits the slot's contents.
 */

struct log_descriptor {
    uint64_t epoch;
    uint64_t page; /* number of the page in the file */
    uint64_t sum;  /* checksum_mix(checksum of the contents, epoch, page) */
    uint64_t unused;
};

static_assert(sizeof(struct log_descriptor) == 32, "format");

static inline uint32_t log_segment_slots(uint64_t segment_size)
{
    return (uint32_t)((segment_size - PM_PAGE) / (PM_PAGE + sizeof(struct log_descriptor)));
}

static inline uint64_t log_segment_first_slot(uint64_t segment_size)
{
    return segment_size - log_segment_slots(segment_size) * PM_PAGE;
}

/* A commit record of the undo engine: this header, then clears, words and pages. */
struct log_record {
    char magic[8];
    uint64_t epoch;
    uint64_t bytes;  /* of the whole record */
    uint64_t clears; /* count of struct record_clear */
    uint64_t words;  /* count of struct record_word */
    uint64_t pages;  /* count of struct record_page */
    uint64_t sums;   /* sums_word() after this commit */
    uint64_t checksum; /* of the whole record with this field zero */
};

struct record_clear { /* bitmap of a new slab: zero before the words are applied */
    uint64_t offset;
    uint64_t bytes;
};

struct record_word { /* a journaled word's new value */
    uint64_t offset;
    uint64_t value;
};

struct record_page { /* a page that the transaction opened, and that holds a live object afterwards */
    uint64_t page;
    uint64_t sum; /* checksum of its contents */
};

#define RECORD_MAGIC "PMrecord"

/*
 * The redo engine uses all segments of the log alike. A commit record is a stream of
 *
 *   clears | words | fresh ranges | runs of lines | the contents of those lines
 *
 * cut into parts, each with a header. The parts in a segment follow each other from its first byte on,
 * each on a line of its own. A record may continue in any other segment whose parts are all void. A part
 * is valid if and only if its checksum fits. A record is whole if and only if its parts make up `total`
 * bytes, and each part names the checksum of the part before.
 */
struct redo_part {
    uint64_t epoch;
    uint64_t fenced;   /* when the record was written, everything up to this epoch was durable */
    uint64_t total;    /* bytes of the whole record's stream */
    uint64_t previous; /* checksum of the part before; in the first part sums_word() after this
                          commit */
    uint32_t number;   /* of the part in its record, from 0 */
    uint32_t bytes;    /* of the stream in this part */
    uint32_t clears, words, fresh, runs; /* counts, the same in all parts */
    uint64_t checksum; /* of this header, with this field zero, and the part's bytes; mixed with
                          the part's offset in the file and the container's seed */
};

struct redo_fresh { /* lines written straight home, in the record's round */
    uint64_t offset;
    uint64_t bytes;
    uint64_t sum; /* checksum of their contents */
};

/* A run of adjacent lines: number of the first line in bits 0..39, count less one in bits 40..63. */
#define RUN_LINES_MAX (UINT64_C(1) << 24)

static inline uint64_t redo_run(uint64_t line, uint64_t count)
{
    return line | (count - 1) << 40;
}

static inline uint64_t run_line(uint64_t run)
{
    return run & ((UINT64_C(1) << 40) - 1);
}

static inline uint64_t run_count(uint64_t run)
{
    return (run >> 40) + 1;
}

/* Add a line to a run, if the run ends there. */
static inline bool run_extend(uint64_t *run, uint64_t line)
{
    uint64_t count = run_count(*run);
    if (run_line(*run) + count != line || count == RUN_LINES_MAX)
        return false;
    *run = redo_run(run_line(*run), count + 1);
    return true;
}

static_assert(sizeof(struct redo_part) == PM_LINE, "format");
static_assert(sizeof(struct redo_fresh) == 24, "format");

static_assert(sizeof(struct log_record) == 64, "format");
static_assert(sizeof(struct record_clear) == 16, "format");
static_assert(sizeof(struct record_word) == 16, "format");
static_assert(sizeof(struct record_page) == 16, "format");

#endif

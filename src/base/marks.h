/*
 * The *mark* of a store: code that pmcc puts before each store that may hit the arena. The plugin in
 * llvm-pass/ emits the code, and this header defines it. Both sides include this header.
 *
 *     offset = address - ARENA_HINT
 *     if (offset < ARENA_SIZE)                          # sub, shr, jne: the cost of all other stores
 *         if (MARKS_TABLE[offset / 64] == 0)            # shr, cmpb, je: an empty mark
 *             pm__mark(address)                         # first store to the line in a transaction
 *         if (MARKS_TABLE[offset / 64] & MARK_KINDS)    # testb, je: if the container wants to know
 *             KINDS_TABLE[offset / 8] = kind            # shr, movb: data, or a pointer
 *     the store
 *
 * The marks table has a byte for each line of the arena, at a fixed distance from the line. 0 means: not
 * marked. The table takes 1 TiB of address space. A page of the table takes memory only once a line of
 * the page's 256 KiB has been marked. A mark promises a store. So it stands before the store, and no
 * commit may come between the two. The lines of a new object may be marked as soon as the object is there
 * (pages/tracker.h, T3).
 *
 * The kinds table has a byte for each word: its *kind*. The kind says what the open transaction stored
 * in the word last. From the kinds pm_commit() makes the pointer map (track/map.c). A kind takes a
 * byte, not bits, because other threads may be storing to other words of the line. An atomic `or` waits
 * for every earlier store, and would cost more than the whole rest of the mark. The table is read for
 * marked lines only, and is zero elsewhere.
 *
 * Rules for kinds:
 *
 *   P1  A word of which a part was overwritten is KIND_DATA: text over an old pointer is text, even if
 *       the word still leads to an object.
 *   P2  A store that only sets or clears bits of the old value does not change the kind. Example: the tag
 *       of a pointer. If it may bring a piece, the word gets this piece: the store may put back what was
 *       overwritten meanwhile, or set bits that it has read elsewhere, or store what is there already.
 *   P3  A *piece* is a store to part of a word that may be a part of a pointer. The stored value was read
 *       elsewhere, was an argument, or was cut out of a word. Compiled code notes the bytes to which
 *       pieces were stored since the last store to the whole word, and forgets those that data overwrites. If
 *       they are all bytes that an address has, the word is *pieced*: none of its old bytes is left. One of
 *       bytes 1 to 3 stands for the three. A word that looks like the lower part of an address may have been
 *       stored whole, half finished: all its bytes count as pieces when a further piece comes. Not if a
 *       piece was stored to byte 5 before.
 *   P4  A pieced word whose value leads to an object is ambiguous: a pointer that was copied piece by
 *       piece, or numbers that look like one. So a commit neither changes the word nor keeps it: it
 *       fails, and names the word. If the value leads nowhere, the word is data.
 *   P5  The optimiser may split a union into several variables, and store the parts of a word one after the
 *       other. The word is what the word was that the parts were read from. If that is not known, the word
 *       goes by its value. If the parts come from several words, or if data was chosen for one of them, they
 *       are pieces and data like others.
 *
 * Idea: the card-marking write barriers of garbage collectors, at the size of a cache line.
 */
#ifndef PM_BASE_MARKS_H
#define PM_BASE_MARKS_H

#include <stddef.h>
#include <stdint.h>

/* The arena, see container.h. Constants, because compiled code contains them. */
#ifndef ARENA_SIZE_SHIFT /* CMakeLists.txt has others, for clang's sanitizers */
#define ARENA_HINT       UINT64_C(0x110000000000) /* 17 TiB: above what gcc's sanitizers use */
#define ARENA_SIZE_SHIFT 46                       /* ends below programs, at 85 TiB */
#endif
#define ARENA_SIZE (UINT64_C(1) << ARENA_SIZE_SHIFT)

/* The arena's end belongs to the volatile heap of programs with discovery. Stores there are marked like
 * all stores to the arena. */
#define VOLATILE_SIZE (ARENA_SIZE >> 6)
#define VOLATILE_BASE (ARENA_HINT + ARENA_SIZE - VOLATILE_SIZE)

/* The marks table lies directly behind the arena. */
#define MARKS_LINE_SHIFT 6
#define MARKS_TABLE      (ARENA_HINT + ARENA_SIZE)
#define MARKS_SIZE       (ARENA_SIZE >> MARKS_LINE_SHIFT)

/* Bits of a line's byte in the marks table. */
#define MARK_LINE        1 /* marked */
#define MARK_KINDS       2 /* marked, and the container wants the kinds of the line's words */
#define MARK_FOREIGN     4 /* with MARK_KINDS: stores that tell no kind were announced too */

#define KINDS_WORD_SHIFT 3
#ifndef KINDS_TABLE
#define KINDS_TABLE UINT64_C(0x580000000000) /* 88 TiB: above programs, below the heap of ASan */
#endif
#define KINDS_SIZE (ARENA_SIZE >> KINDS_WORD_SHIFT)

/* Values of a word's byte in the kinds table. KIND_NONE: nothing was stored there. */
#define KIND_NONE     0
#define KIND_POINTER  1 /* by its type, or made of a pointer by arithmetic */
#define KIND_BY_VALUE 2 /* of unknown type: a pointer if it leads into the container */
#define KIND_DATA     4

/* A bit beside the kind of a word of the volatile heap: discovery remembers where the word leads
 * (discovery/references.h). A store clears this bit. */
#define KIND_REMEMBERED 8

/* With KIND_DATA: pieces were stored to byte 0, 1 to 3, 4, and 5. Bytes 6 and 7 of an address are zero. With
 * KIND_BY_VALUE: the word was put together of pieces, and if a further one follows, it is pieced. */
#define KIND_PIECES     0xf0
#define KIND_PIECE_LAST 0x80
#define KIND_PIECED     (KIND_DATA | KIND_PIECES)

/* The kind that a one-byte piece gives its word, by the byte's place in the word. Byte 0's is the lowest. */
#define KINDS_OF_PIECES UINT64_C(0x0404844424242414)

/* Masks of several kinds. */
#define KIND_MAY_POINT (KIND_POINTER | KIND_BY_VALUE)
#define KIND_ANY       (KIND_MAY_POINT | KIND_DATA)

/* Multiply a kind by this to get eight words of this kind, the words of a line. */
#define KIND_EACH UINT64_C(0x0101010101010101)

static inline int kind_is_pieced(uint8_t kind)
{
    return (kind & KIND_PIECED) == KIND_PIECED;
}

/* For each pieced kind of a line: the highest bit of the kind's byte is set. */
static inline uint64_t kinds_pieced(uint64_t kinds)
{
    return kinds & kinds << 1 & kinds << 2 & kinds << 3 & kinds << 5 & 0x80 * KIND_EACH;
}

/* The mark of the line at `address`, which is in the arena. The marks of the next lines follow it. */
static inline uint8_t *mark_of(const void *address)
{
    return (uint8_t *)MARKS_TABLE + (((uintptr_t)address - ARENA_HINT) >> MARKS_LINE_SHIFT);
}

/* The kind of a word in the arena. The kinds of the next words follow it. */
static inline uint8_t *kinds_of(const void *word)
{
    return (uint8_t *)KINDS_TABLE + (((uintptr_t)word - ARENA_HINT) >> KINDS_WORD_SHIFT);
}

#ifdef __cplusplus
extern "C" {
#endif

/* Announces that code with marks is loaded. A constructor calls it, in each program and shared object
 * that has code compiled by pmcc. */
__attribute__((visibility("default"))) void pm__compiled(void);

/* Announces that the code is unloaded, or that the program ends. A destructor beside the constructor calls
 * it. At exit libpm's own destructors may have run before. */
__attribute__((visibility("default"))) void pm__compiled_gone(void);

/* Whether any code with marks is loaded. For libpm itself. */
int marks_are_made(void);

/*
 * Mark the line of `address`, which is in the arena: the slow path of the inline test. When it returns,
 * the line's byte is set and its page is open. Thread-safe, async-signal-safe. All these functions
 * preserve all general registers but r11 (clang's preserve_most). C code need not know this.
 */
__attribute__((visibility("default"))) void pm__mark(const void *address);

/* Mark every line of [address, address + size), which begins in the arena. */
__attribute__((visibility("default"))) void pm__mark_range(const void *address, size_t size);

/* The same where data is stored: memset, text, what system calls write through a pointer. */
__attribute__((visibility("default"))) void pm__mark_data(const void *address, size_t size);

/* The same if the stored bytes may be pieces of pointers: a loop that copies bytes. */
__attribute__((visibility("default"))) void pm__mark_pieces(const void *address, size_t size);

/* The same before memcpy or memmove copies from `from`: each word of an object gets the kind of the word
 * it is copied from. */
__attribute__((visibility("default"))) void pm__mark_copy(const void *address, const void *from,
                                                          size_t size);

/* The kinds of up to 8 words at `from`, a byte each, the first word's in the lowest byte. For code that
 * has loaded the words and will store them elsewhere. */
__attribute__((visibility("default"))) uint64_t pm__kinds(const void *from, size_t size);

#ifdef __cplusplus
}
#endif
#endif

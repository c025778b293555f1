/*
 * What code compiled by pmcc does at each store that may hit the arena: the store's *mark*. The
 * plugin in llvm-pass/ emits it, this header says what it is; both sides include it.
 *
 *     offset = address - ARENA_HINT
 *     if (offset < ARENA_SIZE)                          # sub, shr, jne: all that others pay
 *         if (MARKS_TABLE[offset / 64] == 0)            # shr, cmpb, je: an empty mark
 *             pm__mark(address)                         # first store to the line in a transaction
 *         if (MARKS_TABLE[offset / 64] & MARK_KINDS)    # testb, je: if the container wants to know
 *             KINDS_TABLE[offset / 8] = what is stored  # shr, movb: data, or a pointer
 *     the store
 *
 * The table has a byte for each line of the arena, at a fixed distance from it: 1 TiB of address
 * space, of which a page is memory only once a line of its 256 KiB has been marked. 0: not marked.
 * A mark is the promise of a store, so it stands before the store, and no commit may be between.
 *
 * The second table has a byte for each word: its *kind*, which is what the open transaction has
 * stored there last. From it commit makes the pointer map (txn/redo/kinds.c). A byte, not a bit:
 * other threads may be storing to other words of the line, and an atomic `or` waits for every store
 * before it, which costs more than all the rest. The table is read for marked lines only, and zero
 * but for those.
 *
 * Of the kinds
 *
 *   P1  A word of which a part was overwritten is KIND_DATA: text over an old pointer is text, even if
 *       the word still leads to an object.
 *   P2  A store that sets or clears bits of what was there leaves the word what it was: a pointer's tag.
 *   P3  A *piece* is a store to part of a word that may be a part of a pointer: what was read
 *       elsewhere, was an argument, or was cut out of a word. Compiled code notes which bytes pieces
 *       were stored to since the last store to all of the word. If they are all bytes that an address
 *       has, the word is *pieced*: no byte of it is left of what was there before.
 *   P4  A pieced word whose value leads to an object is a pointer that was copied piece by piece, or
 *       numbers that happen to look like one. Nobody can tell, so a commit neither changes it nor
 *       keeps it: it fails, and names the word. Where it leads nowhere it is data.
 *   P5  Where the optimiser has made two variables of a union, and stores the halves of a word, the word
 *       goes by its value once both are stored: KIND_BY_VALUE, with the bits of pieces.
 *
 * Idea: the card-marking write barriers of garbage collectors, at the size of a cache line.
 */
#ifndef PM_BASE_MARKS_H
#define PM_BASE_MARKS_H

#include <stddef.h>
#include <stdint.h>

/* The arena, see container.h; constants, since compiled code has them in it. */
#ifndef ARENA_SIZE_SHIFT /* CMakeLists.txt has others, for clang's sanitizers */
#define ARENA_HINT       UINT64_C(0x110000000000) /* 17 TiB: above what gcc's sanitizers use */
#define ARENA_SIZE_SHIFT 46                       /* ends below programs, at 85 TiB */
#endif
#define ARENA_SIZE (UINT64_C(1) << ARENA_SIZE_SHIFT)

/* Its end belongs to the volatile heap of programs whose data is to be discovered: what is stored
 * there is marked like anything in the arena. */
#define VOLATILE_SIZE (ARENA_SIZE >> 6)
#define VOLATILE_BASE (ARENA_HINT + ARENA_SIZE - VOLATILE_SIZE)

/* Directly behind the arena. */
#define MARKS_LINE_SHIFT 6
#define MARKS_TABLE      (ARENA_HINT + ARENA_SIZE)
#define MARKS_SIZE       (ARENA_SIZE >> MARKS_LINE_SHIFT)

/* What a line's byte says. */
#define MARK_LINE        1 /* marked */
#define MARK_KINDS       2 /* marked, and the kinds of its words are wanted */
#define MARK_FOREIGN     4 /* with MARK_KINDS: stores that tell no kind were announced too */

#define KINDS_WORD_SHIFT 3
#ifndef KINDS_TABLE
#define KINDS_TABLE UINT64_C(0x580000000000) /* 88 TiB: above programs, below the heap of ASan */
#endif
#define KINDS_SIZE (ARENA_SIZE >> KINDS_WORD_SHIFT)

/* What a word's byte says: nothing was stored there, or one of these. */
#define KIND_NONE     0
#define KIND_POINTER  1 /* by its type, or made of a pointer by arithmetic */
#define KIND_BY_VALUE 2 /* of unknown type: a pointer if it leads into the container */
#define KIND_DATA     4

/* Of a word of the volatile heap, beside its kind: discovery remembers where the word leads
 * (discovery/references.h). A store takes this bit away. */
#define KIND_REMEMBERED 8

/* With KIND_DATA: pieces were stored to byte 0, 1 to 3, 4, and 5. The others of an address are zeros. */
#define KIND_PIECES     0xf0
#define KIND_PIECE_LAST 0x80
#define KIND_PIECED     (KIND_DATA | KIND_PIECES)

/* The kind that a piece of a byte gives the word, by its place there: byte 0's is the lowest. */
#define KINDS_OF_PIECES UINT64_C(0x0404844424242414)

/* Any of those that a pointer may have. */
#define KIND_MAY_POINT (KIND_POINTER | KIND_BY_VALUE)
#define KIND_ANY       (KIND_MAY_POINT | KIND_DATA)

/* Times a kind: that of every word of a line. */
#define KIND_EACH UINT64_C(0x0101010101010101)

static inline int kind_is_pieced(uint8_t kind)
{
    return (kind & KIND_PIECED) == KIND_PIECED;
}

/* A bit, the highest of its byte, for each of a line's kinds that is pieced. */
static inline uint64_t kinds_pieced(uint64_t kinds)
{
    return kinds & kinds << 1 & kinds << 2 & kinds << 3 & kinds << 5 & 0x80 * KIND_EACH;
}

/* The mark of the line of an address in the arena, and those of the lines behind it. */
static inline uint8_t *mark_of(const void *address)
{
    return (uint8_t *)MARKS_TABLE + (((uintptr_t)address - ARENA_HINT) >> MARKS_LINE_SHIFT);
}

/* The kinds of a word in the arena and of those behind it. */
static inline uint8_t *kinds_of(const void *word)
{
    return (uint8_t *)KINDS_TABLE + (((uintptr_t)word - ARENA_HINT) >> KINDS_WORD_SHIFT);
}

#ifdef __cplusplus
extern "C" {
#endif

/* There is code that makes marks: said by a constructor of each program and shared object that pmcc has
 * compiled anything of. */
__attribute__((visibility("default"))) void pm__compiled(void);

/* It is unloaded, or the program ends: said by a destructor beside that constructor. At exit libpm's own
 * destructors may have run. */
__attribute__((visibility("default"))) void pm__compiled_gone(void);

/* Whether any such code is loaded. For libpm itself. */
int marks_are_made(void);

/*
 * Mark the line of `address`, which is in the arena: the slow path of the inline test. Returns
 * with the line's byte set and its page open. Thread-safe, async-signal-safe. All these functions
 * preserve all general registers but r11 (clang's preserve_most), which C code need not know.
 */
__attribute__((visibility("default"))) void pm__mark(const void *address);

/* Mark every line of [address, address + size), which begins in the arena. */
__attribute__((visibility("default"))) void pm__mark_range(const void *address, size_t size);

/* The same where data is stored: memset, text, what system calls write through a pointer. */
__attribute__((visibility("default"))) void pm__mark_data(const void *address, size_t size);

/* The same where what is stored may be pieces of pointers: a loop that copies bytes. */
__attribute__((visibility("default"))) void pm__mark_pieces(const void *address, size_t size);

/* The same where memcpy or memmove is about to copy from `from`: each word of an object gets the
 * kind that it has there. */
__attribute__((visibility("default"))) void pm__mark_copy(const void *address, const void *from,
                                                          size_t size);

/* The kinds of the words at `from`, up to 8, a byte each, the first in the lowest; for who has
 * loaded them and will store them elsewhere. */
__attribute__((visibility("default"))) uint64_t pm__kinds(const void *from, size_t size);

#ifdef __cplusplus
}
#endif
#endif

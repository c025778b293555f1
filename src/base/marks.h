/*
 * What code compiled by pmcc does at each store that may hit the arena: the store's *mark*. The
 * plugin in llvm-pass/ emits it, this header says what it is; both sides include it.
 *
 *     offset = address - ARENA_HINT
 *     if (offset < ARENA_SIZE)                          # sub, shr, jne: all that others pay
 *         if (MARKS_TABLE[offset / 64] == 0)            # shr, cmpb, je: an empty mark
 *             pm__mark(address)                         # first store to the line in a transaction
 *     the store
 *
 * The table has a byte for each line of the arena, at a fixed distance from it: 1 TiB of address
 * space, of which a page is memory only once a line of its 256 KiB has been marked. 0: not marked.
 * A mark is the promise of a store, so it stands before the store, and no commit may be between.
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

/* Directly behind the arena. */
#define MARKS_LINE_SHIFT 6
#define MARKS_TABLE      (ARENA_HINT + ARENA_SIZE)
#define MARKS_SIZE       (ARENA_SIZE >> MARKS_LINE_SHIFT)

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Mark the line of `address`, which is in the arena: the slow path of the inline test. Returns
 * with the line's byte set and its page open. Thread-safe, async-signal-safe. Both functions
 * preserve all general registers but r11 (clang's preserve_most), which C code need not know.
 */
__attribute__((visibility("default"))) void pm__mark(const void *address);

/* Mark every line of [address, address + size), which begins in the arena: for memcpy and its kin,
 * and for libc and system calls that write through a pointer. */
__attribute__((visibility("default"))) void pm__mark_range(const void *address, size_t size);

#ifdef __cplusplus
}
#endif
#endif

/* Tests look behind the interface. They make page states that contradict each other, and marks as threads make
 * them. They read a word that only the library sees, and the log engine's chunks. */
#ifndef TESTS_UNIT_PAGE_STATE_H
#define TESTS_UNIT_PAGE_STATE_H

#include <libpm.h>

#ifdef __cplusplus
extern "C" {
#endif

enum contradiction {
    LOGGED_BUT_NOT_LISTED,
    OPEN_WITHOUT_REASON,
    LISTED_BUT_NOT_IN_THE_LIST,
    IN_THE_LIST_BUT_NOT_LISTED
};

/* Of a page that is closed, and that this transaction has not stored to. */
void contradict(pm_container *c, uint32_t page, enum contradiction what);

/* As before. */
void agree(pm_container *c, uint32_t page);

/* Mark the line of `p` so often, as threads do that find it unmarked at the same time. The lines that
 * are noted as marked then. */
uint64_t mark_at_once(pm_container *c, const void *p, uint64_t times);

/* As a mark that a signal's handler has left by a jump: noted, and the line not marked. */
void leave_mark(pm_container *c, const void *p);

/* Number of lines of new objects that were marked together, before the program stored to them. */
uint64_t lines_of_objects(const pm_container *c);

/* As a thread does that frees an object while another commits, just before the commit shows excluded fields. */
void free_beside_commit(pm_container *c, void *object);

/* In the library's copy of the file. */
uint64_t base_epoch_in_memory(const pm_container *c);

/* Number of chunks without a live line that nobody will fill again: they are on none of the log engine's lists. */
uint32_t lost_chunks(const pm_container *c);

/* The chunk that the log engine's cleaner fills, or 0. */
uint32_t cleaners_chunk(const pm_container *c);

/* The chunk of which the cleaner has moved some lines, and others not yet; or 0. */
uint32_t half_cleaned_chunk(const pm_container *c);

/* From now on no further part of a record fits into the chunk, which has no live line. */
void fill_chunk(pm_container *c, uint32_t chunk);

/* Words of all pieces in the log that count. */
uint64_t live_words(const pm_container *c);

/* Number of the lines in a chunk that have no newer piece elsewhere. */
uint32_t live_lines(const pm_container *c, uint32_t chunk);

/* The unit of the map in which an address is, whether a unit begins there, and the address of an offset. */
uint64_t unit_of(const pm_container *c, const void *p);
bool begins_unit(const pm_container *c, const void *p);
const void *address_of(const pm_container *c, uint64_t offset);

/* Whether the line of an address is left: it has no owner, and the log may have pieces of it. */
bool line_is_left(const pm_container *c, const void *p);

/* Units of the log engine's map that memory has, and that are in a checkpoint. */
uint64_t units_present(const pm_container *c);

/* Units that have changed since the newest checkpoint began. They cannot leave memory. */
uint64_t units_changed(const pm_container *c);

/* Bytes of memory that the map takes. */
uint64_t map_memory(const pm_container *c);

#ifdef __cplusplus
}
#endif

#endif

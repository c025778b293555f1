/* The states of a container's pages, made to contradict each other; marks as threads make them; and a word
 * that only the library sees. */
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

/* As a thread does that frees an object while another commits, just before the commit shows excluded fields. */
void free_beside_commit(pm_container *c, void *object);

/* In the library's copy of the file. */
uint64_t base_epoch_in_memory(const pm_container *c);

#ifdef __cplusplus
}
#endif

#endif

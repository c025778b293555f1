/* The states of a container's pages, made to contradict each other. */
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

#ifdef __cplusplus
}
#endif

#endif

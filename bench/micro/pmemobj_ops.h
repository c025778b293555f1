/* libpmemobj's transactions in C, where TX_BEGIN's setjmp meets no destructor. */
#ifndef BENCH_PMEMOBJ_OPS_H
#define BENCH_PMEMOBJ_OPS_H

#include <libpmemobj.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each is one transaction. 0, or -1 when it was aborted. */

int pmemobj_ops_allocate(PMEMobjpool *pool, PMEMoid *oids, size_t count, size_t size);
int pmemobj_ops_free(PMEMobjpool *pool, const PMEMoid *oids, size_t count);

/** Allocate and free at once, `count` times. */
int pmemobj_ops_pairs(PMEMobjpool *pool, size_t count, size_t size);

/** Fill `length` bytes at each of the offsets into `array` with `byte`. */
int pmemobj_ops_update(PMEMobjpool *pool, PMEMoid array, const size_t *offsets, size_t count,
                       size_t length, int byte);

#ifdef __cplusplus
}
#endif
#endif

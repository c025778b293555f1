/*
 * Size classes: the object sizes that have slabs. Private to this folder. The medium has only the sizes,
 * in segment words. So the classes may change without changing the format.
 *
 *     up to 8 granules     every multiple of the granularity g
 *     up to segment / 8    eight steps a doubling: at most 12.5 % lost to rounding
 *     up to half a segment the sizes of which 7, 6, 5, 4, 3 or 2 fit into a slab
 *     above                runs of whole segments
 */
#ifndef PM_ALLOCATOR_CLASSES_H
#define PM_ALLOCATOR_CLASSES_H

#include "container/container.h"

#define CLASS_LARGE UINT32_MAX

/* The class of objects of `size` bytes, and its object size; CLASS_LARGE if it has none. */
uint32_t class_of(const struct container *c, uint64_t size, uint32_t *object_size);

/* How many classes there are. */
uint32_t class_count(const struct container *c);

#endif

/*
 * The recorder: libpm-sim.so's watch over the containers that a program has open, for `pm crash`.
 *
 * It sees what the simulator's device sees (device.hpp), by the same rule: at each event the file
 * is compared with what it held before, so that plain stores are found too. But it lives inside
 * somebody else's program. So it writes every event to a file at once (stream.h), that the death of
 * the program loses nothing; any thread may come, the SIGSEGV handler included, hence one lock of
 * the kind that the handler may take, and no allocation but by mmap(2); and it is C, since a
 * program need not have a C++ library.
 *
 * A fence compares all of every open container: that is what an event costs, about 0.04 ms a MiB.
 */
#ifndef PM_SIM_RECORDER_H
#define PM_SIM_RECORDER_H

#include "container/container.h"
#include "sim/stream.h"

/* A container has been opened for writing: record it, as what its medium is or is forced to be.
 * Returns whether that is persistent memory. */
bool recorder_open(const struct container *container);

/* The descriptor is about to be closed. */
void recorder_forget(int fd);

/* Whether it is that of a container which is being recorded. */
bool recorder_has(int fd);

/* Something happens to a container; nothing if the descriptor is not of one. [handler] */
void recorder_event(int fd, enum stream_event event, uint64_t offset, uint64_t length);

/* COMMITTED, DURABLE or UNSAFE. */
void recorder_note(int fd, enum stream_kind kind, uint64_t epoch);

/* The container at a path is gone; `path` is absolute. */
void recorder_deleted(const char *path);

#endif

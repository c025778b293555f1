/*
 * The recorder: libpm-sim.so's watch over the containers that a program has open, for `pm crash`.
 *
 * It sees the same things as the simulator's device (device.hpp), by the same rule: at each event it
 * compares the file with its contents before. So it finds plain stores too. But it lives inside somebody
 * else's program. This has three consequences:
 *
 *   - It writes every event to a file at once (stream.h), so that the death of the program loses
 *     nothing.
 *   - Any thread may call it, also in the SIGSEGV handler. So it has one lock, of the kind that the
 *     handler may take, and allocates only by mmap(2).
 *   - It is in C, because a program need not have a C++ library.
 *
 * A fence compares all of every open container. This is the cost of an event: about 0.04 ms a MiB.
 */
#ifndef PM_SIM_RECORDER_H
#define PM_SIM_RECORDER_H

#include "container/container.h"
#include "sim/stream.h"

/* A container has been opened for writing: record it, as a file on its medium, or on the medium that
 * STREAM_MEDIUM forces. Returns true if this is persistent memory. */
bool recorder_open(const struct container *container);

/* The descriptor is about to be closed. */
void recorder_forget(int fd);

/* True if the descriptor is of a container which is being recorded. */
bool recorder_has(int fd);

/* Record an event of a container. If the descriptor is of no container, do nothing. [handler] */
void recorder_event(int fd, enum stream_event event, uint64_t offset, uint64_t length);

/* Record COMMITTED, DURABLE or UNSAFE. */
void recorder_note(int fd, enum stream_kind kind, uint64_t epoch);

/* The container at a path has been deleted; `path` is absolute. */
void recorder_deleted(const char *path);

#endif

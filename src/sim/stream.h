/*
 * A recording on its way from a program under `pm crash` to the tool: a row of records in a file,
 * each with a payload of `size` bytes behind it. Every process that the program starts appends to
 * the same file, so processes that take turns with a container make one recording.
 *
 *   OPEN CONTENTS... EVENT(OPEN)     a process opened a container, and found this in it
 *   CHANGE... EVENT                  something happens; before it, these units were seen to differ
 *   COMMITTED, DURABLE               pm_commit() or pm_commit_async() has carried out a commit, and
 *                                    pm_commit() or pm_wait() has said that it is durable
 *   DELETED                          pm_delete() has removed what was at a path
 *   CHANGE... DELETED... EVENT(END)  the program has ended; by the tool, as process 0, which numbers
 *                                    the containers of all processes in the order of their OPEN
 *
 * Written and read by one build of libpm on one machine; so no versions and no checksums.
 */
#ifndef PM_SIM_STREAM_H
#define PM_SIM_STREAM_H

#include <stdint.h>

/* What the tool tells the recorder: the directory for both files, and a medium or "". */
#define STREAM_DIRECTORY "LIBPM_CRASH_RECORDING"
#define STREAM_MEDIUM    "LIBPM_CRASH_MEDIUM"
#define STREAM_FILE      "recording" /* in the directory: the records */
#define STREAM_OUTPUT    "output"    /* and what the program prints */

/* Files larger than this cannot be recorded: all units of one have numbers of 24 bits. */
#define STREAM_FILE_MAX (UINT64_C(1) << 30)

/* Sizes of files are rounded up to the larger unit: a sector. */
#define STREAM_UNIT_MAX 512

enum stream_kind {
    STREAM_START, /* a process began */
    STREAM_OPEN, /* `offset`: the file's size; `value`: stream_flags; payload: its path, absolute */
    STREAM_CONTENTS,  /* payload: what was at `offset`; zeros are left out */
    STREAM_CHANGE,    /* payload: what is at `offset`, whole units */
    STREAM_EVENT,     /* `value`: enum stream_event */
    STREAM_COMMITTED, /* `value`: the epoch */
    STREAM_DURABLE,   /* `value`: up to this epoch */
    STREAM_DELETED,   /* payload: the path, absolute */
    STREAM_UNSAFE,    /* a commit was carried out that no power failure need spare */
};

enum stream_flags {
    STREAM_CREATED = 1, /* by this very open */
    STREAM_PMEM = 2,    /* it is recorded as persistent memory; else as an ordinary file */
};

enum stream_event {
    EVENT_OPEN,
    EVENT_WRITE_BACK, /* of [offset, offset + length) */
    EVENT_COPY,       /* to [offset, offset + length), past the cache */
    EVENT_FENCE,
    EVENT_WRITE, /* to [offset, offset + length), write(2) */
    EVENT_SYNC,
    EVENT_RESIZE, /* to `length` bytes */
    EVENT_END,    /* of the program */
};

struct stream_record {
    uint32_t kind;    /* enum stream_kind */
    uint32_t process; /* its id */
    uint32_t file;    /* number of the container in this process, from 0 */
    uint32_t size;    /* bytes of payload that follow */
    uint64_t offset;
    uint64_t length;
    uint64_t value;
    uint64_t output; /* EVENT: bytes that the program had printed */
};

#endif

/*
 * The stream of a recording, from a program under `pm crash` to the tool. It is a row of records in a
 * file, each followed by a payload of `size` bytes. Every process that the program starts appends to the
 * same file. So processes that take turns with a container make one recording.
 *
 *   OPEN CONTENTS... EVENT(OPEN)     A process opened a container, and found these contents in it.
 *   CHANGE... EVENT                  Something happens. Before it, these units were seen to differ.
 *   COMMITTED, DURABLE               pm_commit() or pm_commit_async() has carried out a commit.
 *                                    pm_commit() or pm_wait() has said that it is durable.
 *   DELETED                          pm_delete() has removed the container at a path.
 *   CHANGE... DELETED... EVENT(END)  The program has ended. The tool writes this, as process 0. That
 *                                    process numbers the containers of all processes in the order of
 *                                    their OPEN.
 *
 * One build of libpm writes and reads the stream, on one machine. So it has no versions and no checksums.
 */
#ifndef PM_SIM_STREAM_H
#define PM_SIM_STREAM_H

#include <stdint.h>

/* The tool's settings for the recorder: the directory for both files, and a medium or "". */
#define STREAM_DIRECTORY "LIBPM_CRASH_RECORDING"
#define STREAM_MEDIUM    "LIBPM_CRASH_MEDIUM"
#define STREAM_FILE      "recording" /* records, in the directory */
#define STREAM_OUTPUT    "output"    /* the program's output, in the directory */

/* Larger files cannot be recorded: the numbers of a file's units have 24 bits. */
#define STREAM_FILE_MAX (UINT64_C(1) << 30)

/* Sizes of files are rounded up to the larger unit: a sector. */
#define STREAM_UNIT_MAX 512

enum stream_kind {
    STREAM_START, /* a process began */
    STREAM_OPEN, /* `offset`: the file's size; `value`: stream_flags; payload: its path, absolute */
    STREAM_CONTENTS,  /* payload: contents at `offset`; zeros are left out */
    STREAM_CHANGE,    /* payload: new contents at `offset`, in whole units */
    STREAM_EVENT,     /* `value`: enum stream_event */
    STREAM_COMMITTED, /* `value`: the epoch */
    STREAM_DURABLE,   /* `value`: up to this epoch */
    STREAM_DELETED,   /* payload: the path, absolute */
    STREAM_UNSAFE,    /* a commit was carried out that a power failure may undo */
};

enum stream_flags {
    STREAM_CREATED = 1, /* this open has created the container */
    STREAM_PMEM = 2,    /* recorded as persistent memory; otherwise as an ordinary file */
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
    uint32_t process; /* the process's id */
    uint32_t file;    /* number of the container in this process, from 0 */
    uint32_t size;    /* bytes of payload that follow */
    uint64_t offset;
    uint64_t length;
    uint64_t value;
    uint64_t output; /* EVENT: bytes that the program had printed */
};

#endif

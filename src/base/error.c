/*
 * Writes the message into a buffer of 1 KiB, one a thread: the place, then the text, then the reason and the
 * remedy. A message that is too long is cut, but not its reason: the reason replaces the text's end.
 */
#include "base/error.h"

#include "base/cancel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024];

/* The message's length after printf() has written to it from byte `from` on, and returned `n`. */
static size_t length_after(size_t from, int n)
{
    size_t most = sizeof message - 1 - from;
    return from + (n < 0 ? 0 : (size_t)n < most ? (size_t)n : most);
}

/* Begin the message with a place in a file. Returns its length. */
static size_t write_place(const char *path, uint64_t offset)
{
    int n = snprintf(message, sizeof message, "%s: offset %" PRIu64 ": ", path, offset);
    return length_after(0, n);
}

/* Write the message from byte `from` on. Returns its length. */
static size_t write_text(size_t from, const char *format, va_list arguments)
{
    int n = vsnprintf(message + from, sizeof message - from, format, arguments);
    return length_after(from, n);
}

int pm__fail(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text(0, format, arguments);
    va_end(arguments);
    errno = error;
    return -1;
}

int pm__fail_at(const char *path, uint64_t offset, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_text(write_place(path, offset), format, arguments);
    va_end(arguments);
    errno = error;
    return -1;
}

const char *pm__remedy(int error)
{
    switch (error) {
    case ENOSPC:
        return "; free disk space";
    case EDQUOT:
        return "; free disk space, or raise the quota";
    case EFBIG:
        return "; raise ulimit -f, or choose a file system for larger files";
    case EMFILE:
        return "; close files, or raise ulimit -n";
    case ENFILE:
        return "; close files: too many are open in the whole system";
    case ENOMEM:
        return "; free memory, raise ulimit -v or vm.max_map_count, or choose a smaller max_size";
    case ENODEV:
        return "; its file system maps no files into memory: mount it without direct_io, or choose "
               "another";
    case EIO:
        return "; the kernel's log may say what is wrong with the medium";
    default:
        return "";
    }
}

/* End the message, of a length, with the reason. A path may be longer than the message: the reason
 * replaces the text's end then. */
static int end_with_reason(size_t length, int error, const char *reason)
{
    char end[sizeof message / 2];
    snprintf(end, sizeof end, ": %s%s", reason ? reason : strerror(error),
             reason ? "" : pm__remedy(error));
    size_t most = sizeof message - 1 - strlen(end);
    strcpy(message + (length < most ? length : most), end);
    errno = error;
    return -1;
}

int pm__fail_because(int error, const char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = write_text(0, format, arguments);
    va_end(arguments);
    return end_with_reason(length, error, reason);
}

int pm__fail_because_at(const char *path, uint64_t offset, int error, const char *reason,
                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = write_text(write_place(path, offset), format, arguments);
    va_end(arguments);
    return end_with_reason(length, error, reason);
}

const char *pm__message(void)
{
    return message;
}

void pm__make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

void pm__warn(void)
{
    UNCANCELLED;
    fprintf(stderr, "libpm: %s\n", message);
}

#include "base/error.h"

#include "base/cancel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[1024];

int pm__fail(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
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

int pm__fail_because(int error, const char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    char end[sizeof message / 2]; /* the reason: a path may be longer than the message */
    snprintf(end, sizeof end, ": %s%s", reason ? reason : strerror(error),
             reason ? "" : pm__remedy(error));
    size_t most = sizeof message - 1 - strlen(end);
    strcpy(message + (n < 0 ? 0 : (size_t)n < most ? (size_t)n : most), end);
    errno = error;
    return -1;
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

#define _GNU_SOURCE
#include "base/panic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void write_report(const char *path, uint64_t offset, const char *what, int error)
{
    char digits[21];
    char *digit = digits + sizeof digits - 1;
    *digit = '\0';
    do
        *--digit = (char)('0' + offset % 10);
    while (offset /= 10);
    const char *reason = error ? strerrordesc_np(error) : NULL; /* strerror(3) may allocate */
    const char *parts[] = {"libpm: ",
                           path,
                           ": offset ",
                           digit,
                           ": ",
                           what,
                           reason ? " (" : "",
                           reason ? reason : "",
                           reason ? ")\n" : "\n"};
    enum { PARTS = sizeof parts / sizeof *parts };
    struct iovec out[PARTS];
    for (int i = 0; i < PARTS; i++)
        out[i] = (struct iovec){(void *)parts[i], strlen(parts[i])};
    if (writev(STDERR_FILENO, out, PARTS) < 0)
        return; /* nowhere to say it */
}

void report(const char *path, uint64_t offset, const char *what)
{
    write_report(path, offset, what, 0);
}

void panic(const char *path, uint64_t offset, const char *what, int error)
{
    write_report(path, offset, what, error);
    abort();
}

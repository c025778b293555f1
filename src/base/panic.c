#include "base/panic.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void report(const char *path, uint64_t offset, const char *what)
{
    char digits[20];
    char *digit = digits + sizeof digits;
    do
        *--digit = (char)('0' + offset % 10);
    while (offset /= 10);
    const char *parts[] = {"libpm: ", path, ": offset ", NULL, ": ", what, "\n"};
    enum { PARTS = sizeof parts / sizeof *parts };
    struct iovec out[PARTS];
    for (int i = 0; i < PARTS; i++)
        out[i] = parts[i] ? (struct iovec){(void *)parts[i], strlen(parts[i])}
                          : (struct iovec){digit, (size_t)(digits + sizeof digits - digit)};
    if (writev(STDERR_FILENO, out, PARTS) < 0)
        return; /* nowhere to say it */
}

void panic(const char *path, uint64_t offset, const char *what)
{
    report(path, offset, what);
    abort();
}

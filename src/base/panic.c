/*
 * Puts the parts of a message together in an array, and writes them by one writev(2). Numbers are spelled
 * here, because printf(3) and strerror(3) may allocate memory. If stderr does not take the message, it is
 * lost.
 */
#define _GNU_SOURCE
#include "base/panic.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define DIGITS_MAX 21 /* of any number, and the final NUL */

/* The digits of a number, in `digits`. */
static const char *in_base(uint64_t number, unsigned base, char digits[DIGITS_MAX])
{
    char *digit = digits + DIGITS_MAX - 1;
    *digit = '\0';
    do
        *--digit = "0123456789abcdef"[number % base];
    while (number /= base);
    return digit;
}

static void write_message(const char *subject, const char *before, const char *number,
                          const char *what, int error)
{
    const char *reason = error ? strerrordesc_np(error) : NULL; /* strerror(3) may allocate */
    const char *parts[] = {"libpm: ",
                           subject,
                           before,
                           number,
                           ": ",
                           what,
                           reason ? " (" : "",
                           reason ? reason : "",
                           reason ? ")" : "",
                           error ? pm__remedy(error) : "",
                           "\n"};
    enum { PARTS = sizeof parts / sizeof *parts };
    struct iovec out[PARTS];
    for (int i = 0; i < PARTS; i++)
        out[i] = (struct iovec){(void *)parts[i], strlen(parts[i])};
    if (writev(STDERR_FILENO, out, PARTS) < 0)
        return; /* nowhere to say it */
}

static void write_report(const char *path, uint64_t offset, const char *what, int error)
{
    char digits[DIGITS_MAX];
    write_message(path, ": offset ", in_base(offset, 10, digits), what, error);
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

void panic_address(const char *call, const void *address, const char *what)
{
    char digits[DIGITS_MAX];
    write_message(call, ": 0x", in_base((uintptr_t)address, 16, digits), what, 0);
    abort();
}

/* What subjects that call functions of libc need besides. */
#ifndef TEST_PMCC_TEXT_H
#define TEST_PMCC_TEXT_H

#include "subject.h"

#include <stdlib.h>
#include <string.h>

/* The function itself, whatever the compiler knows about it. */
#define CALL(function)                                                                             \
    ({                                                                                             \
        __typeof__(function) *volatile pointer_ = (function);                                      \
        pointer_;                                                                                  \
    })

/* `n` characters; valid until the next call. */
static inline const char *text_of(long n)
{
    static char text[128];
    memset(text, 'x', n);
    text[n] = 0;
    return text;
}

static inline void require(int condition)
{
    if (!condition)
        abort();
}

#endif

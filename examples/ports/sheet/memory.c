/* Allocation that never fails: if memory runs out, the program ends. */
#include "sheet.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

static void *got(void *memory)
{
    if (!memory)
        err(2, NULL);
    return memory;
}

void *allocate(size_t size)
{
    return got(calloc(1, size));
}

void *resize(void *memory, size_t size)
{
    return got(realloc(memory, size));
}

char *copy_text(const char *text)
{
    return got(strdup(text));
}

char *join_texts(const char *a, const char *b)
{
    char *both = allocate(strlen(a) + strlen(b) + 1);
    return strcat(strcpy(both, a), b);
}

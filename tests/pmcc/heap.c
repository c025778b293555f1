/* Every function of C that allocates, called, and through pointers. */
#define _GNU_SOURCE
#include "mock_heap.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static void release(void *p)
{
    assert(is_mocked(p));
    free(keep(p));
}

USE(uses_malloc, "malloc free")
{
    release(malloc(10));
}
USE(uses_calloc, "calloc free")
{
    char *p = calloc(3, 7);
    for (int i = 0; i < 21; i++)
        assert(p[i] == 0);
    release(p);
}
/* Which the optimiser makes a calloc() of, when it does. */
USE(uses_zeroed, "")
{
    char *p = malloc(100);
    if (p)
        memset(p, 0, 100);
    assert(((char *)keep(p))[99] == 0);
    release(p);
}
USE(uses_realloc, "realloc realloc free")
{
    int *p = realloc(keep(NULL), sizeof *p);
    *p = 5;
    p = realloc(keep(p), 10 * sizeof *p);
    assert(*p == 5);
    release(p);
}
USE(uses_reallocarray, "array realloc free")
{
    release(reallocarray(NULL, 3, 5));
}
USE(uses_alignments, "aligned_alloc free memalign free memalign free posix_memalign free")
{
    release(aligned_alloc(64, 128));
    release(memalign(64, 100));
    release(valloc(100));
    void *p = NULL;
    assert(posix_memalign(&p, 64, 100) == 0);
    release(p);
}
USE(uses_usable_size, "malloc usable_size free")
{
    void *p = malloc(11);
    assert(malloc_usable_size(p) >= 11);
    release(p);
}
USE(frees_null, "free")
{
    free(keep(NULL));
}

USE(uses_strings, "malloc free malloc free malloc free")
{
    char *s = strdup("duplicate");
    assert(strcmp(s, "duplicate") == 0);
    release(s);
    s = strndup("duplicate", 3);
    assert(strcmp(s, "dup") == 0);
    release(s);
    wchar_t *w = wcsdup(L"duplicate");
    assert(wcscmp(w, L"duplicate") == 0);
    release(w);
}
static char *print(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *s = NULL;
    assert(vasprintf(&s, format, list) == 5);
    va_end(list);
    return s;
}
USE(uses_asprintf, "malloc free malloc free")
{
    char *s = NULL;
    assert(asprintf(&s, "%d and %s", 17, "more") == 11);
    assert(strcmp(s, "17 and more") == 0);
    release(s);
    s = print("%s-%d", "one", 2);
    assert(strcmp(s, "one-2") == 0);
    release(s);
}
/* Lines of all lengths about where the room for them grows. */
USE(uses_getline, "")
{
    FILE *file = tmpfile();
    for (int length = 0; length < 500; length++)
        fprintf(file, "%*s\n", length, "");
    fputs("last", file);
    rewind(file);
    char *line = NULL;
    size_t size = 0;
    for (int length = 0; length < 500; length++) {
        assert(getline(&line, &size, file) == length + 1);
        assert(line[length] == '\n' && !line[length + 1] && size > (size_t)length + 1);
    }
    assert(getline(&line, &size, file) == 4 && strcmp(line, "last") == 0);
    assert(getline(&line, &size, file) == -1 && feof(file));
    release(line);

    rewind(file);
    char none[1]; /* a line of size 0 may lead anywhere */
    line = none;
    size = 0;
    assert(getline(&line, &size, file) == 1 && line != none);
    release(line);

    rewind(file);
    line = NULL;
    assert(getdelim(&line, &size, 0, file) == 500 * 501 / 2 + 4);
    assert(getdelim(NULL, &size, 0, file) == -1);
    release(line);
    fclose(file);
}

static void *(*const allocators[])(size_t) = {malloc, valloc};
static void (*chosen)(void *) = free;
static void apply(void (*function)(void *), void *p)
{
    function(p);
}
USE(uses_pointers_to_functions, "malloc free memalign free malloc free")
{
    for (int i = 0; i < 2; i++) {
        void *p = allocators[i](10);
        assert(is_mocked(p));
        chosen(p);
    }
    apply(free, keep(malloc(1)));
}

/* As in code that is left alone. */
__attribute__((disable_sanitizer_instrumentation, noinline)) static void *foreign(void)
{
    return keep(malloc(10));
}
USE(opts_out, "free")
{
    void *p = foreign();
    assert(!is_mocked(p));
    free(keep(p));
}

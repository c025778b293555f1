/*
 * Code compiled by `pmcc --discover`: where its memory comes from, that others may free it, and what is
 * in its tables.
 */
#define _GNU_SOURCE
#include "mock_heap.h"
#include "runtime/heap.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct use *uses;

void add_use(struct use *use)
{
    use->next = uses;
    uses = use;
}

static int test_uses(void)
{
    int failures = 0;
    assert(uses);
    for (const struct use *use = uses; use; use = use->next) {
        size_t before = live_objects();
        forget_calls();
        use->run();
        bool is_right = !*use->calls || strcmp(calls(), use->calls) == 0;
        if (!is_right || live_objects() != before)
            failures++, fprintf(stderr, "%s: calls %s, not %s; %zu objects are left\n", use->name,
                                calls(), use->calls, live_objects() - before);
    }
    return failures;
}

/* This file is not compiled by pmcc. */
static void test_foreign_code(void)
{
    char *p = pm__malloc(100);
    strcpy(p, "text");
    p = realloc(p, 1000);
    assert(is_mocked(p) && strcmp(p, "text") == 0);
    assert(malloc_usable_size(p) == 1000);
    size_t before = live_objects();
    forget_calls();
    free(p);
    assert(strcmp(calls(), "free") == 0 && live_objects() == before - 1);

    forget_calls();
    p = strdup("text");
    p = realloc(p, 1000);
    assert(malloc_usable_size(p) >= 1000);
    free(p);
    assert(!*calls());
}

/* libc itself resizes what it is handed. */
static void test_libc(void)
{
    size_t size = 10;
    char *line = pm__malloc(size);
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    FILE *file = fmemopen(text, sizeof text - 1, "r");
    forget_calls();
    assert(getline(&line, &size, file) == sizeof text - 1);
    assert(strcmp(calls(), "realloc") == 0 && is_mocked(line));
    fclose(file);
    pm__free(line);
}

static void test_announcements(void)
{
    char **line = pm__malloc(sizeof *line);
    size_t *size = pm__malloc(sizeof *size);
    *line = NULL;
    *size = 0;
    char text[] = "first\nsecond\n";
    FILE *file = fmemopen(text, strlen(text), "r");
    forget_calls();
    assert(pm__getline(line, size, file) == 6);
    assert(is_announced(line, sizeof *line, true));
    assert(is_announced(size, sizeof *size, false));
    assert(is_announced(*line, 7, false));
    forget_calls();
    assert(pm__getline(line, size, file) == 7);
    assert(is_announced(*line, 8, false));
    pm__free(*line);
    fclose(file);

    forget_calls();
    assert(pm__asprintf(line, "%d", 12345) == 5);
    assert(is_announced(line, sizeof *line, true));
    assert(is_announced(*line, 6, false));
    pm__free(*line);
    char *copy = pm__strdup("text"), *part = pm__strndup("text", 2);
    wchar_t *wide = pm__wcsdup(L"text");
    assert(is_announced(copy, 5, false));
    assert(is_announced(part, 3, false));
    assert(is_announced(wide, 5 * sizeof *wide, false));
    pm__free(copy);
    pm__free(part);
    pm__free(wide);
    pm__free(size);
    pm__free(line);
}

/* At once at the end of input: as libc's getline(), with a line, without one, and with too little room. */
static void test_end_of_input(void)
{
    char *line = pm__malloc(10), *no_line = NULL, *byte = pm__malloc(1);
    size_t size = 10, no_size = 0, one = 1;
    strcpy(line, "last\n");
    *byte = 'x';
    FILE *file = fopen("/dev/null", "r");
    forget_calls();
    assert(pm__getline(&line, &size, file) == -1 && feof(file));
    assert(size == 10 && strcmp(line, "last\n") == 0 && !is_announced(line, 1, false));
    assert(pm__getline(&byte, &one, file) == -1 && one == 1 && *byte == 'x');
    assert(pm__getline(&no_line, &no_size, file) == -1 && no_line && no_size > 0);
    fclose(file);
    pm__free(line);
    pm__free(no_line);
    pm__free(byte);
}

/* There is memory for the first characters only. They are announced, where they are. */
static void test_no_memory_for_more(void)
{
    char text[200], *line = pm__malloc(50), *short_line = line;
    size_t size = 50;
    memset(text, 'x', sizeof text);
    FILE *file = fmemopen(text, sizeof text, "r");
    forget_calls();
    fail_after(0);
    assert(pm__getline(&line, &size, file) == -1 && line == short_line && size == 50);
    assert(is_announced(line, 49, false) && line[48] == 'x');
    rewind(file);
    fail_after(1);
    forget_calls();
    assert(pm__getline(&line, &size, file) == -1 && line != short_line);
    assert(is_announced(short_line, 49, false) && is_announced(line, size - 1, false));
    fail_after(1000);
    fclose(file);
    pm__free(line);
}

struct waiting {
    FILE *file;
    char *line;
    size_t size;
};

static void *read_line(void *argument)
{
    struct waiting *w = argument;
    pm__getline(&w->line, &w->size, w->file);
    return NULL;
}

/* A thread that waits for the rest of a line is cancelled. Others can use the file then. */
static void test_cancelled(void)
{
    int ends[2];
    assert(pipe(ends) == 0 && write(ends[1], "part", 4) == 4);
    struct waiting w = {fdopen(ends[0], "r"), pm__malloc(100), 100};
    pthread_t thread;
    void *result;
    forget_calls();
    assert(pthread_create(&thread, NULL, read_line, &w) == 0);
    for (volatile char *line = w.line; memcmp((char *)line, "part", 4) != 0;)
        usleep(1000);
    assert(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
    assert(result == PTHREAD_CANCELED);
    assert(ftrylockfile(w.file) == 0);
    assert(is_announced(w.line, 4, false));
    fclose(w.file);
    close(ends[1]);
    pm__free(w.line);
}

static void test_no_memory(void)
{
    char *line = NULL, *text = NULL;
    size_t size = 0;
    char input[] = "line\n";
    FILE *file = fmemopen(input, strlen(input), "r");
    fail_after(0);
#define FAILS(call, result)                                                                        \
    errno = 0;                                                                                     \
    assert((call) == (result) && errno == ENOMEM)
    FAILS(pm__strdup("text"), NULL);
    FAILS(pm__strndup("text", 2), NULL);
    FAILS(pm__wcsdup(L"text"), NULL);
    FAILS(pm__asprintf(&text, "%d", 1), -1);
    FAILS(pm__getline(&line, &size, file), -1);
    fail_after(1000);
    assert(pm__getline(&line, &size, file) == 5);
    pm__free(line);
    fclose(file);
    assert(pm__getdelim(NULL, &size, 0, stdin) == -1 && errno == EINVAL);
}

static void *frame_above; /* of the function that runs in a new thread */

static void *return_argument(void *argument)
{
    frame_above = __builtin_return_address(0);
    return argument;
}

/* Is unwound, up to where it began. */
static void *exit_with_argument(void *argument)
{
    pthread_exit(argument);
}

static void test_threads(void)
{
    void *(*const functions[])(void *) = {return_argument, exit_with_argument};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *result = NULL;
        forget_calls();
        assert(pm__pthread_create(&thread, NULL, functions[i], &thread) == 0);
        assert(pthread_join(thread, &result) == 0);
        assert(result == &thread);
        assert(!*calls()); /* what the thread starts with is libc's */
    }
    assert((char *)frame_above > pm__thread_begin && (char *)frame_above < pm__thread_end);
}

int main(void)
{
    int failures = test_uses();
    test_foreign_code();
    test_libc();
    test_announcements();
    test_end_of_input();
    test_no_memory();
    test_no_memory_for_more();
    test_cancelled();
    test_threads();
    return failures != 0;
}

/* Where a C program keeps pointers: each must lead to the object after a commit has moved it. */
#define _GNU_SOURCE
#include "discover.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

struct node {
    struct node *next;
    long number;
};

static struct node *head;
static _Thread_local struct node *cursor;

static struct node *make_list(long n)
{
    struct node *first = NULL;
    while (n-- > 0) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){first, n};
        first = node;
    }
    return first;
}

static void check_list(pm_container *c, const struct node *node, long n)
{
    for (long i = 0; i < n; i++, node = node->next)
        assert(pm_contains(c, node) && node->number == i);
    assert(!node);
}

static void free_list(struct node *node)
{
    while (node) {
        struct node *next = node->next;
        free(node);
        node = next;
    }
}

CASE(finds_a_list)
{
    pm_container *c = fresh(0);
    head = make_list(100);
    cursor = head->next->next;
    static struct node **link;
    link = &head->next;
    keep_all(c, head);
    check_list(c, head, 100);
    assert(cursor == head->next->next && link == &head->next && *link == head->next);
    *link = cursor;
    cursor->number = 1;
    cursor->next->number = 2;
    head->next->next->next = NULL;
    keep_changes(c);
    c = again(c);
    check_list(c, pm_getroot(c), 3);
    head = NULL;
    cursor = NULL;
    assert(pm_close(c) == 0);
}

CASE(moves_more_than_its_tables_keep)
{
    pm_container *c = fresh(0);
    head = make_list(10000);
    keep_all(c, head);
    check_list(c, head, 10000);
    head->next = make_list(1);
    keep_changes(c);
    assert(pm_contains(c, head->next));
    assert(pm_close(c) == 0);
    head = NULL;
}

/* What was set is gone, though something else is there now. */
CASE(refuses_a_root_that_was_freed)
{
    pm_container *c = fresh(0);
    head = malloc((size_t)number(40));
    assert(pm_setroot(c, head, 40) == 0);
    void *before = pointer(head);
    free(head);
    head = malloc((size_t)number(25));
    assert(pointer(head) == before);
    memset(head, 0, 25);
    assert(pm_commit(c) == -1 && strstr(pm_errormsg(), "has been freed"));
    assert(!pm_contains(c, head));
    keep_all(c, head);
    assert(pm_contains(c, head) && pm_getroot(c) == head);
    assert(pm_close(c) == 0);
    head = NULL;
}

/* Those in registers too, which the failed commit had redirected already. */
CASE(leaves_pointers_as_they_were_when_a_commit_fails)
{
    pm_container *c = fresh(0);
    struct node local;
    head = make_list(2);
    keep_all(c, head);
    struct node *first = head, *second = head->next;
    head = calloc(1, sizeof *head);
    first->next = head;
    second->next = pointer(&local);
    struct node *a = pointer(head), *b = pointer(head), *d = pointer(&head->number);
    struct node *e = pointer(head), *f = pointer(head), *g = pointer(head);
    assert(pm_commit(c) == -1 && strstr(pm_errormsg(), "leads out of the container"));
    second->next = NULL;
    assert(a == head && b == head && (long *)d == &head->number && e == head && f == head &&
           g == head && !pm_contains(c, head));
    keep_all(c, head);
    assert(a == head && b == head && (long *)d == &head->number && e == head && f == head &&
           g == head && pm_contains(c, head));
    assert(pm_close(c) == 0);
    head = NULL;
}

CASE(stores_nothing)
{
    char *p = malloc(16);
    strcpy(p, "text");
    memset(p, 0, (size_t)number(0));
    memcpy(p, p + 2, (size_t)number(0));
    assert(strcmp(p, "text") == 0);
    free(p);
}

/* Iterators in three frames, in arguments, locals and through their addresses. */
__attribute__((noinline)) static long third(pm_container *c, struct node *node, struct node **other)
{
    struct node *own = node->next;
    keep_all(c, head);
    assert(own == node->next && *other == node);
    return own->number + node->number;
}
__attribute__((noinline)) static long second(pm_container *c, struct node *node)
{
    struct node *own = node->next, *again = own;
    long sum = third(c, own, &again);
    assert(own == node->next && again == own);
    return sum + node->number + again->number;
}
__attribute__((noinline)) static long first(pm_container *c)
{
    long sum = 0;
    for (struct node *node = head; node->number < 5; node = node->next)
        sum += node->number == 3 ? second(c, node) : node->number;
    return sum;
}
CASE(finds_iterators_in_three_frames)
{
    pm_container *c = fresh(0);
    head = make_list(10);
    assert(first(c) == 0 + 1 + 2 + (3 + 4 + 4 + 5) + 4);
    check_list(c, head, 10);
    head = NULL;
    assert(pm_close(c) == 0);
}

struct tree {
    struct tree *child[2], *parent, **link; /* of the parent, or the root's */
    char *name;
};
struct forest {
    struct tree *root;
    long count;
};
static void plant(struct forest *f, const char *name)
{
    struct tree **link = &f->root, *parent = NULL, *t = calloc(1, sizeof *t);
    while (*link) {
        parent = *link;
        link = &parent->child[strcmp(name, parent->name) > 0];
    }
    *t = (struct tree){{NULL, NULL}, parent, link, strdup(name)};
    *link = t;
    f->count++;
}
static long check_tree(pm_container *c, const struct tree *t, const struct tree *parent)
{
    if (!t)
        return 0;
    assert(pm_contains(c, t) && pm_contains(c, t->name) && t->parent == parent && *t->link == t);
    for (int i = 0; i < 2; i++)
        assert(!t->child[i] || (strcmp(t->child[i]->name, t->name) > 0) == i);
    return 1 + check_tree(c, t->child[0], t) + check_tree(c, t->child[1], t);
}
CASE(finds_a_tree_with_interior_pointers)
{
    pm_container *c = fresh(0);
    struct forest *f = calloc(1, sizeof *f);
    char name[20];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "%d", i * 7919 % 1000);
        plant(f, name);
        if (i == 100)
            keep_all(c, f);
        else if (i > 100)
            keep_changes(c);
    }
    assert(pm_contains(c, f) && check_tree(c, f->root, NULL) == f->count);
    c = again(c);
    f = pm_getroot(c);
    assert(f->count == 300 && check_tree(c, f->root, NULL) == 300);
    assert(pm_close(c) == 0);
}

CASE(finds_pointers_into_an_array_and_past_it)
{
    pm_container *c = fresh(0);
    long n = number(48); /* as large as its slot */
    long *array = malloc(n * sizeof *array), *neighbour = malloc(n * sizeof *array);
    long *begin = array, *end = array + n, sum = 0;
    for (long *p = begin; p < end; p++) {
        *p = p - begin;
        if (p == begin + 10)
            keep_all(c, array);
        sum += *p;
    }
    assert(sum == n * (n - 1) / 2 && pm_contains(c, array) && end == array + n);
    assert(!pm_contains(c, neighbour));
    free(neighbour);
    assert(pm_close(c) == 0);
}

/*
 * Loops of which optimisers make pointers to before or behind the array, since nothing is read
 * there.
 */
#define LONGS 48

static long until_commit; /* calls of perhaps() */

/* With a commit all numbers become greater: who reads the old memory adds up others. */
__attribute__((noinline)) static void perhaps(pm_container *c, long *array)
{
    if (until_commit-- != 0)
        return;
    keep_all(c, array);
    assert(pm_contains(c, array));
    for (long i = 0; i < LONGS; i++)
        array[i] += 1000;
}
__attribute__((noinline)) static long from_one(pm_container *c, long *a, long n, long m)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        for (long j = 1; j <= m; j++) {
            perhaps(c, a);
            sum += a[i * m + j - 1];
        }
    return sum;
}
__attribute__((noinline)) static long from_far(pm_container *c, long *a, long n, long k)
{
    long sum = 0;
    for (long i = -k; i < n - k; i++) {
        perhaps(c, a);
        sum += a[i + k];
    }
    return sum;
}
__attribute__((noinline)) static long backwards(pm_container *c, long *a, unsigned n)
{
    long sum = 0;
    for (unsigned i = n + 1000; i-- > 1000;) {
        perhaps(c, a);
        sum += a[i - 1000];
    }
    return sum;
}
__attribute__((noinline)) static long either(pm_container *c, long *a, long *b, long n, long k)
{
    long sum = 0;
    const long *from = b ? b : a;
    k = b ? 2 * k : k;
    for (long i = k; i < k + n; i++) {
        perhaps(c, a);
        sum += from[i - k];
    }
    return sum;
}

/* Each store's mark is made of numbers that might be carried from one to the next. */
__attribute__((noinline)) static void store_indexed(pm_container *c, long *a, long **pointers,
                                                    long n)
{
    for (long i = 0; i < n; i++) {
        pointers[i] = &a[i];
        perhaps(c, a);
    }
    keep_changes(c);
}
__attribute__((noinline)) static void store_walking(pm_container *c, long *a, long **pointers,
                                                    long n)
{
    long *first = a;
    while (n-- > 0) {
        *pointers++ = a++;
        perhaps(c, first);
    }
    keep_changes(c);
}

typedef long add_up(pm_container *c, long *array);
static long add_from_one(pm_container *c, long *a)
{
    return from_one(c, a, number(8), number(6));
}
static long add_from_far(pm_container *c, long *a)
{
    return from_far(c, a, number(LONGS), number(-1000));
}
static long add_from_farther(pm_container *c, long *a)
{
    return from_far(c, a, number(LONGS), number(1000));
}
static long add_backwards(pm_container *c, long *a)
{
    return backwards(c, a, (unsigned)number(LONGS));
}
static long add_either(pm_container *c, long *a)
{
    return either(c, a, NULL, number(LONGS), number(100));
}
#ifdef _FORTIFY_SOURCE /* compiled with -fwrapv: pointers of the program itself may lead outside */
__attribute__((noinline)) static long at(const long *from, long i)
{
    return from[i];
}
/* The pointer is made, and then a commit moves the array, both before the branch. */
__attribute__((noinline)) static long from_before(pm_container *c, long *a, long k, long i)
{
    const long *before = a - k;
    perhaps(c, a);
    return i & 1 ? before[i] : at(before, i);
}
static long add_from_before(pm_container *c, long *a)
{
    long sum = 0, k = number(100000);
    for (long i = 0; i < LONGS; i++)
        sum += from_before(c, a, k, k + i);
    return sum;
}
/* Both calls of at() are in one block, and a commit between them may move the array. */
__attribute__((noinline)) static long from_between(pm_container *c, long *a, long k, long i)
{
    const long *before = a - k;
    perhaps(c, a);
    long first = at(before, i);
    perhaps(c, a);
    return first + at(before, i + 1);
}
static long add_from_between(pm_container *c, long *a)
{
    long sum = 0, k = number(100000);
    for (long i = 0; i < LONGS; i += 2)
        sum += from_between(c, a, k, k + i);
    return sum;
}
/* A commit comes between the pointer and the choice, and none between the choice and its use. In one branch
 * only, the optimiser would make the pointer there. */
__attribute__((noinline)) static long from_chosen(pm_container *c, long *a, long k, long i)
{
    const long *before = a - k, *from = a;
    perhaps(c, a);
    if (i % 3 == 0) {
        i -= number(k);
    } else if (i % 3 == 1) {
        i += number(0);
        from = before;
    } else {
        i -= number(0);
        from = before;
    }
    return at(from, i);
}
static long add_from_chosen(pm_container *c, long *a)
{
    long sum = 0, k = number(100000);
    for (long i = 0; i < LONGS; i++)
        sum += from_chosen(c, a, k, k + i);
    return sum;
}
#else
#define add_from_before add_from_far
#define add_from_between add_from_far
#define add_from_chosen  add_from_far
#endif
CASE(finds_pointers_that_the_optimiser_has_moved_outside)
{
    add_up *const ways[] = {add_from_one, add_from_far,    add_from_farther, add_backwards,
                            add_either,   add_from_before, add_from_between, add_from_chosen};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (long before = 1; before < LONGS; before += 5) { /* so many are read before */
            pm_container *c = fresh(0);
            long *a = malloc(LONGS * sizeof *a), sum = 1000 * (LONGS - before);
            for (long i = 0; i < LONGS; i++)
                sum += a[i] = i;
            until_commit = before;
            assert(ways[way](c, a) == sum);
            assert(pm_close(c) == 0);
        }
}

CASE(marks_what_is_stored_after_a_commit)
{
    for (long before = 0; before < LONGS; before++) {
        pm_container *c = fresh(0);
        struct {
            long numbers[LONGS], *pointers[LONGS];
        } *both = calloc(1, sizeof *both);
        until_commit = before;
        (before % 2 ? store_indexed : store_walking)(c, both->numbers, both->pointers,
                                                     number(LONGS));
        c = again(c);
        both = pm_getroot(c);
        for (long i = 0; i < LONGS; i++)
            assert(both->pointers[i] == &both->numbers[i]);
        assert(pm_close(c) == 0);
    }
}

CASE(finds_what_is_in_registers)
{
    pm_container *c = fresh(0);
    struct node *list = make_list(20), *p[20];
    long i = 0;
    for (struct node *node = list; node; node = node->next)
        p[i++] = node;
    struct node *a = p[1], *b = p[2], *d = p[3], *e = p[4], *f = p[5], *g = p[6], *h = p[7];
    keep_all(c, list);
    assert(a->number == 1 && b->number == 2 && d->number == 3 && e->number == 4);
    assert(f->number == 5 && g->number == 6 && h->number == 7 && a->next == b && f->next == g);
    for (i = 0; i < 20; i++)
        assert(pm_contains(c, p[i]) && p[i]->number == i);
    check_list(c, list, 20);
    assert(pm_close(c) == 0);
}

static jmp_buf global_state;
CASE(finds_what_longjmp_brings_back)
{
    pm_container *c = fresh(0);
    struct node *list = make_list(5), *second = list->next;
    jmp_buf state;
    if (setjmp(state) == 0) {
        keep_all(c, list);
        longjmp(state, 1);
    }
    check_list(c, list, 5);
    assert(second == list->next);
    struct node *more = make_list(3);
    if (setjmp(global_state) == 0) {
        list->next->next->next->next->next = more;
        more->number = 5;
        more->next->number = 6;
        more->next->next->number = 7;
        keep_changes(c);
        longjmp(global_state, 1);
    }
    check_list(c, list, 8);
    assert(more->number == 5 && pm_contains(c, more));
    assert(pm_close(c) == 0);
}

/* More than a function keeps on the stack: the rest is in registers, and so in the buffer. */
static __attribute__((noinline)) long jump(pm_container *c, jmp_buf *state, struct node *a,
                                           struct node *b, struct node *d, struct node *e)
{
    if (setjmp(*state) == 0) {
        keep_changes(c);
        longjmp(*state, 1);
    }
    assert(pm_contains(c, a) && pm_contains(c, b) && pm_contains(c, d) && pm_contains(c, e));
    return a->number + b->number + d->number + e->number;
}

CASE(finds_what_longjmp_brings_back_from_the_heap)
{
    pm_container *c = fresh(0);
    struct node *list = make_list(1);
    keep_all(c, list);
    struct node *more = make_list(4);
    list->next = more;
    jmp_buf *state = malloc(sizeof *state);
    assert(jump(c, state, more, more->next, more->next->next, more->next->next->next) == 6);
    free(state);
    assert(pm_close(c) == 0);
}

/* Text, in memory that libc would allocate. */
struct line {
    struct line *next;
    char *text;
    size_t room;
};
CASE(finds_text)
{
    pm_container *c = fresh(0);
    FILE *file = tmpfile();
    for (int i = 0; i < 50; i++)
        fprintf(file, "line %d%*s\n", i, 5 * i, "");
    rewind(file);
    struct line *lines = NULL, **last = &lines;
    for (;;) {
        struct line *l = calloc(1, sizeof *l);
        if (getline(&l->text, &l->room, file) < 0) {
            free(l->text);
            free(l);
            break;
        }
        *last = l;
        last = &l->next;
    }
    free(lines->text);
    assert(asprintf(&lines->text, "%s, the first", "line 0") > 0);
    keep_all(c, lines);
    assert(*last == NULL);
    int i = 0;
    for (struct line *l = lines; l; l = l->next, i++) {
        int number = -1;
        assert(pm_contains(c, l) && pm_contains(c, l->text));
        assert(sscanf(l->text, "line %d", &number) == 1 && number == i);
    }
    assert(i == 50 && strcmp(lines->text, "line 0, the first") == 0);
    /* As ever afterwards. */
    lines->text = realloc(lines->text, 1000);
    assert(pm_contains(c, lines->text));
    free(lines->next->text);
    lines->next->text = strdup("new");
    assert(!pm_contains(c, lines->next->text));
    keep_changes(c);
    assert(strcmp(lines->next->text, "new") == 0 && pm_contains(c, lines->next->text));
    fclose(file);
    assert(pm_close(c) == 0);
}

/* ---- what must fail -------------------------------------------------------------------------- */

static pm_container *container;

static void refused(const char *why)
{
    assert(pm_commit(container) == -1 && errno == EINVAL);
    if (!strstr(pm_errormsg(), why))
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(strstr(pm_errormsg(), why));
}

static int compare(const void *a, const void *b)
{
    refused("a function of ");
    assert(strstr(pm_errormsg(), "/libc.so.6 (") && strstr(pm_errormsg(), "pmcc --discover"));
    return (*(struct node **)a)->number > (*(struct node **)b)->number;
}
CASE(sees_a_foreign_frame)
{
    container = fresh(0);
    struct node *list = make_list(2), *pointers[] = {list->next, list};
    assert(pm_setroot(container, list, 0) == 0);
    qsort(pointers, 2, sizeof *pointers, compare);
    assert(pointers[0] == list && pointers[1] == list->next && !pm_contains(container, list));
    keep_changes(container);
    check_list(container, list, 2);
    assert(pointers[0] == list && pointers[1] == list->next);
    assert(pm_close(container) == 0);
}

/* Each public function that looks at the stack must take its caller's frame for the program's. */
CASE(knows_the_frame_of_every_caller)
{
    pm_container *c = fresh(PM_MOVABLE);
    head = make_list(3);
    assert(pm_setroot(c, head, 0) == 0);
    pm_ticket ticket = pm_commit_async(c);
    assert(ticket.container && pm_wait(ticket) == 0);
    check_list(c, head, 3);
    free_list(head->next);
    head->next = make_list(2);
    keep_changes(c);
    struct node *rest = head->next;
    assert(pm_contains(c, rest));
    head->next = NULL;
    rest = pm_detach(rest);
    assert(rest && !pm_contains(c, rest) && !pm_contains(c, rest->next));
    assert(rest->number == 0 && rest->next->number == 1);
    head->next = rest;
    rest = NULL;
    if (pm_compact(c, NULL, NULL, NULL) != 0) {
        fprintf(stderr, "%s\n", pm_errormsg());
        abort();
    }
    head = pm_getroot(c); /* it may have moved once more */
    assert(pm_contains(c, head->next) && head->next->next->number == 1);
    assert(pm_close(c) == 0);
}

/* As a vector's end does when all its room is in use. */
CASE(detaches_what_a_pointer_just_past_it_leads_to)
{
    struct span {
        char *begin, *end;
    };
    pm_container *c = fresh(0);
    struct span *span = malloc(sizeof *span);
    size_t bytes = (size_t)number(64); /* all of its slot */
    span->begin = malloc(bytes);
    span->end = span->begin + bytes;
    memset(span->begin, 'x', bytes);
    keep_all(c, span);
    assert(pm_contains(c, span->begin) && span->end == span->begin + bytes);
    assert(pm_setroot(c, NULL, 0) == 0);
    span = pm_detach(span);
    assert(span && !pm_contains(c, span->begin) && span->end == span->begin + bytes);
    assert(span->begin[0] == 'x' && span->end[-1] == 'x');
    free(span->begin);
    free(span);
    assert(pm_close(c) == 0);
}

/* The optimiser, also at link time, knows malloc by its name. */
CASE(takes_back_stores_to_what_malloc_returned)
{
    pm_container *c = fresh(0);
    assert(pm_set_current(c) == 0);
    long *stored = malloc(sizeof *stored);
    *stored = 1;
    assert(pm_commit(c) == 0);
    *stored = 2;
    assert(pm_rollback(c) == 0);
    assert(*stored == 1);
    assert(pm_close(c) == 0);
}

static void *commit_in_thread(void *expected)
{
    if (expected)
        refused(expected);
    else
        keep_changes(container);
    return NULL;
}
static void in_thread(const char *expected)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, commit_in_thread, (void *)expected) == 0);
    assert(pthread_join(thread, NULL) == 0);
}
CASE(sees_another_thread)
{
    container = fresh(0);
    struct node *list = make_list(3);
    assert(pm_setroot(container, list, 0) == 0);
    in_thread("other threads may hold pointers"); /* and its own frames are known */
    keep_changes(container);
    check_list(container, list, 3);
    assert(pm_close(container) == 0);
}
static void *commit_after(void *main_thread)
{
    assert(pthread_join(*(pthread_t *)main_thread, NULL) == 0);
    keep_changes(container);
    exit(pm_close(container) == 0 ? 0 : 1);
}
/* The kernel lists a thread for a moment after it has ended, and the first one as long as the process,
 * which is why this has a process of its own. */
CASE(counts_no_thread_that_has_ended)
{
    static pthread_t main_thread;
    if (!getenv("FIRST_THREAD_ENDS")) {
        assert(system("FIRST_THREAD_ENDS=1 /proc/$PPID/exe counts_no_thread_that_has_ended") == 0);
        return;
    }
    container = fresh(0);
    assert(pm_setroot(container, make_list(3), 0) == 0);
    main_thread = pthread_self();
    pthread_t thread;
    assert(pthread_create(&thread, NULL, commit_after, &main_thread) == 0);
    pthread_exit(NULL);
}
CASE(says_that_a_thread_cannot_begin)
{
    pthread_t thread;
    pthread_attr_t attributes;
    assert(pthread_attr_init(&attributes) == 0);
    assert(pthread_attr_setstacksize(&attributes, (size_t)1 << 47) == 0);
    assert(pthread_create(&thread, &attributes, commit_in_thread, NULL) == EAGAIN);
    assert(pthread_attr_destroy(&attributes) == 0);
}
CASE(is_told_that_threads_hold_nothing)
{
    container = fresh(PM_VOUCHED);
    head = make_list(3);
    assert(pm_setroot(container, head, 0) == 0);
    in_thread(NULL);
    check_list(container, head, 3);
    head = NULL;
    assert(pm_close(container) == 0);
}

CASE(refuses_the_stack_and_foreign_memory)
{
    container = fresh_that_refuses();
    struct node on_stack = {NULL, 5}, *list = make_list(2);
    assert(pm_setroot(container, list, 0) == 0);
    list->next->next = pointer(&on_stack);
    refused("leads to what cannot move");
    FILE *file = tmpfile(); /* which libc has allocated */
    list->next->next = (struct node *)file;
    refused("leads to what cannot move");
    fclose(file);
    struct node *freed = malloc(sizeof *freed);
    list->next->next = pointer(freed);
    free(freed);
    refused("has been freed");
    list->next->next = NULL;
    assert(!pm_contains(container, list));
    keep_changes(container);
    check_list(container, list, 2);
    assert(pm_close(container) == 0);
}

/* As a vector does that shrinks, or an interpreter's stack. */
CASE(makes_data_of_pointers_to_freed_memory)
{
    pm_container *c = fresh(0);
    struct node *list = make_list(2), *dead = malloc(sizeof *dead);
    list->next->next = pointer(dead);
    free(dead);
    keep_all(c, list);
    assert(pm_contains(c, list) && !pm_next_pointer(&list->next->next, &list->next->next + 1));
    struct node *distinct = list->next->next, *other = malloc(2 * sizeof *dead);
    assert(distinct && distinct != pointer(dead));
    list->next->next = pointer(other); /* and in an object of the container */
    free(other);
    keep_changes(c);
    assert(list->next->next && list->next->next != distinct && list->next->next != other);
    struct pm_stats stats = {.size = sizeof stats};
    assert(pm_stats(c, &stats) == 0 && stats.pointers_freed == 2);
    list->next->next = NULL;
    keep_changes(c);
    check_list(c, list, 2);
    assert(pm_close(c) == 0);
}

CASE(takes_parts_of_words_for_data)
{
    pm_container *c = fresh(0);
    char **words = malloc(3 * sizeof *words), *text = malloc(64), *other = text + 1;
    for (int i = 0; i < 3; i++)
        words[i] = pointer(text);
    memcpy(words, &other, (size_t)number(3));
    memmove((char *)&words[1] + 1, (char *)&other + 1, (size_t)number(sizeof other - 1));
    keep_all(c, words);
    assert(pm_next_pointer(words, words + 3) == (void *)&words[2]);
    assert(pm_close(c) == 0);
}

union slot {
    void *pointer;
    char text[8];
    int half[2];
};

__attribute__((noinline)) static void put_text(union slot *slot, const char *text, long n)
{
    for (long i = 0; i < n; i++)
        slot->text[i] = text[i];
}

/* Which is an address still, when it leads to what moves or has moved. */
CASE(keeps_text_over_pointers)
{
    pm_container *c = fresh(0);
    union slot *slots = calloc(24, sizeof *slots), *other = calloc(24, sizeof *other);
    slots[0].pointer = calloc(1, 500);
    keep_all(c, slots);
    slots[1].pointer = calloc(1, 500); /* keeps it alive */
    for (int i = 2; i < 12; i++)
        slots[i].pointer = other[i].pointer = slots[1].pointer;
    slots[0].text[0] = ':'; /* over an older one */
    slots[2].text[0] = ':';
    slots[3].text[number(0)] = (char)number(':');
    put_text(&slots[4], ":", number(1));
    slots[5].half[0] = slots[1].half[0] + (int)number(8);
    memcpy(&slots[6], ":", (size_t)number(1));
    strcpy(slots[7].text, "");
    other[2].text[0] = other[3].text[0] = other[4].text[0] = ':'; /* and on the heap */
    slots[8] = other[2];
    memcpy(&slots[9], &other[3], (size_t)number(sizeof *slots));
    slots[12].pointer = other;
    volatile int before[24][2], heap[24][2]; /* as numbers that are no addresses */
    for (int i = 0; i < 24; i++)
        for (int half = 0; half < 2; half++) {
            before[i][half] = ~slots[i].half[half];
            heap[i][half] = ~other[i].half[half];
        }
    keep_changes(c);
    other = slots[12].pointer;
    assert(pm_contains(c, other) && slots[10].pointer == slots[1].pointer);
    assert(other[5].pointer == slots[1].pointer && pm_contains(c, slots[1].pointer));
    for (int i = 0; i < 10; i++)
        if (i != 1) {
            assert(slots[i].half[0] == ~before[i][0] && slots[i].half[1] == ~before[i][1]);
            assert(!pm_next_pointer(&slots[i], &slots[i] + 1));
        }
    for (int i = 2; i < 5; i++)
        assert(other[i].half[0] == ~heap[i][0] && other[i].half[1] == ~heap[i][1]);
    assert(pm_close(c) == 0);
}

__attribute__((noinline)) static void copy_bytes(char *to, const char *from, long n)
{
    for (volatile long i = 0; i < n; i++)
        to[i] = from[i];
}
__attribute__((noinline)) static void copy_ints(int *to, const int *from, long n)
{
    for (volatile long i = 0; i < n; i++)
        to[i] = from[i];
}
__attribute__((noinline)) static void shift_and_back(char *word)
{
    memmove(word + 1, word, (size_t)number(16));
    memmove(word, word + 1, (size_t)number(16));
}

static void refuse_pieces(pm_container *c, union slot *slot, void *pointer)
{
    for (int i = 0; i < 2; i++)
        assert(pm_commit(c) == -1 && strstr(pm_errormsg(), "in pieces"));
    assert(slot->pointer == pointer && !pm_contains(c, pointer));
    slot->pointer = pointer;
}

/* In the container, in what moves there, and in what stays on the heap. */
CASE(refuses_pointers_that_are_copied_in_pieces)
{
    for (int way = 0; way < 3; way++)
        for (int where = 0; where < 3; where++) {
            pm_container *c = fresh(0);
            union slot *slots = calloc(8, sizeof *slots), *moving = calloc(8, sizeof *moving);
            static union slot *staying;
            staying = calloc(8, sizeof *staying);
            keep_all(c, slots);
            slots[0].pointer = moving;
            slots[1].pointer = calloc(1, 64);
            union slot *slot = &(where == 0 ? slots : where == 1 ? moving : staying)[4];
            if (way == 0)
                copy_bytes(slot->text, slots[1].text, number(sizeof *slot));
            else if (way == 1)
                copy_ints(slot->half, slots[1].half, number(2));
            else {
                slot->pointer = slots[1].pointer;
                shift_and_back(slot->text);
            }
            refuse_pieces(c, slot, slots[1].pointer);
            keep_changes(c);
            if (where == 1)
                slot = (union slot *)slots[0].pointer + 4;
            assert(pm_contains(c, slot->pointer) && slot->pointer == slots[1].pointer);
            free(staying);
            staying = NULL;
            assert(pm_close(c) == 0);
        }
}

/* So does a detaching, if something on the heap would lead to what has left the container. */
CASE(detaches_nothing_to_which_pieces_lead)
{
    pm_container *c = fresh(0);
    union slot *slots = calloc(2, sizeof *slots);
    static union slot *holder;
    holder = calloc(8, sizeof *holder);
    slots[0].pointer = calloc(1, 64);
    keep_all(c, slots);
    copy_bytes(holder[4].text, slots[0].text, number(sizeof *slots));
    void *object = slots[0].pointer;
    slots[0].pointer = NULL;
    assert(!pm_detach(object) && strstr(pm_errormsg(), "in pieces"));
    assert(pm_contains(c, object) && holder[4].pointer == object);
    holder[4].pointer = NULL;
    object = pm_detach(object);
    assert(object && !pm_contains(c, object));
    free(object);
    free(holder);
    holder = NULL;
    assert(pm_close(c) == 0);
}

/* As code of another compiler fills a packed struct. */
__attribute__((noinline, disable_sanitizer_instrumentation)) static void fill_packed(char *to, void *pointer,
                                                                                    int count)
{
    for (int i = 0; i < count; i++)
        memcpy(to + 4 + 8 * i, &pointer, sizeof pointer);
}

/* The kinds move in the order in which memmove() copies the words. */
CASE(follows_pointers_that_move_onto_themselves)
{
    pm_container *c = fresh(0);
    char *up = calloc(1, 128), *down = calloc(1, 128);
    char **both = malloc(2 * sizeof *both);
    both[0] = up;
    both[1] = down;
    void *object = calloc(1, 24);
    fill_packed(up, object, 6);
    fill_packed(down, object, 6);
    memmove(up + 12, up, (size_t)number(60));
    memset(up, 0, 16);
    memmove(down, down + 4, (size_t)number(60));
    keep_all(c, both);
    for (int i = 0; i < 6; i++)
        assert(pm_contains(c, ((void **)(both[0] + 16))[i]) && pm_contains(c, ((void **)both[1])[i]));
    assert(pm_close(c) == 0);
}

CASE(keeps_pieces_that_are_said_to_be_data)
{
    pm_container *c = fresh(0);
    union slot *slots = calloc(8, sizeof *slots), *moving = calloc(8, sizeof *moving);
    keep_all(c, slots);
    slots[0].pointer = moving;
    slots[1].pointer = calloc(1, 64);
    copy_bytes(slots[2].text, slots[1].text, number(sizeof *slots));
    copy_bytes(moving[2].text, slots[1].text, number(sizeof *slots));
    volatile int low = ~slots[1].half[0], high = ~slots[1].half[1];
    assert(pm_commit(c) == -1 && strstr(pm_errormsg(), "in pieces"));
    assert(pm_mark_data(&slots[2], sizeof *slots) == 0);
    assert(pm_commit(c) == -1 && strstr(pm_errormsg(), "in pieces"));
    assert(pm_mark_data(&moving[2], sizeof *moving) == 0);
    keep_changes(c);
    moving = slots[0].pointer;
    assert(pm_contains(c, moving) && pm_contains(c, slots[1].pointer));
    assert(slots[2].half[0] == ~low && slots[2].half[1] == ~high);
    assert(moving[2].half[0] == ~low && moving[2].half[1] == ~high);
    assert(pm_close(c) == 0);
}

CASE(frees_what_has_moved)
{
    pm_container *c = fresh(0);
    struct node *list = make_list(1000);
    keep_all(c, list);
    free_list(list);
    assert(pm_setroot(c, NULL, 0) == 0);
    keep_changes(c);
    assert(pm_close(c) == 0);
}

CASE(commits_between_tokens)
{
    pm_container *c = fresh(0);
    char **text = malloc(sizeof *text);
    *text = strdup("some words in a text");
    int words = 0;
    assert(pm_setroot(c, text, 0) == 0);
    for (char *word = strtok(*text, " "); word; word = strtok(NULL, " ")) {
        keep_changes(c);
        assert(pm_contains(c, word));
        words++;
    }
    assert(words == 5 && strcmp(*text, "some") == 0);
    assert(pm_close(c) == 0);
}

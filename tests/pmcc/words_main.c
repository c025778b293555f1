/* Chooses what is done where, see words.h:    test_words_... [FIRST-SEED [SEEDS [loud]]] */
#include "words.h"

#include <errno.h>
#include <libpm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef NDEBUG
#error these tests are made of assertions
#endif
#include <assert.h>

#define NOINLINE __attribute__((noinline))

#ifdef WORDS_DISCOVER
static const unsigned flags = PM_DISCOVER;
#else
static const unsigned flags = PM_MOVABLE;
#endif

static char *objects[OBJECTS_MAX]; /* 0: the root. A commit finds them here */
static pm_container *container;
static char path[2][64];
static int current; /* of the paths */

static pm_container *open_at(const char *name, unsigned more)
{
    struct pm_options options = {.size = sizeof options,
                                 .flags = flags | more,
                                 .tracker = PM_TRACKER_STORES,
                                 .max_size = 64 << 20,
                                 .segment_size = 64 << 10};
    pm_container *c = pm_open(name, &options);
    if (!c)
        fprintf(stderr, "%s\n", pm_errormsg());
    assert(c);
    return c;
}

static char *allocate(void)
{
#ifdef WORDS_DISCOVER
    char *p = draw(4) ? malloc(OBJECT_BYTES) : pm_calloc(container, 1, OBJECT_BYTES);
#else
    char *p = pm_calloc(container, 1, OBJECT_BYTES);
#endif
    assert(p);
    return p;
}

static void release(char *p)
{
#ifdef WORDS_DISCOVER
    free(p);
#else
    assert(pm_free(p) == 0);
#endif
}

static int any_object(void)
{
    int object;
    do
        object = (int)draw(OBJECTS_MAX);
    while (!objects[object]);
    return object;
}

/* ---- commits --------------------------------------------------------------------------------- */

/* What a message has told the program to do of words that were stored in pieces. */
NOINLINE static void mend(void)
{
    int object = 0, at = 0;
    model_check(objects, "after a commit that failed");
    if (errno != EINVAL || !strstr(pm_errormsg(), "in pieces"))
        fprintf(stderr, "refused: %s\n", pm_errormsg());
    assert(errno == EINVAL && strstr(pm_errormsg(), "in pieces"));
    say("  refused: %s\n", pm_errormsg());
    if (!model_next_doubtful(&object, &at)) {
        fprintf(stderr, "refused, though nothing is in pieces: %s\n", pm_errormsg());
        abort();
    }
    for (object = at = 0; model_next_doubtful(&object, &at);) {
        char *word = objects[object] + at;
        int target = model_target(object, at);
        if (target >= 0) {
            char *value;
            memcpy(&value, word, sizeof value);
            pointer_stores[0](word, value);
            model_pointer(object, at, target, value - objects[target]);
        } else {
            assert(pm_mark_data(word, WORD) == 0);
            model_marked_data(object, at);
        }
    }
}

NOINLINE static void commit(void)
{
    say("commit\n");
    model_begin_commit(objects);
    if (pm_commit(container) != 0) {
        mend();
        if (pm_commit(container) != 0) {
            fprintf(stderr, "refused again: %s\n", pm_errormsg());
            abort();
        }
    }
    model_check_commit(objects, "after a commit");
    for (int object = 0; object < OBJECTS_MAX; object++)
        for (int at = 0; at < OBJECT_BYTES && objects[object]; at += WORD) {
            int target = model_target(object, at);
            assert(target < 0 || model_is_volatile(objects[object]) ||
                   !model_is_volatile(objects[target]));
        }
}

static void copy_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert(system(command) == 0);
}

/* At the same addresses, or at others, since somebody has those. */
NOINLINE static void open_again(void)
{
    pm_container *other = NULL;
    commit();
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i] && model_is_volatile(objects[i])) {
            model_remove(i);
            release(objects[i]);
            objects[i] = NULL;
        }
    model_begin_commit(objects);
    char *root = objects[0];
    assert(pm_close(container) == 0);
    long how = draw(3);
    say("open again%s\n", how == 0 ? "" : how == 1 ? " elsewhere" : " elsewhere for good");
    if (how > 0) {
        copy_file(path[current], path[!current]);
        other = open_at(path[current], 0);
        current = !current;
    }
    container = open_at(path[current], how == 2 ? PM_RELOCATE : 0);
    assert(!other || pm_getroot(other) != pm_getroot(container));
    if (other)
        assert(pm_close(other) == 0);
    long distance = (char *)pm_getroot(container) - root;
    for (int i = 0; i < OBJECTS_MAX; i++)
        if (objects[i])
            objects[i] += distance;
    model_check_commit(objects, "opened again");
    assert(pm_check(container) == 0);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static int any_place(int bytes, int align)
{
    int step = draw(2) ? WORD : align;
    return (int)draw((OBJECT_BYTES - bytes) / step + 1) * step;
}

static void store_any_pointer(void)
{
    int object = any_object(), target = any_object(), at = (int)draw(OBJECT_WORDS) * WORD;
    long distance = draw(3) ? 0 : draw(OBJECT_BYTES);
    pointer_stores[draw(pointer_store_count)](objects[object] + at, objects[target] + distance);
    model_pointer(object, at, target, distance);
}

static void store_any_data(void)
{
    const struct data_store *s = &data_stores[draw(data_store_count)];
    int object = any_object(), at = any_place(s->bytes, s->align);
    if (s->bytes == WORD && at % WORD) /* half an address behind a number */
        return;
    say(" store %d:", (int)(s - data_stores));
    s->store(objects[object] + at, draw(200));
    model_data(object, at, s->bytes);
}

static void store_any_text(void)
{
    int n = (int)draw(draw(2) ? 8 : 24), object = any_object(), at = any_place(n + 1, 1);
    text_stores[draw(text_store_count)](objects[object] + at, n);
    model_data(object, at, n + 1);
}

static int any_size(int unit, int most)
{
    int size = draw(2) ? WORD * (1 + (int)draw(4)) : 1 + (int)draw(most);
    size = size / unit * unit;
    return size ? size : unit;
}

static bool overlap(int a, int a_at, int b, int b_at, int bytes)
{
    return a == b && a_at < b_at + bytes && b_at < a_at + bytes;
}

static void copy_any(void)
{
    const struct copy *k = &copies[draw(copy_count)];
    int to = any_object(), from = any_object(), bytes = any_size(k->unit, OBJECT_BYTES / 2);
    int to_at = any_place(bytes, k->align), from_at = any_place(bytes, k->align);
    if (k->overlaps && draw(2)) { /* by a little, and perhaps back later */
        from = to;
        from_at = to_at + (int)draw(5) - 2;
        if (from_at < 0 || from_at + bytes > OBJECT_BYTES)
            return;
    }
    if ((!k->overlaps && overlap(to, to_at, from, from_at, bytes)) ||
        model_is_ambiguous(to_at, from, from_at, bytes, k->by_value))
        return;
    say(" copy %d:", (int)(k - copies));
    k->copy(objects[to] + to_at, objects[from] + from_at, bytes);
    bool by_unaligned_words = k->unit >= WORD && to_at % WORD;
    model_copy(to, to_at, from, from_at, bytes, k->in_pieces || by_unaligned_words);
}

static void swap_any(void)
{
    const struct swap *s = &swaps[draw(swap_count)];
    int a = any_object(), b = any_object(), bytes = any_size(s->unit, 24) / WORD * WORD;
    if (bytes == 0)
        bytes = WORD;
    int a_at = any_place(bytes, WORD), b_at = any_place(bytes, WORD);
    if (overlap(a, a_at, b, b_at, bytes) ||
        model_is_ambiguous(b_at, a, a_at, bytes, !s->in_pieces)) /* a variable is on the stack */
        return;
    say(" swap %d:", (int)(s - swaps));
    s->swap(objects[a] + a_at, objects[b] + b_at, bytes);
    model_swap(a, a_at, b, b_at, bytes, s->in_pieces);
}

/* A pointer, and data over a part of it; perhaps it was another pointer at the last commit. */
static void store_data_over_pointer(void)
{
    const struct data_store *s = &data_stores[draw(data_store_count)];
    int object = any_object(), target = any_object(), at = (int)draw(OBJECT_WORDS) * WORD;
    if (draw(2)) {
        pointer_stores[draw(pointer_store_count)](objects[object] + at, objects[object]);
        model_pointer(object, at, object, 0);
        model_check(objects, "after a pointer");
        if (draw(2))
            commit();
    }
    pointer_stores[draw(pointer_store_count)](objects[object] + at, objects[target]);
    model_pointer(object, at, target, 0);
    model_check(objects, "after a pointer");
    if (s->bytes >= WORD)
        return;
    int place = (int)draw((WORD - s->bytes) / s->align + 1) * s->align;
    s->store(objects[object] + at + place, draw(200));
    model_data(object, at + place, s->bytes);
}

/* By no whole word, with data over a part of it meanwhile. All of it is of one transaction, so nothing goes by
 * its value. */
static void shift_and_back(void)
{
    const struct copy *move = &copies[1];
    int object = any_object(), words = 1 + (int)draw(4), distance = 1 + (int)draw(7);
    int at = (int)draw(OBJECT_WORDS - words) * WORD, bytes = words * WORD;
    assert(move->overlaps);
    move->copy(objects[object] + at + distance, objects[object] + at, bytes);
    model_copy(object, at + distance, object, at, bytes, true);
    model_check(objects, "after a shift");
    if (draw(2)) {
        const struct data_store *s = &data_stores[1];
        int place = at + distance + (int)draw(bytes);
        s->store(objects[object] + place, draw(200));
        model_data(object, place, s->bytes);
        model_check(objects, "after data");
    }
    move->copy(objects[object] + at, objects[object] + at + distance, bytes);
    model_copy(object, at, object, at + distance, bytes, true);
}

static void change_any_bits(void)
{
    int object = any_object(), at = (int)draw(OBJECT_WORDS) * WORD;
    const struct bit_change *b = &bit_changes[draw(bit_change_count)];
    if (b->by_value && model_is_ambiguous(at, object, at, WORD, true))
        return;
    say(" change %d:", (int)(b - bit_changes));
    b->change(objects[object] + at, draw(8));
    model_bits(object, at);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void add_any(void)
{
    int object = (int)draw(OBJECTS_MAX);
    if (!objects[object]) {
        objects[object] = allocate();
        model_add(object);
    }
}

static void free_any(void)
{
    int object = any_object(), other, at;
    if (object == 0)
        return;
    while (model_leads_to(object, &other, &at)) {
        at -= at % WORD;
        pointer_stores[0](objects[other] + at, NULL);
        model_data(other, at, WORD);
    }
    model_remove(object);
    release(objects[object]);
    objects[object] = NULL;
}

static void resize_any(void)
{
#ifdef WORDS_DISCOVER
    int object = any_object(), other, at;
    if (object == 0 || model_leads_to(object, &other, &at))
        return;
    objects[object] = realloc(objects[object], OBJECT_BYTES);
    assert(objects[object]);
#endif
}

NOINLINE static void step(void)
{
    switch (draw(22)) {
    case 0:
    case 1:
    case 2:
        store_any_pointer();
        break;
    case 3:
    case 4:
    case 5:
        store_any_data();
        break;
    case 6:
        store_any_text();
        break;
    case 7:
    case 8:
    case 9:
    case 10:
    case 11:
        copy_any();
        break;
    case 12:
        swap_any();
        break;
    case 13:
        change_any_bits();
        break;
    case 14:
    case 15:
        add_any();
        break;
    case 16:
        if (draw(2))
            free_any();
        else
            resize_any();
        break;
    case 17:
    case 18:
        store_data_over_pointer();
        break;
    case 19:
        shift_and_back();
        break;
    default:
        if (draw(6) == 0)
            open_again();
        else
            commit();
    }
    model_check(objects, "after a store");
}

NOINLINE static void try_seed(uint64_t seed, bool is_loud)
{
    model_begin(seed, is_loud);
    for (int i = 0; i < OBJECTS_MAX; i++)
        objects[i] = NULL;
    current = 0;
    container = open_at(path[0], PM_CREATE);
    objects[0] = pm_calloc(container, 1, OBJECT_BYTES);
    assert(objects[0] && pm_setroot(container, objects[0], 0) == 0);
    model_add(0);
    for (int i = 1; i < 6; i++) {
        objects[i] = allocate();
        model_add(i);
    }
    model_check(objects, "at the beginning");
    for (int i = 0; i < 150; i++)
        step();
    open_again();
    assert(pm_close(container) == 0);
    unlink(path[0]);
    unlink(path[1]);
}

/* Seeds of rare defects. The halves of a word came from different places. */
static const uint64_t failed_once[] = {1795596381};

NOINLINE static int run(int count, char **arguments)
{
    uint64_t first = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    uint64_t seeds = count > 2 ? strtoull(arguments[2], NULL, 10) : 60;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "/dev/shm/libpm-words-%d-%d", (int)getpid(), i);
    for (uint64_t seed = first; seed < first + seeds; seed++)
        try_seed(seed, count > 3);
    for (size_t i = 0; count == 1 && i < sizeof failed_once / sizeof *failed_once; i++)
        try_seed(failed_once[i], false);
    printf("%llu seeds\n", (unsigned long long)seeds);
    return 0;
}

/* Nothing follows the call, and yet commits are to find this function on the stack. */
int main(int count, char **arguments)
{
    return run(count, arguments);
}

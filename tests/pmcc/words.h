/*
 * Words that are pointers, numbers and text by turns, made up at random. There are stores of all widths, unions,
 * and memmove(). Words are copied between the heap, the container and the stack. Tags are set and cleared.
 *
 *   words_stores.c   what is done to memory; compiled by the pass
 *   words_main.c     chooses what is done where, commits, opens again; compiled by the pass
 *   words_model.c    a plain copy of memory, which knows where each byte came from; not compiled by it
 *
 * After each commit, and after opening elsewhere, memory must be what the model says. A pointer leads to its
 * object, wherever that is; no other word has changed. A commit may refuse words that were stored in
 * pieces (src/base/marks.h, P4), and no others.
 */
#ifndef TEST_PMCC_WORDS_H
#define TEST_PMCC_WORDS_H

#include <stdbool.h>
#include <stdint.h>

enum { WORD = 8, OBJECT_WORDS = 20, OBJECT_BYTES = OBJECT_WORDS * WORD, OBJECTS_MAX = 14 };

/* ---- words_stores.c -------------------------------------------------------------------------- */

/* Store a pointer, aligned to 8. */
typedef void store_pointer(char *to, void *pointer);
extern store_pointer *const pointer_stores[];

/* Store `bytes` of data that depend on n and lead nowhere. */
struct data_store {
    void (*store)(char *to, long n);
    int bytes, align;
};
extern const struct data_store data_stores[];

/* Store a string of n characters and its end: n + 1 bytes. */
typedef void store_text(char *to, long n);
extern store_text *const text_stores[];

/* Copy n bytes, a multiple of `unit`; the places overlap only if `overlaps`. */
struct copy {
    void (*copy)(char *to, const char *from, long n);
    int unit, align;
    bool overlaps;
    bool in_pieces;     /* of less than a word */
    bool by_value;      /* what is copied may be taken for a pointer if it looks like one */
};
extern const struct copy copies[];

/* Exchange n bytes, a multiple of `unit`. */
struct swap {
    void (*swap)(char *a, char *b, long n);
    int unit;
    bool in_pieces;
};
extern const struct swap swaps[];

/* Change some of the three lowest bits of a word. */
struct bit_change {
    void (*change)(char *word, long bits);
    bool by_value; /* as above */
};
extern const struct bit_change bit_changes[];

extern const int pointer_store_count, data_store_count, text_store_count, copy_count, swap_count,
    bit_change_count;

/* ---- words_model.c --------------------------------------------------------------------------- */

/* Random numbers below n. */
void model_begin(uint64_t seed, bool is_loud);
long draw(long n);

/* What was done; objects by their number. */
void model_add(int object);
void model_remove(int object);
void model_pointer(int object, int at, int target, long distance);
void model_data(int object, int at, int bytes);
void model_copy(int to, int to_at, int from, int from_at, int bytes, bool in_pieces);
void model_swap(int a, int a_at, int b, int b_at, int bytes, bool in_pieces);
void model_bits(int object, int at);
void model_marked_data(int object, int at);

/* For who follows one seed. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* Whether the copy would make a word go by its value that looks like a pointer and is none. */
bool model_is_ambiguous(int to_at, int from, int from_at, int bytes, bool by_value);

/* Whether there are bytes of pointers to it. */
bool model_leads_to(int target, int *object, int *at);

/* The word leads to `target` if it is a whole pointer; else -1. */
int model_target(int object, int at);

/* All bytes must be those of the model. Objects stay there until it is called again. */
void model_check(char *const *objects, const char *when);

/* Before and after a commit, or opening elsewhere, by which objects may move. */
void model_begin_commit(char *const *objects);
void model_check_commit(char *const *objects, const char *when);

/* Whether an object is on the volatile heap. */
bool model_is_volatile(const char *p);

/* Whether a commit may refuse a word, stored in pieces; the next one from *object, *at on. */
bool model_next_doubtful(int *object, int *at);

#endif

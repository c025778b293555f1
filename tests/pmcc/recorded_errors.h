/* Code compiled by pmcc that stores one pointer. */
#ifndef TEST_PMCC_RECORDED_ERRORS_H
#define TEST_PMCC_RECORDED_ERRORS_H

#include <cstddef>
#include <libpm.h>

enum class Foreign { Stack, Heap, Function, Constant, Container, VirtualTable, Mapped };

struct Holder {
    long number;
    void *pointer;
};

/** Have `holder`, of 16 bytes, hold a pointer to something that is no part of its container. */
void store_foreign(Holder *holder, Foreign what, pm_container *other);

void store_pointer(Holder *holder, void *pointer);
void store_pointers(void **words, size_t count, void *pointer);
void copy(void *to, const void *from, size_t bytes);
/** In halves, by a loop. The optimiser may take several words at once. */
void copy_halves(void *__restrict to, void *const *__restrict from, size_t count);
/** Copy a word in pieces that are joined again. JOIN_WAYS ways. */
void copy_joined(void *to, const void *from, int way);
constexpr int JOIN_WAYS = 12;
/** Copy a word in pieces, and do something else in between. STEP_WAYS ways. `to` has three words, all zero. */
void copy_in_steps(void *to, const void *from, int way);
constexpr int STEP_WAYS = 16;
void put_upper_half(void *to, const void *from);
/** Store the word at `from`, but for one byte, for which a number is stored that was chosen or passed.
 * NUMBER_WAYS ways. */
void copy_with_number(void *to, void *const *from, int way);
constexpr int NUMBER_WAYS = 5;
void fill(void *words, int byte, size_t bytes);
/** As a result of arithmetic, not of a pointer. */
void store_number(Holder *holder, long number);

/** Have `word` hold a number that has been computed: `number` * 2. */
void store_computed(void *word, double number);

#endif

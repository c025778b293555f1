/* What the tables have, and what they leave out. */
#include "mock_heap.h"

#include <setjmp.h>

#define ASSERT_GLOBAL(variable, times)                                                             \
    assert(count_global(&(variable), sizeof(variable)) == (times))
#define ASSERT_LOCAL(variable) assert(count_local(&(variable), sizeof(variable)) == 1)

struct mixed {
    int number;
    char text[20];
    double fraction;
};

void *exported;
static char *hidden[3];
static struct mixed *pointed;
static unsigned long number;
static struct mixed mixed;
static __int128 large;
static jmp_buf state;
__attribute__((weak)) void *weak;
__attribute__((section("elsewhere"))) static void *placed;
__attribute__((common)) void *common;
const char *text = "variable";
static void *__attribute__((address_space(1))) spaced;
static _Thread_local void *__attribute__((address_space(1))) spaced_local;

static int small;
static short numbers[100];
static double fractions[3];
static float vector __attribute__((vector_size(32)));
static char bytes[64];
const char *const fixed = "constant";

_Thread_local void *exported_local;
static _Thread_local struct mixed *hidden_local[2];
static _Thread_local int small_local;

USE(lists_variables, "")
{
    ASSERT_GLOBAL(exported, 1);
    ASSERT_GLOBAL(hidden, 1);
    ASSERT_GLOBAL(pointed, 1);
    ASSERT_GLOBAL(number, 1);
    ASSERT_GLOBAL(mixed, 1);
    ASSERT_GLOBAL(large, 1);
    ASSERT_GLOBAL(state, 1);
    ASSERT_GLOBAL(weak, 1);
    ASSERT_GLOBAL(placed, 1);
    ASSERT_GLOBAL(common, 1);
    ASSERT_GLOBAL(text, 1);
    assert(count_global((void *)&spaced, sizeof spaced) == 1);
    assert(count_local((void *)&spaced_local, sizeof spaced_local) == 1);
    static void *inside;
    ASSERT_GLOBAL(inside, 1);
    setjmp(state);
}
USE(leaves_out_numbers_and_constants, "")
{
    ASSERT_GLOBAL(small, 0);
    ASSERT_GLOBAL(numbers, 0);
    ASSERT_GLOBAL(fractions, 0);
    ASSERT_GLOBAL(vector, 0);
    ASSERT_GLOBAL(bytes, 0);
    ASSERT_GLOBAL(fixed, 0);
    assert(count_local(&small_local, sizeof small_local) == 0);
}
USE(lists_thread_locals, "")
{
    ASSERT_LOCAL(exported_local);
    ASSERT_LOCAL(hidden_local);
    assert(count_global(&exported_local, sizeof exported_local) == 0);
}

static int called_times;
static void called(void)
{
    called_times++;
}
void called_by_others(void)
{
    called_times++;
}
__attribute__((disable_sanitizer_instrumentation, noinline)) static void left_alone(void)
{
    called_times++;
}
USE(lists_functions, "")
{
    void (*volatile functions[])(void) = {called, called_by_others, left_alone};
    for (int i = 0; i < 3; i++) {
        functions[i]();
        assert(count_function(functions[i], false) == (i < 2));
    }
}

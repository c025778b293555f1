/* PM_TYPE() in C, of pointers however they are qualified: compilers differ in what the type of an
 * atomic one is. */
#include <libpm.h>
#include <stdio.h>
#include <string.h>

struct qualified {
    _Atomic(char *) atomic;
    char *_Atomic array[2];
    char *_Atomic volatile both;
    long number;
    char *volatile plain;
    char *const volatile cube[2][1][3];
    struct {
        void *_Atomic inner;
    } nested;
};

int main(void)
{
    const struct pm_type *type =
        PM_TYPE(struct qualified, atomic, array, both, plain, cube, nested.inner);
    static const struct pm_field expected[] = {{0, 1}, {8, 2}, {24, 1}, {40, 1}, {48, 6}, {96, 1}};
    if (type->size == sizeof(struct qualified) &&
        type->fields == sizeof expected / sizeof *expected &&
        memcmp(type->field, expected, sizeof expected) == 0)
        return 0;
    for (size_t i = 0; i < type->fields; i++)
        fprintf(stderr, "offset %zu: %zu pointers\n", type->field[i].offset, type->field[i].count);
    return 1;
}

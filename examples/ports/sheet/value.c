/* Values of cells: numbers, texts and faults. */
#include "sheet.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct value number_value(double number)
{
    return (struct value){.kind = NUMBER, .number = number};
}

struct value fault_value(enum fault fault)
{
    return (struct value){.kind = FAULT, .fault = fault};
}

struct value text_value(char *text)
{
    return (struct value){.kind = TEXT, .text = text};
}

struct value constant_value(const char *source)
{
    char *end;
    double number = strtod(source, &end);
    bool numeral = isdigit((unsigned char)source[strspn(source, "+-.")]);
    return numeral && !*end ? number_value(number) : text_value(copy_text(source));
}

struct value copy_value(const struct value *value)
{
    return value->kind == TEXT ? text_value(copy_text(value->text)) : *value;
}

void clear_value(struct value *value)
{
    if (value->kind == TEXT)
        free(value->text);
    *value = (struct value){.kind = EMPTY};
}

int compare_values(const struct value *a, const struct value *b)
{
    static const int rank[] = {[NUMBER] = 0, [TEXT] = 1, [FAULT] = 2, [EMPTY] = 3};
    if (a->kind != b->kind)
        return rank[a->kind] - rank[b->kind];
    switch (a->kind) {
    case NUMBER:
        return (a->number > b->number) - (a->number < b->number);
    case TEXT:
        return strcmp(a->text, b->text);
    case FAULT:
        return (int)a->fault - (int)b->fault;
    case EMPTY:
        break;
    }
    return 0;
}

char *value_text(const struct value *value)
{
    static const char *const faults[] = {[CYCLE] = "#CYCLE",
                                         [DIVISION] = "#DIVISION",
                                         [UNKNOWN_NAME] = "#NAME",
                                         [WRONG_KIND] = "#KIND"};
    char digits[32];
    switch (value->kind) {
    case NUMBER:
        snprintf(digits, sizeof digits, "%.10g", value->number);
        return copy_text(digits);
    case TEXT:
        return copy_text(value->text);
    case FAULT:
        return copy_text(faults[value->fault]);
    case EMPTY:
        break;
    }
    return copy_text("");
}

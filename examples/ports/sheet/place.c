/* Places and areas. A place has letters for the column, A to ZZ, and a number for the row, from 1. */
#include "sheet.h"

#include <ctype.h>
#include <stdio.h>

bool place_exists(struct place place)
{
    return place.column >= 0 && place.column < COLUMNS_MAX && place.row >= 0 &&
           place.row < ROWS_MAX;
}

size_t read_place(const char *text, struct place *place, bool fixed_column[1], bool fixed_row[1])
{
    const char *at = text;
    int column = 0, row = 0;
    *fixed_column = *at == '$';
    at += *fixed_column;
    const char *letters = at;
    for (; isalpha((unsigned char)*at) && at < letters + 3; at++)
        column = column * 26 + toupper((unsigned char)*at) - 'A' + 1;
    if (at == letters)
        return 0;
    *fixed_row = *at == '$';
    at += *fixed_row;
    const char *digits = at;
    for (; isdigit((unsigned char)*at) && at < digits + 5; at++)
        row = row * 10 + *at - '0';
    if (at == digits || isalnum((unsigned char)*at) || *at == '_')
        return 0;
    *place = (struct place){column - 1, row - 1};
    return place_exists(*place) ? (size_t)(at - text) : 0;
}

bool read_area(const char *text, struct area *area)
{
    struct place a, b;
    bool fixed[2];
    size_t length = read_place(text, &a, &fixed[0], &fixed[1]);
    if (!length)
        return false;
    text += length;
    b = a;
    if (*text == ':') {
        length = read_place(text + 1, &b, &fixed[0], &fixed[1]);
        text += length ? 1 + length : 0;
    }
    *area = area_between(a, b);
    return !*text;
}

struct area area_between(struct place a, struct place b)
{
    struct area area = {a, b};
    if (a.column > b.column) {
        area.first.column = b.column;
        area.last.column = a.column;
    }
    if (a.row > b.row) {
        area.first.row = b.row;
        area.last.row = a.row;
    }
    return area;
}

bool area_has(struct area area, struct place place)
{
    return place.column >= area.first.column && place.column <= area.last.column &&
           place.row >= area.first.row && place.row <= area.last.row;
}

static char *append_place(char *at, struct place place)
{
    if (place.column >= 26)
        *at++ = (char)('A' + place.column / 26 - 1);
    *at++ = (char)('A' + place.column % 26);
    return at + sprintf(at, "%d", place.row + 1);
}

struct area_text place_name(struct place place)
{
    struct area_text name;
    append_place(name.text, place);
    return name;
}

struct area_text area_name(struct area area)
{
    struct area_text name;
    char *end = append_place(name.text, area.first);
    if (area.first.column != area.last.column || area.first.row != area.last.row) {
        *end++ = ':';
        append_place(end, area.last);
    }
    return name;
}

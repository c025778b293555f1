/* Cuts a formula into tokens, for parsing it and for moving it. */
#include "sheet.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct token read_string(const char *text)
{
    const char *end = strchr(text + 1, '"');
    if (!end)
        return (struct token){.kind = BROKEN, .text = text, .length = strlen(text)};
    return (struct token){.kind = STRING, .text = text, .length = (size_t)(end + 1 - text)};
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

struct token read_token(const char *text)
{
    text += strspn(text, " \t");
    struct token token = {.kind = SYMBOL, .text = text, .length = 1};
    size_t length = read_place(text, &token.place, &token.fixed_column, &token.fixed_row);
    if (!*text) {
        token.kind = END;
        token.length = 0;
    } else if (length) {
        token.kind = PLACE;
        token.length = length;
    } else if (*text == '"') {
        token = read_string(text);
    } else if (isdigit((unsigned char)*text) || *text == '.') {
        char *end;
        token.number = strtod(text, &end);
        if (end > text) {
            token.kind = NUMERAL;
            token.length = (size_t)(end - text);
        }
    } else if (in_word(*text)) {
        token.kind = WORD;
        while (in_word(text[token.length]))
            token.length++;
    } else if (text[0] == '<' && text[1] == '>') {
        token.kind = UNEQUAL;
        token.length = 2;
    } else if ((text[0] == '<' || text[0] == '>') && text[1] == '=') {
        token.kind = text[0] == '<' ? AT_MOST : AT_LEAST;
        token.length = 2;
    }
    return token;
}

char *shift_source(const char *source, int columns, int rows)
{
    if (*source != '=')
        return copy_text(source);
    /* A shifted place is at most as long as the longest place. */
    char *shifted = allocate(strlen(source) * 4 + 1), *to = shifted;
    const char *from = source;
    for (struct token token; (token = read_token(from)).kind != END; from += token.length) {
        while (from < token.text)
            *to++ = *from++;
        if (token.kind != PLACE) {
            memcpy(to, token.text, token.length);
            to += token.length;
            continue;
        }
        struct place place = {token.place.column + (token.fixed_column ? 0 : columns),
                              token.place.row + (token.fixed_row ? 0 : rows)};
        if (!place_exists(place)) {
            free(shifted);
            return NULL;
        }
        struct area_text name = place_name(place);
        size_t letters = strcspn(name.text, "0123456789");
        to += sprintf(to, "%s%.*s%s%s", token.fixed_column ? "$" : "", (int)letters, name.text,
                      token.fixed_row ? "$" : "", name.text + letters);
    }
    return shifted;
}

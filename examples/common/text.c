#include "common/text.h"

#include <ctype.h>

/* The letter of the byte's escape, or 0 if its escape has no letter. */
static char escape_of(unsigned char byte)
{
    return byte == '\\' ? '\\' : byte == '\t' ? 't' : byte == '\n' ? 'n' : 0;
}

void text_print(FILE *out, const void *bytes, size_t size, bool hex)
{
    for (const unsigned char *p = bytes, *end = p + size; p < end; p++) {
        if (hex)
            fprintf(out, "%02x", *p);
        else if (escape_of(*p))
            fprintf(out, "\\%c", escape_of(*p));
        else if (*p >= ' ' && *p <= '~')
            putc(*p, out);
        else
            fprintf(out, "\\x%02x", *p);
    }
}

static bool read_hex(const char **text, const char *end, char *byte)
{
    unsigned value = 0;
    for (int i = 0; i < 2; i++, (*text)++) {
        if (*text == end || !isxdigit((unsigned char)**text))
            return false;
        int digit = tolower((unsigned char)**text);
        value = 16 * value + (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    *byte = (char)value;
    return true;
}

/* Read the rest of an escape, after the backslash. */
static bool read_escape(const char **text, const char *end, char *byte)
{
    if (*text == end)
        return false;
    char letter = *(*text)++;
    if (letter == 'x')
        return read_hex(text, end, byte);
    *byte = letter == 't' ? '\t' : letter == 'n' ? '\n' : '\\';
    return letter == 't' || letter == 'n' || letter == '\\';
}

bool text_decode(char *text, size_t *size, bool hex)
{
    const char *from = text, *end = text + *size;
    char *to = text;
    bool good = true;
    while (from < end && good) {
        if (hex)
            good = read_hex(&from, end, to++);
        else if (*from == '\\')
            from++, good = read_escape(&from, end, to++);
        else
            *to++ = *from++;
    }
    *size = (size_t)(to - text);
    return good;
}

/*
 * Bytes as text: how the shells write keys and values to a line, and read them from it.
 *
 *     hex     two digits for each byte, of either case
 *     plain   printable ASCII characters stand for themselves. Backslash, tab, newline and all
 *             other bytes are \\, \t, \n and \xHH
 *
 * Either form can write every sequence of bytes, without a tab or a newline.
 */
#ifndef EXAMPLES_COMMON_TEXT_H
#define EXAMPLES_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Write `size` bytes so that text_decode() reads them back. */
void text_print(FILE *out, const void *bytes, size_t size, bool hex);

/**
 * Decode, in place, `*size` characters that text_print() has written. `*size` becomes the number of
 * bytes, which is never larger. False if text_print() cannot have written the text.
 */
bool text_decode(char *text, size_t *size, bool hex);

#ifdef __cplusplus
}
#endif
#endif

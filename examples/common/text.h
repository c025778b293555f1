/*
 * Bytes as text, for shells: how keys and values are written in a line, and read from it.
 *
 *   hex     two digits each, of either case
 *   plain   as they are, but for backslash, tab, newline and what cannot be printed in ASCII, which
 *           are \\, \t, \n and \xHH
 *
 * Both ways every sequence of bytes can be written, and none of it contains a tab or a newline.
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
 * Read, in place, the `*size` characters that text_print() has written; `*size` becomes the number
 * of bytes, which are no more than that. False if it is not such text.
 */
bool text_decode(char *text, size_t *size, bool hex);

#ifdef __cplusplus
}
#endif
#endif

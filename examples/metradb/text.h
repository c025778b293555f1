/*
 * Bytes as text, for the shell: how keys and values are written in a line, and read from it.
 *
 *   hex     two digits each, of either case
 *   plain   as they are, but for backslash, tab, newline and what cannot be printed in ASCII, which
 *           are \\, \t, \n and \xHH
 *
 * Both ways every sequence of bytes can be written, and none of it contains a tab or a newline.
 */
#ifndef METRADB_TEXT_H
#define METRADB_TEXT_H

#include "metradb.h"

#include <stdbool.h>
#include <stdio.h>

/** Write `bytes` so that text_decode() reads them back. */
void text_print(FILE *out, struct metradb_bytes bytes, bool hex);

/**
 * Read, in place, what text_print() has written: the bytes are no longer than their text. False if
 * it is not such text.
 */
bool text_decode(char *text, size_t length, bool hex, struct metradb_bytes *bytes);

#endif

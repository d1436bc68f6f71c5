/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of unknown origin, such as the names of files, for people and as JSON.
 */
#ifndef HONE_EXAMPLES_TEXT_H
#define HONE_EXAMPLES_TEXT_H

#include <stdio.h>

/* Writes text with \n, \x1b and so on for the control characters in it, which
   could command a terminal, and for bytes that are not UTF-8. */
void text_put(FILE *to, const char *text);

/* Writes text as a JSON string. Bytes that are not UTF-8 become the replacement
   character. */
void text_put_json(FILE *to, const char *text);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a text file line by line and word by word, for matrix_market.c. Every
   function that returns an int and can fail returns an MM_ code, after mm_fail
   has written the message with the line. */
#ifndef HONE_EXAMPLES_MARKET_LINES_H
#define HONE_EXAMPLES_MARKET_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MM_LONGEST_LINE = 1024 }; /* the format's own limit */

typedef struct mm_lines {
  FILE *f;
  const char *name;
  char *message; /* borrowed, written by mm_fail */
  size_t message_size;
  int64_t line_number;
  int ended;                      /* no line is left, and at is "" */
  char *at;                       /* the rest of the line, not parsed yet */
  char line[MM_LONGEST_LINE + 1]; /* without its newline */
} mm_lines;

/* Writes the message "name:line: what", without a line before the first one.
   Returns code. */
__attribute__((format(printf, 3, 4))) int mm_fail(const mm_lines *r, int code,
                                                  const char *format, ...);

/* Reads the next line, whatever it is. */
int mm_raw_line(mm_lines *r);

/* Reads the next line that is neither blank nor a comment, or sets r->ended. */
int mm_next_line(mm_lines *r);

/* Cuts the next word off the line; returns "" at its end. */
char *mm_next_word(mm_lines *r);

/* Are the words equal but for the case of their letters? */
int mm_same_word(const char *a, const char *b);

/* Refuses a line that goes on. */
int mm_end_of_line(mm_lines *r);

/* Reads a decimal integer; messages call it what. */
int mm_next_integer(mm_lines *r, const char *what, int64_t *value);

/* Reads a number, which must be an integer that a double holds if is_integer;
   messages call it what. */
int mm_next_number(mm_lines *r, const char *what, int is_integer,
                   double *value);

#endif

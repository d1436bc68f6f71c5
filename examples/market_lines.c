/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of a Matrix Market file, and the words and numbers in them. Read
   next: matrix_market.c. */
#include "examples/market_lines.h"
#include "examples/matrix_market.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int mm_fail(const mm_lines *r, int code, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(what, sizeof what, format, args);
  va_end(args);
  /* The text may quote the file, whose control characters are replaced. */
  for (char *c = what; *c; c++)
    if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
      *c = '?';
  char line[24] = "";
  if (r->line_number > 0)
    (void)snprintf(line, sizeof line, "%" PRId64 ":", r->line_number);
  if (r->message_size > 0)
    (void)snprintf(r->message, r->message_size, "%s:%s %s", r->name, line,
                   what);
  return code;
}

/* ---- Lines ---- */

static int is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static void skip_spaces(mm_lines *r) {
  while (is_space(*r->at))
    r->at++;
}

/* Reads the next line. Only comments may be longer than MM_LONGEST_LINE
   characters or hold a zero byte; others are not read on, since /dev/zero has
   no end. */
int mm_raw_line(mm_lines *r) {
  size_t length = 0;
  int c, zeros = 0, surplus = 0;
  while (((!zeros && !surplus) || (r->line[0] == '%' && r->line_number > 0)) &&
         (c = getc_unlocked(r->f)) != EOF && c != '\n') {
    zeros |= c == 0;
    surplus |= length == MM_LONGEST_LINE;
    if (length < MM_LONGEST_LINE)
      r->line[length++] = (char)c;
  }
  r->line[length] = '\0';
  r->at = r->line;
  if (ferror(r->f))
    return mm_fail(r, MM_OPEN, "cannot read on: %s", strerror(errno));
  r->ended = feof(r->f) && length == 0;
  if (!r->ended)
    r->line_number++;
  if (r->line[0] == '%' && r->line_number > 1)
    return MM_OK;
  if (zeros)
    return mm_fail(r, MM_SYNTAX, "a zero byte: this is not a text file");
  if (surplus)
    return mm_fail(r, MM_SYNTAX, "the line is longer than %d characters",
                   MM_LONGEST_LINE);
  return MM_OK;
}

int mm_next_line(mm_lines *r) {
  for (;;) {
    int st = mm_raw_line(r);
    if (st != MM_OK || r->ended)
      return st;
    skip_spaces(r);
    if (*r->at && *r->at != '%')
      return MM_OK;
  }
}

/* ---- Words and numbers ---- */

char *mm_next_word(mm_lines *r) {
  skip_spaces(r);
  char *word = r->at;
  while (*r->at && !is_space(*r->at))
    r->at++;
  if (*r->at)
    *r->at++ = '\0';
  return word;
}

static char lower(char c) { return (char)tolower((unsigned char)c); }

int mm_same_word(const char *a, const char *b) {
  while (*a && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return lower(*a) == lower(*b);
}

int mm_end_of_line(mm_lines *r) {
  const char *word = mm_next_word(r);
  if (*word)
    return mm_fail(r, MM_SYNTAX, "'%.40s' is too much on this line", word);
  return MM_OK;
}

int mm_next_integer(mm_lines *r, const char *what, int64_t *value) {
  const char *word = mm_next_word(r), *c = word;
  int64_t sum = 0;
  int negative = *c == '-';
  if (*c == '-' || *c == '+')
    c++;
  if (!*word)
    return mm_fail(r, MM_SYNTAX, "%s is missing", what);
  if (!isdigit((unsigned char)*c))
    return mm_fail(r, MM_SYNTAX, "%s is '%.40s', not an integer", what, word);
  for (; isdigit((unsigned char)*c); c++) {
    int digit = *c - '0';
    if (sum > (INT64_MAX - digit) / 10)
      return mm_fail(r, MM_RANGE, "%s is too large: %.40s", what, word);
    sum = 10 * sum + digit;
  }
  if (*c)
    return mm_fail(r, MM_SYNTAX, "%s is '%.40s', not an integer", what, word);
  *value = negative ? -sum : sum;
  return MM_OK;
}

static const char *skip_digits(const char *c) {
  while (isdigit((unsigned char)*c))
    c++;
  return c;
}

/*
 * Tells whether word is a number, and writes Fortran's exponent d as e. strtod
 * alone would accept hexadecimal numbers, and would not accept d.
 */
static int fix_real(char *word, int is_integer) {
  const char *c = word + (*word == '-' || *word == '+');
  if (!is_integer && (mm_same_word(c, "nan") || mm_same_word(c, "inf") ||
                      mm_same_word(c, "infinity")))
    return 1;
  const char *start = c;
  c = skip_digits(c);
  int digits = c > start;
  if (is_integer)
    return digits && !*c;
  if (*c == '.') {
    start = ++c;
    c = skip_digits(c);
    digits |= c > start;
  }
  if (digits && (lower(*c) == 'e' || lower(*c) == 'd')) {
    word[c - word] = 'e';
    c++;
    c += *c == '-' || *c == '+';
    digits = isdigit((unsigned char)*c);
    c = skip_digits(c);
  }
  return digits && !*c;
}

/* Is value the integer that the digits say? */
static int holds(double value, const char *digits) {
  char text[400]; /* more than the digits of any double */
  digits += *digits == '-' || *digits == '+';
  while (*digits == '0' && digits[1])
    digits++;
  (void)snprintf(text, sizeof text, "%.0f", fabs(value));
  return strcmp(text, digits) == 0;
}

int mm_next_number(mm_lines *r, const char *what, int is_integer,
                   double *value) {
  const char *kind = is_integer ? "integer" : "number";
  char *word = mm_next_word(r);
  if (!*word)
    return mm_fail(r, MM_SYNTAX, "%s is missing", what);
  if (!fix_real(word, is_integer))
    return mm_fail(r, MM_SYNTAX, "%s '%.40s' is no %s", what, word, kind);
  *value = strtod(word, NULL);
  if (isinf(*value) && strpbrk(word, "0123456789"))
    return mm_fail(r, MM_RANGE, "%.40s is above the range of double", word);
  if (is_integer && !holds(*value, word))
    return mm_fail(r, MM_RANGE,
                   "no double is %.40s: in a real file it would be rounded",
                   word);
  return MM_OK;
}

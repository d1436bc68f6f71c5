/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Matrix Market reader and writer; matrix_market.h describes the format.
 *
 * The functions stand in the order in which they use one another: lines
 * (next_line skips comments), words and numbers in a line, the banner, the size
 * line, and the entries of both forms. Every function that can fail returns an
 * MM_ code, after fail() has written the message with the line.
 */
#include "matrix_market.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_LINE = 1024 }; /* the format's own limit */

/* 1 TiB, more than any dense matrix that can be factored. */
static const int64_t most_bytes = INT64_C(1) << 40;

typedef struct reader {
  FILE *f;
  const char *name;
  char *message; /* borrowed, written by fail */
  size_t message_size;
  int64_t line_number;
  int ended;                   /* no line is left, and at is "" */
  char *at;                    /* the rest of the line, not parsed yet */
  char line[LONGEST_LINE + 1]; /* without its newline */
} reader;

enum { GENERAL, SYMMETRIC, SKEW };

/* The contents of the banner and the size line. */
typedef struct shape {
  int is_array, is_pattern, is_integer, symmetry;
  int64_t rows, cols, entries;
} shape;

__attribute__((format(printf, 3, 4))) static int fail(const reader *r, int code,
                                                      const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(what, sizeof what, format, args);
  va_end(args);
  /* The text may quote the file, whose control characters are replaced. */
  for (char *c = what; *c; c++)
    if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
      *c = '?';
  if (r->message_size > 0)
    (void)snprintf(r->message, r->message_size, "%s:%" PRId64 ": %s", r->name,
                   r->line_number, what);
  return code;
}

/* ---- Lines ---- */

static int is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static void skip_spaces(reader *r) {
  while (is_space(*r->at))
    r->at++;
}

/* Reads the next line. Only comments may be longer than LONGEST_LINE characters
   or hold a zero byte; others are not read on, since /dev/zero has no end. */
static int raw_line(reader *r) {
  size_t length = 0;
  int c, zeros = 0, surplus = 0;
  while (((!zeros && !surplus) || (r->line[0] == '%' && r->line_number > 0)) &&
         (c = getc_unlocked(r->f)) != EOF && c != '\n') {
    zeros |= c == 0;
    surplus |= length == LONGEST_LINE;
    if (length < LONGEST_LINE)
      r->line[length++] = (char)c;
  }
  r->line[length] = '\0';
  r->at = r->line;
  if (ferror(r->f))
    return fail(r, MM_OPEN, "cannot read on: %s", strerror(errno));
  r->ended = feof(r->f) && length == 0;
  if (!r->ended)
    r->line_number++;
  if (r->line[0] == '%' && r->line_number > 1)
    return MM_OK;
  if (zeros)
    return fail(r, MM_SYNTAX, "a zero byte: this is not a text file");
  if (surplus)
    return fail(r, MM_SYNTAX, "the line is longer than %d characters",
                LONGEST_LINE);
  return MM_OK;
}

/* Reads the next line that is neither blank nor a comment, or sets r->ended. */
static int next_line(reader *r) {
  for (;;) {
    int st = raw_line(r);
    if (st != MM_OK || r->ended)
      return st;
    skip_spaces(r);
    if (*r->at && *r->at != '%')
      return MM_OK;
  }
}

/* ---- Words and numbers ---- */

/* Cuts the next word off the line; returns "" at its end. */
static char *next_word(reader *r) {
  skip_spaces(r);
  char *word = r->at;
  while (*r->at && !is_space(*r->at))
    r->at++;
  if (*r->at)
    *r->at++ = '\0';
  return word;
}

static char lower(char c) { return (char)tolower((unsigned char)c); }

static int same_word(const char *a, const char *b) {
  while (*a && lower(*a) == lower(*b)) {
    a++;
    b++;
  }
  return lower(*a) == lower(*b);
}

static int end_of_line(reader *r) {
  const char *word = next_word(r);
  if (*word)
    return fail(r, MM_SYNTAX, "'%.40s' is too much on this line", word);
  return MM_OK;
}

/* Reads a decimal integer; messages call it what. */
static int next_integer(reader *r, const char *what, int64_t *value) {
  const char *word = next_word(r), *c = word;
  int64_t sum = 0;
  int negative = *c == '-';
  if (*c == '-' || *c == '+')
    c++;
  if (!*word)
    return fail(r, MM_SYNTAX, "%s is missing", what);
  if (!isdigit((unsigned char)*c))
    return fail(r, MM_SYNTAX, "%s is '%.40s', not an integer", what, word);
  for (; isdigit((unsigned char)*c); c++) {
    int digit = *c - '0';
    if (sum > (INT64_MAX - digit) / 10)
      return fail(r, MM_RANGE, "%s is too large: %.40s", what, word);
    sum = 10 * sum + digit;
  }
  if (*c)
    return fail(r, MM_SYNTAX, "%s is '%.40s', not an integer", what, word);
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
  if (!is_integer &&
      (same_word(c, "nan") || same_word(c, "inf") || same_word(c, "infinity")))
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

static int next_real(reader *r, int is_integer, double *value) {
  const char *kind = is_integer ? "integer" : "number";
  char *word = next_word(r);
  if (!*word)
    return fail(r, MM_SYNTAX, "the value is missing");
  if (!fix_real(word, is_integer))
    return fail(r, MM_SYNTAX, "the value '%.40s' is no %s", word, kind);
  *value = strtod(word, NULL);
  if (isinf(*value) && strpbrk(word, "0123456789"))
    return fail(r, MM_RANGE, "%.40s is above the range of double", word);
  return MM_OK;
}

/* ---- Banner and sizes ---- */

static int one_of(const char *word, const char *const *list) {
  for (int i = 0; list[i]; i++)
    if (same_word(word, list[i]))
      return i;
  return -1;
}

/* Reads the next word of the banner into kept, in lower case. */
static int banner_word(reader *r, const char *what, const char *const *list,
                       char *kept, size_t kept_size, int *which) {
  const char *word = next_word(r);
  *which = one_of(word, list);
  if (!*word)
    return fail(r, MM_SYNTAX, "the banner ends before the %s", what);
  if (*which < 0)
    return fail(r, MM_SYNTAX, "the banner's %s is '%.40s', which nobody knows",
                what, word);
  (void)snprintf(kept, kept_size, "%s", list[*which]);
  return MM_OK;
}

/* Refuses combinations that are not in the format or not supported. */
static int check_banner(reader *r, int object, int field, int symmetry,
                        shape *s) {
  if (object != 0)
    return fail(r, MM_UNSUPPORTED, "only matrices are supported, not vectors");
  if (field == 3 || symmetry == 3)
    return fail(r, MM_UNSUPPORTED, "complex matrices are not supported yet");
  s->is_integer = field == 1;
  s->is_pattern = field == 2;
  s->symmetry = symmetry;
  if (s->is_array && s->is_pattern)
    return fail(r, MM_SYNTAX, "the array form cannot be a pattern");
  if (s->is_pattern && symmetry == SKEW)
    return fail(r, MM_SYNTAX, "a pattern cannot be skew-symmetric");
  return end_of_line(r);
}

/* Reads the first line: %%MatrixMarket matrix coordinate real general */
static int read_banner(reader *r, mm_matrix *m, shape *s) {
  static const char *const objects[] = {"matrix", "vector", NULL};
  static const char *const formats[] = {"coordinate", "array", NULL};
  static const char *const fields[] = {"real", "integer", "pattern", "complex",
                                       NULL};
  static const char *const symmetries[] = {"general", "symmetric",
                                           "skew-symmetric", "hermitian", NULL};
  char ignored[12];
  int object = 0, field = 0, symmetry = 0;
  int st = raw_line(r);
  if (st == MM_OK && !same_word(next_word(r), "%%MatrixMarket"))
    st = fail(r, MM_SYNTAX, "the file does not begin with %%%%MatrixMarket");
  if (st == MM_OK)
    st = banner_word(r, "object", objects, ignored, sizeof ignored, &object);
  if (st == MM_OK)
    st = banner_word(r, "format", formats, m->format, sizeof m->format,
                     &s->is_array);
  if (st == MM_OK)
    st = banner_word(r, "field", fields, m->field, sizeof m->field, &field);
  if (st == MM_OK)
    st = banner_word(r, "symmetry", symmetries, m->symmetry, sizeof m->symmetry,
                     &symmetry);
  if (st == MM_OK)
    st = check_banner(r, object, field, symmetry, s);
  return st;
}

/* Returns how many numbers the array form holds; the sizes are checked. */
static int64_t array_entries(const shape *s) {
  if (s->symmetry == GENERAL)
    return s->rows * s->cols;
  return s->symmetry == SYMMETRIC ? s->rows * (s->rows + 1) / 2
                                  : s->rows * (s->rows - 1) / 2;
}

/* Checks the sizes and allocates the matrix, unless it has no elements. */
static int allocate(reader *r, const shape *s, int64_t max_elements,
                    mm_matrix *m) {
  if (s->rows == 0 || s->cols == 0)
    return MM_OK;
  if (s->cols > INT64_MAX / 8 / s->rows)
    return fail(r, MM_MEMORY,
                "a dense %" PRId64 " x %" PRId64
                " matrix needs more than %" PRId64 " bytes",
                s->rows, s->cols, INT64_MAX);
  int64_t elements = s->rows * s->cols;
  if (max_elements > 0 && elements > max_elements)
    return fail(r, MM_MEMORY,
                "a dense %" PRId64 " x %" PRId64 " matrix has %" PRId64
                " elements, above the limit of %" PRId64,
                s->rows, s->cols, elements, max_elements);
  if (8 * elements <= most_bytes)
    m->a = calloc((size_t)elements, sizeof *m->a);
  if (!m->a)
    return fail(r, MM_MEMORY,
                "a dense %" PRId64 " x %" PRId64 " matrix needs %" PRId64
                " bytes: there is not so much memory",
                s->rows, s->cols, 8 * elements);
  return MM_OK;
}

/* Reads the size line: rows cols entries, or in the array form rows cols */
static int read_sizes(reader *r, int64_t max_elements, shape *s, mm_matrix *m) {
  int st = next_line(r);
  if (st == MM_OK && r->ended)
    st = fail(r, MM_SYNTAX, "the file ends before the size line");
  if (st == MM_OK)
    st = next_integer(r, "the number of rows", &s->rows);
  if (st == MM_OK)
    st = next_integer(r, "the number of columns", &s->cols);
  if (st == MM_OK && !s->is_array)
    st = next_integer(r, "the number of entries", &s->entries);
  if (st == MM_OK)
    st = end_of_line(r);
  if (st == MM_OK && (s->rows < 0 || s->cols < 0 || s->entries < 0))
    st = fail(r, MM_RANGE, "a size is negative");
  if (st == MM_OK && s->symmetry != GENERAL && s->rows != s->cols)
    st = fail(r, MM_RANGE, "a %s matrix is square, not %" PRId64 " x %" PRId64,
              m->symmetry, s->rows, s->cols);
  if (st == MM_OK)
    st = allocate(r, s, max_elements, m);
  if (st == MM_OK && s->is_array)
    s->entries = array_entries(s);
  m->rows = s->rows;
  m->cols = s->cols;
  m->stored_entries = s->entries;
  return st;
}

/* ---- Entries ---- */

/* Reads the line of entry number k of s->entries. */
static int entry_line(reader *r, const shape *s, int64_t k) {
  int st = next_line(r);
  if (st == MM_OK && r->ended)
    st = fail(r, MM_COUNT,
              "the file ends after %" PRId64 " of %" PRId64 " entries", k,
              s->entries);
  return st;
}

static int next_index(reader *r, const char *what, int64_t size,
                      int64_t *index) {
  int64_t value = 0;
  int st = next_integer(r, what, &value);
  if (st == MM_OK && (value < 1 || value > size))
    st = fail(r, MM_RANGE, "%s is %" PRId64 ", not in 1 to %" PRId64, what,
              value, size);
  *index = value - 1;
  return st;
}

/* Refuses entries above the diagonal, and a nonzero skew diagonal. */
static int check_place(reader *r, const shape *s, int64_t i, int64_t j,
                       double value) {
  if (s->symmetry != GENERAL && i < j)
    return fail(r, MM_RANGE,
                "(%" PRId64 ", %" PRId64 ") is above the diagonal: only the "
                "lower triangle of a symmetric matrix is stored",
                i + 1, j + 1);
  if (s->symmetry == SKEW && i == j && !(value >= 0 && value <= 0))
    return fail(r, MM_RANGE,
                "a skew-symmetric matrix has a zero diagonal, not %.17g at "
                "(%" PRId64 ", %" PRId64 ")",
                value, i + 1, j + 1);
  return MM_OK;
}

static int read_coordinates(reader *r, const shape *s, double *a) {
  for (int64_t k = 0; k < s->entries; k++) {
    int64_t i = 0, j = 0;
    double value = 1;
    int st = entry_line(r, s, k);
    if (st == MM_OK)
      st = next_index(r, "the row", s->rows, &i);
    if (st == MM_OK)
      st = next_index(r, "the column", s->cols, &j);
    if (st == MM_OK && !s->is_pattern)
      st = next_real(r, s->is_integer, &value);
    if (st == MM_OK)
      st = end_of_line(r);
    if (st == MM_OK)
      st = check_place(r, s, i, j, value);
    if (st != MM_OK)
      return st;
    a[i + j * s->rows] += value;
    if (s->symmetry != GENERAL && i != j)
      a[j + i * s->rows] += s->symmetry == SKEW ? -value : value;
  }
  return MM_OK;
}

/* Reads one number from each line, column by column; columns of symmetric
   matrices begin at the diagonal. */
static int read_array(reader *r, const shape *s, double *a) {
  int64_t k = 0;
  for (int64_t j = 0; k < s->entries; j++) {
    int64_t top = s->symmetry == GENERAL ? 0 : j + (s->symmetry == SKEW);
    for (int64_t i = top; i < s->rows; i++, k++) {
      double value = 0;
      int st = entry_line(r, s, k);
      if (st == MM_OK)
        st = next_real(r, s->is_integer, &value);
      if (st == MM_OK)
        st = end_of_line(r);
      if (st != MM_OK)
        return st;
      a[i + j * s->rows] = value;
      if (s->symmetry != GENERAL && i != j)
        a[j + i * s->rows] = s->symmetry == SKEW ? -value : value;
    }
  }
  return MM_OK;
}

/* After the last entry only blank lines and comments may follow. */
static int read_end(reader *r, const shape *s) {
  int st = next_line(r);
  if (st == MM_OK && !r->ended)
    st = fail(r, MM_COUNT, "more than the %" PRId64 " entries announced",
              s->entries);
  return st;
}

/* ---- Public ---- */

int mm_read_stream(FILE *f, const char *name, int64_t max_elements,
                   mm_matrix *m, char *message, size_t message_size) {
  reader r = {.f = f,
              .name = name,
              .message = message,
              .message_size = message ? message_size : 0};
  shape s = {0};
  *m = (mm_matrix){0};
  if (r.message_size > 0)
    message[0] = '\0';
  int st = read_banner(&r, m, &s);
  if (st == MM_OK)
    st = read_sizes(&r, max_elements, &s, m);
  if (st == MM_OK)
    st = s.is_array ? read_array(&r, &s, m->a) : read_coordinates(&r, &s, m->a);
  if (st == MM_OK)
    st = read_end(&r, &s);
  if (st != MM_OK)
    mm_free(m);
  return st;
}

int mm_read_file(const char *path, mm_matrix *m, char *message,
                 size_t message_size) {
  FILE *f = fopen(path, "r");
  if (!f) {
    *m = (mm_matrix){0};
    if (message && message_size > 0)
      (void)snprintf(message, message_size, "%s:0: cannot open: %s", path,
                     strerror(errno));
    return MM_OPEN;
  }
  int st = mm_read_stream(f, path, 0, m, message, message_size);
  (void)fclose(f);
  return st;
}

int mm_write_array(FILE *f, int64_t rows, int64_t cols, const double *a,
                   int64_t lda) {
  if (rows < 0 || cols < 0 || lda < rows || (!a && rows > 0 && cols > 0))
    return MM_RANGE;
  (void)fprintf(f,
                "%%%%MatrixMarket matrix array real general\n%" PRId64
                " %" PRId64 "\n",
                rows, cols);
  for (int64_t j = 0; rows > 0 && j < cols; j++)
    for (int64_t i = 0; i < rows; i++)
      if (fprintf(f, "%.17g\n", a[i + j * lda]) < 0)
        return MM_OPEN;
  return fflush(f) != 0 || ferror(f) ? MM_OPEN : MM_OK;
}

void mm_free(mm_matrix *m) {
  if (!m)
    return;
  free(m->a);
  *m = (mm_matrix){0};
}

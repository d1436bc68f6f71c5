/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Matrix Market reader and writer; matrix_market.h describes the format,
 * and market_lines.c reads lines, words and numbers.
 *
 * The functions stand in the order in which they use one another: the banner,
 * the size line, and the entries of both forms. Every function that can fail
 * returns an MM_ code, after mm_fail has written the message with the line.
 */
#include "examples/matrix_market.h"
#include "examples/market_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 1 TiB, more than any dense matrix that can be factored. */
static const int64_t most_bytes = INT64_C(1) << 40;

enum { GENERAL, SYMMETRIC, SKEW, HERMITIAN };

/* The contents of the banner and the size line. */
typedef struct shape {
  int is_array, is_pattern, is_integer, is_complex, symmetry;
  int64_t rows, cols, entries;
} shape;

/* ---- Banner and sizes ---- */

static int one_of(const char *word, const char *const *list) {
  for (int i = 0; list[i]; i++)
    if (mm_same_word(word, list[i]))
      return i;
  return -1;
}

/* Reads the next word of the banner into kept, in lower case. */
static int banner_word(mm_lines *r, const char *what, const char *const *list,
                       char *kept, size_t kept_size, int *which) {
  const char *word = mm_next_word(r);
  *which = one_of(word, list);
  if (!*word)
    return mm_fail(r, MM_SYNTAX, "the banner ends before the %s", what);
  if (*which < 0)
    return mm_fail(r, MM_SYNTAX,
                   "the banner's %s is '%.40s', which nobody knows", what,
                   word);
  (void)snprintf(kept, kept_size, "%s", list[*which]);
  return MM_OK;
}

/* Refuses combinations that are not in the format or not supported. */
static int check_banner(mm_lines *r, int object, int field, int symmetry,
                        shape *s) {
  if (object != 0)
    return mm_fail(r, MM_UNSUPPORTED,
                   "only matrices are supported, not vectors");
  s->is_integer = field == 1;
  s->is_pattern = field == 2;
  s->is_complex = field == 3;
  s->symmetry = symmetry;
  if (s->is_array && s->is_pattern)
    return mm_fail(r, MM_SYNTAX, "the array form cannot be a pattern");
  if (s->is_pattern && symmetry == SKEW)
    return mm_fail(r, MM_SYNTAX, "a pattern cannot be skew-symmetric");
  if (symmetry == HERMITIAN && !s->is_complex)
    return mm_fail(r, MM_SYNTAX, "only complex matrices can be hermitian");
  return mm_end_of_line(r);
}

/* Reads the first line: %%MatrixMarket matrix coordinate real general */
static int read_banner(mm_lines *r, mm_matrix *m, shape *s) {
  static const char *const objects[] = {"matrix", "vector", NULL};
  static const char *const formats[] = {"coordinate", "array", NULL};
  static const char *const fields[] = {"real", "integer", "pattern", "complex",
                                       NULL};
  static const char *const symmetries[] = {"general", "symmetric",
                                           "skew-symmetric", "hermitian", NULL};
  char ignored[12];
  int object = 0, field = 0, symmetry = 0;
  int st = mm_raw_line(r);
  if (st == MM_OK && r->ended)
    st = mm_fail(r, MM_SYNTAX, "the file is empty");
  if (st == MM_OK && !mm_same_word(mm_next_word(r), "%%MatrixMarket"))
    st = mm_fail(r, MM_SYNTAX, "the file does not begin with %%%%MatrixMarket");
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
  return s->symmetry == SKEW ? s->rows * (s->rows - 1) / 2
                             : s->rows * (s->rows + 1) / 2;
}

/* Checks the sizes and allocates the matrix, unless it has no elements. */
static int allocate(mm_lines *r, const shape *s, int64_t max_elements,
                    mm_matrix *m) {
  if (s->rows == 0 || s->cols == 0)
    return MM_OK;
  const int64_t bytes = s->is_complex ? 16 : 8; /* of an element */
  if (s->cols > INT64_MAX / bytes / s->rows)
    return mm_fail(r, MM_MEMORY,
                   "a dense %" PRId64 " x %" PRId64
                   " matrix needs more than %" PRId64 " bytes",
                   s->rows, s->cols, INT64_MAX);
  int64_t elements = s->rows * s->cols;
  if (max_elements > 0 && elements > max_elements)
    return mm_fail(r, MM_MEMORY,
                   "a dense %" PRId64 " x %" PRId64 " matrix has %" PRId64
                   " elements, above the limit of %" PRId64,
                   s->rows, s->cols, elements, max_elements);
  if (bytes * elements <= most_bytes)
    m->a = calloc((size_t)elements, (size_t)bytes);
  if (!m->a)
    return mm_fail(r, MM_MEMORY,
                   "a dense %" PRId64 " x %" PRId64 " matrix needs %" PRId64
                   " bytes: there is not so much memory",
                   s->rows, s->cols, bytes * elements);
  return MM_OK;
}

/* Reads the size line: rows cols entries, or in the array form rows cols */
static int read_sizes(mm_lines *r, int64_t max_elements, shape *s,
                      mm_matrix *m) {
  int st = mm_next_line(r);
  if (st == MM_OK && r->ended)
    st = mm_fail(r, MM_SYNTAX, "the file ends before the size line");
  if (st == MM_OK)
    st = mm_next_integer(r, "the number of rows", &s->rows);
  if (st == MM_OK)
    st = mm_next_integer(r, "the number of columns", &s->cols);
  if (st == MM_OK && !s->is_array)
    st = mm_next_integer(r, "the number of entries", &s->entries);
  if (st == MM_OK)
    st = mm_end_of_line(r);
  if (st == MM_OK && (s->rows < 0 || s->cols < 0 || s->entries < 0))
    st = mm_fail(r, MM_RANGE, "a size is negative");
  if (st == MM_OK && s->symmetry != GENERAL && s->rows != s->cols)
    st = mm_fail(r, MM_RANGE,
                 "a %s matrix is square, not %" PRId64 " x %" PRId64,
                 m->symmetry, s->rows, s->cols);
  if (st == MM_OK)
    st = allocate(r, s, max_elements, m);
  if (st == MM_OK && s->is_array)
    s->entries = array_entries(s);
  m->rows = s->rows;
  m->cols = s->cols;
  m->stored_entries = s->entries;
  m->is_complex = s->is_complex;
  return st;
}

/* ---- Entries ---- */

/* Reads the line of entry number k of s->entries. */
static int entry_line(mm_lines *r, const shape *s, int64_t k) {
  int st = mm_next_line(r);
  if (st == MM_OK && r->ended)
    st = mm_fail(r, MM_COUNT,
                 "the file ends after %" PRId64 " of %" PRId64 " entries", k,
                 s->entries);
  return st;
}

static int next_index(mm_lines *r, const char *what, int64_t size,
                      int64_t *index) {
  int64_t value = 0;
  int st = mm_next_integer(r, what, &value);
  if (st == MM_OK && (value < 1 || value > size))
    st = mm_fail(r, MM_RANGE, "%s is %" PRId64 ", not in 1 to %" PRId64, what,
                 value, size);
  *index = value - 1;
  return st;
}

/* Refuses entries above the diagonal, and diagonals that the symmetry does not
   allow. */
static int check_place(mm_lines *r, const shape *s, int64_t i, int64_t j,
                       const double *value) {
  const double must_be_zero = s->symmetry == SKEW
                                  ? fabs(value[0]) + fabs(value[1])
                                  : value[1]; /* hermitian */
  if (s->symmetry != GENERAL && i < j)
    return mm_fail(r, MM_RANGE,
                   "(%" PRId64 ", %" PRId64 ") is above the diagonal: only the "
                   "lower triangle of a symmetric matrix is stored",
                   i + 1, j + 1);
  if (i != j || s->symmetry == GENERAL || s->symmetry == SYMMETRIC ||
      (must_be_zero >= 0 && must_be_zero <= 0))
    return MM_OK;
  if (s->symmetry == HERMITIAN)
    return mm_fail(r, MM_RANGE,
                   "a hermitian matrix has a real diagonal, not %.17g%+.17gi "
                   "at (%" PRId64 ", %" PRId64 ")",
                   value[0], value[1], i + 1, j + 1);
  if (s->is_complex)
    return mm_fail(r, MM_RANGE,
                   "a skew-symmetric matrix has a zero diagonal, not "
                   "%.17g%+.17gi at (%" PRId64 ", %" PRId64 ")",
                   value[0], value[1], i + 1, j + 1);
  return mm_fail(r, MM_RANGE,
                 "a skew-symmetric matrix has a zero diagonal, not %.17g at "
                 "(%" PRId64 ", %" PRId64 ")",
                 value[0], i + 1, j + 1);
}

/* Reads the rest of an entry's line: nothing for a pattern, whose value is one,
   else a number, or two if the matrix is complex. */
static int read_value(mm_lines *r, const shape *s, double *value) {
  int st = MM_OK;
  value[0] = 1;
  value[1] = 0;
  if (s->is_complex) {
    st = mm_next_number(r, "the real part", 0, &value[0]);
    if (st == MM_OK)
      st = mm_next_number(r, "the imaginary part", 0, &value[1]);
  } else if (!s->is_pattern) {
    st = mm_next_number(r, "the value", s->is_integer, &value[0]);
  }
  return st == MM_OK ? mm_end_of_line(r) : st;
}

/* Adds value to element (i, j), and to (j, i) what the symmetry says. The array
   form has each element once: there a zero keeps its sign. */
static void put(const shape *s, double *a, int64_t i, int64_t j,
                const double *value) {
  const int parts = s->is_complex ? 2 : 1;
  double *low = a + parts * (i + j * s->rows);
  double *up = a + parts * (j + i * s->rows);
  for (int k = 0; k < parts; k++) {
    const int negated = s->symmetry == SKEW || (s->symmetry == HERMITIAN && k);
    const double mirrored = negated ? -value[k] : value[k];
    low[k] = s->is_array ? value[k] : low[k] + value[k];
    if (s->symmetry != GENERAL && i != j)
      up[k] = s->is_array ? mirrored : up[k] + mirrored;
  }
}

static int read_coordinates(mm_lines *r, const shape *s, double *a) {
  for (int64_t k = 0; k < s->entries; k++) {
    int64_t i = 0, j = 0;
    double value[2];
    int st = entry_line(r, s, k);
    if (st == MM_OK)
      st = next_index(r, "the row", s->rows, &i);
    if (st == MM_OK)
      st = next_index(r, "the column", s->cols, &j);
    if (st == MM_OK)
      st = read_value(r, s, value);
    if (st == MM_OK)
      st = check_place(r, s, i, j, value);
    if (st != MM_OK)
      return st;
    put(s, a, i, j, value);
  }
  return MM_OK;
}

/* Reads one element from each line, column by column; columns of symmetric
   matrices begin at the diagonal. */
static int read_array(mm_lines *r, const shape *s, double *a) {
  int64_t k = 0;
  for (int64_t j = 0; k < s->entries; j++) {
    int64_t top = s->symmetry == GENERAL ? 0 : j + (s->symmetry == SKEW);
    for (int64_t i = top; i < s->rows; i++, k++) {
      double value[2];
      int st = entry_line(r, s, k);
      if (st == MM_OK)
        st = read_value(r, s, value);
      if (st == MM_OK)
        st = check_place(r, s, i, j, value);
      if (st != MM_OK)
        return st;
      put(s, a, i, j, value);
    }
  }
  return MM_OK;
}

/* After the last entry only blank lines and comments may follow. */
static int read_end(mm_lines *r, const shape *s) {
  int st = mm_next_line(r);
  if (st == MM_OK && !r->ended)
    st = mm_fail(r, MM_COUNT, "more than the %" PRId64 " entries announced",
                 s->entries);
  return st;
}

/* ---- Public ---- */

int mm_read_stream(FILE *f, const char *name, int64_t max_elements,
                   mm_matrix *m, char *message, size_t message_size) {
  mm_lines r = {.f = f,
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
      (void)snprintf(message, message_size, "%s: cannot open: %s", path,
                     strerror(errno));
    return MM_OPEN;
  }
  int st = mm_read_stream(f, path, 0, m, message, message_size);
  (void)fclose(f);
  return st;
}

int mm_write_array(FILE *f, int64_t rows, int64_t cols, int is_complex,
                   const double *a, int64_t lda) {
  if (rows < 0 || cols < 0 || lda < rows || (!a && rows > 0 && cols > 0))
    return MM_RANGE;
  (void)fprintf(
      f, "%%%%MatrixMarket matrix array %s general\n%" PRId64 " %" PRId64 "\n",
      is_complex ? "complex" : "real", rows, cols);
  for (int64_t j = 0; rows > 0 && j < cols; j++)
    for (int64_t i = 0; i < rows; i++) {
      const int64_t k = i + j * lda;
      const int put = is_complex
                          ? fprintf(f, "%.17g %.17g\n", a[2 * k], a[2 * k + 1])
                          : fprintf(f, "%.17g\n", a[k]);
      if (put < 0)
        return MM_OPEN;
    }
  return fflush(f) != 0 || ferror(f) ? MM_OPEN : MM_OK;
}

void mm_free(mm_matrix *m) {
  if (!m)
    return;
  free(m->a);
  *m = (mm_matrix){0};
}

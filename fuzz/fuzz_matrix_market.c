/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the Matrix Market reader, in double precision: the bytes are the file.
 * The contract of examples/matrix_market.h must hold for any bytes: after an
 * error the matrix is empty and a message gives the reason; a matrix that was
 * read is consistent, and has the same bits after it was written and read
 * again. Read LLVMFuzzerTestOneInput, at the end, first.
 */
#include "examples/matrix_market.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                        \
  do {                                                                         \
    if (!(condition)) {                                                        \
      (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__,         \
                    #condition);                                               \
      abort();                                                                 \
    }                                                                          \
  } while (0)

enum { MOST_ELEMENTS = 1 << 16, MOST_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_once(FILE *f, mm_matrix *m, char *message, size_t size) {
  memset(m, 0x5a, sizeof *m);
  memset(message, 0x5a, size);
  int st = mm_read_stream(f, "fuzz", MOST_ELEMENTS, m, message, size);
  MUST(st >= MM_OK && st <= MM_MEMORY);
  MUST(memchr(message, '\0', size) != NULL);
  return st;
}

static void check_error(const mm_matrix *m, const char *message) {
  static const mm_matrix zero = {0};
  MUST(memcmp(m, &zero, sizeof zero) == 0);
  MUST(strncmp(message, "fuzz:", 5) == 0 && strlen(message) > 8);
}

/* Is every element the mirrored one, with the signs that its parts have? */
static void check_symmetry(const mm_matrix *m) {
  const int skew = !strcmp(m->symmetry, "skew-symmetric");
  const int hermitian = !strcmp(m->symmetry, "hermitian");
  const int64_t parts = m->is_complex ? 2 : 1, n = m->rows;
  MUST(m->is_complex || !hermitian);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n; i++)
      for (int64_t k = 0; k < parts; k++) {
        const double sign = skew || (hermitian && k == 1) ? -1 : 1;
        const double low = m->a[parts * (i + j * n) + k];
        const double up = sign * m->a[parts * (j + i * n) + k];
        MUST((low >= up && low <= up) || (isnan(low) && isnan(up)));
      }
}

static void check_matrix(const mm_matrix *m) {
  MUST(m->rows >= 0 && m->cols >= 0 && m->stored_entries >= 0);
  int empty = m->rows == 0 || m->cols == 0;
  MUST(empty == (m->a == NULL));
  if (empty)
    return;
  MUST(m->cols <= MOST_ELEMENTS / m->rows);
  int is_array = !strcmp(m->format, "array");
  int is_general = !strcmp(m->symmetry, "general");
  MUST(is_array || !strcmp(m->format, "coordinate"));
  MUST(m->is_complex == !strcmp(m->field, "complex"));
  if (is_array && is_general)
    MUST(m->stored_entries == m->rows * m->cols);
  if (is_general)
    return;
  MUST(m->rows == m->cols);
  check_symmetry(m);
}

/* Checks that both have the same bits, except in a NaN. */
static void check_same(const mm_matrix *m, const mm_matrix *again) {
  MUST(again->rows == m->rows && again->cols == m->cols);
  if (!m->a)
    return;
  MUST(again->is_complex == m->is_complex);
  for (int64_t k = 0; k < m->rows * m->cols * (m->is_complex ? 2 : 1); k++)
    MUST(isnan(m->a[k]) ? isnan(again->a[k])
                        : !memcmp(&m->a[k], &again->a[k], sizeof *m->a));
}

static void check_round_trip(const mm_matrix *m) {
  char message[160];
  char *text = NULL;
  size_t length = 0;
  mm_matrix again;
  FILE *f = open_memstream(&text, &length);
  MUST(f != NULL);
  MUST(mm_write_array(f, m->rows, m->cols, m->is_complex, m->a, m->rows) ==
       MM_OK);
  MUST(fclose(f) == 0);
  f = fmemopen(text, length, "r");
  MUST(f != NULL);
  MUST(read_once(f, &again, message, sizeof message) == MM_OK);
  (void)fclose(f);
  free(text);
  check_same(m, &again);
  mm_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char message[160];
  mm_matrix m;
  if (size == 0 || size > MOST_BYTES)
    return 0; /* fmemopen refuses an empty buffer */
  uint8_t *copy = malloc(size);
  MUST(copy != NULL);
  memcpy(copy, data, size);
  FILE *f = fmemopen(copy, size, "r");
  MUST(f != NULL);
  if (read_once(f, &m, message, sizeof message) == MM_OK) {
    MUST(message[0] == '\0');
    check_matrix(&m);
    check_round_trip(&m);
  } else {
    check_error(&m, message);
  }
  (void)fclose(f);
  mm_free(&m);
  free(copy);
  return 0;
}

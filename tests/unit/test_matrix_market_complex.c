/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examples/matrix_market.c with complex files: every form, what is refused, the
 * round trip, and tests/matrices/young1c.mtx. See also test_matrix_market.c.
 */
#include "ct.h"
#include "examples/matrix_market.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int read_text(const char *text, mm_matrix *m, char *message,
                     size_t message_size) {
  FILE *f = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
  if (!CHECK(f != NULL)) {
    *m = (mm_matrix){0};
    return -1;
  }
  int st = mm_read_stream(f, "text", 0, m, message, message_size);
  fclose(f);
  return st;
}

/* Expects a matrix of these elements, real and imaginary parts in turn, by
   columns. */
static void expect_matrix(const char *text, int64_t rows, int64_t cols,
                          const double *a) {
  char message[200];
  mm_matrix m;
  ct_note("reading %.300s", text);
  int st = read_text(text, &m, message, sizeof message);
  CHECK_STR(message, "");
  if (CHECK_EQ_INT(st, MM_OK) && CHECK_EQ_INT(m.rows, rows) &&
      CHECK_EQ_INT(m.cols, cols) && CHECK(m.is_complex))
    for (int64_t i = 0; i < 2 * rows * cols; i++)
      CHECK_NEAR(m.a[i], a[i], 0);
  mm_free(&m);
  ct_note(NULL);
}

/* Expects an error with this message, and *m all zero. */
static void expect_error(const char *text, int code, const char *message) {
  static const mm_matrix zero = {0};
  char got[200];
  mm_matrix m;
  memset(&m, 0x5a, sizeof m);
  ct_note("reading %.300s", text);
  CHECK_EQ_INT(read_text(text, &m, got, sizeof got), code);
  CHECK_STR(got, message);
  CHECK_MEM_EQ(&m, &zero, sizeof m);
  mm_free(&m);
  ct_note(NULL);
}

#define BANNER "%%MatrixMarket matrix "

TEST(matrix_market, reads_complex_coordinates) {
  static const double a[] = {1.5, -2, 0, 0, 0, 3e10, 4, 0};
  expect_matrix(BANNER "coordinate complex general\n2 2 3\n"
                       "1 1 1.5 -2\n1 2 0 3d10\n2 2 4 0\n",
                2, 2, a);
}

TEST(matrix_market, reads_complex_arrays) {
  static const double a[] = {1, 2, 3, 4, 5, 6};
  expect_matrix(BANNER "array Complex general\n3 1\n1 2\n% c\n3 4\r\n5 6", 3, 1,
                a);
}

TEST(matrix_market, mirrors_complex_symmetric) {
  static const double a[] = {1, 2, 3, 4, 3, 4, 5, 6};
  expect_matrix(BANNER "coordinate complex symmetric\n2 2 3\n"
                       "1 1 1 2\n2 1 3 4\n2 2 5 6\n",
                2, 2, a);
  expect_matrix(BANNER "array complex symmetric\n2 2\n1 2\n3 4\n5 6\n", 2, 2,
                a);
}

TEST(matrix_market, conjugates_hermitian) {
  static const double a[] = {1, 0, 3, 4, 3, -4, 5, 0};
  expect_matrix(BANNER "coordinate complex hermitian\n2 2 3\n"
                       "1 1 1 0\n2 1 3 4\n2 2 5 -0\n",
                2, 2, a);
  expect_matrix(BANNER "array complex hermitian\n2 2\n1 0\n3 4\n5 0\n", 2, 2,
                a);
}

TEST(matrix_market, negates_complex_skew_symmetric) {
  static const double a[] = {0, 0, 3, 4, -3, -4, 0, 0};
  expect_matrix(BANNER "coordinate complex skew-symmetric\n2 2 2\n"
                       "2 1 3 4\n2 2 0 0\n",
                2, 2, a);
  expect_matrix(BANNER "array complex skew-symmetric\n2 2\n3 4\n", 2, 2, a);
}

TEST(matrix_market, sums_complex_duplicates) {
  static const double a[] = {4, 6, 5, -1, 5, 1, 0, 0};
  expect_matrix(BANNER "coordinate complex hermitian\n2 2 4\n"
                       "1 1 4 0\n2 1 2 0\n2 1 3 -1\n1 1 0 0\n",
                2, 2, (double[]){4, 0, 5, -1, 5, 1, 0, 0});
  expect_matrix(BANNER "coordinate complex general\n2 2 4\n"
                       "1 1 1 2\n1 1 3 4\n2 1 5 -1\n1 2 5 1\n",
                2, 2, a);
}

TEST(matrix_market, refuses_complex_lines_that_lack_a_part_or_go_on) {
  expect_error(BANNER "coordinate complex general\n1 1 1\n1 1 2\n", MM_SYNTAX,
               "text:3: the imaginary part is missing");
  expect_error(BANNER "coordinate complex general\n% c\n1 1 1\n1 1\n",
               MM_SYNTAX, "text:4: the real part is missing");
  expect_error(BANNER "array complex general\n1 1\n1\n2\n", MM_SYNTAX,
               "text:3: the imaginary part is missing");
  expect_error(BANNER "array complex general\n1 1\n1 2 3\n", MM_SYNTAX,
               "text:3: '3' is too much on this line");
  expect_error(BANNER "array complex general\n1 1\n1 2i\n", MM_SYNTAX,
               "text:3: the imaginary part '2i' is no number");
  expect_error(BANNER "array complex general\n1 1\n(1, 2)\n", MM_SYNTAX,
               "text:3: the real part '(1,' is no number");
  expect_error(BANNER "array complex general\n1 1\n1 1e999\n", MM_RANGE,
               "text:3: 1e999 is above the range of double");
  expect_error(BANNER "array complex general\n2 1\n1 2\n", MM_COUNT,
               "text:3: the file ends after 1 of 2 entries");
}

TEST(matrix_market, refuses_complex_diagonals_that_the_symmetry_forbids) {
  expect_error(BANNER "coordinate complex hermitian\n2 2 1\n2 2 3 -1\n",
               MM_RANGE,
               "text:3: a hermitian matrix has a real diagonal, not 3-1i at "
               "(2, 2)");
  expect_error(BANNER "array complex hermitian\n1 1\n1 nan\n", MM_RANGE,
               "text:3: a hermitian matrix has a real diagonal, not 1+nani at "
               "(1, 1)");
  expect_error(BANNER "coordinate complex skew-symmetric\n2 2 1\n2 2 0 1\n",
               MM_RANGE,
               "text:3: a skew-symmetric matrix has a zero diagonal, not 0+1i "
               "at (2, 2)");
  expect_error(BANNER "coordinate complex hermitian\n2 2 1\n1 2 3 -1\n",
               MM_RANGE,
               "text:3: (1, 2) is above the diagonal: only the lower triangle "
               "of a symmetric matrix is stored");
  expect_error(BANNER "array complex hermitian\n2 3\n", MM_RANGE,
               "text:2: a hermitian matrix is square, not 2 x 3");
}

TEST(matrix_market, refuses_hermitian_matrices_of_real_numbers) {
  static const char what[] = "text:1: only complex matrices can be hermitian";
  expect_error(BANNER "array real hermitian\n1 1\n1\n", MM_SYNTAX, what);
  expect_error(BANNER "coordinate integer hermitian\n1 1 0\n", MM_SYNTAX, what);
  expect_error(BANNER "coordinate pattern hermitian\n1 1 0\n", MM_SYNTAX, what);
}

TEST(matrix_market, says_how_much_memory_a_complex_matrix_needs) {
  expect_error(BANNER "coordinate complex general\n300000 300000 0\n",
               MM_MEMORY,
               "text:2: a dense 300000 x 300000 matrix needs 1440000000000 "
               "bytes: there is not so much memory");
}

TEST(matrix_market, writes_complex_arrays_and_reads_the_same_bits) {
  static const double a[] = {0.1,  -0.0, DBL_TRUE_MIN, 1.0 / 3, 99, 99,
                             -0.0, 0.0,  DBL_MAX,      1e23,    99, 99};
  char *text = NULL, message[200];
  size_t length = 0;
  mm_matrix m;
  FILE *f = open_memstream(&text, &length);
  REQUIRE(f != NULL);
  CHECK_EQ_INT(mm_write_array(f, 2, 2, 1, a, 3), MM_OK);
  fclose(f);
  CHECK(strstr(text, "matrix array complex general\n2 2\n") != NULL);
  if (CHECK_EQ_INT(read_text(text, &m, message, sizeof message), MM_OK)) {
    CHECK_MEM_EQ(m.a, a, 4 * sizeof *a);
    CHECK_MEM_EQ(m.a + 4, a + 6, 4 * sizeof *a);
  }
  mm_free(&m);
  free(text);
}

TEST(matrix_market, reads_a_complex_matrix_of_acoustics) {
  const char *folder = getenv("HONE_TEST_MATRICES");
  char path[500], message[700];
  mm_matrix m;
  snprintf(path, sizeof path, "%s/young1c.mtx",
           folder != NULL ? folder : "tests/matrices");
  REQUIRE(mm_read_file(path, &m, message, sizeof message) == MM_OK);
  CHECK_EQ_INT(m.rows, 841);
  CHECK_EQ_INT(m.stored_entries, 4089);
  CHECK_STR(m.field, "complex");
  CHECK_NEAR(m.a[0], -218.46, 0);
  int64_t nonzeros = 0;
  double imaginary = 0;
  for (int64_t k = 0; k < m.rows * m.cols; k++) {
    nonzeros += hypot(m.a[2 * k], m.a[2 * k + 1]) > 0;
    imaginary += fabs(m.a[2 * k + 1]);
  }
  CHECK_EQ_INT(nonzeros, 4089);
  CHECK(imaginary > 0);
  mm_free(&m);
}

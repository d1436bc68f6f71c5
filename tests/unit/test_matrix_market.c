/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * examples/matrix_market.c: every form of file that it reads, the round trip
 * of special numbers, and the matrices in tests/matrices (or in the folder that
 * HONE_TEST_MATRICES names). Next to read: test_matrix_market_errors.c, and for
 * complex numbers test_matrix_market_complex.c.
 */
#include "ct.h"
#include "examples/matrix_market.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a small file that is given as text. */
static int read_text(const char *text, mm_matrix *m, char *message,
                     size_t message_size) {
  FILE *f = tmpfile();
  if (!CHECK(f != NULL)) {
    *m = (mm_matrix){0};
    return -1;
  }
  CHECK(fputs(text, f) >= 0);
  rewind(f);
  int st = mm_read_stream(f, "text", 0, m, message, message_size);
  fclose(f);
  return st;
}

/* Expects a matrix of rows x cols with these elements, by columns. */
static void expect_matrix(const char *text, int64_t rows, int64_t cols,
                          const double *a) {
  char message[200];
  mm_matrix m;
  ct_note("reading %.300s", text);
  int st = read_text(text, &m, message, sizeof message);
  CHECK_STR(message, "");
  if (CHECK_EQ_INT(st, MM_OK) && CHECK_EQ_INT(m.rows, rows) &&
      CHECK_EQ_INT(m.cols, cols))
    for (int64_t i = 0; i < rows * cols; i++)
      CHECK_NEAR(m.a[i], a[i], 0);
  mm_free(&m);
  CHECK(m.a == NULL);
  ct_note(NULL);
}

#define BANNER "%%MatrixMarket matrix "

/* ---- Reading ------------------------------------------------------------- */

TEST(matrix_market, reads_coordinate_real_general) {
  static const double a[] = {1.5, 0, 0, -2, 0, 3e10};
  expect_matrix(BANNER "coordinate real general\n2 3 3\n"
                       "1 1 1.5\n2 2 -2\n2 3 3e10\n",
                2, 3, a);
}

TEST(matrix_market, reads_coordinate_integer_general) {
  static const double a[] = {7, 0, -12, 0};
  expect_matrix(BANNER "coordinate integer general\n2 2 2\n"
                       "1 1 +7\n1 2 -12\n",
                2, 2, a);
}

TEST(matrix_market, reads_integers_that_doubles_hold) {
  static const double a[] = {0x1p53, -0x1p53 - 2, 0x1p70, 0};
  expect_matrix(BANNER "array integer general\n4 1\n0009007199254740992\n"
                       "-9007199254740994\n+1180591620717411303424\n-0\n",
                4, 1, a);
}

TEST(matrix_market, reads_coordinate_pattern_general_as_ones) {
  static const double a[] = {0, 1, 1, 0};
  expect_matrix(BANNER "coordinate pattern general\n2 2 2\n2 1\n1 2\n", 2, 2,
                a);
}

TEST(matrix_market, mirrors_coordinate_symmetric) {
  static const double a[] = {1, 2, 0, 2, 0, 3, 0, 3, 4};
  expect_matrix(BANNER "coordinate real symmetric\n3 3 4\n"
                       "1 1 1\n2 1 2\n3 2 3\n3 3 4\n",
                3, 3, a);
  expect_matrix(BANNER "coordinate integer symmetric\n3 3 4\n"
                       "1 1 1\n2 1 2\n3 2 3\n3 3 4\n",
                3, 3, a);
}

TEST(matrix_market, mirrors_coordinate_pattern_symmetric) {
  static const double a[] = {1, 1, 1, 0};
  expect_matrix(BANNER "coordinate pattern symmetric\n2 2 2\n1 1\n2 1\n", 2, 2,
                a);
}

TEST(matrix_market, negates_coordinate_skew_symmetric) {
  static const double a[] = {0, 5, -5, 0};
  expect_matrix(BANNER "coordinate real skew-symmetric\n2 2 1\n2 1 5\n", 2, 2,
                a);
  expect_matrix(BANNER "coordinate integer skew-symmetric\n2 2 1\n2 1 5\n", 2,
                2, a);
}

TEST(matrix_market, accepts_a_stored_zero_on_a_skew_symmetric_diagonal) {
  static const double a[] = {0, 5, -5, 0};
  expect_matrix(BANNER "coordinate real skew-symmetric\n2 2 2\n1 1 0\n2 1 5\n",
                2, 2, a);
}

TEST(matrix_market, reads_array_general_column_by_column) {
  static const double a[] = {1, 2, 3, 4, 5, 6};
  expect_matrix(BANNER "array real general\n2 3\n1\n2\n3\n4\n5\n6\n", 2, 3, a);
  expect_matrix(BANNER "array integer general\n2 3\n1\n2\n3\n4\n5\n6\n", 2, 3,
                a);
}

TEST(matrix_market, reads_array_symmetric_from_its_lower_triangle) {
  static const double a[] = {1, 2, 3, 2, 4, 5, 3, 5, 6};
  expect_matrix(BANNER "array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3,
                a);
  expect_matrix(BANNER "array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3,
                a);
}

TEST(matrix_market, reads_array_skew_symmetric_without_its_diagonal) {
  static const double a[] = {0, 1, 2, -1, 0, 3, -2, -3, 0};
  expect_matrix(BANNER "array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, a);
  expect_matrix(BANNER "array integer skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, a);
}

TEST(matrix_market, sums_duplicate_coordinates) {
  static const double a[] = {3.5, 0, 4, 0};
  expect_matrix(BANNER "coordinate real general\n2 2 4\n"
                       "1 1 1\n1 2 4\n1 1 2\n1 1 .5\n",
                2, 2, a);
  static const double p[] = {2, 0, 0, 0};
  expect_matrix(BANNER "coordinate pattern general\n2 2 2\n1 1\n1 1\n", 2, 2,
                p);
  static const double s[] = {0, 3, 3, 0};
  expect_matrix(BANNER "coordinate real symmetric\n2 2 2\n2 1 1\n2 1 2\n", 2, 2,
                s);
}

TEST(matrix_market, accepts_any_letter_case_in_the_banner) {
  static const double a[] = {1};
  expect_matrix("%%MATRIXMARKET Matrix COORDINATE rEAL General\n1 1 1\n1 1 1\n",
                1, 1, a);
}

TEST(matrix_market, skips_comments_and_blank_lines_anywhere) {
  static const double a[] = {1, 2};
  expect_matrix(BANNER "array real general\n% one\n\n%\n  % indented\n2 1\n"
                       "\n1\n%in between\n \t \n2\n\n% end\n\n",
                2, 1, a);
}

TEST(matrix_market, skips_a_comment_of_any_length) {
  static const char head[] = BANNER "array real general\n%";
  char text[5000];
  memset(text, 'x', sizeof text);
  memcpy(text, head, sizeof head - 1);
  static const char tail[] = "\n1 1\n8\n";
  memcpy(text + sizeof text - sizeof tail, tail, sizeof tail);
  static const double a[] = {8};
  expect_matrix(text, 1, 1, a);
}

TEST(matrix_market, accepts_crlf_tabs_and_a_missing_last_newline) {
  static const double a[] = {1, 2};
  expect_matrix(BANNER "array real general\r\n% c\r\n\r\n2 1\r\n1\r\n2\r\n", 2,
                1, a);
  expect_matrix(BANNER "array real general\n2\t1\n1\n\t2 ", 2, 1, a);
}

TEST(matrix_market, accepts_every_spelling_of_a_number) {
  static const double a[] = {1500, -.015, 2, .5, 7e-5, 3, 1e3};
  expect_matrix(BANNER "array real general\n7 1\n"
                       "1.5D+03\n-1.5d-02\n2.\n.5\n+7E-5\n003\n1d3\n",
                7, 1, a);
}

TEST(matrix_market, reads_nan_and_infinities) {
  char message[200];
  mm_matrix m;
  static const char text[] = BANNER "array real general\n5 1\n"
                                    "nan\nNaN\ninf\n-Inf\n+INFINITY\n";
  CHECK_EQ_INT(read_text(text, &m, message, sizeof message), MM_OK);
  REQUIRE(m.a != NULL);
  CHECK(isnan(m.a[0]) && isnan(m.a[1]));
  CHECK(isinf(m.a[2]) && m.a[2] > 0);
  CHECK(isinf(m.a[3]) && m.a[3] < 0);
  CHECK(isinf(m.a[4]) && m.a[4] > 0);
  mm_free(&m);
}

TEST(matrix_market, rounds_numbers_below_the_range_of_double) {
  static const double a[] = {4.9406564584124654e-324, 0};
  expect_matrix(BANNER "array real general\n2 1\n4e-324\n1e-400\n", 2, 1, a);
}

TEST(matrix_market, reads_matrices_without_elements) {
  expect_matrix(BANNER "array real general\n0 0\n", 0, 0, NULL);
  expect_matrix(BANNER "coordinate real general\n0 5 0\n", 0, 5, NULL);
  expect_matrix(BANNER "array real symmetric\n0 0\n", 0, 0, NULL);
  expect_matrix(BANNER "array real general\n0 9000000000000000000\n", 0,
                9000000000000000000, NULL);
  expect_matrix(BANNER "array real general\n9000000000000000000 0\n",
                9000000000000000000, 0, NULL);
  static const double zero[] = {0};
  expect_matrix(BANNER "coordinate real general\n1 1 0\n", 1, 1, zero);
  expect_matrix(BANNER "array real skew-symmetric\n1 1\n", 1, 1, zero);
}

TEST(matrix_market, reports_what_the_banner_said) {
  char message[200];
  mm_matrix m;
  static const char text[] =
      "%%matrixmarket MATRIX Coordinate Integer Skew-Symmetric\n3 3 2\n"
      "2 1 4\n3 1 5\n";
  CHECK_EQ_INT(read_text(text, &m, message, sizeof message), MM_OK);
  CHECK_STR(m.format, "coordinate");
  CHECK_STR(m.field, "integer");
  CHECK_STR(m.symmetry, "skew-symmetric");
  CHECK_EQ_INT(m.stored_entries, 2);
  mm_free(&m);
}

/* ---- Writing ------------------------------------------------------------- */

static int round_trip(int64_t rows, int64_t cols, const double *a, int64_t lda,
                      mm_matrix *m) {
  char message[200];
  FILE *f = tmpfile();
  *m = (mm_matrix){0};
  if (!CHECK(f != NULL))
    return 0;
  int ok = CHECK_EQ_INT(mm_write_array(f, rows, cols, 0, a, lda), MM_OK);
  rewind(f);
  ok &= CHECK_EQ_INT(
      mm_read_stream(f, "written", 0, m, message, sizeof message), MM_OK);
  fclose(f);
  return ok && CHECK_EQ_INT(m->rows, rows) && CHECK_EQ_INT(m->cols, cols);
}

TEST(matrix_market, writes_special_numbers_and_reads_the_same_bits) {
  static const double a[] = {0.0,
                             -0.0,
                             DBL_MIN,
                             DBL_TRUE_MIN,
                             DBL_MAX,
                             -DBL_MAX,
                             0.1,
                             1.0 / 3,
                             1e23,
                             -1e-306,
                             1e300,
                             9007199254740993.0,
                             4e-320,
                             (double)INFINITY,
                             -(double)INFINITY,
                             DBL_MIN - DBL_TRUE_MIN};
  mm_matrix m;
  if (round_trip(4, 4, a, 4, &m))
    CHECK_MEM_EQ(m.a, a, sizeof a);
  mm_free(&m);
  static const double nans[] = {(double)NAN, 1};
  if (round_trip(2, 1, nans, 2, &m)) {
    CHECK(isnan(m.a[0]));
    CHECK_NEAR(m.a[1], 1, 0);
  }
  mm_free(&m);
}

TEST(matrix_market, writes_random_bits_and_reads_the_same_bits) {
  enum { COUNT = 4000 };
  static double a[COUNT];
  uint64_t bits = 1;
  for (int i = 0; i < COUNT; i++) {
    do {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      memcpy(&a[i], &bits, sizeof bits);
    } while (!isfinite(a[i]));
  }
  mm_matrix m;
  if (round_trip(COUNT / 4, 4, a, COUNT / 4, &m))
    CHECK_MEM_EQ(m.a, a, sizeof a);
  mm_free(&m);
}

TEST(matrix_market, writes_only_the_rows_inside_the_leading_dimension) {
  static const double a[] = {1, 2, 99, 3, 4};
  static const double packed[] = {1, 2, 3, 4};
  mm_matrix m;
  if (round_trip(2, 2, a, 3, &m))
    CHECK_MEM_EQ(m.a, packed, sizeof packed);
  mm_free(&m);
}

TEST(matrix_market, writes_matrices_without_elements) {
  mm_matrix m;
  CHECK(round_trip(0, 0, NULL, 0, &m));
  CHECK(round_trip(3, 0, NULL, 3, &m));
  CHECK(round_trip(0, INT64_MAX, NULL, 0, &m));
  CHECK(m.a == NULL);
}

TEST(matrix_market, refuses_to_write_impossible_arguments) {
  static const double a[] = {1, 2};
  FILE *f = tmpfile();
  REQUIRE(f != NULL);
  CHECK_EQ_INT(mm_write_array(f, -1, 1, 0, a, 1), MM_RANGE);
  CHECK_EQ_INT(mm_write_array(f, 1, -1, 0, a, 1), MM_RANGE);
  CHECK_EQ_INT(mm_write_array(f, 2, 1, 0, a, 1), MM_RANGE);
  CHECK_EQ_INT(mm_write_array(f, 2, 1, 0, NULL, 2), MM_RANGE);
  CHECK_EQ_INT(ftell(f), 0);
  fclose(f);
}

TEST(matrix_market, says_when_the_stream_cannot_be_written) {
  static const double a[] = {1, 2};
  FILE *f = fopen("/dev/full", "w");
  if (!f)
    SKIP("there is no /dev/full on this system");
  CHECK_EQ_INT(mm_write_array(f, 2, 1, 0, a, 2), MM_OPEN);
  fclose(f);
}

TEST(matrix_market, free_accepts_null_and_empty_matrices) {
  mm_matrix m = {0};
  mm_free(&m);
  mm_free(NULL);
  CHECK(m.a == NULL);
}

/* ---- Real matrices ------------------------------------------------------- */

static const char *path_of(const char *name, char *path, size_t size) {
  const char *folder = getenv("HONE_TEST_MATRICES");
  snprintf(path, size, "%s/%s", folder ? folder : "tests/matrices", name);
  return path;
}

typedef struct real_matrix {
  const char *name, *symmetry;
  int64_t n, stored, nonzeros;
  int64_t row, col; /* an element in the file, counted from 1 */
  double value;
} real_matrix;

static const real_matrix real_matrices[] = {
    {"494_bus.mtx", "symmetric", 494, 1080, 1666, 493, 493, 111.6384},
    {"adder_dcop_05.mtx", "general", 1813, 11097, 11097, 1812, 1813, 1},
    {"bcsstk01.mtx", "symmetric", 48, 224, 400, 48, 47, -1.09779731332e+08},
    {"fs_183_1.mtx", "general", 183, 1069, 998, 118, 183, -2236.000000002},
    {"olm1000.mtx", "general", 1000, 3996, 3996, 999, 1000, -45777.0931},
    {"watt_2.mtx", "general", 1856, 11550, 11550, 1792, 1856, 1.84395e-8},
    {"west0479.mtx", "general", 479, 1910, 1888, 378, 479, .2883091},
};

static void reads_a_real_matrix(const void *arg) {
  const real_matrix *want = arg;
  char path[500], message[700];
  mm_matrix m;
  int st = mm_read_file(path_of(want->name, path, sizeof path), &m, message,
                        sizeof message);
  CHECK_STR(message, "");
  REQUIRE(st == MM_OK);
  CHECK_EQ_INT(m.rows, want->n);
  CHECK_EQ_INT(m.cols, want->n);
  CHECK_EQ_INT(m.stored_entries, want->stored);
  CHECK_STR(m.symmetry, want->symmetry);
  CHECK_STR(m.format, "coordinate");
  CHECK_STR(m.field, "real");
  int64_t i = want->row - 1, j = want->col - 1, nonzeros = 0;
  CHECK_NEAR(m.a[i + j * want->n], want->value, 0);
  if (!strcmp(want->symmetry, "symmetric"))
    CHECK_NEAR(m.a[j + i * want->n], want->value, 0);
  for (int64_t k = 0; k < want->n * want->n; k++)
    nonzeros += m.a[k] < 0 || m.a[k] > 0;
  CHECK_EQ_INT(nonzeros, want->nonzeros);
  mm_free(&m);
}

CT_CONSTRUCTOR static void register_real_matrices(void) {
  for (size_t i = 0; i < sizeof real_matrices / sizeof *real_matrices; i++)
    ct_register("matrix_market/reads", real_matrices[i].name,
                reads_a_real_matrix, &real_matrices[i]);
}

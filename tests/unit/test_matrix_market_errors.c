/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that examples/matrix_market.c refuses: every error with its line
 * number and its message. See also test_matrix_market.c.
 */
#include "ct.h"
#include "examples/matrix_market.h"

#include <string.h>

/* Reads a small file given as text, which may hold zero bytes; hence the
   size. */
static int read_bytes(const char *text, size_t size, int64_t max_elements,
                      mm_matrix *m, char *message, size_t message_size) {
  FILE *f = tmpfile();
  if (!CHECK(f != NULL)) {
    *m = (mm_matrix){0};
    return -1;
  }
  CHECK(fwrite(text, 1, size, f) == size);
  rewind(f);
  int st = mm_read_stream(f, "text", max_elements, m, message, message_size);
  fclose(f);
  return st;
}

/* Expects an error with this message, and *m all zero. */
static void expect_error_bytes(const char *text, size_t size, int code,
                               const char *message) {
  static const mm_matrix zero = {0};
  char got[200];
  mm_matrix m;
  memset(&m, 0x5a, sizeof m);
  ct_note("reading %.300s", text);
  CHECK_EQ_INT(read_bytes(text, size, 0, &m, got, sizeof got), code);
  CHECK_STR(got, message);
  CHECK(m.a == NULL);
  CHECK_MEM_EQ(&m, &zero, sizeof m);
  mm_free(&m);
  ct_note(NULL);
}

static void expect_error(const char *text, int code, const char *message) {
  expect_error_bytes(text, strlen(text), code, message);
}

#define BANNER "%%MatrixMarket matrix "

TEST(matrix_market, refuses_a_missing_banner) {
  static const char what[] =
      "text:1: the file does not begin with %%MatrixMarket";
  expect_error("2 2 1\n1 1 1\n", MM_SYNTAX, what);
  expect_error("\n" BANNER "array real general\n", MM_SYNTAX, what);
  expect_error("%MatrixMarket matrix array real general\n1 1\n1\n", MM_SYNTAX,
               what);
  expect_error("", MM_SYNTAX, "text: the file is empty");
}

TEST(matrix_market, refuses_an_incomplete_or_unknown_banner) {
  expect_error("%%MatrixMarket\n", MM_SYNTAX,
               "text:1: the banner ends before the object");
  expect_error(BANNER "\n", MM_SYNTAX,
               "text:1: the banner ends before the format");
  expect_error(BANNER "array real\n1 1\n1\n", MM_SYNTAX,
               "text:1: the banner ends before the symmetry");
  expect_error(BANNER "sparse real general\n", MM_SYNTAX,
               "text:1: the banner's format is 'sparse', which nobody knows");
  expect_error(BANNER "array double general\n", MM_SYNTAX,
               "text:1: the banner's field is 'double', which nobody knows");
  expect_error(BANNER "array real diagonal\n", MM_SYNTAX,
               "text:1: the banner's symmetry is 'diagonal', which nobody "
               "knows");
  expect_error(BANNER "array real general more\n", MM_SYNTAX,
               "text:1: 'more' is too much on this line");
}

TEST(matrix_market, refuses_vectors_and_impossible_banners) {
  expect_error("%%MatrixMarket vector array real general\n1\n1\n",
               MM_UNSUPPORTED,
               "text:1: only matrices are supported, not vectors");
  expect_error(BANNER "array pattern general\n1 1\n", MM_SYNTAX,
               "text:1: the array form cannot be a pattern");
  expect_error(BANNER "coordinate pattern skew-symmetric\n1 1 0\n", MM_SYNTAX,
               "text:1: a pattern cannot be skew-symmetric");
}

TEST(matrix_market, refuses_a_pattern_line_with_a_value) {
  expect_error(BANNER "coordinate pattern general\n2 2 1\n1 1 3.5\n", MM_SYNTAX,
               "text:3: '3.5' is too much on this line");
}

TEST(matrix_market, refuses_a_real_line_without_a_value) {
  expect_error(BANNER "coordinate real general\n% c\n2 2 2\n1 1 1\n2 2\n",
               MM_SYNTAX, "text:5: the value is missing");
  expect_error(BANNER "coordinate real general\n2 2 1\n1\n", MM_SYNTAX,
               "text:3: the column is missing");
}

TEST(matrix_market, refuses_a_fraction_in_an_integer_file) {
  expect_error(BANNER "coordinate integer general\n2 2 1\n1 1 1.5\n", MM_SYNTAX,
               "text:3: the value '1.5' is no integer");
  expect_error(BANNER "array integer general\n1 1\nnan\n", MM_SYNTAX,
               "text:3: the value 'nan' is no integer");
}

TEST(matrix_market, refuses_integers_that_no_double_holds) {
  expect_error(BANNER
               "coordinate integer general\n1 1 1\n1 1 9007199254740993\n",
               MM_RANGE,
               "text:3: no double is 9007199254740993: in a real file it would "
               "be rounded");
  expect_error(BANNER "array integer general\n1 1\n-36028797018963969\n",
               MM_RANGE,
               "text:3: no double is -36028797018963969: in a real file it "
               "would be rounded");
}

TEST(matrix_market, refuses_values_that_are_not_numbers) {
  static const char head[] = BANNER "array real general\n1 1\n";
  static const char *const words[] = {
      "x",    "0x10", "1e",  "1e+", ".",    "-",     "1..2", "--1",   "1e5x",
      "nano", "in",   "1,5", "e5",  "infx", "1e5.0", "+-1",  "nan(1)"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char text[100], what[100];
    snprintf(text, sizeof text, "%s%s\n", head, words[i]);
    snprintf(what, sizeof what, "text:3: the value '%s' is no number",
             words[i]);
    expect_error(text, MM_SYNTAX, what);
  }
}

TEST(matrix_market, refuses_a_number_above_the_range_of_double) {
  expect_error(BANNER "array real general\n1 1\n-1e309\n", MM_RANGE,
               "text:3: -1e309 is above the range of double");
}

TEST(matrix_market, refuses_trailing_words) {
  expect_error(BANNER "coordinate real general\n2 2 1 1\n1 1 1\n", MM_SYNTAX,
               "text:2: '1' is too much on this line");
  expect_error(BANNER "coordinate real general\n2 2 1\n1 1 1 7\n", MM_SYNTAX,
               "text:3: '7' is too much on this line");
  expect_error(BANNER "array real general\n2 1\n1 2\n", MM_SYNTAX,
               "text:3: '2' is too much on this line");
}

TEST(matrix_market, refuses_an_index_out_of_range) {
  expect_error(BANNER "coordinate real general\n2 3 1\n3 1 1\n", MM_RANGE,
               "text:3: the row is 3, not in 1 to 2");
  expect_error(BANNER "coordinate real general\n2 3 1\n1 4 1\n", MM_RANGE,
               "text:3: the column is 4, not in 1 to 3");
  expect_error(BANNER "coordinate real general\n2 3 1\n0 1 1\n", MM_RANGE,
               "text:3: the row is 0, not in 1 to 2");
  expect_error(BANNER "coordinate real general\n2 3 1\n-1 1 1\n", MM_RANGE,
               "text:3: the row is -1, not in 1 to 2");
  expect_error(BANNER "coordinate real general\n0 3 1\n1 1 1\n", MM_RANGE,
               "text:3: the row is 1, not in 1 to 0");
  expect_error(BANNER "coordinate pattern general\n2 3 1\n1.0 1\n", MM_SYNTAX,
               "text:3: the row is '1.0', not an integer");
}

TEST(matrix_market, refuses_an_entry_above_the_diagonal_when_symmetric) {
  static const char what[] =
      "text:4: (1, 2) is above the diagonal: only the lower triangle of a "
      "symmetric matrix is stored";
  expect_error(BANNER "coordinate real symmetric\n2 2 2\n1 1 1\n1 2 1\n",
               MM_RANGE, what);
  expect_error(BANNER "coordinate real skew-symmetric\n2 2 2\n2 1 1\n1 2 1\n",
               MM_RANGE, what);
}

TEST(matrix_market, refuses_a_diagonal_in_a_skew_symmetric_file) {
  expect_error(BANNER "coordinate real skew-symmetric\n2 2 1\n2 2 3\n",
               MM_RANGE,
               "text:3: a skew-symmetric matrix has a zero diagonal, not 3 at "
               "(2, 2)");
  expect_error(BANNER "coordinate real skew-symmetric\n2 2 1\n2 2 nan\n",
               MM_RANGE,
               "text:3: a skew-symmetric matrix has a zero diagonal, not nan "
               "at (2, 2)");
}

TEST(matrix_market, refuses_a_truncated_file) {
  expect_error(BANNER "coordinate real general\n2 2 3\n1 1 1\n2 2 1\n",
               MM_COUNT, "text:4: the file ends after 2 of 3 entries");
  expect_error(BANNER "array real general\n2 2\n1\n2\n3\n", MM_COUNT,
               "text:5: the file ends after 3 of 4 entries");
  expect_error(BANNER "array real symmetric\n2 2\n1\n2\n", MM_COUNT,
               "text:4: the file ends after 2 of 3 entries");
  expect_error(BANNER "array real general\n% only a comment\n", MM_SYNTAX,
               "text:2: the file ends before the size line");
  expect_error(BANNER "coordinate real general\n2 2\n", MM_SYNTAX,
               "text:2: the number of entries is missing");
}

TEST(matrix_market, refuses_more_entries_than_announced) {
  expect_error(BANNER "coordinate real general\n2 2 1\n1 1 1\n\n2 2 1\n",
               MM_COUNT, "text:5: more than the 1 entries announced");
  expect_error(BANNER "array real general\n1 1\n1\n2\n", MM_COUNT,
               "text:4: more than the 1 entries announced");
  expect_error(BANNER "coordinate real general\n0 0 0\n% c\n1 1 1\n", MM_COUNT,
               "text:4: more than the 0 entries announced");
}

TEST(matrix_market, refuses_symmetric_matrices_that_are_not_square) {
  expect_error(BANNER "coordinate real symmetric\n2 3 0\n", MM_RANGE,
               "text:2: a symmetric matrix is square, not 2 x 3");
  expect_error(BANNER "array real skew-symmetric\n3 2\n", MM_RANGE,
               "text:2: a skew-symmetric matrix is square, not 3 x 2");
}

TEST(matrix_market, refuses_invalid_sizes) {
  expect_error(BANNER "array real general\n-1 2\n", MM_RANGE,
               "text:2: a size is negative");
  expect_error(BANNER "coordinate real general\n1 1 -1\n", MM_RANGE,
               "text:2: a size is negative");
  expect_error(BANNER "array real general\n99999999999999999999 1\n", MM_RANGE,
               "text:2: the number of rows is too large: "
               "99999999999999999999");
  expect_error(BANNER "array real general\n2 x\n", MM_SYNTAX,
               "text:2: the number of columns is 'x', not an integer");
}

TEST(matrix_market, says_how_much_memory_an_impossible_matrix_needs) {
  expect_error(BANNER "coordinate real general\n4000000000 4000000000 0\n",
               MM_MEMORY,
               "text:2: a dense 4000000000 x 4000000000 matrix needs more than "
               "9223372036854775807 bytes");
  expect_error(BANNER "array real general\n1500000000 1500000000\n", MM_MEMORY,
               "text:2: a dense 1500000000 x 1500000000 matrix needs more than "
               "9223372036854775807 bytes");
  expect_error(BANNER "coordinate real general\n1000000 1000000 0\n", MM_MEMORY,
               "text:2: a dense 1000000 x 1000000 matrix needs 8000000000000 "
               "bytes: there is not so much memory");
}

TEST(matrix_market, keeps_to_the_limit_of_elements) {
  static const char text[] = BANNER "coordinate real general\n4 5 0\n";
  char message[200];
  mm_matrix m;
  CHECK_EQ_INT(read_bytes(text, strlen(text), 19, &m, message, sizeof message),
               MM_MEMORY);
  CHECK_STR(message, "text:2: a dense 4 x 5 matrix has 20 elements, above the "
                     "limit of 19");
  CHECK(m.a == NULL);
  CHECK_EQ_INT(read_bytes(text, strlen(text), 20, &m, message, sizeof message),
               MM_OK);
  CHECK(m.a != NULL);
  mm_free(&m);
}

TEST(matrix_market, refuses_files_that_are_not_text) {
  static const char zero[] = BANNER "array real general\n1 1\n1\0002\n";
  expect_error_bytes(zero, sizeof zero - 1, MM_SYNTAX,
                     "text:3: a zero byte: this is not a text file");
  char text[2000];
  memset(text, '1', sizeof text);
  expect_error_bytes(text, sizeof text - 1, MM_SYNTAX,
                     "text:1: the line is longer than 1024 characters");
}

TEST(matrix_market, quotes_no_control_characters) {
  expect_error(BANNER "array real general\n1 1\n\033[31m\n", MM_SYNTAX,
               "text:3: the value '?[31m' is no number");
}

TEST(matrix_market, names_a_file_that_cannot_be_opened) {
  char message[200];
  mm_matrix m;
  CHECK_EQ_INT(mm_read_file("no/such.mtx", &m, message, sizeof message),
               MM_OPEN);
  CHECK_CONTAINS(message, "no/such.mtx: cannot open: ");
  CHECK_EQ_INT(mm_read_file(".", &m, message, sizeof message), MM_OPEN);
  CHECK_CONTAINS(message, ".: cannot ");
  CHECK(m.a == NULL);
}

TEST(matrix_market, needs_no_message_and_truncates_a_long_one) {
  static const char text[] = "nothing\n";
  char small[8];
  mm_matrix m;
  memset(small, 'x', sizeof small);
  CHECK_EQ_INT(read_bytes(text, strlen(text), 0, &m, NULL, 0), MM_SYNTAX);
  CHECK_EQ_INT(read_bytes(text, strlen(text), 0, &m, small, 6), MM_SYNTAX);
  CHECK_STR(small, "text:");
  CHECK_EQ_INT(small[6], 'x');
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The two texts of a report, letter by letter, for made-up reports whose
   numbers have short decimal forms, so that the whole text stands here. Rows
   and columns are counted from 0, and 0 is one of them. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 8192 };

/* The report before a call: row and column of an error are unknown. */
static hone_report empty(int status) {
  return (hone_report){.struct_size = sizeof(hone_report),
                       .status = status,
                       .n = 3,
                       .nrhs = 1,
                       .bad_row = -1,
                       .bad_col = -1,
                       .min_pivot_row = -1,
                       .min_pivot_col = -1};
}

static hone_report solved(void) {
  hone_report r = empty(HONE_OK);
  r.accepted = 1;
  r.backward_error = 1e-16;
  r.normwise_error = 2e-17;
  r.tolerance = 4e-16;
  r.forward_error = 3e-15;
  r.digits = 14;
  r.norm1 = 2.5;
  r.rcond = 0.25;
  r.growth = 1.5;
  return r;
}

#define TIME                                                                   \
  "time            0.000 ms: inspect 0.000, factor 0.000, certify 0.000, "     \
  "refine 0.000, fallback 0.000\n"
#define MEMORY "memory          0.0 MB on the host, 0 passes over A\n"
#define SINGULAR                                                               \
  "status          -30, singular: a row, a column or a pivot in double "       \
  "precision is exactly zero; the report says which\n"                         \
  "system          n 3, 1 right-hand side, 0 accepted\n"
#define SOLVED                                                                 \
  "status          0, solved: every right-hand side is accepted\n"             \
  "system          n 3, 1 right-hand side, 1 accepted\n"
#define ERRORS                                                                 \
  "backward error  1.00e-16 componentwise, 2.00e-17 normwise (limit "          \
  "4.00e-16)\n"
#define DIGITS "forward error   at most 3.0e-15: 14 digits certain\n"
#define MATRIX "matrix          1-norm 2.5, rcond 0.25, pivot growth 1.5\n"

static void check_text(const hone_report *r, const char *wanted) {
  char text[TEXT_SIZE];
  const size_t length = hone_report_text(r, text, sizeof text);
  CHECK_STR(text, wanted);
  CHECK_EQ_INT(length, strlen(wanted));
}

TEST(report_forms, no_report_and_no_buffer_are_empty) {
  hone_report report = HONE_REPORT_INIT;
  char text[8] = "before";
  CHECK_EQ_INT(hone_report_json(NULL, text, sizeof text), 0);
  CHECK_STR(text, "");
  CHECK_EQ_INT(hone_report_text(NULL, text, sizeof text), 0);
  CHECK_EQ_INT(hone_report_json(NULL, NULL, 0), 0);
  CHECK_EQ_INT(hone_report_text(NULL, NULL, 100), 0);
  CHECK(hone_report_json(&report, NULL, 100) > 100);
  CHECK(hone_report_text(&report, NULL, 100) > 100);
}

TEST(report_forms, text_of_a_solved_system_is_short) {
  hone_report r = solved();
  check_text(&r, SOLVED ERRORS DIGITS MATRIX TIME MEMORY);
  r.digits = 1;
  check_text(
      &r, SOLVED ERRORS
      "forward error   at most 3.0e-15: 1 digit certain\n" MATRIX TIME MEMORY);
  r.digits = 0;
  r.forward_error = (double)INFINITY;
  check_text(
      &r, SOLVED ERRORS
      "forward error   at most inf: no digit certain\n" MATRIX TIME MEMORY);
}

TEST(report_forms, text_counts_accepted_columns_and_fallbacks) {
  hone_report r = empty(HONE_NOT_CONVERGED);
  r.nrhs = 2;
  r.accepted = 1;
  r.backward_error = 0.5;
  r.normwise_error = 0.125;
  r.tolerance = 0.25;
  r.forward_error = 0.0625;
  r.digits = 2;
  r.total_ms = 21.5;
  r.inspect_ms = 1.25;
  r.factor_ms = 2.25;
  r.certify_ms = 3.25;
  r.refine_ms = 4.25;
  r.fallback_ms = 5.25;
  r.host_bytes = 12345678;
  r.host_passes = 9;
  snprintf(r.path, sizeof r.path, "the way");
  snprintf(r.reason, sizeof r.reason, "the reason");
  snprintf(r.device, sizeof r.device, "the device");
  check_text(&r,
             "status          1, not converged: x is the best found, its "
             "errors are in the report\n"
             "system          n 3, 2 right-hand sides, 1 accepted\n"
             "backward error  5.00e-01 componentwise, 1.25e-01 normwise (limit "
             "2.50e-01)\n"
             "forward error   at most 6.2e-02: 2 digits certain\n"
             "path            the way\n"
             "reason          the reason\n"
             "device          the device\n"
             "time            21.500 ms: inspect 1.250, factor 2.250, certify "
             "3.250, refine 4.250, fallback 5.250\n"
             "memory          12.3 MB on the host, 9 passes over A\n");
}

/* No error was measured, of any column. */
TEST(report_forms, text_has_no_errors_where_there_is_no_x) {
  hone_report r = solved();
  r.status = HONE_CANCELLED;
  r.accepted = 0;
  check_text(&r,
             "status          -60, stopped by the caller or the deadline "
             "before there was an x\n"
             "system          n 3, 1 right-hand side, 0 accepted\n" MATRIX TIME
                 MEMORY);
  r = solved();
  r.nrhs = r.accepted = 0;
  check_text(&r,
             "status          0, solved: every right-hand side is "
             "accepted\n"
             "system          n 3, 0 right-hand sides, 0 accepted\n" MATRIX TIME
                 MEMORY);
  r = solved();
  r.n = 0;
  r.norm1 = 0.0;
  check_text(
      &r, "status          0, solved: every right-hand side is "
          "accepted\n"
          "system          n 0, 1 right-hand side, 1 accepted\n" TIME MEMORY);
}

TEST(report_forms, text_has_scaling_where_either_exponent_is_not_0) {
  static const int ends[][2] = {{-1, 0}, {0, 1}, {-3, 7}, {1, 1}, {-1, -1}};
  for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
    hone_report r = solved();
    char wanted[TEXT_SIZE];
    r.scale_exponent_min = ends[k][0];
    r.scale_exponent_max = ends[k][1];
    snprintf(wanted, sizeof wanted,
             SOLVED ERRORS DIGITS MATRIX
             "scaling         rows and columns by 2^%d to 2^%d\n" TIME MEMORY,
             ends[k][0], ends[k][1]);
    check_text(&r, wanted);
  }
}

TEST(report_forms, text_counts_rows_and_columns_from_0) {
  hone_report r = empty(HONE_NOT_FINITE_A);
#define HEAD                                                                   \
  "status          -20, A contains NaN or Inf: the report says where\n"        \
  "system          n 3, 1 right-hand side, 0 accepted\n"
  check_text(&r, HEAD TIME MEMORY);
  r.bad_row = 0;
  check_text(&r, HEAD "place           row 0 (counted from 0)\n" TIME MEMORY);
  r.bad_col = 0;
  check_text(&r, HEAD
             "place           row 0, column 0 (counted from 0)\n" TIME MEMORY);
  r.bad_row = -1;
  check_text(&r,
             HEAD "place           column 0 (counted from 0)\n" TIME MEMORY);
  r.bad_row = 1;
  r.bad_col = 2;
  check_text(&r, HEAD
             "place           row 1, column 2 (counted from 0)\n" TIME MEMORY);
#undef HEAD
}

TEST(report_forms, text_names_one_unknown_one_equation_and_the_pivot) {
  hone_report r = empty(HONE_SINGULAR);
  check_text(&r, SINGULAR TIME MEMORY);
  r.null_count = 1;
  check_text(&r, SINGULAR
             "singular        unknown 0 is not determined\n" TIME MEMORY);
  r.null_index[0] = 2;
  r.dependent_count = 1;
  r.min_pivot_row = 0; /* without the column it is unknown */
  check_text(&r,
             SINGULAR "singular        unknown 2 is not determined\n"
                      "singular        equation 0 says nothing\n" TIME MEMORY);
  r.min_pivot_col = 0;
  check_text(&r,
             SINGULAR "singular        unknown 2 is not determined\n"
                      "singular        equation 0 says nothing\n"
                      "singular        the smallest pivot is in row 0, column "
                      "0\n" TIME MEMORY);
  r.min_pivot_row = -1;
  r.null_count = 0;
  check_text(&r,
             SINGULAR "singular        equation 0 says nothing\n" TIME MEMORY);
  /* Not a singular matrix: no unknowns or equations. */
  r.status = HONE_NO_MEMORY;
  check_text(&r, "status          -40, out of memory, or above "
                 "options.memory_limit_bytes\n"
                 "system          n 3, 1 right-hand side, 0 "
                 "accepted\n" TIME MEMORY);
}

TEST(report_forms, text_lists_up_to_eight_unknowns_and_equations) {
  hone_report r = empty(HONE_SINGULAR);
  for (int k = 0; k < 8; k++) {
    r.null_index[k] = r.dependent_index[7 - k] = k;
    r.null_weight[k] = k % 2 ? -0.5 : 0.25;
    r.dependent_weight[k] = 0.125;
  }
  r.null_count = r.dependent_count = 2;
  check_text(&r, SINGULAR
             "singular        unknowns 0 and 1 move together (weights 0.25, "
             "-0.5)\n"
             "singular        equations 7 and 6 depend on one another (weights "
             "0.12, 0.12)\n" TIME MEMORY);
  r.null_count = 8;
  r.dependent_count = 9;
  check_text(
      &r, SINGULAR
      "singular        unknowns 0, 1, 2, 3, 4, 5, 6 and 7 move together "
      "(weights 0.25, -0.5, 0.25, -0.5, 0.25, -0.5, 0.25, -0.5)\n"
      "singular        9 equations depend on one another, most of all 7, 6, 5, "
      "4, 3, 2, 1 and 0 (weights 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, 0.12, "
      "0.12)\n" TIME MEMORY);
}

TEST(report_forms, text_names_a_gpus_forms_where_they_were_used) {
  hone_report r = empty(HONE_NO_DEVICE);
#define HEAD                                                                   \
  "status          -50, the device asked for cannot be used\n"                 \
  "system          n 3, 1 right-hand side, 0 accepted\n" TIME
  r.diagonal_wait_ms = 0.5;
  check_text(&r, HEAD MEMORY);
  r.diagonal_ms = 0.75;
  check_text(
      &r, HEAD
      "tuning          diagonal blocks 0.750 ms, the GPU waited 0.500 ms; 0 "
      "block rows, 0 sweeps, at most 0, 0 solved directly\n" MEMORY);
  r.diagonal_ms = r.diagonal_wait_ms = 0.0;
  r.block_rows = 1;
  r.block_row_sweeps = 2;
  r.block_row_sweeps_max = 3;
  r.block_row_fallbacks = 4;
  check_text(
      &r, HEAD
      "tuning          diagonal blocks 0.000 ms, the GPU waited 0.000 ms; 1 "
      "block rows, 2 sweeps, at most 3, 4 solved directly\n" MEMORY);
#undef HEAD
}

TEST(report_forms, json_is_complete) {
  char text[TEXT_SIZE];
  hone_report r = {
      .struct_size = sizeof(hone_report),
      .status = HONE_OK,
      .accepted = 2,
      .n = 3,
      .nrhs = 4,
      .backward_error = 0.5,
      .normwise_error = 0.25,
      .residual_error = 0.125,
      .forward_error = 1e100,
      .tolerance = 0.0625,
      .iterations = 5,
      .precision = 6,
      .fallback_columns = 7,
      .threads = 8,
      .bad_row = 9,
      .bad_col = 10,
      .norm1 = 11.5,
      .rcond = 1.5,
      .growth = 2.5,
      .max_abs = 3.5,
      .min_abs = 4.5,
      .scale_exponent_min = -12,
      .scale_exponent_max = 13,
      .underflows = 14,
      .inspect_ms = 15.5,
      .factor_ms = 16.5,
      .refine_ms = 17.5,
      .certify_ms = 18.5,
      .fallback_ms = 19.5,
      .total_ms = 20.5,
      .host_passes = 21,
      .device_passes = 22,
      .host_bytes = 23,
      .device_bytes = 24,
      .to_device_bytes = 25,
      .from_device_bytes = 26,
      .device = "\"d\\\"",
      .path = "p\x1f\x20\x7f",
      .reason = "r\n",
      .diagonal_ms = 27.5,
      .diagonal_wait_ms = 28.5,
      .block_rows = 29,
      .block_row_sweeps = 30,
      .block_row_sweeps_max = 31,
      .block_row_fallbacks = 32,
      .digits = 33,
      .gmres_steps = 34,
      .certificate_steps = 35,
      .bound_failure = 41.5,
      .sparse_columns = 42,
      .structure = 4,
      .null_count = 3,
      .null_index = {36, 37, 38, 99},
      .null_weight = {0.5, -0.25, (double)NAN},
      .min_pivot_row = 39,
      .min_pivot_col = 40,
      .dependent_count = 9,
      .dependent_index = {1, 2, 3, 4, 5, 6, 7, 8},
      .dependent_weight = {1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5}};
  const size_t length = hone_report_json(&r, text, sizeof text);
  CHECK_STR(
      text,
      "{\"status\": 0, \"status_text\": \"solved: every right-hand side is "
      "accepted\", \"n\": 3, \"nrhs\": 4, \"accepted\": 2, "
      "\"backward_error\": 0.5, \"normwise_error\": 0.25, "
      "\"residual_error\": 0.125, \"forward_error\": 1e+100, "
      "\"digits\": 33, \"tolerance\": 0.0625, \"iterations\": 5, "
      "\"rcond\": 1.5, \"norm1\": 11.5, \"growth\": 2.5, \"max_abs\": 3.5, "
      "\"min_abs\": 4.5, \"scale_exponent_min\": -12, \"scale_exponent_max\": "
      "13, "
      "\"underflows\": 14, \"bad_row\": 9, \"bad_col\": 10, \"structure\": 4, "
      "\"min_pivot_row\": 39, \"min_pivot_col\": 40, \"null_count\": 3, "
      "\"null_index\": [36, 37, 38], \"null_weight\": [0.5, -0.25, null], "
      "\"dependent_count\": 9, \"dependent_index\": [1, 2, 3, 4, 5, 6, 7, "
      "8], \"dependent_weight\": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5], "
      "\"precision\": 6, \"fallback_columns\": 7, \"threads\": 8, "
      "\"device\": \"\\\"d\\\\\\\"\", \"path\": \"p\\u001f \x7f\", "
      "\"reason\": \"r\\u000a\", \"inspect_ms\": 15.5, \"factor_ms\": 16.5, "
      "\"certify_ms\": 18.5, \"refine_ms\": 17.5, \"fallback_ms\": 19.5, "
      "\"total_ms\": 20.5, \"host_passes\": 21, \"device_passes\": 22, "
      "\"host_bytes\": 23, \"device_bytes\": 24, \"to_device_bytes\": 25, "
      "\"from_device_bytes\": 26, \"diagonal_ms\": 27.5, "
      "\"diagonal_wait_ms\": 28.5, \"block_rows\": 29, \"block_row_sweeps\": "
      "30, "
      "\"block_row_sweeps_max\": 31, \"block_row_fallbacks\": 32, "
      "\"gmres_steps\": 34, "
      "\"certificate_steps\": 35, \"bound_failure\": 41.5, \"sparse_columns\": "
      "42}");
  CHECK_EQ_INT(length, strlen(text));
}

/* Buffers of every size are written to their end and no further. */
TEST(report_forms, are_truncated_at_the_end_of_the_buffer) {
  hone_report r = solved();
  char whole[TEXT_SIZE], part[TEXT_SIZE];
  for (int form = 0; form < 2; form++) {
    size_t (*const write)(const hone_report *, char *, size_t) =
        form ? hone_report_json : hone_report_text;
    const size_t length = write(&r, whole, sizeof whole);
    REQUIRE(length + 1 < sizeof whole);
    for (size_t size = 0; size <= length + 1; size++) {
      memset(part, '#', sizeof part);
      if (!CHECK_EQ_INT(write(&r, part, size), length))
        return;
      if (size > 0 && !(CHECK_EQ_INT(part[size - 1], 0) &&
                        CHECK_MEM_EQ(part, whole, size - 1)))
        return;
      if (!CHECK_EQ_INT(part[size], '#'))
        return;
    }
  }
}

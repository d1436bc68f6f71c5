/* SPDX-License-Identifier: BSD-3-Clause */
/* A report as JSON and as text: each number of a made-up report. */
#include "tests/unit/ct.h"
#include "tests/unit/json_reader.h"
#include "tests/unit/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { TEXT_SIZE = 8192 };

/* A report whose numbers all differ. */
static hone_report made_up(void) {
  return (hone_report){.struct_size = sizeof(hone_report),
                       .status = 1,
                       .accepted = 2,
                       .n = INT64_C(3000000000),
                       .nrhs = 4,
                       .backward_error = 0.1,
                       .normwise_error = 0x1p-1074,
                       .residual_error = DBL_MAX,
                       .forward_error = 1.0 / 3.0,
                       .tolerance = 4.0 * SUP_EPS,
                       .iterations = 5,
                       .precision = 32,
                       .fallback_columns = 6,
                       .threads = 7,
                       .bad_row = 8,
                       .bad_col = -1,
                       .norm1 = 9.5,
                       .rcond = 1e-300,
                       .growth = 10.25,
                       .max_abs = 11.125,
                       .min_abs = -0.0,
                       .scale_exponent_min = -12,
                       .scale_exponent_max = 13,
                       .underflows = 14,
                       .inspect_ms = 15.1,
                       .factor_ms = 16.2,
                       .refine_ms = 17.3,
                       .certify_ms = 18.4,
                       .fallback_ms = 19.5,
                       .total_ms = 20.6,
                       .host_passes = 21,
                       .host_bytes = INT64_C(1) << 52,
                       .device_bytes = 22,
                       .to_device_bytes = 23,
                       .from_device_bytes = 24,
                       .digits = 25,
                       .min_pivot_row = 26,
                       .min_pivot_col = INT64_C(4000000000),
                       .null_count = 2,
                       .null_index = {27, 28},
                       .null_weight = {0.75, -0.625},
                       .dependent_count = 100,
                       .dependent_index = {30, 31, 32, 33, 34, 35, 36, 37},
                       .dependent_weight = {0.5, 0.25, 0.125},
                       .device = "CPU, 7 threads",
                       .path = "single LU, 5 refinements",
                       .reason = "why"};
}

TEST(report, json_holds_every_number_to_the_last_bit) {
  char text[TEXT_SIZE];
  json j;
  hone_report r = made_up();
  size_t length = hone_report_json(&r, text, sizeof text);
  CHECK_EQ_INT(length, strlen(text));
  REQUIRE(json_read(&j, text));
  json_check_report(&j, &r);
  CHECK(json_is(&j, "status_text",
                "\"not converged: x is the best found, its errors are in "
                "the report\""));
  CHECK(json_is(&j, "device", "\"CPU, 7 threads\""));
  CHECK(json_is(&j, "null_index", "[27, 28]"));
  CHECK(json_is(&j, "null_weight", "[0.75, -0.625]"));
  CHECK(json_is(&j, "dependent_index", "[30, 31, 32, 33, 34, 35, 36, 37]"));
  CHECK(json_is(&j, "dependent_weight", "[0.5, 0.25, 0.125, 0, 0, 0, 0, 0]"));
  CHECK(json_is(&j, "path", "\"single LU, 5 refinements\""));
  CHECK(json_is(&j, "reason", "\"why\""));
}

TEST(report, json_has_null_for_nan_and_infinity) {
  char text[TEXT_SIZE];
  json j;
  hone_report r = made_up();
  r.backward_error = (double)NAN;
  r.normwise_error = -(double)NAN;
  r.residual_error = r.growth = (double)INFINITY;
  r.forward_error = -(double)INFINITY;
  hone_report_json(&r, text, sizeof text);
  REQUIRE(json_read(&j, text));
  json_check_report(&j, &r);
  CHECK(strstr(text, "nan") == NULL && strstr(text, "inf\"") == NULL);
}

TEST(report, json_escapes_quotes_and_control_characters) {
  char text[TEXT_SIZE];
  json j;
  hone_report r = made_up();
  strcpy(r.path, "a \"b\" \\ \n\t\x01\x1f / \xc3\xa9");
  memset(r.reason, '"', sizeof r.reason - 1);
  hone_report_json(&r, text, sizeof text);
  REQUIRE(json_read(&j, text));
  CHECK(
      json_is(&j, "path",
              "\"a \\\"b\\\" \\\\ \\u000a\\u0009\\u0001\\u001f / \xc3\xa9\""));
  CHECK_EQ_INT(json_find(&j, "reason")->length, 2 * sizeof r.reason);
}

static void check_truncation(size_t (*write)(const hone_report *, char *,
                                             size_t),
                             const hone_report *r) {
  char whole[TEXT_SIZE], part[TEXT_SIZE];
  const size_t length = write(r, whole, sizeof whole);
  CHECK_EQ_INT(strlen(whole), length);
  CHECK_EQ_INT(write(r, NULL, 0), length);
  for (size_t size = 0; size <= length + 2; size++) {
    memset(part, '#', sizeof part);
    ct_note("size %zu of %zu", size, length);
    CHECK_EQ_INT(write(r, part, size), length);
    size_t fits = size == 0 ? 0 : HONE_MIN(size - 1, length);
    CHECK_MEM_EQ(part, whole, fits);
    if (size > 0)
      CHECK_EQ_INT(part[fits], '\0');
    CHECK_EQ_INT(part[fits + (size > 0)], '#'); /* nothing is written behind */
  }
  ct_note(NULL);
}

TEST(report, json_and_text_are_truncated_like_snprintf) {
  hone_report r = made_up();
  strcpy(r.path, "\"\"\\\n");
  check_truncation(hone_report_json, &r);
  check_truncation(hone_report_text, &r);
}

TEST(report, text_has_what_people_need) {
  char text[TEXT_SIZE];
  hone_report r = made_up();
  hone_report_text(&r, text, sizeof text);
  static const char *const parts[] = {"1, not converged",
                                      "3000000000",
                                      "4 right-hand sides",
                                      "2 accepted",
                                      "1.00e-01",
                                      "2^-12 to 2^13",
                                      "row 8",
                                      "single LU, 5 refinements",
                                      "why",
                                      "CPU, 7 threads",
                                      "20.600 ms",
                                      "factor 16.200",
                                      "21 passes"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    CHECK_CONTAINS(text, parts[i]);
  CHECK_EQ_INT(text[strlen(text) - 1], '\n');
}

TEST(report, text_says_what_makes_a_matrix_singular) {
  char text[TEXT_SIZE];
  hone_report r = made_up();
  /* Not converged: nothing about singularity. */
  hone_report_text(&r, text, sizeof text);
  CHECK(strstr(text, "singular") == NULL);
  CHECK_CONTAINS(text, "25 digits certain");
  r.status = HONE_ILL_CONDITIONED;
  r.digits = 0;
  hone_report_text(&r, text, sizeof text);
  CHECK_CONTAINS(text, "no digit certain");
  CHECK_CONTAINS(text,
                 "unknowns 27 and 28 move together (weights 0.75, -0.62)\n");
  CHECK_CONTAINS(text, "100 equations depend on one another, most of all 30, "
                       "31, 32, 33, 34, 35, 36 and 37 (weights 0.5, 0.25, 0.12,"
                       " 0, 0, 0, 0, 0)\n");
  CHECK_CONTAINS(text, "smallest pivot is in row 26, column 4000000000");
  r.status = HONE_SINGULAR;
  r.null_count = r.dependent_count = 1;
  r.min_pivot_row = -1;
  hone_report_text(&r, text, sizeof text);
  CHECK_CONTAINS(text, "unknown 27 is not determined");
  CHECK_CONTAINS(text, "equation 30 says nothing");
  CHECK(strstr(text, "smallest pivot") == NULL);
}

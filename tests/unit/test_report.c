/* SPDX-License-Identifier: BSD-3-Clause */
/* The report: as JSON (read here by a strict reader of our own), as text,
   and whether what it says of the matrix is true. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include "api/hone.h"
#include "base/lapack.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 8192 };

/* JSON (RFC 8259): one flat object --------------------------------------- */

enum { MEMBERS = 80 };

typedef struct member {
  char name[64];
  const char *value; /* in the text; a string's first quote */
  size_t length;
} member;

typedef struct json {
  const char *at;
  bool bad;
  int members;
  member member[MEMBERS];
} json;

static void skip_space(json *j) { j->at += strspn(j->at, " \t\r\n"); }

static void expect(json *j, char c) {
  skip_space(j);
  j->bad = j->bad || *j->at != c;
  j->at += *j->at != '\0';
}

static void take_digits(json *j) {
  size_t digits = strspn(j->at, "0123456789");
  j->bad = j->bad || digits == 0;
  j->at += digits;
}

/* -? (0 | [1-9] digits) (. digits)? ([eE] [+-]? digits)? */
static void take_number(json *j) {
  j->at += *j->at == '-';
  if (*j->at == '0')
    j->at++;
  else
    take_digits(j);
  if (*j->at == '.') {
    j->at++;
    take_digits(j);
  }
  if (*j->at == 'e' || *j->at == 'E') {
    j->at++;
    j->at += *j->at == '+' || *j->at == '-';
    take_digits(j);
  }
}

static void take_string(json *j) {
  expect(j, '"');
  while (!j->bad && *j->at != '"') {
    unsigned char c = (unsigned char)*j->at++;
    j->bad = c < 0x20;
    if (c != '\\')
      continue;
    c = (unsigned char)*j->at++;
    if (c == 'u') {
      j->bad = strspn(j->at, "0123456789abcdefABCDEF") < 4;
      j->at += j->bad ? 0 : 4;
    } else {
      j->bad = c == '\0' || strchr("\"\\/bfnrt", c) == NULL;
    }
  }
  expect(j, '"');
}

/* [ number, ... ] */
static void take_numbers(json *j) {
  expect(j, '[');
  skip_space(j);
  while (!j->bad && *j->at != ']') {
    take_number(j);
    skip_space(j);
    j->bad = j->bad || (*j->at != ',' && *j->at != ']');
    j->at += *j->at == ',';
    skip_space(j);
  }
  expect(j, ']');
}

static void take_value(json *j) {
  skip_space(j);
  if (*j->at == '"')
    take_string(j);
  else if (strncmp(j->at, "null", 4) == 0)
    j->at += 4;
  else if (*j->at == '[')
    take_numbers(j);
  else
    take_number(j);
}

static const member *find(const json *j, const char *name) {
  for (int i = 0; i < j->members; i++)
    if (strcmp(j->member[i].name, name) == 0)
      return &j->member[i];
  return NULL;
}

/* Reads the whole text; a name must not come twice. */
static bool read_json(json *j, const char *text) {
  *j = (json){.at = text};
  expect(j, '{');
  do {
    member m = {.name = ""};
    skip_space(j);
    const char *name = j->at + 1;
    take_string(j);
    if (j->bad || j->at - name > (ptrdiff_t)sizeof m.name ||
        j->members == MEMBERS)
      return false;
    memcpy(m.name, name, (size_t)(j->at - name) - 1);
    expect(j, ':');
    skip_space(j);
    m.value = j->at;
    take_value(j);
    m.length = (size_t)(j->at - m.value);
    if (j->bad || find(j, m.name) != NULL)
      return false;
    j->member[j->members++] = m;
    skip_space(j);
  } while (*j->at == ',' && j->at++);
  expect(j, '}');
  skip_space(j);
  return !j->bad && *j->at == '\0';
}

static bool is(const json *j, const char *name, const char *value) {
  const member *m = find(j, name);
  return m != NULL && m->length == strlen(value) &&
         memcmp(m->value, value, m->length) == 0;
}

/* The value, to the last bit; NaN for null. */
static void check_number(const json *j, const char *name, double value) {
  const member *m = find(j, name);
  ct_note("%s", name);
  if (!CHECK(m != NULL))
    return;
  if (isfinite(value))
    CHECK_NEAR(strtod(m->value, NULL), value, 0.0);
  else
    CHECK(is(j, name, "null"));
}

static void check_numbers(const json *j, const hone_report *r) {
#define NUMBER(name) check_number(j, #name, (double)r->name)
  NUMBER(status), NUMBER(n), NUMBER(nrhs), NUMBER(accepted);
  NUMBER(backward_error), NUMBER(normwise_error), NUMBER(residual_error);
  NUMBER(forward_error), NUMBER(tolerance), NUMBER(iterations);
  NUMBER(precision), NUMBER(fallback_columns), NUMBER(threads);
  NUMBER(bad_row), NUMBER(bad_col), NUMBER(norm1), NUMBER(rcond);
  NUMBER(growth), NUMBER(max_abs), NUMBER(min_abs), NUMBER(scale_min);
  NUMBER(scale_max), NUMBER(flushed), NUMBER(inspect_ms), NUMBER(factor_ms);
  NUMBER(refine_ms), NUMBER(certify_ms), NUMBER(fallback_ms);
  NUMBER(total_ms), NUMBER(passes), NUMBER(host_bytes), NUMBER(device_bytes);
  NUMBER(to_device_bytes), NUMBER(from_device_bytes), NUMBER(digits);
  NUMBER(suspect_row), NUMBER(suspect_col), NUMBER(null_count);
  NUMBER(dependent_count);
#undef NUMBER
  ct_note(NULL);
}

/* A report in which every number is another one. */
static hone_report made_up(void) {
  return (hone_report){.status = 1,
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
                       .scale_min = -12,
                       .scale_max = 13,
                       .flushed = 14,
                       .inspect_ms = 15.1,
                       .factor_ms = 16.2,
                       .refine_ms = 17.3,
                       .certify_ms = 18.4,
                       .fallback_ms = 19.5,
                       .total_ms = 20.6,
                       .passes = 21,
                       .host_bytes = INT64_C(1) << 52,
                       .device_bytes = 22,
                       .to_device_bytes = 23,
                       .from_device_bytes = 24,
                       .digits = 25,
                       .suspect_row = 26,
                       .suspect_col = INT64_C(4000000000),
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
  REQUIRE(read_json(&j, text));
  check_numbers(&j, &r);
  CHECK(is(&j, "status_text",
           "\"not converged: x is the best found, its backward error is in "
           "the report\""));
  CHECK(is(&j, "device", "\"CPU, 7 threads\""));
  CHECK(is(&j, "null_index", "[27, 28]"));
  CHECK(is(&j, "null_weight", "[0.75, -0.625]"));
  CHECK(is(&j, "dependent_index", "[30, 31, 32, 33, 34, 35, 36, 37]"));
  CHECK(is(&j, "dependent_weight", "[0.5, 0.25, 0.125, 0, 0, 0, 0, 0]"));
  CHECK(is(&j, "path", "\"single LU, 5 refinements\""));
  CHECK(is(&j, "reason", "\"why\""));
}

TEST(report, json_says_null_for_what_is_no_number) {
  char text[TEXT_SIZE];
  json j;
  hone_report r = made_up();
  r.backward_error = (double)NAN;
  r.normwise_error = -(double)NAN;
  r.residual_error = r.growth = (double)INFINITY;
  r.forward_error = -(double)INFINITY;
  hone_report_json(&r, text, sizeof text);
  REQUIRE(read_json(&j, text));
  check_numbers(&j, &r);
  CHECK(strstr(text, "nan") == NULL && strstr(text, "inf\"") == NULL);
}

TEST(report, json_escapes_what_strings_may_not_hold) {
  char text[TEXT_SIZE];
  json j;
  hone_report r = made_up();
  strcpy(r.path, "a \"b\" \\ \n\t\x01\x1f / \xc3\xa9");
  memset(r.reason, '"', sizeof r.reason - 1);
  hone_report_json(&r, text, sizeof text);
  REQUIRE(read_json(&j, text));
  CHECK(is(&j, "path",
           "\"a \\\"b\\\" \\\\ \\u000a\\u0009\\u0001\\u001f / \xc3\xa9\""));
  CHECK_EQ_INT(find(&j, "reason")->length, 2 * sizeof r.reason);
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
    CHECK_EQ_INT(part[fits + (size > 0)], '#'); /* nothing beyond */
  }
  ct_note(NULL);
}

TEST(report, json_and_text_are_cut_as_snprintf_does) {
  hone_report r = made_up();
  strcpy(r.path, "\"\"\\\n");
  check_truncation(hone_report_json, &r);
  check_truncation(hone_report_text, &r);
}

TEST(report, text_tells_people_what_they_need) {
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
  hone_report_text(&r, text, sizeof text); /* not converged: nothing to say */
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
  r.suspect_row = -1;
  hone_report_text(&r, text, sizeof text);
  CHECK_CONTAINS(text, "unknown 27 is not determined");
  CHECK_CONTAINS(text, "equation 30 says nothing");
  CHECK(strstr(text, "smallest pivot") == NULL);
}

/* Reports of real calls -------------------------------------------------- */

typedef struct solved {
  int64_t n;
  double *a, *b, *x;
  hone_options options;
  hone_report report;
} solved;

static solved prepare(int64_t n) {
  solved s = {.n = n,
              .a = sup_filled(n * n, 0.0),
              .b = sup_filled(n, 1.0),
              .x = sup_filled(n, 0.0)};
  sup_rng rng = {(uint64_t)n};
  sup_random(&rng, n, n, s.a, n);
  hone_options_init(&s.options, sizeof s.options);
  return s;
}

/* The report is full of something else before. */
static int solve(solved *s) {
  memset(&s->report, 0xab, sizeof s->report);
  return hone_solve(s->n, 1, s->a, s->n, s->b, s->n, s->x, s->n, &s->options,
                    &s->report);
}

static void discard(solved *s) {
  sup_free(s->a);
  sup_free(s->b);
  sup_free(s->x);
}

/* Written whole, readable in both forms. */
static void check_whole(const hone_report *r, int status) {
  char text[TEXT_SIZE];
  uint64_t word, stale;
  json j;
  CHECK_EQ_INT(r->status, status);
  memset(&stale, 0xab, sizeof stale);
  for (size_t i = 0; i < sizeof *r / sizeof word; i++) {
    memcpy(&word, (const char *)r + i * sizeof word, sizeof word);
    CHECK(word != stale);
  }
  hone_report_json(r, text, sizeof text);
  if (CHECK(read_json(&j, text)))
    check_numbers(&j, r);
  const char *const keys[] = {"status",     "status_text",    "n",
                              "nrhs",       "backward_error", "normwise_error",
                              "iterations", "rcond",          "path",
                              "inspect_ms", "factor_ms",      "refine_ms",
                              "certify_ms", "fallback_ms",    "total_ms"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    CHECK(find(&j, keys[i]) != NULL);
  hone_report_text(r, text, sizeof text);
  CHECK_CONTAINS(text, hone_status_text(status));
  CHECK_GE(r->total_ms, 0.0);
}

static int stop_at_once(void *user, const hone_progress *event) {
  (void)user;
  return event->phase != NULL;
}

static int stop_in_refinement(void *user, const hone_progress *event) {
  (void)user;
  return strcmp(event->phase, "refine") == 0;
}

TEST(report, is_whole_whatever_the_status) {
  static const int statuses[] = {
      HONE_OK,           HONE_NOT_CONVERGED, HONE_INTERRUPTED,
      HONE_CANCELLED,    HONE_BAD_OPTION,    HONE_BAD_STRUCT_SIZE,
      HONE_NOT_FINITE_A, HONE_NOT_FINITE_B,  HONE_SINGULAR,
      HONE_NO_MEMORY,    HONE_BAD_SIZE,      HONE_NULL_POINTER};
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
    const int status = statuses[i];
    solved s = prepare(40);
    double *a = s.a;
    ct_note("%s", hone_status_text(status));
    if (status == HONE_NOT_CONVERGED || status == HONE_INTERRUPTED)
      s.options.tolerance = 1e-30;
    if (status == HONE_INTERRUPTED)
      s.options.progress = stop_in_refinement;
    if (status == HONE_CANCELLED)
      s.options.progress = stop_at_once;
    if (status == HONE_BAD_OPTION)
      s.options.layout = 2;
    if (status == HONE_BAD_STRUCT_SIZE)
      s.options.struct_size = 0;
    if (status == HONE_NO_MEMORY)
      s.options.memory_limit_bytes = 1000;
    if (status == HONE_NOT_FINITE_A)
      s.a[3 + 5 * 40] = (double)NAN;
    if (status == HONE_NOT_FINITE_B)
      s.b[7] = (double)INFINITY;
    for (int64_t k = 0; status == HONE_SINGULAR && k < 40; k++)
      s.a[11 + k * 40] = 0.0;
    s.a = status == HONE_NULL_POINTER ? NULL : a;
    s.n = status == HONE_BAD_SIZE ? -1 : 40;
    CHECK_EQ_INT(solve(&s), status);
    check_whole(&s.report, status);
    CHECK_EQ_INT(s.report.n, s.n);
    CHECK_EQ_INT(s.report.nrhs, 1);
    s.a = a;
    discard(&s);
  }
}

/* The place stands in the text where there is one, and only there. */
TEST(report, text_names_the_place_of_bad_entries) {
  char text[TEXT_SIZE];
  solved s = prepare(20);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  hone_report_text(&s.report, text, sizeof text);
  CHECK(strstr(text, "place") == NULL);
  s.a[3 + 5 * 20] = (double)NAN;
  CHECK_EQ_INT(solve(&s), HONE_NOT_FINITE_A);
  hone_report_text(&s.report, text, sizeof text);
  CHECK_CONTAINS(text, "row 3, column 5");
  for (int64_t j = 0; j < 20; j++)
    s.a[11 + j * 20] = s.a[3 + j * 20] = 0.0;
  CHECK_EQ_INT(solve(&s), HONE_SINGULAR);
  hone_report_text(&s.report, text, sizeof text);
  CHECK_CONTAINS(text, "row 3");
  discard(&s);
}

/* What it says of the matrix --------------------------------------------- */

static double norm_1(int64_t n, const double *a) {
  double norm = 0.0;
  for (int64_t j = 0; j < n; j++) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++)
      sum += fabs(a[i + j * n]);
    norm = fmax(norm, sum);
  }
  return norm;
}

static double rcond_by_dgecon(int64_t order, const double *a) {
  int n = (int)order, info = 0;
  double *f = sup_copy(a, order * order), *work = sup_filled(4 * order, 0.0);
  double norm = norm_1(order, a), rcond = 0.0;
  int *iwork = malloc((size_t)n * sizeof *iwork);
  if (iwork == NULL)
    abort();
  dgetrf_(&n, &n, f, &n, iwork, &info);
  CHECK_EQ_INT(info, 0);
  dgecon_("1", &n, f, &n, &norm, &rcond, work, iwork, &info);
  sup_free(f);
  sup_free(work);
  free(iwork);
  return rcond;
}

TEST(report, rcond_is_that_of_lapack_and_of_the_matrix_as_given) {
  static const int64_t orders[] = {1, 2, 50, 300};
  static const double spread[] = {0.0, 4.0, 8.0}; /* of the units' exponents */
  for (int k = 0; k < 4 * 3 * 2; k++) {
    const int64_t n = orders[k / 6];
    const double d = spread[k % 3];
    sup_rng rng = {(uint64_t)k};
    solved s = prepare(n);
    s.options.start = k / 3 % 2 ? HONE_START_SINGLE : HONE_START_DOUBLE;
    for (int64_t j = 0; j < n; j++) {
      double row = pow(10.0, d * sup_uniform(&rng));
      double col = pow(10.0, d * sup_uniform(&rng));
      for (int64_t i = 0; i < n; i++) {
        s.a[j + i * n] *= row;
        s.a[i + j * n] *= col;
      }
    }
    ct_note("n = %d, units 10^+-%g, start %d", (int)n, d / 2.0,
            s.options.start);
    CHECK_EQ_INT(solve(&s), HONE_OK);
    double norm = norm_1(n, s.a), rcond = rcond_by_dgecon(n, s.a);
    CHECK_NEAR(s.report.norm1, norm, 1e-12 * norm);
    CHECK_LE(s.report.rcond, 10.0 * rcond);
    CHECK_GE(s.report.rcond, 0.1 * rcond);
    discard(&s);
  }
}

/* Identity, then a matrix whose last column grows by 3/2 in every row. That
   one for double only: the single engine may factor its transpose. */
TEST(report, growth_is_that_of_the_factorization) {
  enum { N = 16 };
  for (int start = HONE_START_SINGLE; start <= HONE_START_DOUBLE; start++) {
    solved s = prepare(N);
    s.options.start = start;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_GE(s.report.growth, 0.1);
    CHECK_LE(s.report.growth, N);
    for (int64_t i = 0; i < N * N; i++)
      s.a[i] = i % N == i / N ? 1.0 : 0.0;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    CHECK_NEAR(s.report.growth, 1.0, 0.0);
    for (int64_t i = 0; i < N; i++) {
      for (int64_t j = 0; j < i; j++)
        s.a[i + j * N] = -0.5;
      s.a[i + (N - 1) * N] = 1.0;
    }
    CHECK_EQ_INT(solve(&s), HONE_OK);
    if (start == HONE_START_DOUBLE)
      CHECK_NEAR(s.report.growth, pow(1.5, N - 1), 1e-9);
    discard(&s);
  }
}

TEST(report, says_range_scaling_and_what_vanished_in_single) {
  solved s = prepare(20);
  s.options.start = HONE_START_SINGLE;
  s.options.structure = HONE_STRUCTURE_GENERAL; /* not as a band */
  for (int i = 0; i < 20 * 20; i++)
    s.a[i] = i % 21 == 0 ? 4.0 : 0.0;
  s.a[0] = 1.0;
  s.a[1 + 20] = -8.0;
  s.a[3] = 1e-60;
  s.a[4 + 5 * 20] = -1e-42;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_EQ_INT(s.report.flushed, 2);
  CHECK_EQ_INT(s.report.scale_min, 0);
  CHECK_EQ_INT(s.report.scale_max, 0);
  CHECK_NEAR(s.report.max_abs, 8.0, 0.0);
  CHECK_NEAR(s.report.min_abs, 1.0, 0.0);
  for (int i = 0; i < 20; i++)
    s.a[6 + 20 * i] *= 1e9;
  CHECK_EQ_INT(solve(&s), HONE_OK);
  CHECK_LE(s.report.scale_min, -10);
  CHECK_GE(s.report.scale_min, -40);
  CHECK_NEAR(s.report.max_abs, 4e9, 0.0);
  discard(&s);
}

/* Work and memory -------------------------------------------------------- */

static void check_work(const hone_report *r) {
  double sum = r->inspect_ms + r->factor_ms + r->refine_ms + r->certify_ms +
               r->fallback_ms;
  CHECK_GE(r->total_ms, sum);
  CHECK_GE(sum, 0.0);
  CHECK_GE(r->passes, r->iterations + 1);
  CHECK_LE(r->passes, 3 * (r->iterations + 2) + 7);
  CHECK_CONTAINS(r->device, "CPU");
  CHECK_GE(r->threads, 1);
  CHECK_EQ_INT(r->device_bytes, 0);
}

TEST(report, counts_passes_time_and_memory) {
  for (int start = HONE_START_SINGLE; start <= HONE_START_DOUBLE; start++) {
    const int64_t n = 300;
    int64_t needed[2];
    solved s = prepare(n);
    s.options.start = start;
    CHECK_EQ_INT(solve(&s), HONE_OK);
    const bool single = start == HONE_START_SINGLE;
    check_work(&s.report);
    CHECK_EQ_INT(s.report.precision, single ? 32 : 64);
    CHECK_CONTAINS(s.report.path, single ? "single LU" : "double LU");
    CHECK_STR(s.report.reason, "");
    CHECK_EQ_INT(s.report.accepted, 1);
    CHECK_EQ_INT(hone_memory_needed(n, 1, &s.options, &needed[0], &needed[1]),
                 HONE_OK);
    CHECK_GE(s.report.host_bytes, (single ? 4 : 8) * n * n);
    CHECK_LE(s.report.host_bytes, needed[single ? 0 : 1]);
    discard(&s);
  }
}

TEST(report, gives_a_reason_for_every_climb) {
  const int64_t n = 300;
  sup_rng rng = {1};
  solved s = prepare(n);
  s.options.start = HONE_START_SINGLE;
  sup_matrix_cond(&rng, n, SUP_GEOMETRIC, 1e12, s.a, n);
  CHECK_EQ_INT(solve(&s), HONE_OK);
  check_work(&s.report);
  CHECK_EQ_INT(s.report.precision, 64);
  CHECK_CONTAINS(s.report.path, "double LU");
  CHECK_CONTAINS(s.report.reason, "single LU");
  CHECK_LT(0.0, s.report.fallback_ms);
  CHECK_LE(s.report.rcond, 1e-11);
  discard(&s);
}

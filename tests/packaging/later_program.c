/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program built with this version's header. It solves the same systems by
 * hone_solve and by a solver and prints x, the report and the columns. The
 * bytes after the report and after the columns must not change. Its output must
 * be the same with a later library, whose structs have more fields: see
 * tests/packaging/later_library.
 */
#include "api/hone_tuning.h"

#include <stdio.h>
#include <string.h>

enum { N = 40, NRHS = 3, GUARD = 64, MARK = 0x5a };

typedef struct guarded_report {
  hone_report it;
  unsigned char guard[GUARD];
} guarded_report;

typedef struct guarded_columns {
  hone_column it[NRHS];
  unsigned char guard[GUARD];
} guarded_columns;

static int failures;

static void expect(int true, const char *what) {
  if (!true) {
    printf("failed: %s\n", what);
    failures++;
  }
}

static int is_marked(const unsigned char *guard) {
  int all = 1;
  for (int i = 0; i < GUARD; i++)
    all &= guard[i] == MARK;
  return all;
}

static void print_columns(const guarded_columns *columns) {
  for (int j = 0; j < NRHS; j++)
    printf("column %d: %d %d %d %d %a %a %a %a\n", j,
           (int)columns->it[j].status, (int)columns->it[j].iterations,
           (int)columns->it[j].precision, (int)columns->it[j].digits,
           columns->it[j].backward_error, columns->it[j].normwise_error,
           columns->it[j].residual_error, columns->it[j].forward_error);
  expect(is_marked(columns->guard), "the bytes behind the columns");
}

static void print_report(const guarded_report *report) {
  char text[4096];
  const hone_report *r = &report->it;
  printf("report: %d %d %a %a %s; %s; %d\n", (int)r->status, (int)r->accepted,
         r->backward_error, r->rcond, r->path, r->reason,
         (int)r->block_row_fallbacks);
  expect(r->struct_size == sizeof *r, "struct_size stays the caller's");
  expect(is_marked(report->guard), "the bytes behind the report");
  expect(hone_report_json(r, text, sizeof text) > 100, "JSON of the report");
  expect(hone_report_text(r, text, sizeof text) > 100, "text of the report");
}

static void print_x(const double *x) {
  for (int i = 0; i < N * NRHS; i++)
    printf("%a%c", x[i], i % 4 == 3 ? '\n' : ' ');
}

static void prepare(guarded_report *report, guarded_columns *columns) {
  memset(report, MARK, sizeof *report);
  memset(columns, MARK, sizeof *columns);
  hone_report_init(&report->it, sizeof report->it);
}

int main(void) {
  static double a[N * N], b[N * NRHS], x[N * NRHS];
  guarded_report report;
  guarded_columns columns;
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_options options = HONE_OPTIONS_INIT;
  hone_solver *solver = NULL;
  unsigned bits = 1;
  for (int i = 0; i < N * (N + NRHS); i++) {
    bits = bits * 1664525u + 1013904223u;
    *(i < N * N ? &a[i] : &b[i - N * N]) = (double)bits / 4294967296.0 - 0.5;
  }
  options.deterministic = 1;
  options.tuning = &tuning;
  prepare(&report, &columns);
  expect(hone_solver_create(&solver, N, &options) == HONE_OK, "create");
  expect(hone_solver_factor(solver, a, N, &report.it) == HONE_OK, "factor");
  print_report(&report);
  options.columns = columns.it;
  options.trans = HONE_TRANS;
  expect(hone_solver_solve(solver, NRHS, b, N, x, N, &options, &report.it) ==
             HONE_OK,
         "solve");
  print_x(x);
  print_report(&report);
  print_columns(&columns);
  hone_solver_destroy(&solver);
  prepare(&report, &columns);
  expect(hone_solve(N, NRHS, a, N, b, N, x, N, &options, &report.it) == HONE_OK,
         "one call");
  print_x(x);
  print_report(&report);
  print_columns(&columns);
  return failures != 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of solve_system. */
#include "examples/solve_report.h"
#include "examples/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void json_number(const char *name, double value) {
  if (isfinite(value))
    printf(", \"%s\": %.17g", name, value);
  else
    printf(", \"%s\": null", name);
}

/* Returns max |x - want|, or NaN if the solution is not known. */
static double known_error(const struct system *run) {
  double largest = run->want == NULL ? (double)NAN : 0.0;
  for (int64_t k = 0; k < run->a.rows * run->b.cols; k++) {
    double error = system_error(run, k);
    if (isnan(error))
      return error;
    largest = error > largest ? error : largest;
  }
  return largest;
}

void print_json(const struct settings *s, const struct system *run,
                const hone_report *report) {
  size_t size = hone_report_json(report, NULL, 0) + 1;
  char *text = malloc(size);
  if (text == NULL) {
    fail(s, HONE_NO_MEMORY, "out of memory");
    return;
  }
  hone_report_json(report, text, size);
  char *end = strrchr(text, '}');
  while (end != NULL && end > text && strchr("} \n", end[0]) != NULL)
    *end-- = 0;
  fputs(text, stdout);
  free(text);
  printf(", \"source\": ");
  text_put_json(stdout, s->matrix != NULL ? s->matrix : "random");
  printf(", \"stored_entries\": %" PRId64, run->a.stored_entries);
  printf(", \"field\": \"%s\"", run->parts == 2 ? "complex" : "real");
  json_number("error_vs_known_solution",
              report->status >= 0 ? known_error(run) : (double)NAN);
  json_number("read_ms", run->read_ms);
  puts("}");
}

static void print_system(const struct settings *s, const struct system *run) {
  const mm_matrix *a = &run->a;
  static const char *const ways[] = {"", "^T", "^H"};
  const char *slash = s->matrix != NULL ? strrchr(s->matrix, '/') : NULL;
  printf("matrix      ");
  if (s->matrix == NULL) {
    printf("random, %" PRId64 " x %" PRId64 ", %sseed %" PRIu64 "\n", a->rows,
           a->cols, a->is_complex ? "complex, " : "", s->seed);
  } else {
    text_put(stdout, slash != NULL ? slash + 1 : s->matrix);
    printf(": %" PRId64 " x %" PRId64 ", %" PRId64 " entr%s stored, %s %s %s\n",
           a->rows, a->cols, a->stored_entries,
           a->stored_entries == 1 ? "y" : "ies", a->field, a->symmetry,
           a->format);
  }
  printf("b           ");
  if (s->rhs != NULL)
    text_put(stdout, s->rhs);
  else
    printf("A%s * %s", ways[s->options.trans],
           run->b.cols > 1 ? "(ones, then random signs)" : "ones");
  printf(": %" PRId64 " column%s", run->b.cols, run->b.cols == 1 ? "" : "s");
  puts(run->split ? ", real and imaginary parts in turn" : "");
}

/* Prints whether x is accepted, in words and numbers. */
static void print_verdict(const struct settings *s, const hone_report *r) {
  const char *word = r->status == HONE_OK ? "accepted"
                     : r->status > 0      ? "NOT accepted, best effort"
                                          : "error";
  printf("result      %s: ", word);
  if (r->status != HONE_OK)
    printf("%s", hone_status_text(r->status));
  if (r->status > 0)
    printf("\n            %d of %" PRId64 " columns accepted, ", r->accepted,
           r->nrhs);
  if (r->status >= 0 && s->options.criterion == HONE_CRITERION_NORMWISE)
    printf("normwise backward error %.1e (limit %.1e)", r->normwise_error,
           r->tolerance);
  else if (r->status >= 0 &&
           s->options.criterion == HONE_CRITERION_COMPONENTWISE)
    printf("componentwise backward error %.1e (limit %.1e)", r->backward_error,
           r->tolerance);
  else if (r->status >= 0)
    printf("limit on ||b - A x|| / ||b|| %.1e", r->tolerance);
  puts("");
  if (r->bad_row >= 0 || r->bad_col >= 0)
    printf("where       ");
  if (r->bad_row >= 0)
    printf("row %" PRId64 " ", r->bad_row + 1);
  if (r->bad_col >= 0)
    printf("column %" PRId64 " ", r->bad_col + 1);
  if (r->bad_row >= 0 || r->bad_col >= 0)
    puts("(counted from 1)");
}

/* Names the entry of x whose bound is largest beside the entry itself. */
static void print_worst_entry(const struct system *run) {
  int64_t n = run->a.rows, worst = -1;
  double largest = 0.0;
  for (int64_t k = 0; k < n * run->b.cols; k++) {
    double relative = run->bounds[k] / system_modulus(run, k);
    if (relative > largest) { /* false for 0 / 0 */
      largest = relative;
      worst = k;
    }
  }
  if (worst < 0)
    return;
  printf("worst entry x(%" PRId64 ")", worst % n + 1);
  if (run->b.cols > 1)
    printf(" of column %" PRId64, worst / n + 1);
  if (isfinite(largest))
    printf(": error at most %.1e of it\n", largest);
  else
    printf(" of modulus %.1e: error at most %.1e\n", system_modulus(run, worst),
           run->bounds[worst]);
}

static void print_accuracy(const struct system *run, const hone_report *r) {
  if (run->want != NULL)
    printf("error of x  %.1e, largest |x_i - %s|, with b rounded\n",
           known_error(run), run->b.cols > 1 ? "known x_i" : "1");
  if (isfinite(r->forward_error))
    printf("bound       %.1e on the error of x: %d digit%s certain\n",
           r->forward_error, (int)r->digits, r->digits == 1 ? "" : "s");
  else
    printf("bound       none: no digit of x is certain\n");
  if (r->bound_failure > 0.0)
    print_worst_entry(run);
  if (r->rcond > 0.0)
    printf("condition   %.1e\n", 1.0 / r->rcond);
}

void print_report(const struct settings *s, const struct system *run,
                  const hone_report *r) {
  print_system(s, run);
  print_verdict(s, r);
  if (r->status >= 0 && r->n > 0 && r->nrhs > 0)
    print_accuracy(run, r);
  if (r->path[0] != 0)
    printf("path        %s; %s\n", r->path, r->device);
  if (r->reason[0] != 0)
    printf("why         %s\n", r->reason);
  if (r->host_bytes > 0)
    printf("memory      %.3g MiB beside A, b and x\n",
           0x1p-20 * (double)r->host_bytes);
  printf("time        %9s %9s %9s %9s %9s %9s %9s\n", "read", "inspect",
         "factor", "refine", "certify", "fallback", "solve");
  printf("in ms       %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n",
         run->read_ms, r->inspect_ms, r->factor_ms, r->refine_ms, r->certify_ms,
         r->fallback_ms, r->total_ms);
}

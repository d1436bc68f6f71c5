/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve_system solves A x = b for a matrix from a Matrix Market file, or a
 * random one, and reports how accurate the answer is, as text or as JSON.
 * `solve_system --help` lists the options and the exit status.
 *
 * Without --rhs the program chooses x and computes b = A * x in twice double
 * precision, rounded once, so that the error of the answer is known. The first
 * right-hand side has x = 1 everywhere, further ones (--nrhs) have random
 * signs. Read next: examples/matrix_market.h for the reader, api/hone.h for the
 * report's fields.
 */
#include "api/hone.h"
#include "examples/convergence.h"
#include "examples/matrix_market.h"
#include "examples/output_file.h"
#include "examples/text.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ACCEPTED = 0, BEST_EFFORT = 1, FAILED = 2 }; /* exit status */

/* The name by which it was called; installed, it is hone-solve. */
static const char *program = "solve_system";

static const char usage[] =
    "Solves A x = b for a matrix from a Matrix Market file. A is factored in\n"
    "single precision, x is refined to double precision, and its backward\n"
    "error is checked with A itself.\n"
    "\n"
    "  --rhs FILE          b, n x nrhs, Matrix Market; else b = A * ones, and\n"
    "                      the true error of x is reported\n"
    "  --nrhs K            without --rhs: K right-hand sides (1)\n"
    "  --out FILE          write x as a Matrix Market array\n"
    "  --random N          a random N x N matrix, uniform in [-0.5, 0.5)\n"
    "  --seed S            seed of --random: same matrix on any machine (1)\n"
    "  --transpose         solve A^T x = b\n"
    "  --criterion NAME    componentwise, normwise or residual\n"
    "  --tolerance T       accept at or below T\n"
    "  --double            factor in double precision at once\n"
    "  --device NAME       auto, cpu or cuda\n"
    "  --threads T         use at most T threads\n"
    "  --plot FILE.svg     draw how the solve converged\n"
    "  --json              print one JSON object and nothing else\n"
    "  --quiet             print no report, only set the exit status\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 accepted, 1 best effort (weaker than asked), 2 error.\n";

struct settings {
  const char *matrix, *rhs, *out, *plot;
  int64_t random_n, nrhs;
  uint64_t seed;
  bool json, quiet;
  hone_options options;
};

/* A system and its solution. */
struct run {
  mm_matrix a, b;   /* b is computed if there is no file for it */
  double *x, *want; /* n x nrhs; want is the known solution or NULL */
  double *bounds;   /* n x nrhs, on the errors of x */
  double read_ms;
  double error; /* max |x - want|; NaN: not known */
  hone_report report;
  convergence *heard; /* for --plot; else NULL */
};

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- JSON and errors ---- */

static void json_number(const char *name, double value) {
  if (isfinite(value))
    printf(", \"%s\": %.17g", name, value);
  else
    printf(", \"%s\": null", name);
}

/* Prints what went wrong on stderr, and with --json on stdout, too. */
__attribute__((format(printf, 3, 4))) static int
fail(const struct settings *s, int status, const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  text_put(stderr, program);
  fputs(": ", stderr);
  text_put(stderr, text);
  putc('\n', stderr);
  if (s->json) {
    printf("{\"status\": %d, \"status_text\": ", status);
    text_put_json(stdout, text);
    printf(", \"source\": ");
    text_put_json(stdout, s->matrix != NULL ? s->matrix : "");
    puts("}");
  }
  return FAILED;
}

/* ---- options ---- */

static bool parse_integer(const char *text, int64_t low, int64_t *value) {
  char *end;
  errno = 0;
  long long number = strtoll(text, &end, 10);
  *value = (int64_t)number;
  return errno == 0 && end != text && *end == 0 && number >= low;
}

/* Returns the index of text in a list of count names, or -1. */
static int32_t parse_name(const char *text, const char *const *names,
                          int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (strcmp(text, names[i]) == 0)
      return i;
  return -1;
}

/* Stores one option's value; returns false if it is invalid. */
static bool store_option(struct settings *s, int letter, const char *value) {
  static const char *const devices[] = {"auto", "cpu", "cuda"};
  static const char *const criteria[] = {"componentwise", "normwise",
                                         "residual"};
  int64_t number = 0;
  bool ok = true;
  char *end;
  switch (letter) {
  case 'b':
    s->rhs = value;
    break;
  case 'o':
    s->out = value;
    break;
  case 'j':
    s->json = true;
    break;
  case 'q':
    s->quiet = true;
    break;
  case 'D':
    s->options.factor_precision = HONE_FACTOR_DOUBLE;
    break;
  case 't':
    s->options.trans = HONE_TRANS;
    break;
  case 'n':
    ok = parse_integer(value, 0, &s->random_n);
    break;
  case 'k':
    ok = parse_integer(value, 0, &s->nrhs);
    break;
  case 's':
    ok = parse_integer(value, 0, &number);
    s->seed = (uint64_t)number;
    break;
  case 'p':
    ok = parse_integer(value, 1, &number) && number <= 4096;
    s->options.threads = ok ? (int32_t)number : 0;
    break;
  case 'g':
    s->plot = value;
    break;
  case 'd':
    s->options.device = parse_name(value, devices, 3);
    ok = s->options.device >= 0;
    break;
  case 'c':
    s->options.criterion = parse_name(value, criteria, 3);
    ok = s->options.criterion >= 0;
    break;
  case 'e':
    s->options.tolerance = strtod(value, &end);
    ok = end != value && *end == 0 && s->options.tolerance > 0.0 &&
         isfinite(s->options.tolerance);
    break;
  default:
    ok = false;
  }
  return ok;
}

/* Returns -1 to go on, or the exit status. */
static int check_outputs(const struct settings *s) {
  const char *const written[] = {s->out, s->plot};
  for (int i = 0; i < 2; i++)
    if (output_file_is(written[i], s->matrix) ||
        output_file_is(written[i], s->rhs))
      return fail(s, -1, "%s: this is the input, and would be overwritten",
                  written[i]);
  return -1;
}

/* Returns -1 to go on, or the exit status. */
static int parse_arguments(int argc, char **argv, struct settings *s) {
  static const struct option list[] = {
      {"rhs", required_argument, NULL, 'b'},
      {"out", required_argument, NULL, 'o'},
      {"random", required_argument, NULL, 'n'},
      {"seed", required_argument, NULL, 's'},
      {"nrhs", required_argument, NULL, 'k'},
      {"threads", required_argument, NULL, 'p'},
      {"device", required_argument, NULL, 'd'},
      {"criterion", required_argument, NULL, 'c'},
      {"tolerance", required_argument, NULL, 'e'},
      {"double", no_argument, NULL, 'D'},
      {"transpose", no_argument, NULL, 't'},
      {"plot", required_argument, NULL, 'g'},
      {"json", no_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, 'v'},
      {NULL, 0, NULL, 0}};
  int letter;
  for (int i = 1; i < argc; i++) /* so that usage errors are JSON, too */
    s->json = s->json || strcmp(argv[i], "--json") == 0;
  opterr = 0;
  while ((letter = getopt_long(argc, argv, "", list, NULL)) != -1) {
    if (letter == 'h' || letter == 'v') {
      if (letter == 'h')
        printf("usage: %s [options] MATRIX.mtx\n"
               "       %s [options] --random N\n\n%s",
               program, program, usage);
      else
        printf("%s %s\n", program, hone_version());
      return ACCEPTED;
    }
    if (letter == '?')
      return fail(s, -1,
                  "%s: no such option, or its value is missing; see "
                  "--help",
                  argv[optind - 1]);
    if (!store_option(s, letter, optarg))
      return fail(s, -1, "'%s' is not a value this option takes; see --help",
                  optarg);
  }
  if (optind < argc)
    s->matrix = argv[optind++];
  if (optind < argc)
    return fail(s, -1, "only one matrix can be solved; '%s' is a second one",
                argv[optind]);
  if ((s->matrix == NULL) == (s->random_n < 0))
    return fail(s, -1, "give one matrix: a file or --random N; see --help");
  if (s->rhs != NULL && s->nrhs >= 0)
    return fail(s, -1,
                "--nrhs cannot be used with --rhs, whose file has the "
                "right-hand sides");
  return check_outputs(s);
}

/* ---- the system ---- */

/* splitmix64 (Steele, Lea & Flood 2014), whose k-th number is a hash of k. */
static uint64_t splitmix64(uint64_t seed, uint64_t k) {
  uint64_t z = seed + (k + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Allocates rows x cols doubles; NULL if memory is missing. */
static double *allocate(int64_t rows, int64_t cols) {
  if (rows > 0 && cols > (int64_t)(PTRDIFF_MAX / 8) / rows)
    return NULL;
  size_t count = (size_t)(rows * cols);
  return malloc((count > 0 ? count : 1) * sizeof(double));
}

static int out_of_memory(const struct settings *s, const char *what,
                         int64_t rows, int64_t cols) {
  return fail(s, HONE_NO_MEMORY,
              "out of memory: %s, %" PRId64 " x %" PRId64 ", needs %.3g GiB",
              what, rows, cols, 0x1p-27 * (double)rows * (double)cols);
}

/* Entry k, counted column by column, is the k-th number of splitmix64, scaled
   to
   [-0.5, 0.5). */
static int make_random(const struct settings *s, mm_matrix *m) {
  int64_t n = s->random_n;
  m->a = allocate(n, n);
  if (m->a == NULL)
    return out_of_memory(s, "the matrix", n, n);
  for (int64_t k = 0; k < n * n; k++)
    m->a[k] = (double)(splitmix64(s->seed, (uint64_t)k) >> 11) * 0x1p-53 - 0.5;
  m->rows = m->cols = n;
  m->stored_entries = n * n;
  snprintf(m->symmetry, sizeof m->symmetry, "general");
  return ACCEPTED;
}

/* Adds v to the unevaluated sum hi + lo (Knuth's two-sum). */
static void add_exactly(double *hi, double *lo, double v) {
  double sum = *hi + v;
  double part = sum - *hi;
  *lo += (*hi - (sum - part)) + (v - part);
  *hi = sum;
}

/* b = op(A) w, where w has entries +1 and -1. lo is work space of n numbers. */
static void multiply(const mm_matrix *a, bool transposed, const double *w,
                     double *b, double *lo) {
  int64_t n = a->rows;
  memset(b, 0, (size_t)n * sizeof *b);
  memset(lo, 0, (size_t)n * sizeof *lo);
  for (int64_t j = 0; j < n; j++) {
    const double *column = a->a + j * n;
    for (int64_t i = 0; i < n; i++)
      if (transposed)
        add_exactly(&b[j], &lo[j], column[i] * w[i]);
      else
        add_exactly(&b[i], &lo[i], column[i] * w[j]);
  }
  for (int64_t i = 0; i < n; i++)
    b[i] = isfinite(b[i] + lo[i]) ? b[i] + lo[i] : b[i];
}

/* Chooses x and makes b = op(A) x. */
static int make_rhs(const struct settings *s, struct run *run) {
  int64_t n = run->a.rows;
  int64_t nrhs = s->nrhs >= 0 ? s->nrhs : 1;
  double *lo = allocate(n, 1);
  run->b.a = allocate(n, nrhs);
  run->want = allocate(n, nrhs);
  if (lo == NULL || run->b.a == NULL || run->want == NULL) {
    free(lo);
    return out_of_memory(s, "b", n, nrhs);
  }
  run->b.rows = n;
  run->b.cols = nrhs;
  for (int64_t j = 0; j < nrhs; j++) {
    double *w = run->want + j * n;
    for (int64_t i = 0; i < n; i++)
      w[i] = j > 0 && splitmix64((uint64_t)j, (uint64_t)i) >> 63 ? -1.0 : 1.0;
    multiply(&run->a, s->options.trans == HONE_TRANS, w, run->b.a + j * n, lo);
  }
  free(lo);
  return ACCEPTED;
}

/* Makes A and b and allocates x. Returns the exit status; fail has printed why.
 */
static int make_system(const struct settings *s, struct run *run) {
  char message[256] = "";
  double start = now_s();
  int status = ACCEPTED;
  if (s->matrix == NULL)
    status = make_random(s, &run->a);
  else if (mm_read_file(s->matrix, &run->a, message, sizeof message) != MM_OK)
    status = fail(s, -1, "%s", message);
  else if (run->a.rows != run->a.cols)
    status = fail(s, -1,
                  "%s: the matrix is %" PRId64 " x %" PRId64
                  ", but it must be square",
                  s->matrix, run->a.rows, run->a.cols);
  if (status != ACCEPTED)
    return status;
  int64_t n = run->a.rows;
  if (s->rhs == NULL)
    status = make_rhs(s, run);
  else if (mm_read_file(s->rhs, &run->b, message, sizeof message) != MM_OK)
    status = fail(s, -1, "%s", message);
  else if (run->b.rows != n)
    status = fail(s, -1, "%s: b has %" PRId64 " rows, the matrix has %" PRId64,
                  s->rhs, run->b.rows, n);
  run->read_ms = 1e3 * (now_s() - start);
  if (status != ACCEPTED)
    return status;
  run->x = allocate(n, run->b.cols);
  run->bounds = allocate(n, run->b.cols);
  return run->x != NULL && run->bounds != NULL
             ? ACCEPTED
             : out_of_memory(s, "x", n, run->b.cols);
}

/* ---- solving, with progress and Ctrl-C ---- */

static volatile sig_atomic_t interrupted = 0;

static void on_interrupt(int signal_number) {
  (void)signal_number;
  interrupted = 1;
}

/* A progress line is printed at most ten times a second, after the first 0.5 s.
 */
struct watch {
  bool terminal, shown;
  double next_s;
  convergence *heard; /* or NULL */
};

static int on_progress(void *user, const hone_progress *event) {
  struct watch *w = user;
  if (w->heard != NULL)
    convergence_hear(w->heard, event);
  if (w->terminal && event->elapsed_s >= w->next_s) {
    w->next_s = event->elapsed_s + 0.1;
    w->shown = true;
    if (isfinite(event->backward_error))
      fprintf(stderr, "\r%-18s %5.1f s  correction %d, error %-8.1e",
              event->phase, event->elapsed_s, event->iteration,
              event->backward_error);
    else
      fprintf(stderr, "\r%-18s %5.1f s  %3.0f %% %20s", event->phase,
              event->elapsed_s, 100.0 * event->fraction, "");
  }
  return interrupted != 0;
}

static int solve(struct settings *s, struct run *run) {
  struct watch watch = {isatty(STDERR_FILENO) && !s->quiet, false, 0.5,
                        run->heard};
  struct sigaction action = {.sa_handler = on_interrupt};
  struct sigaction before;
  int64_t n = run->a.rows;
  int64_t ld = n > 0 ? n : 1;
  action.sa_flags = (int)SA_RESETHAND; /* a second Ctrl-C ends the program */
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
  s->options.progress = on_progress;
  s->options.progress_user = &watch;
  s->options.error_bounds = run->bounds;
  s->options.ld_error_bounds = ld;
  int status = hone_solve(n, run->b.cols, run->a.a, ld, run->b.a, ld, run->x,
                          ld, &s->options, &run->report);
  sigaction(SIGINT, &before, NULL);
  if (watch.shown)
    fprintf(stderr, "\r%64s\r", "");
  return status;
}

/* Returns max |x - want|, or NaN if the solution is not known. */
static double known_error(const struct run *run) {
  double largest = 0.0;
  if (run->want == NULL)
    return (double)NAN;
  for (int64_t i = 0; i < run->a.rows * run->b.cols; i++) {
    double error = fabs(run->x[i] - run->want[i]);
    if (isnan(error))
      return error;
    largest = error > largest ? error : largest;
  }
  return largest;
}

/* ---- reports ---- */

/* Prints the library's report and what only this program knows. */
static void print_json(const struct settings *s, const struct run *run) {
  size_t size = hone_report_json(&run->report, NULL, 0) + 1;
  char *text = malloc(size);
  if (text == NULL) {
    fail(s, HONE_NO_MEMORY, "out of memory");
    return;
  }
  hone_report_json(&run->report, text, size);
  char *end = strrchr(text, '}');
  while (end != NULL && end > text && strchr("} \n", end[0]) != NULL)
    *end-- = 0;
  fputs(text, stdout);
  free(text);
  printf(", \"source\": ");
  text_put_json(stdout, s->matrix != NULL ? s->matrix : "random");
  printf(", \"stored_entries\": %" PRId64, run->a.stored_entries);
  json_number("error_vs_known_solution", run->error);
  json_number("read_ms", run->read_ms);
  puts("}");
}

static void print_system(const struct settings *s, const struct run *run) {
  const mm_matrix *a = &run->a;
  const char *transpose = s->options.trans == HONE_TRANS ? "^T" : "";
  const char *slash = s->matrix != NULL ? strrchr(s->matrix, '/') : NULL;
  printf("matrix      ");
  if (s->matrix == NULL) {
    printf("random, %" PRId64 " x %" PRId64 ", seed %" PRIu64 "\n", a->rows,
           a->cols, s->seed);
  } else {
    text_put(stdout, slash != NULL ? slash + 1 : s->matrix);
    printf(
        ": %" PRId64 " x %" PRId64 ", %" PRId64 " entries stored, %s %s %s\n",
        a->rows, a->cols, a->stored_entries, a->field, a->symmetry, a->format);
  }
  printf("b           ");
  if (s->rhs != NULL)
    text_put(stdout, s->rhs);
  else
    printf("A%s * %s", transpose,
           run->b.cols > 1 ? "(ones, then random signs)" : "ones");
  printf(": %" PRId64 " column%s\n", run->b.cols, run->b.cols == 1 ? "" : "s");
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
static void print_worst_entry(const struct run *run) {
  int64_t n = run->a.rows, worst = -1;
  double largest = 0.0;
  for (int64_t k = 0; k < n * run->b.cols; k++) {
    double relative = run->bounds[k] / fabs(run->x[k]);
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
    printf(" = %.1e: error at most %.1e\n", run->x[worst], run->bounds[worst]);
}

static void print_accuracy(const struct run *run) {
  const hone_report *r = &run->report;
  if (run->want != NULL)
    printf("error of x  %.1e, largest |x_i - %s|, with b rounded\n", run->error,
           run->b.cols > 1 ? "known x_i" : "1");
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

static void print_report(const struct settings *s, const struct run *run) {
  const hone_report *r = &run->report;
  print_system(s, run);
  print_verdict(s, r);
  if (r->status >= 0 && r->n > 0 && r->nrhs > 0)
    print_accuracy(run);
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

/* Writes x to s->out. Returns the exit status. */
static int write_out(const struct settings *s, const struct run *run) {
  output_file out;
  bool written = output_file_open(&out, s->out);
  if (written) {
    int64_t ld = run->a.rows > 0 ? run->a.rows : 1;
    written = output_file_close(&out, mm_write_array(out.file, run->a.rows,
                                                     run->b.cols, 0, run->x,
                                                     ld) == MM_OK);
  }
  return written ? ACCEPTED
                 : fail(s, -1, "%s: cannot be written: %s", s->out,
                        strerror(errno));
}

/* Draws the convergence to s->plot. Returns the exit status. */
static int write_plot(const struct settings *s, const struct run *run) {
  static const char *const units[] = {"componentwise backward error",
                                      "normwise backward error",
                                      "||b - A x|| / ||b||"};
  const hone_report *r = &run->report;
  const char *slash = s->matrix != NULL ? strrchr(s->matrix, '/') : NULL;
  char title[200];
  if (run->heard->count == 0)
    return fail(s, -1, "%s: not written: there was nothing to refine", s->plot);
  snprintf(title, sizeof title, "%.120s, n = %" PRId64 ": %s",
           slash != NULL       ? slash + 1
           : s->matrix != NULL ? s->matrix
                               : "random",
           run->a.rows, r->status == HONE_OK ? "accepted" : "not accepted");
  output_file plot;
  bool written = output_file_open(&plot, s->plot);
  if (written)
    written =
        output_file_close(&plot, convergence_draw(run->heard, title, r->path,
                                                  units[s->options.criterion],
                                                  r->tolerance, plot.file));
  return written ? ACCEPTED
                 : fail(s, -1, "%s: cannot be written: %s", s->plot,
                        strerror(errno));
}

/* Solves and reports. Returns the exit status. */
static int solve_and_report(struct settings *s, struct run *run) {
  if (s->plot != NULL && (run->heard = calloc(1, sizeof *run->heard)) == NULL)
    return fail(s, HONE_NO_MEMORY, "out of memory");
  int status = solve(s, run);
  if (status >= 0) {
    run->error = known_error(run);
    if (s->out != NULL && write_out(s, run) != ACCEPTED)
      return FAILED;
    if (s->plot != NULL && write_plot(s, run) != ACCEPTED)
      return FAILED;
  }
  if (s->json)
    print_json(s, run);
  else if (!s->quiet)
    print_report(s, run);
  if (status < 0 && (s->json || s->quiet))
    fprintf(stderr, "%s: %s\n", program, hone_status_text(status));
  return status == HONE_OK ? ACCEPTED : status > 0 ? BEST_EFFORT : FAILED;
}

int main(int argc, char **argv) {
  struct settings s = {.random_n = -1, .nrhs = -1, .seed = 1};
  struct run run = {.error = (double)NAN, .report = HONE_REPORT_INIT};
  if (argc > 0 && strrchr(argv[0], '/') != NULL)
    program = strrchr(argv[0], '/') + 1;
  else if (argc > 0)
    program = argv[0];
  s.options = (hone_options)HONE_OPTIONS_INIT;
  int status = parse_arguments(argc, argv, &s);
  if (status < 0) {
    status = make_system(&s, &run);
    if (status == ACCEPTED)
      status = solve_and_report(&s, &run);
    mm_free(&run.a);
    mm_free(&run.b);
    free(run.x);
    free(run.bounds);
    free(run.want);
    free(run.heard);
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "%s: cannot write to standard output\n", program);
    status = FAILED;
  }
  return status;
}

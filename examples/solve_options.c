/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of solve_system: what --help says, their values, and what is
   checked before a file is read. */
#include "examples/solve_options.h"
#include "examples/output_file.h"
#include "examples/text.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Solves A x = b for a real or complex matrix from a Matrix Market file. A\n"
    "is factored in single precision, x is refined to double precision, and\n"
    "its backward error is checked with A itself.\n"
    "\n"
    "  --rhs FILE          b, n x nrhs, Matrix Market; else b = A * ones, and\n"
    "                      the true error of x is reported\n"
    "  --nrhs K            without --rhs: K right-hand sides (1)\n"
    "  --out FILE          write x as a Matrix Market array\n"
    "  --random N          a random N x N matrix, uniform in [-0.5, 0.5)\n"
    "  --complex           the random matrix is complex\n"
    "  --seed S            seed of --random: same matrix on any machine (1)\n"
    "  --transpose         solve A^T x = b\n"
    "  --conjugate-transpose\n"
    "                      solve A^H x = b\n"
    "  --criterion NAME    componentwise, normwise or residual\n"
    "  --tolerance T       accept at or below T, at most 1\n"
    "  --double            factor in double precision at once\n"
    "  --device NAME       auto, cpu or cuda\n"
    "  --devices K         up to K GPUs factor the matrix; -1: all\n"
    "  --threads T         use at most T threads\n"
    "  --plot FILE.svg     draw how the solve converged\n"
    "  --json              print one JSON object and nothing else\n"
    "  --quiet             print no report, only set the exit status\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 accepted, 1 best effort (weaker than asked), 2 error.\n";

int fail(const struct settings *s, int status, const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  text_put(stderr, s->program);
  fputs(": ", stderr);
  text_put(stderr, text);
  putc('\n', stderr);
  if (s->json && !s->quiet) {
    printf("{\"status\": %d, \"status_text\": ", status);
    text_put_json(stdout, text);
    printf(", \"source\": ");
    text_put_json(stdout, s->matrix != NULL ? s->matrix : "");
    puts("}");
  }
  return FAILED;
}

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
  case 'C':
    s->options.trans = HONE_CONJ_TRANS;
    break;
  case 'z':
    s->random_complex = true;
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
  case 'm':
    ok = parse_integer(value, -1, &number) && number <= INT32_MAX;
    s->options.devices = ok ? (int32_t)number : 0;
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
         s->options.tolerance <= 1.0;
    break;
  default:
    ok = false;
  }
  return ok;
}

/* Finds before a large file is read what would fail after it. Returns -1 to go
   on, or the exit status. */
static int check_outputs(const struct settings *s) {
  const char *const written[] = {s->out, s->plot};
  for (int i = 0; i < 2; i++) {
    if (output_file_is(written[i], s->matrix) ||
        output_file_is(written[i], s->rhs))
      return fail(s, -1, "%s: this is the input, and would be overwritten",
                  written[i]);
    if (written[i] != NULL && !output_file_possible(written[i]))
      return fail(s, -1, "%s: cannot be written: %s", written[i],
                  strerror(errno));
  }
  return -1;
}

/* Asks the library for the device, by solving 1 x = 1. Returns -1 to go on, or
   the exit status. */
static int check_device(const struct settings *s) {
  const double one = 1.0;
  double x = 0.0;
  hone_report report = HONE_REPORT_INIT;
  if (s->options.device != HONE_DEVICE_CUDA)
    return -1;
  const int status =
      hone_solve(1, 1, &one, 1, &one, 1, &x, 1, &s->options, &report);
  return status >= 0 ? -1
                     : fail(s, status, "%s: %s", hone_status_text(status),
                            report.reason);
}

/* Returns -1 to go on, or the exit status. */
static int check_settings(const struct settings *s) {
  if ((s->matrix == NULL) == (s->random_n < 0))
    return fail(s, -1, "give one matrix: a file or --random N; see --help");
  if (s->random_complex && s->random_n < 0)
    return fail(s, -1, "--complex belongs to --random: a file says what it is");
  if (s->rhs != NULL && s->nrhs >= 0)
    return fail(s, -1,
                "--nrhs cannot be used with --rhs, whose file has the "
                "right-hand sides");
  const int outputs = check_outputs(s);
  return outputs < 0 ? check_device(s) : outputs;
}

int parse_arguments(int argc, char **argv, struct settings *s) {
  static const struct option list[] = {
      {"rhs", required_argument, NULL, 'b'},
      {"out", required_argument, NULL, 'o'},
      {"random", required_argument, NULL, 'n'},
      {"seed", required_argument, NULL, 's'},
      {"nrhs", required_argument, NULL, 'k'},
      {"threads", required_argument, NULL, 'p'},
      {"device", required_argument, NULL, 'd'},
      {"devices", required_argument, NULL, 'm'},
      {"criterion", required_argument, NULL, 'c'},
      {"tolerance", required_argument, NULL, 'e'},
      {"double", no_argument, NULL, 'D'},
      {"transpose", no_argument, NULL, 't'},
      {"conjugate-transpose", no_argument, NULL, 'C'},
      {"complex", no_argument, NULL, 'z'},
      {"plot", required_argument, NULL, 'g'},
      {"json", no_argument, NULL, 'j'},
      {"quiet", no_argument, NULL, 'q'},
      {"help", no_argument, NULL, 'h'},
      {"version", no_argument, NULL, 'v'},
      {NULL, 0, NULL, 0}};
  int letter;
  *s = (struct settings){.random_n = -1, .nrhs = -1, .seed = 1};
  s->options = (hone_options)HONE_OPTIONS_INIT;
  s->program = argc > 0 ? argv[0] : "solve_system";
  if (strrchr(s->program, '/') != NULL)
    s->program = strrchr(s->program, '/') + 1;
  for (int i = 1; i < argc; i++) { /* so that usage errors are JSON, too */
    s->json = s->json || strcmp(argv[i], "--json") == 0;
    s->quiet = s->quiet || strcmp(argv[i], "--quiet") == 0;
  }
  opterr = 0;
  while ((letter = getopt_long(argc, argv, "", list, NULL)) != -1) {
    if (letter == 'h' || letter == 'v') {
      if (letter == 'h')
        printf("usage: %s [options] MATRIX.mtx\n"
               "       %s [options] --random N\n\n%s",
               s->program, s->program, usage);
      else
        printf("%s %s\n", s->program, hone_version());
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
  return check_settings(s);
}

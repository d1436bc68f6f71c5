/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve_system solves A x = b for a real or complex matrix from a Matrix Market
 * file, or a random one, and reports how accurate the answer is, as text or as
 * JSON. `solve_system --help` lists the options and the exit status.
 *
 * Without --rhs the program chooses x and computes b = A * x in twice double
 * precision, rounded once, so that the error of the answer is known. The first
 * right-hand side has x = 1 everywhere, further ones (--nrhs) have random
 * signs. Read next: solve_input.c, where the system comes from; api/hone.h for
 * the report's fields.
 */
#include "api/hone.h"
#include "examples/convergence.h"
#include "examples/output_file.h"
#include "examples/solve_report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Solving, with progress and Ctrl-C ---- */

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

static int solve(struct settings *s, struct system *run, convergence *heard,
                 hone_report *report) {
  struct watch watch = {isatty(STDERR_FILENO) && !s->quiet, false, 0.5, heard};
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
  int status =
      run->parts == 2
          ? hone_z_solve(n, run->b.cols, (hone_complex *)run->a.a, ld,
                         (hone_complex *)run->b.a, ld, (hone_complex *)run->x,
                         ld, &s->options, report)
          : hone_solve(n, run->b.cols, run->a.a, ld, run->b.a, ld, run->x, ld,
                       &s->options, report);
  sigaction(SIGINT, &before, NULL);
  if (watch.shown)
    fprintf(stderr, "\r%64s\r", "");
  return status;
}

/* Writes x as it was asked for: columns that were solved apart become complex
   ones again. */
static int write_x(FILE *file, const struct system *run) {
  const int64_t n = run->a.rows, ld = n > 0 ? n : 1, cols = run->b.cols;
  if (!run->split)
    return mm_write_array(file, n, cols, run->parts == 2, run->x, ld);
  double *z = malloc((size_t)(n * cols) * sizeof *z);
  if (z == NULL)
    return MM_MEMORY;
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < n; i++)
      z[2 * (i + j / 2 * n) + j % 2] = run->x[i + j * n];
  const int st = mm_write_array(file, n, cols / 2, 1, z, ld);
  free(z);
  return st;
}

/* Writes x to s->out. Returns the exit status. */
static int write_out(const struct settings *s, const struct system *run) {
  output_file out;
  bool written = output_file_open(&out, s->out);
  if (written)
    written = output_file_close(&out, write_x(out.file, run) == MM_OK);
  return written ? ACCEPTED
                 : fail(s, -1, "%s: cannot be written: %s", s->out,
                        strerror(errno));
}

/* Draws the convergence to s->plot. Returns the exit status. */
static int write_plot(const struct settings *s, const convergence *heard,
                      const hone_report *r) {
  static const char *const units[] = {"componentwise backward error",
                                      "normwise backward error",
                                      "||b - A x|| / ||b||"};
  const char *slash = s->matrix != NULL ? strrchr(s->matrix, '/') : NULL;
  char title[200];
  if (heard->count == 0)
    return fail(s, -1, "%s: not written: there was nothing to refine", s->plot);
  snprintf(title, sizeof title, "%.120s, n = %" PRId64 ": %s",
           slash != NULL       ? slash + 1
           : s->matrix != NULL ? s->matrix
                               : "random",
           r->n, r->status == HONE_OK ? "accepted" : "not accepted");
  output_file plot;
  bool written = output_file_open(&plot, s->plot);
  if (written)
    written =
        output_file_close(&plot, convergence_draw(heard, title, r->path,
                                                  units[s->options.criterion],
                                                  r->tolerance, plot.file));
  return written ? ACCEPTED
                 : fail(s, -1, "%s: cannot be written: %s", s->plot,
                        strerror(errno));
}

/* Solves and reports. Returns the exit status. */
static int solve_and_report(struct settings *s, struct system *run) {
  hone_report report = HONE_REPORT_INIT;
  convergence *heard = NULL; /* for --plot */
  int result = FAILED;
  if (s->plot != NULL && (heard = calloc(1, sizeof *heard)) == NULL)
    return fail(s, HONE_NO_MEMORY, "out of memory");
  const int status = solve(s, run, heard, &report);
  if (status >= 0 && s->out != NULL && write_out(s, run) != ACCEPTED)
    goto done;
  if (status >= 0 && heard != NULL && write_plot(s, heard, &report) != ACCEPTED)
    goto done;
  if (s->json && !s->quiet)
    print_json(s, run, &report);
  else if (!s->quiet)
    print_report(s, run, &report);
  if (status < 0 && (s->json || s->quiet))
    fprintf(stderr, "%s: %s\n", s->program, hone_status_text(status));
  result = status == HONE_OK ? ACCEPTED : status > 0 ? BEST_EFFORT : FAILED;
done:
  free(heard);
  return result;
}

int main(int argc, char **argv) {
  struct settings s;
  struct system run = {.split = false};
  int status = parse_arguments(argc, argv, &s);
  if (status < 0) {
    status = system_make(&s, &run);
    if (status == ACCEPTED)
      status = solve_and_report(&s, &run);
    system_free(&run);
  }
  if (fflush(stdout) != 0 || ferror(stdout)) {
    fprintf(stderr, "%s: cannot write to standard output\n", s.program);
    status = FAILED;
  }
  return status;
}

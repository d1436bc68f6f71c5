/* SPDX-License-Identifier: BSD-3-Clause */
/* The contract of hone.h for output: the library prints nothing unless HONE_LOG
   is set. */
#include "tests/unit/contract_system.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Between start_capture and end_capture stdout and stderr go to a file. */
typedef struct capture {
  FILE *file;
  int out, err; /* copies of the file descriptors */
} capture;

static bool start_capture(capture *c) {
  fflush(NULL);
  c->file = tmpfile();
  if (c->file == NULL)
    return false;
  c->out = dup(1);
  c->err = dup(2);
  return dup2(fileno(c->file), 1) >= 0 && dup2(fileno(c->file), 2) >= 0;
}

/* The captured text, truncated to size - 1 characters. */
static void end_capture(capture *c, char *text, size_t size) {
  fflush(NULL);
  dup2(c->out, 1);
  dup2(c->err, 2);
  close(c->out);
  close(c->err);
  rewind(c->file);
  text[fread(text, 1, size - 1, c->file)] = '\0';
  fclose(c->file);
}

static void set_log(const char *value) {
  if (value == NULL)
    unsetenv("HONE_LOG");
  else
    setenv("HONE_LOG", value, 1);
}

/* Makes six calls, of which some fail. */
static void make_calls(void) {
  sys s = sys_make(20, 2), t = sys_make(420, 1), zero = sys_make(5, 1);
  sup_rng rng = {3};
  sys_call(&s);
  s.a[3] = (double)NAN;
  sys_call(&s);
  sup_matrix_cond(&rng, 420, SUP_ONE_SMALL, 1e11, t.a, 420);
  /* This one falls back to double. */
  t.options.factor_precision = HONE_FACTOR_SINGLE;
  sys_call(&t);
  zero.n = 0;
  sys_call(&zero);
  zero.n = -1;
  sys_call(&zero);
  zero.n = 5;
  memset(zero.a, 0, 25 * sizeof *zero.a);
  sys_call(&zero);
  sys_discard(&s);
  sys_discard(&t);
  sys_discard(&zero);
}

static void lines_printed(const char *log, int lines) {
  const char *saved = getenv("HONE_LOG");
  char text[8192], *keep = saved ? malloc(strlen(saved) + 1) : NULL;
  if (keep)
    strcpy(keep, saved);
  set_log(log);
  capture c = {0};
  bool started = start_capture(&c);
  make_calls();
  if (started)
    end_capture(&c, text, sizeof text);
  set_log(keep);
  free(keep);
  if (!CHECK(started))
    return;
  int seen = 0;
  for (const char *p = text; *p != '\0'; p++)
    seen += *p == '\n';
  if (!CHECK_EQ_INT(seen, lines))
    fprintf(stderr, "%s\n", text);
  if (lines == 0)
    CHECK_STR(text, "");
  else
    CHECK_CONTAINS(text, "hone: ");
}

TEST(contract, prints_nothing) {
  lines_printed(NULL, 0);
  lines_printed("", 0);
  lines_printed("0", 0);
}

TEST(contract, prints_one_line_a_solve_when_hone_log_is_set) {
  lines_printed("1", 6);
}

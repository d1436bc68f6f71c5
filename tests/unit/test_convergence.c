/* SPDX-License-Identifier: BSD-3-Clause */
/* The plot of a solve in examples/convergence.c. */
#include "ct.h"
#include "examples/convergence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void tell(convergence *heard, int iteration, int precision, int gmres,
                 double error) {
  const hone_progress event = {.phase = "refine",
                               .iteration = iteration,
                               .precision = precision,
                               .gmres = gmres,
                               .backward_error = error};
  convergence_hear(heard, &event);
}

/* The plot as text, "" if nothing was drawn; the caller frees it. */
static char *drawn(const convergence *heard, const char *title, double limit) {
  char *text = calloc(1, 100000);
  FILE *file = tmpfile();
  if (CHECK(text != NULL && file != NULL) &&
      convergence_draw(heard, title, "sub & title", "error", limit, file)) {
    rewind(file);
    CHECK(fread(text, 1, 99999, file) > 0);
  }
  if (file != NULL)
    fclose(file);
  return text;
}

static int count_of(const char *text, const char *part) {
  int count = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part))
    count++;
  return count;
}

TEST(convergence, counts_corrections_of_all_engines) {
  convergence *c = calloc(1, sizeof *c);
  REQUIRE(c != NULL);
  tell(c, 0, 32, 0, 1e-7);
  tell(c, 1, 32, 0, 1e-9);
  tell(c, 0, 32, 1, 1e-9); /* the same x, continued by GMRES */
  tell(c, 1, 32, 1, 1e-13);
  tell(c, 0, 64, 0, 1e-17); /* a new x */
  CHECK_EQ_INT(c->count, 5);
  CHECK_EQ_INT(c->step[2].at, 1);
  CHECK_EQ_INT(c->step[3].at, 2);
  CHECK_EQ_INT(c->step[4].at, 3);
  char *text = drawn(c, "t", 4.4e-16);
  CHECK_EQ_INT(count_of(text, "<circle"), 5);
  CHECK_EQ_INT(count_of(text, "<circle class=\"w1\""), 2);
  CHECK_EQ_INT(count_of(text, "<circle class=\"w2\""), 1);
  CHECK_CONTAINS(text, "accepted at 4.4e-16 or below");
  CHECK_CONTAINS(text, "</svg>");
  free(text);
  free(c);
}

TEST(convergence, records_events_of_refinement_only) {
  convergence *c = calloc(1, sizeof *c);
  REQUIRE(c != NULL);
  const hone_progress other = {.phase = "factor", .backward_error = 1.0};
  convergence_hear(c, &other);
  tell(c, 0, 32, 0, (double)NAN);
  /* An event of the error bounds, not a correction of x. */
  tell(c, 0, 0, 0, 1.0);
  CHECK_EQ_INT(c->count, 0);
  char *text = drawn(c, "t", 1e-16);
  CHECK_STR(text, "");
  free(text);
  free(c);
}

TEST(convergence, draws_any_events) {
  convergence *c = calloc(1, sizeof *c);
  REQUIRE(c != NULL);
  tell(c, 0, 32, 0, (double)INFINITY);
  tell(c, 1, 32, 0, 0.0);
  for (int k = 2; k < CONVERGENCE_STEPS + 10; k++)
    tell(c, k, 32, 0, 1e-3);
  CHECK_EQ_INT(c->count, CONVERGENCE_STEPS);
  c->count = 4;
  char *text = drawn(c, "a < b & \"c\"\x01", 1e-16);
  CHECK_CONTAINS(text, "a &#60; b &#38; \"c\"<");
  CHECK_CONTAINS(text, "sub &#38; title");
  CHECK_EQ_INT(count_of(text, "<circle"), 3);
  CHECK_EQ_INT(count_of(text, "nan") + count_of(text, "inf"), 0);
  free(text);
  free(c);
}

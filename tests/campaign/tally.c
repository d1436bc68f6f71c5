/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts the results of the checks for each family, and prints the counts as a
   table for people and as JSON. */
#include "tests/campaign/campaign.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double EPS = 0x1p-53;
/* Up to this condition a system should be accepted. */
static const double WELL = 1e13;

/* X(name, key in the JSON). They count right-hand sides. */
#define COUNTERS(X)                                                            \
  X(SYSTEMS, "systems")                                                        \
  X(COLUMNS, "columns")                                                        \
  X(ACCEPTED, "accepted")                                                      \
  X(BEST_EFFORT, "best_effort")                                                \
  X(REFUSED, "refused")                                                        \
  X(IN_DOUBLE, "accepted_by_double_factors")                                   \
  X(FALSE_OMEGA, "accepted_omega_above_rule")                                  \
  X(FALSE_BOUND, "accepted_error_above_bound")                                 \
  X(WEAK_BOUND, "best_effort_error_above_bound")                               \
  X(BARRED, "bars_compared")                                                   \
  X(FALSE_BAR, "component_beyond_its_bar")                                     \
  X(FALSE_SINGULAR, "accepted_though_singular")                                \
  X(BROKEN, "contract_broken")                                                 \
  X(NO_DIGIT, "accepted_no_digit")                                             \
  X(NO_PROMISE, "accepted_bound_1_or_more")                                    \
  X(UNVERIFIED, "accepted_error_not_known")                                    \
  X(SOLVABLE, "systems_condition_to_1e13")                                     \
  X(SOLVED, "systems_condition_to_1e13_accepted")                              \
  X(SOLVED_IN_DOUBLE, "systems_condition_to_1e13_by_double_factors")           \
  X(GIVEN_UP, "systems_condition_to_1e13_ill_conditioned")                     \
  X(DGESV_OMEGA, "dgesv_omega_above_rule")                                     \
  X(DGESV_NO_DIGIT, "dgesv_no_digit")                                          \
  X(DGESV_NAN, "dgesv_nan")                                                    \
  X(DGESV_SINGULAR, "dgesv_success_though_singular")                           \
  X(DSGESV_OMEGA, "dsgesv_omega_above_rule")                                   \
  X(DSGESV_NO_DIGIT, "dsgesv_no_digit")                                        \
  X(DSGESV_NAN, "dsgesv_nan")                                                  \
  X(DSGESV_SINGULAR, "dsgesv_success_though_singular")

#define COUNTER_NAME(name, key) name,
enum { COUNTERS(COUNTER_NAME) COUNTER_COUNT };
#define COUNTER_KEY(name, key) key,
static const char *const keys[] = {COUNTERS(COUNTER_KEY)};

#define STATUS_NUMBER(name, number, text) number,
static const int statuses[] = {HONE_STATUS_LIST(STATUS_NUMBER)};
#define STATUS_NAME(name, number, text) #name,
static const char *const status_names[] = {HONE_STATUS_LIST(STATUS_NAME)};
enum { STATUSES = sizeof statuses / sizeof *statuses };

typedef struct numbers {
  double *v;
  size_t count, room;
} numbers;

typedef struct row {
  int64_t count[COUNTER_COUNT];
  numbers ratio, ratio_all; /* of errors to those of dgesv: accepted x; any x */
  numbers bound; /* to the error, where that is above eps and x was accepted */
} row;

struct campaign_tally {
  row *rows; /* gallery_complex_count + 1 */
  int64_t by_status[STATUSES];
};

campaign_tally *campaign_tally_create(void) {
  campaign_tally *t = calloc(1, sizeof *t);
  row *rows = calloc((size_t)gallery_complex_count + 1, sizeof *rows);
  if (t == NULL || rows == NULL)
    abort();
  t->rows = rows;
  return t;
}

void campaign_tally_destroy(campaign_tally *t) {
  for (int k = 0; k <= gallery_complex_count; k++) {
    free(t->rows[k].ratio.v);
    free(t->rows[k].ratio_all.v);
    free(t->rows[k].bound.v);
  }
  free(t->rows);
  free(t);
}

static void add_number(numbers *list, double v) {
  if (list->count == list->room) {
    list->room = list->room ? 2 * list->room : 64;
    list->v = realloc(list->v, list->room * sizeof *list->v);
    if (list->v == NULL)
      abort();
  }
  list->v[list->count++] = v;
}

/* ---- Judging ---- */

/* 4 eps, plus the rounding errors of the denominators on both sides: sums of n
   terms in double, which may be products of moduli. The numerators are far more
   accurate. */
static double omega_limit(const campaign_record *r) {
  const int terms = r->n + (r->parts == 2 ? 32 : 8);
  return 4.0 * EPS * (1.0 + 2.0 * (double)terms * EPS);
}

static bool singular(const campaign_record *r) {
  return gallery_families[r->family].properties & GALLERY_SINGULAR;
}

/* The error is above the bound even if the reference's own error is taken
   off. */
static bool above_bound(const campaign_column *c) {
  return c->error - c->reference_error > c->bound * (1.0 + 1e-9) ||
         isnan(c->bound);
}

static void judge_column(const campaign_record *r, const campaign_column *c,
                         int64_t *n) {
  const bool known = !isnan(c->error);
  n[COLUMNS] = 1;
  n[ACCEPTED] = c->status == HONE_OK;
  n[BEST_EFFORT] = c->status > 0;
  n[REFUSED] = c->status < 0;
  n[WEAK_BOUND] = c->status > 0 && known && above_bound(c);
  if (c->status != HONE_OK)
    return;
  n[IN_DOUBLE] = c->precision == 64;
  n[FALSE_OMEGA] = !r->loose && !(c->omega <= omega_limit(r));
  n[FALSE_BOUND] = known && above_bound(c);
  n[FALSE_SINGULAR] = singular(r);
  n[NO_DIGIT] = known && !(c->error < 1.0);
  n[NO_PROMISE] = !(c->bound < 1.0);
  n[UNVERIFIED] = !known && !singular(r);
}

/* first is DGESV_OMEGA or DSGESV_OMEGA; the other counters follow it. */
static void judge_lapack(const campaign_record *r, int info, double omega,
                         double error, int first, int64_t *n) {
  enum { OMEGA, DIGIT, NOT, SINGULAR };
  if (info != 0)
    return;
  n[first + OMEGA] = !(omega <= omega_limit(r));
  n[first + DIGIT] = !isnan(error) && !(error < 1.0);
  n[first + NOT] = isnan(omega);
  n[first + SINGULAR] = singular(r);
}

static void judge_system(const campaign_record *r, int64_t *n) {
  bool good = r->reference <= REFERENCE_DOUBLE_DOUBLE && !singular(r) &&
              r->condition <= WELL && !r->loose;
  bool accepted = true, in_double = false, ill = false;
  for (int c = 0; c < r->nrhs; c++) {
    good = good && r->column[c].in_range;
    accepted = accepted && r->column[c].status == HONE_OK;
    in_double = in_double || r->column[c].precision == 64;
    ill = ill || r->column[c].status == HONE_ILL_CONDITIONED;
  }
  n[SYSTEMS] = 1;
  n[BROKEN] = r->broken != 0;
  n[SOLVABLE] = good;
  n[SOLVED] = good && accepted;
  n[SOLVED_IN_DOUBLE] = good && accepted && in_double;
  n[GIVEN_UP] = good && ill;
}

static int64_t defects_of(const int64_t *n) {
  return n[FALSE_OMEGA] + n[FALSE_BOUND] + n[WEAK_BOUND] + n[FALSE_SINGULAR] +
         n[BROKEN] + n[FALSE_BAR];
}

static void judge(const campaign_record *r, int c, int64_t *n) {
  const campaign_column *q = &r->column[c];
  memset(n, 0, COUNTER_COUNT * sizeof *n);
  if (c == 0)
    judge_system(r, n);
  judge_column(r, q, n);
  n[BARRED] = q->barred;
  n[FALSE_BAR] = q->beyond > 0;
  judge_lapack(r, r->dgesv_info, q->dgesv_omega, q->dgesv_error, DGESV_OMEGA,
               n);
  judge_lapack(r, r->dsgesv_info, q->dsgesv_omega, q->dsgesv_error,
               DSGESV_OMEGA, n);
}

/* Errors below eps count as eps. */
static void take_ratio(row *to, const campaign_column *c) {
  double ratio = fmax(c->error, EPS) / fmax(c->dgesv_error, EPS);
  if (c->status == HONE_OK && c->error > EPS && isfinite(c->bound))
    add_number(&to->bound, c->bound / c->error);
  if (isnan(c->error) || isnan(c->dgesv_error) || isnan(ratio))
    return;
  add_number(&to->ratio_all, ratio);
  if (c->status == HONE_OK)
    add_number(&to->ratio, ratio);
}

int campaign_count(campaign_tally *t, const campaign_record *r) {
  int64_t defects = 0;
  row *both[2] = {&t->rows[r->family], &t->rows[gallery_complex_count]};
  for (int c = 0; c < r->nrhs; c++) {
    int64_t n[COUNTER_COUNT];
    judge(r, c, n);
    defects += defects_of(n);
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i < COUNTER_COUNT; i++)
        both[k]->count[i] += n[i];
      take_ratio(both[k], &r->column[c]);
    }
    for (int s = 0; s < STATUSES; s++)
      t->by_status[s] += statuses[s] == r->column[c].status;
  }
  return (int)defects;
}

int64_t campaign_defects(const campaign_tally *t) {
  return defects_of(t->rows[gallery_complex_count].count);
}

bool campaign_remarkable(const campaign_record *r) {
  int64_t n[COUNTER_COUNT];
  judge(r, 0, n);
  bool remarkable = n[SOLVABLE] > n[SOLVED];
  for (int c = 0; c < r->nrhs; c++) {
    judge(r, c, n);
    remarkable = remarkable || n[NO_DIGIT] > 0;
  }
  return remarkable;
}

void campaign_accuse(const campaign_record *r, FILE *f) {
  static const int what[] = {FALSE_OMEGA,    FALSE_BOUND, WEAK_BOUND,
                             FALSE_SINGULAR, FALSE_BAR,   NO_DIGIT};
  if (r->broken)
    (void)fprintf(f, "  contract broken:%s%s%s%s%s%s\n",
                  r->broken & CAMPAIGN_TOUCHED ? " x written" : "",
                  r->broken & CAMPAIGN_STATUS ? " status" : "",
                  r->broken & CAMPAIGN_NOT_FINITE ? " x not finite" : "",
                  r->broken & CAMPAIGN_FLATTERED ? " omega understated" : "",
                  r->broken & CAMPAIGN_NO_BAR ? " no bar" : "",
                  r->broken & CAMPAIGN_REASON ? " refused without a reason"
                                              : "");
  if (r->broken & CAMPAIGN_REASON)
    (void)fprintf(f, "  refused: %s\n", hone_status_text(r->status));
  for (int c = 0; c < r->nrhs; c++) {
    const campaign_column *q = &r->column[c];
    int64_t n[COUNTER_COUNT];
    judge(r, c, n);
    for (size_t k = 0; k < sizeof what / sizeof *what; k++)
      if (n[what[k]])
        (void)fprintf(f,
                      "  %s: column %d (%s) status %d precision %d omega %.3g "
                      "eps (stated %.3g) error %.3e bound %.3e (reference "
                      "%.0e, dgesv's error %.1e) condition %.1e\n",
                      keys[what[k]], c, gallery_rhs_names[q->kind], q->status,
                      q->precision, q->omega / EPS, q->stated_omega / EPS,
                      q->error, q->bound, q->reference_error, q->dgesv_error,
                      r->condition);
  }
}

/* ---- Printing ---- */

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median, the 95 % quantile and the maximum; 0 if the list is empty. */
static void quantiles(numbers *list, double *three) {
  three[0] = three[1] = three[2] = 0.0;
  if (list->count == 0)
    return;
  const size_t last = list->count - 1;
  qsort(list->v, list->count, sizeof *list->v, compare);
  three[0] = list->v[last / 2];
  three[1] = list->v[(size_t)(0.95 * (double)last)];
  three[2] = list->v[last];
}

static void print_row(const char *name, row *r, FILE *f) {
  const int64_t *n = r->count;
  double q[3], all[3];
  char share[32] = "";
  quantiles(&r->ratio, q);
  quantiles(&r->ratio_all, all);
  if (n[SOLVABLE] > 0)
    (void)snprintf(share, sizeof share, "%.2f %%",
                   100.0 * (double)n[SOLVED] / (double)n[SOLVABLE]);
  (void)fprintf(f, "| %s |", name);
  for (int k = SYSTEMS; k <= IN_DOUBLE; k++)
    (void)fprintf(f, " %" PRId64 " |", n[k]);
  (void)fprintf(
      f,
      " %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64 " | %" PRId64
      " | %" PRId64 " | %" PRId64 " | %s | %" PRId64 " |",
      n[FALSE_OMEGA], n[FALSE_BOUND], n[WEAK_BOUND], n[FALSE_SINGULAR],
      n[BROKEN], n[UNVERIFIED], n[SOLVABLE], share, n[SOLVED_IN_DOUBLE]);
  (void)fprintf(f, " %.2g, %.2g, %.2g | %.2g, %.2g, %.2g |", q[0], q[1], q[2],
                all[0], all[1], all[2]);
  for (int k = 0; k < 2; k++) {
    const int64_t *p = n + (k ? DSGESV_OMEGA : DGESV_OMEGA);
    (void)fprintf(f, " %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 " |",
                  p[0], p[1], p[2], p[3]);
  }
  (void)fprintf(f, "\n");
}

static const char header[] =
    "| family | systems | right-hand sides | accepted | best effort | refused "
    "| accepted by double factors | **omega above the rule** | **error above "
    "the bound** | the same, best effort | accepted though singular | contract "
    "broken | accepted, error not known | systems with condition to 1e13 | of "
    "them accepted | and by double factors | error / dgesv's where accepted: "
    "median, 95 %, max | of every x | dgesv: omega above the rule, no digit, "
    "NaN, singular | dsgesv: the same |\n";

void campaign_print(campaign_tally *t, FILE *f) {
  (void)fputs(header, f);
  for (int k = 0; k < 20; k++)
    (void)fputs("|---", f);
  (void)fputs("|\n", f);
  for (int k = 0; k < gallery_complex_count; k++)
    if (t->rows[k].count[SYSTEMS] > 0)
      print_row(gallery_families[k].name, &t->rows[k], f);
  print_row("**all**", &t->rows[gallery_complex_count], f);
  (void)fprintf(f, "\nRight-hand sides by status:");
  for (int s = 0; s < STATUSES; s++)
    if (t->by_status[s] > 0)
      (void)fprintf(f, " %s %" PRId64 ";", status_names[s], t->by_status[s]);
  (void)fprintf(f,
                "\nAccepted with a bound of 1 or more (in the caller's units): "
                "%" PRId64 "; with no correct digit: %" PRId64 "\n",
                t->rows[gallery_complex_count].count[NO_PROMISE],
                t->rows[gallery_complex_count].count[NO_DIGIT]);
  double q[3];
  quantiles(&t->rows[gallery_complex_count].bound, q);
  (void)fprintf(f,
                "Bound / error where accepted and the error is above eps: "
                "median %.2g, 95 %% %.2g, max %.2g\nSystems with condition to "
                "1e13 that were called ill-conditioned: %" PRId64
                "\nRight-hand sides with a component beyond its bar: %" PRId64
                " of %" PRId64 "\n",
                q[0], q[1], q[2],
                t->rows[gallery_complex_count].count[GIVEN_UP],
                t->rows[gallery_complex_count].count[FALSE_BAR],
                t->rows[gallery_complex_count].count[BARRED]);
}

static void print_number(FILE *f, double v) {
  (void)fprintf(f, isfinite(v) ? "%.3g" : "null", v);
}

static void print_json_row(const char *name, row *r, FILE *f) {
  double q[3], all[3];
  quantiles(&r->ratio, q);
  quantiles(&r->ratio_all, all);
  (void)fprintf(f, "  {\"family\": \"%s\"", name);
  for (int k = 0; k < COUNTER_COUNT; k++)
    if (r->count[k] != 0 || k <= FALSE_BOUND)
      (void)fprintf(f, ", \"%s\": %" PRId64, keys[k], r->count[k]);
  for (int k = 0; k < 2; k++) {
    const double *p = k ? all : q;
    (void)fprintf(f, ", \"%s\": [",
                  k ? "error_by_dgesv_of_every_x" : "error_by_dgesv_accepted");
    for (int i = 0; i < 3; i++) {
      (void)fputs(i > 0 ? ", " : "", f);
      print_number(f, p[i]);
    }
    (void)fputs("]", f);
  }
  (void)fputs("}", f);
}

void campaign_print_json(campaign_tally *t, const campaign_plan *plan,
                         double seconds, FILE *f) {
  (void)fprintf(f,
                "{\"format\": \"hone-campaign/1\", \"program\": "
                "\"campaign\", \"version\": \"%s\", \"parts\": %d, \"seed\": "
                "%" PRIu64 ", \"systems\": %" PRId64
                ", \"device\": %d, \"start\": %d, \"max_n\": %" PRId64
                ", \"seconds\": %.1f,\n \"quantiles\": [\"median\", \"95 %%\", "
                "\"max\"],\n \"statuses\": {",
                hone_version(), plan->parts == 2 ? 2 : 1, plan->seed,
                t->rows[gallery_complex_count].count[SYSTEMS], plan->device,
                plan->start, plan->max_n, seconds);
  for (int s = 0, some = 0; s < STATUSES; s++)
    if (t->by_status[s] > 0)
      (void)fprintf(f, "%s\"%s\": %" PRId64, some++ ? ", " : "",
                    status_names[s], t->by_status[s]);
  (void)fprintf(f, "},\n \"families\": [\n");
  for (int k = 0; k < gallery_complex_count; k++)
    if (t->rows[k].count[SYSTEMS] > 0) {
      print_json_row(gallery_families[k].name, &t->rows[k], f);
      (void)fputs(",\n", f);
    }
  print_json_row("all", &t->rows[gallery_complex_count], f);
  (void)fprintf(f, "]}\n");
}

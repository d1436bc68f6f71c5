/* SPDX-License-Identifier: BSD-3-Clause */
/* See scripted_engine.h. */
#include "tests/unit/entries.h"

#include <stdio.h>

/* The contraction of complex entries turns them, too. */
#ifdef HONE_COMPLEX
#define TURN CMPLX(0.6, 0.8)
#else
#define TURN 1.0
#endif

static sup_script scripts[SUP_SCRIPTS];
static hone_engine engines[SUP_SCRIPTS];

typedef struct scripted {
  sup_script *script;
  int64_t n;
  hone_entry *lu; /* n x n */
  int64_t *pivot;
  bool coarse;
} scripted;

static bool probe(sup_script *script, char *why, size_t why_size) {
  if (script->absent)
    snprintf(why, why_size, "the script says it is absent");
  return !script->absent;
}

static void destroy(void *self, hone_mem *mem) {
  scripted *e = self;
  if (e == NULL)
    return;
  e->script->destroys++;
  e->script->alive--;
  hone_mem_put(mem, e->lu);
  hone_mem_put(mem, e->pivot);
  hone_mem_put(mem, e);
}

static int create(sup_script *script, void **self,
                  const hone_engine_config *config) {
  const size_t n = (size_t)config->n;
  *self = NULL;
  script->creates++;
  if (script->create_status != HONE_OK)
    return script->create_status;
  scripted *e = hone_mem_get(config->mem, sizeof *e);
  if (e == NULL)
    return HONE_NO_MEMORY;
  *e = (scripted){.script = script,
                  .n = config->n,
                  .coarse = hone_arithmetic_coarse(config->choices.arithmetic)};
  script->arithmetic = config->choices.arithmetic;
  script->alive++;
  script->alive_most = HONE_MAX(script->alive_most, script->alive);
  e->lu = hone_mem_get(config->mem, n * n * sizeof *e->lu);
  e->pivot = hone_mem_get(config->mem, n * sizeof *e->pivot);
  if (e->lu != NULL && e->pivot != NULL) {
    *self = e;
    return HONE_OK;
  }
  destroy(e, config->mem);
  script->destroys--;
  return HONE_NO_MEMORY;
}

/* Rows are exchanged over their whole length, so that P S = L U. A zero pivot
   is replaced: the script decides what is reported of it. */
static void eliminate(scripted *e) {
  const int64_t n = e->n;
  hone_entry *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    int64_t p = k;
    for (int64_t i = k + 1; i < n; i++)
      if (hone_abs(f[i + k * n]) > hone_abs(f[p + k * n]))
        p = i;
    e->pivot[k] = p;
    for (int64_t j = 0; p != k && j < n; j++) {
      const hone_entry t = f[k + j * n];
      f[k + j * n] = f[p + j * n];
      f[p + j * n] = t;
    }
    if (!(hone_abs(f[k + k * n]) > 0.0))
      f[k + k * n] = 1e-20;
    for (int64_t i = k + 1; i < n; i++)
      f[i + k * n] /= f[k + k * n];
    for (int64_t j = k + 1; j < n; j++)
      for (int64_t i = k + 1; i < n; i++)
        f[i + j * n] -= f[i + k * n] * f[k + j * n];
  }
}

static int factor(void *self, const hone_matrix *matrix,
                  const hone_scaling *scaling, hone_factor_info *info) {
  const hone_dense *a = hone_dense_of(matrix);
  scripted *e = self;
  sup_script *script = e->script;
  const hone_entry *from = script->instead ? script->instead : a->a;
  const int64_t n = e->n, ld = script->instead ? n : a->lda;
  script->factors++;
  script->solves = 0;
  *info = script->info;
  if (script->factor_status != HONE_OK)
    return script->factor_status;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++)
      e->lu[i + j * n] = from[i + j * ld] * scaling->row[i] * scaling->col[j];
  eliminate(e);
  return HONE_OK;
}

static void solve_plain(const scripted *e, hone_entry *v) {
  const int64_t n = e->n;
  const hone_entry *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    const hone_entry t = v[k];
    v[k] = v[e->pivot[k]];
    v[e->pivot[k]] = t;
  }
  for (int64_t k = 0; k < n; k++)
    for (int64_t i = k + 1; i < n; i++)
      v[i] -= f[i + k * n] * v[k];
  for (int64_t k = n - 1; k >= 0; k--) {
    v[k] /= f[k + k * n];
    for (int64_t i = 0; i < k; i++)
      v[i] -= f[i + k * n] * v[k];
  }
}

static void solve_transposed(const scripted *e, hone_entry *v) {
  const int64_t n = e->n;
  const hone_entry *f = e->lu;
  for (int64_t k = 0; k < n; k++) {
    for (int64_t i = 0; i < k; i++)
      v[k] -= f[i + k * n] * v[i];
    v[k] /= f[k + k * n];
  }
  for (int64_t k = n - 1; k >= 0; k--)
    for (int64_t i = k + 1; i < n; i++)
      v[k] -= f[i + k * n] * v[i];
  for (int64_t k = n - 1; k >= 0; k--) {
    const hone_entry t = v[k];
    v[k] = v[e->pivot[k]];
    v[e->pivot[k]] = t;
  }
}

/* Is v the workspace of the ladder's right-hand sides? */
static bool is_refinement(const sup_script *script, const hone_entry *v) {
  const hone_ladder *l = script->ladder;
  if (l == NULL)
    return true;
  uintptr_t at = (uintptr_t)v, block = (uintptr_t)l->workspace;
  size_t bytes = (size_t)(5 * l->n * l->workspace_columns) * sizeof *v;
  return l->workspace != NULL && at >= block && at < block + bytes;
}

static int solve(void *self, bool trans, int64_t k, hone_entry *v,
                 int64_t ldv) {
  scripted *e = self;
  sup_script *script = e->script;
  const bool counted = is_refinement(script, v);
  const int step = counted ? script->solves++ : -1;
  if (counted) {
    script->columns += k;
    script->columns_most = HONE_MAX(script->columns_most, k);
  }
  if (counted && script->solve_fails_at >= 0 && step >= script->solve_fails_at)
    return script->solve_status;
  for (int64_t c = 0; c < k; c++) {
    hone_entry *vc = v + c * ldv;
    for (int64_t i = 0; counted && i < e->n; i++) {
      double rate = script->rates ? script->rates[i] : script->rate;
      if (step < script->steps)
        rate = script->step_rate[step];
      if (e->coarse && script->coarse_rate != 0.0)
        rate = script->coarse_rate;
      vc[i] *= 1.0 + rate * TURN;
    }
    if (trans)
      solve_transposed(e, vc);
    else
      solve_plain(e, vc);
    if (counted && step == script->poison_at)
      vc[0] = entries_ending_in(script->poison);
  }
  return HONE_OK;
}

static int64_t bytes(int64_t n, int64_t k) {
  (void)k;
  return n * n * (int64_t)sizeof(hone_entry) + n * (int64_t)sizeof(int64_t) +
         (int64_t)sizeof(scripted);
}

/* Neither probe nor create is given a context by the table, so each slot has
   functions of its own. */
#define SLOT(i)                                                                \
  static bool probe_##i(char *why, size_t why_size) {                          \
    return probe(&scripts[i], why, why_size);                                  \
  }                                                                            \
  static int create_##i(void **self, const hone_engine_config *config) {       \
    return create(&scripts[i], self, config);                                  \
  }
SLOT(0)
SLOT(1)
SLOT(2)

const hone_engine *sup_scripted(int slot, const char *name, int precision,
                                sup_script **script) {
  static bool (*const probes[])(char *, size_t) = {probe_0, probe_1, probe_2};
  static int (*const creates[])(void **, const hone_engine_config *) = {
      create_0, create_1, create_2};
  scripts[slot] = (sup_script){.solve_fails_at = -1,
                               .poison_at = -1,
                               .info = {.growth = 1.0, .zero_pivot = -1}};
  engines[slot] = (hone_engine){.name = name,
                                .place = "script",
                                .precision = precision,
                                .probe = probes[slot],
                                .create = creates[slot],
                                .factor = factor,
                                .solve = solve,
                                .destroy = destroy,
                                .bytes = bytes};
  *script = &scripts[slot];
  return &engines[slot];
}

void sup_scripted_widen(int slot) { engines[slot].wide = true; }

const hone_matrix *sup_matrix(int64_t n, int64_t lda, const hone_entry *a) {
  enum { KEPT = 64 };
  static hone_dense dense[KEPT];
  static hone_matrix matrix[KEPT];
  static int next;
  const int at = next++ % KEPT;
  dense[at] = (hone_dense){n, lda, a, NULL, false, 0};
  matrix[at] = hone_dense_matrix(&dense[at]);
  return &matrix[at];
}

int sup_ladder_create(hone_ladder *ladder, int64_t n,
                      const hone_engine *const *listed, int count,
                      const hone_request *request, hone_mem *mem,
                      hone_pool *pool, hone_watch *watch) {
  hone_step steps[HONE_MAX_RUNGS];
  for (int r = 0; r < count; r++) {
    bool again = r == 0; /* or is the engine listed once more further on? */
    for (int q = r + 1; q < count; q++)
      again = again || listed[q] == listed[r];
    steps[r] = (hone_step){.engine = listed[r], .accurate = !again};
  }
  return hone_ladder_create(ladder, &hone_dense_operator, n, steps, count,
                            request, mem, pool, watch);
}

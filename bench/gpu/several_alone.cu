/* SPDX-License-Identifier: BSD-3-Clause */
/* The factorization alone on one GPU or on all, by the library's engines: see
   several.h. With HONE_COMPLEX defined it is one of complex matrices. */
#ifdef HONE_COMPLEX
#define several_alone several_z_alone
#endif
#include "bench/gpu/several.h"

extern "C" {
#include "base/dense.h"
#include "base/engine.h"
}

#include <algorithm>
#include <memory>

namespace {

/* An engine that has A on its device or devices. */
struct Factored {
  const hone_engine *engine;
  const Systems *s;
  hone_mem mem = {};
  hone_watch watch = {};
  hone_pool *pool = nullptr;
  void *self = nullptr;
  std::vector<double> ones;
  std::vector<int> zeros;
  double *x = nullptr; /* where the harness wants a solution */
  int64_t side = 0;
  std::string unprepared; /* why A is not on the device; empty: it is */
  char why[128] = "";

  Factored(const hone_engine *which, const Systems *systems)
      : engine(which), s(systems), ones(static_cast<size_t>(systems->n), 1.0),
        zeros(static_cast<size_t>(systems->n), 0) {}
  ~Factored() {
    if (self)
      engine->destroy(self, &mem);
    hone_pool_destroy(&pool, &mem);
  }
  Factored(const Factored &) = delete;
  Factored &operator=(const Factored &) = delete;

  std::string open(const Config &c) {
    hone_engine_config config = {};
    hone_pool_create(&pool, &mem, c.host_threads);
    config.n = s->n;
    config.mem = &mem;
    config.watch = &watch;
    config.pool = pool;
    config.choices.devices = -1;
    config.why = why;
    config.why_size = sizeof why;
    const int st = engine->create(&self, &config);
    return st == HONE_OK ? "" : std::string(hone_status_text(st)) + " " + why;
  }

  /* Factors A as it comes, or, seen before, from its copy on the device. */
  std::string factor(bool seen) {
    const hone_scaling scaling = {ones.data(), ones.data(), zeros.data(),
                                  zeros.data(), false};
    const hone_dense dense = {
        s->n,    s->n,  reinterpret_cast<const hone_entry *>(s->a),
        nullptr, false, 0};
    const hone_matrix matrix = hone_dense_matrix(&dense);
    hone_factor_info info = {};
    const int st =
        engine->factor(self, &matrix, seen ? &scaling : nullptr, &info);
    if (st != HONE_OK || info.zero_pivot >= 0)
      return st != HONE_OK ? hone_status_text(st) : "a pivot is zero";
    return "";
  }

  /* Without refinement: x is as accurate as single precision. */
  std::string solve(std::string *note) {
    std::copy_n(s->side(side), s->n * s->parts, x);
    const int st =
        engine->solve(self, false, 1, reinterpret_cast<hone_entry *>(x), s->n);
    hone_account used = {};
    engine->account(self, &used);
    *note = used.text;
    return st == HONE_OK ? "" : hone_status_text(st);
  }
};

} // namespace

Method several_alone(const Alone &what, const Systems &s, const Config &c) {
  const hone_engine *const engines[2][2] = {
      {&hone_engine_single_cuda, &hone_engine_cholesky_cuda},
      {&hone_engine_several_cuda, &hone_engine_several_cholesky_cuda}};
  const auto made = std::make_shared<Factored>(engines[what.all][what.spd], &s);
  Method m;
  m.name = what.name;
  m.failed = made->open(c);
  m.prepare = [=](int64_t k, int64_t, double *x) {
    made->x = x;
    made->side = k;
    made->unprepared = made->factor(false);
  };
  m.solve = [=](int64_t, double *) {
    return made->unprepared.empty() ? made->factor(true) : made->unprepared;
  };
  m.after = [=](std::string *note) { return made->solve(note); };
  return m;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of OpenBLAS, dgesv, zgesv and dposv, and LAPACK's mixed-precision
   dsgesv, zcgesv and dsposv; see bench.h. OpenBLAS is slower with all threads
   than with one at small orders, and does not see to it: there a trial says how
   many a method uses. */
#include "bench/harness/bench.h"

#include <algorithm>
#include <cstring>
#include <memory>

extern "C" {
#include "base/lapack.h"
#include "base/lapack_pairs.h"
}

namespace {

enum { TRIAL_UP_TO = 1024, TRIALS = 9 };

/* Work space and copies of A, allocated untimed. */
struct Work {
  bool spd, mixed;
  int all = hone_blas_threads(), threads = all;
  int n, nrhs;
  int64_t parts;
  std::vector<double> a, work, rwork;
  std::vector<float> swork;
  std::vector<int> pivots;
  int info = 0, iterations = 0;

  Work(const Systems &s, bool positive, bool in_single, int batch)
      : spd(positive), mixed(in_single), n(static_cast<int>(s.n)),
        nrhs(static_cast<int>(s.nrhs)), parts(s.parts),
        a(static_cast<size_t>(parts * s.n * s.n * batch)),
        work(mixed ? static_cast<size_t>(parts * s.n * s.nrhs) : 0),
        rwork(mixed && parts > 1 ? static_cast<size_t>(s.n) : 0),
        swork(mixed ? static_cast<size_t>(parts * s.n * (s.n + s.nrhs)) : 0),
        pivots(static_cast<size_t>(s.n)) {}

  void prepare(const Systems &s, int64_t k, int64_t place, double *x) {
    memcpy(matrix(place), s.matrix(k),
           static_cast<size_t>(parts * s.n * s.n) * sizeof(double));
    if (!mixed)
      memcpy(x, s.side(k),
             static_cast<size_t>(parts * s.n * s.nrhs) * sizeof(double));
  }

  /* Decides for one thread if one system is solved faster so. */
  void choose_threads(const Systems &s) {
    if (all == 1 || s.n > TRIAL_UP_TO)
      return;
    double seconds[2][TRIALS];
    std::vector<double> x(static_cast<size_t>(parts * s.n * s.nrhs));
    for (int k = -2; k < 2 * TRIALS; k++) {
      const int one = (k + 2) % 2;
      prepare(s, 0, 0, x.data());
      hone_blas_set_threads(one != 0 ? 1 : all);
      const double start = now_s();
      run(s, 0, 0, x.data());
      if (k >= 0)
        seconds[one][k / 2] = now_s() - start;
    }
    hone_blas_set_threads(all);
    threads = median(seconds[1], TRIALS) < median(seconds[0], TRIALS) ? 1 : all;
  }

  double *matrix(int64_t place) { return a.data() + parts * place * n * n; }

  std::string run(const Systems &s, int64_t k, int64_t place, double *x) {
    double *at = matrix(place);
    const double *b = s.side(k);
    if (parts > 1 && mixed)
      zcgesv_(&n, &nrhs, at, &n, pivots.data(), b, &n, x, &n, work.data(),
              swork.data(), rwork.data(), &iterations, &info);
    else if (parts > 1)
      zgesv_(&n, &nrhs, at, &n, pivots.data(), x, &n, &info);
    else if (spd && mixed)
      dsposv_("L", &n, &nrhs, at, &n, b, &n, x, &n, work.data(), swork.data(),
              &iterations, &info);
    else if (spd)
      dposv_("L", &n, &nrhs, at, &n, x, &n, &info);
    else if (mixed)
      dsgesv_(&n, &nrhs, at, &n, pivots.data(), b, &n, x, &n, work.data(),
              swork.data(), &iterations, &info);
    else
      dgesv_(&n, &nrhs, at, &n, pivots.data(), x, &n, &info);
    return info == 0 ? "" : "info " + std::to_string(info);
  }
};

} // namespace

void add_lapack(const Config &c, std::vector<Method> *methods, const Systems &s,
                bool spd, bool mixed, int batch) {
  Method m;
  const bool complex = s.parts > 1;
  if (spd)
    m.name = mixed ? "dsposv" : "dposv";
  else if (mixed)
    m.name = complex ? "zcgesv" : "dsgesv";
  else
    m.name = complex ? "zgesv" : "dgesv";
  if (kept_out(c, m.name) && !methods->empty())
    return;
  auto work = std::make_shared<Work>(s, spd, mixed, batch);
  auto place = std::make_shared<int64_t>(0);
  m.group = PAGEABLE;
  m.batch = batch;
  work->choose_threads(s);
  m.prepare = [=, &s](int64_t k, int64_t at, double *x) {
    work->prepare(s, k, at, x);
    hone_blas_set_threads(work->threads);
    *place = 0;
  };
  m.solve = [=, &s](int64_t k, double *x) {
    return work->run(s, k, (*place)++, x);
  };
  m.after = [=](std::string *note) {
    hone_blas_set_threads(work->all);
    *note = work->threads < work->all ? "one thread" : "";
    if (mixed)
      *note += (note->empty() ? "" : ", ") +
               (work->iterations < 0
                    ? "solved in double"
                    : std::to_string(work->iterations) + " refinements");
    return std::string();
  };
  methods->push_back(m);
}

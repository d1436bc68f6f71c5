/* SPDX-License-Identifier: BSD-3-Clause */
/* Hone and the peers as methods, and the rounds in which they take turns; see
   gpu_bench.h. */
#include "bench/gpu_bench.h"

#include "bench/gpu_systems.h"

extern "C" {
#include "api/hone.h"
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

/* ---- methods ---- */

struct Hone {
  hone_options options;
  hone_solver *solver = nullptr;
  hone_report factor = {}, solve = {};
  int status = HONE_OK;

  Hone(const Config &c, int device, const Choices &chosen) {
    hone_options_init(&options, sizeof options);
    options.device = device;
    options.threads = c.threads;
    options.structure = chosen.spd ? (int32_t)HONE_STRUCTURE_SPD : 0;
    options.diagonal = chosen.diagonal;
    options.sections = chosen.sections;
    options.start = chosen.start;
    options.residuals = chosen.residuals;
  }
  ~Hone() { hone_solver_destroy(&solver); }
  Hone(const Hone &) = delete;

  std::string failure(const hone_report &r) const {
    if (status >= 0)
      return "";
    std::string why = hone_status_text(status);
    return r.reason[0] != 0 ? why + ": " + r.reason : why;
  }

  std::string kept(const Systems &s, int64_t k, double *x) {
    status = hone_solver_factor(solver, s.matrix(k), s.n, &factor);
    if (status < 0)
      return failure(factor);
    status = hone_solver_solve(solver, HONE_NO_TRANS, 1, s.side(k), s.n, x, s.n,
                               nullptr, 0, nullptr, &solve);
    return failure(solve);
  }

  std::string once(const Systems &s, int64_t k, double *x) {
    status = hone_solve(s.n, 1, s.matrix(k), s.n, s.side(k), s.n, x, s.n,
                        &options, &solve);
    return failure(solve);
  }

  std::string note() const {
    std::string all = std::string(solve.device) + ": " + solve.path;
    if (factor.diagonal_ms > 0.0)
      all += text(", diagonal %.3g ms (%.3g exposed) of %.3g",
                  factor.diagonal_ms, factor.exposed_ms, factor.factor_ms);
    if (factor.sections > 0)
      all += text(", %d sections, %d sweeps, at most %d, %d by TRSM",
                  factor.sections, factor.sweeps, factor.sweeps_max,
                  factor.section_fallbacks);
    return status == HONE_OK ? all : all + ", " + hone_status_text(status);
  }

  std::string report() const {
    std::string all;
    const hone_report *both[] = {&factor, &solve};
    for (const hone_report *r : both) {
      size_t length = hone_report_json(r, nullptr, 0);
      std::vector<char> buffer(length + 1);
      hone_report_json(r, buffer.data(), buffer.size());
      if (r->n > 0)
        all += std::string(all.empty() ? "" : ",\n    ") +
               (r == &factor ? "\"factor\": " : "\"solve\": ") + buffer.data();
    }
    return all;
  }
};

} // namespace

bool kept_out(const Config &c, const std::string &name) {
  for (const std::string &word : c.skip)
    if (name.find(word) != std::string::npos)
      return true;
  return false;
}

void add_hone(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, bool spd) {
  Choices chosen;
  chosen.spd = spd;
  add_form(c, methods, name, s, device, kept, chosen);
}

void add_form(const Config &c, std::vector<Method> *methods, const char *name,
              const Systems &s, int device, bool kept, const Choices &chosen) {
  if (kept_out(c, name) && !methods->empty()) /* not the reference */
    return;
  auto hone = std::make_shared<Hone>(c, device, chosen);
  Method m;
  m.name = name;
  if (kept) {
    int st = hone_solver_create(&hone->solver, s.n, &hone->options);
    if (st != HONE_OK)
      m.failed = std::string("hone_solver_create: ") + hone_status_text(st);
    m.solve = [hone, &s](int64_t k, double *x) { return hone->kept(s, k, x); };
  } else {
    m.solve = [hone, &s](int64_t k, double *x) { return hone->once(s, k, x); };
  }
  m.after = [hone](std::string *note) {
    *note = hone->note();
    return std::string();
  };
  m.report = [hone] { return hone->report(); };
  methods->push_back(m);
}

void add_peer(const Config &c, std::vector<Method> *methods, Peers *peers,
              Peer peer, const Systems &s, const double *pinned,
              const std::string &failed) {
  Method m;
  m.name = std::string(pinned ? "pinned: " : "") + peer_names[peer];
  if (kept_out(c, m.name))
    return;
  m.group = pinned ? PINNED : PAGEABLE;
  m.failed = failed;
  if (s.n >= large && (peer == PEER_IRS_TF32 || peer == PEER_IRS_16F))
    m.most_rounds = c.slow_rounds;
  m.solve = [=, &s](int64_t k, double *x) {
    return peers->solve(peer, pinned ? pinned : s.matrix(k), s.side(k), x);
  };
  m.after = [=](std::string *note) { return peers->verify(peer, note); };
  methods->push_back(m);
}

/* ---- rounds ---- */

namespace {

/* One timing of a batch, with its check; NaN when it failed. */
double time_once(const Bench &bench, const Systems &s, int64_t first, double *x,
                 Method *m) {
  std::string why;
  std::fill(x, x + m->batch * s.n, NAN); /* no other method's answer */
  double start = now_s();
  for (int64_t k = 0; k < m->batch && why.empty(); k++)
    why = m->solve(first + k, x + k * s.n);
  double ms = 1e3 * (now_s() - start) / m->batch;
  if (why.empty() && m->after)
    why = m->after(&m->note);
  m->failed = why;
  for (int64_t k = 0; k < m->batch && why.empty(); k++) {
    double e = backward_error(s.n, s.matrix(first + k), s.side(first + k),
                              x + k * s.n, bench.c.host_threads);
    m->checked++;
    m->accepted = m->accepted && e <= 4.04 * 0x1p-53;
    if (!(e <= m->error) && !std::isnan(m->error))
      m->error = e;
  }
  return why.empty() ? ms : NAN;
}

/* What the method itself takes the time of. */
double time_itself(Method *m) {
  double ms = NAN;
  m->failed = m->time(&ms, &m->error);
  m->checked += m->failed.empty();
  return m->failed.empty() ? ms : NAN;
}

/* Round -1 is not counted. */
void one_turn(Bench *bench, const Systems &s, int round, double *x, Method *m) {
  double ms = NAN;
  if (m->failed.empty() && m->skipped.empty() && round < m->most_rounds) {
    double start = now_s();
    if (!bench->budget.affords(m->name, s.n))
      m->skipped = "no time after round " + std::to_string(std::max(round, 0));
    else if (m->time)
      ms = time_itself(m);
    else
      ms = time_once(*bench, s, (round + 1) * int64_t{m->batch}, x, m);
    if (m->skipped.empty())
      bench->budget.took(m->name, s.n, now_s() - start);
    fprintf(stderr, "n %lld, round %d, %s: %.4g ms %s%s\n",
            static_cast<long long>(s.n), round + 1, m->name.c_str(), ms,
            m->failed.c_str(), m->skipped.c_str());
  }
  if (round >= 0)
    m->ms.push_back(ms);
}

} // namespace

void measure(Bench *bench, const Systems &s, int rounds,
             std::vector<Method> *methods) {
  int most = 1;
  for (const Method &m : *methods)
    most = std::max(most, m.batch);
  std::vector<double> x(static_cast<size_t>(s.n * most));
  size_t count = methods->size();
  for (int round = -1; round < rounds; round++)
    for (size_t k = 0; k < count; k++)
      one_turn(bench, s, round, x.data(),
               &(*methods)[(k + static_cast<size_t>(round + 1)) % count]);
}

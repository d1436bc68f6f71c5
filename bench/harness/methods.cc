/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of this library, and the rounds in which all methods take turns;
   see bench.h. */
#include "bench/harness/bench.h"

#include "api/hone_tuning.h"

extern "C" {
#include "api/hone.h"
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

namespace {

/* ---- this library ---- */

/* One iterate of refinement, as the progress callback reports it. */
struct Step {
  int iteration, precision, gmres;
  double backward_error;
};

const hone_complex *entries(const double *v) {
  return reinterpret_cast<const hone_complex *>(v);
}
hone_complex *entries(double *v) { return reinterpret_cast<hone_complex *>(v); }

struct Hone {
  hone_options options = HONE_OPTIONS_INIT;
  hone_tuning tuning = HONE_TUNING_INIT;
  hone_solver *solver = nullptr;    /* one of them is not NULL */
  hone_z_solver *complex = nullptr; /* where the Method is "kept" */
  hone_report factor = HONE_REPORT_INIT, solve = HONE_REPORT_INIT;
  std::vector<Step> history;
  int status = HONE_OK;

  Hone(const Config &c, int device, const Choices &chosen) {
    options.device = device;
    options.threads = chosen.threads > 0 ? chosen.threads : c.threads;
    options.structure = chosen.spd ? (int32_t)HONE_STRUCTURE_SPD : 0;
    options.factor_precision = chosen.factor_precision;
    options.devices = chosen.devices;
    options.device_memory_limit_bytes = chosen.device_memory;
    options.tuning = &tuning;
    tuning.diagonal = chosen.diagonal;
    tuning.block_rows = chosen.block_rows;
    tuning.residuals = chosen.residuals;
    tuning.arithmetic = chosen.arithmetic;
    tuning.pivoting = chosen.pivoting;
    if (chosen.history) {
      options.progress = listen;
      options.progress_user = this;
    }
  }
  ~Hone() {
    hone_solver_destroy(&solver);
    hone_z_solver_destroy(&complex);
  }
  Hone(const Hone &) = delete;

  static int listen(void *user, const hone_progress *event) {
    Hone *self = static_cast<Hone *>(user);
    if (strcmp(event->phase, "refine") == 0)
      self->history.push_back({event->iteration, event->precision, event->gmres,
                               event->backward_error});
    return 0;
  }

  std::string failure(const hone_report &r) const {
    if (status >= 0)
      return "";
    std::string why = hone_status_text(status);
    return r.reason[0] != 0 ? why + ": " + r.reason : why;
  }

  int create(const Systems &s) {
    return s.parts == 2 ? hone_z_solver_create(&complex, s.n, &options)
                        : hone_solver_create(&solver, s.n, &options);
  }

  std::string kept(const Systems &s, int64_t k, double *x) {
    history.clear();
    if (s.parts == 2) {
      status =
          hone_z_solver_factor(complex, entries(s.matrix(k)), s.n, &factor);
      if (status < 0)
        return failure(factor);
      status = hone_z_solver_solve(complex, s.nrhs, entries(s.side(k)), s.n,
                                   entries(x), s.n, nullptr, &solve);
      return failure(solve);
    }
    status = hone_solver_factor(solver, s.matrix(k), s.n, &factor);
    if (status < 0)
      return failure(factor);
    status = hone_solver_solve(solver, s.nrhs, s.side(k), s.n, x, s.n, nullptr,
                               &solve);
    return failure(solve);
  }

  std::string once(const Systems &s, int64_t k, double *x) {
    history.clear();
    status = s.parts == 2 ? hone_z_solve(s.n, s.nrhs, entries(s.matrix(k)), s.n,
                                         entries(s.side(k)), s.n, entries(x),
                                         s.n, &options, &solve)
                          : hone_solve(s.n, s.nrhs, s.matrix(k), s.n, s.side(k),
                                       s.n, x, s.n, &options, &solve);
    return failure(solve);
  }

  std::string note() const {
    std::string all = std::string(solve.device) + ": " + solve.path;
    if (factor.diagonal_ms > 0.0)
      all +=
          text(", diagonal %.3g ms (%.3g exposed) of %.3g", factor.diagonal_ms,
               factor.diagonal_wait_ms, factor.factor_ms);
    if (factor.block_rows > 0)
      all += text(", %d sections, %d sweeps, at most %d, %d by TRSM",
                  factor.block_rows, factor.block_row_sweeps,
                  factor.block_row_sweeps_max, factor.block_row_fallbacks);
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
    if (!history.empty())
      all += std::string(all.empty() ? "" : ",\n    ") + "\"history\": [";
    for (size_t k = 0; k < history.size(); k++)
      all += text("%s{\"iteration\": %d, \"precision\": %d, \"gmres\": %s, "
                  "\"backward_error\": ",
                  k > 0 ? ", " : "", history[k].iteration, history[k].precision,
                  history[k].gmres ? "true" : "false") +
             json_number(history[k].backward_error) + "}";
    return history.empty() ? all : all + "]";
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
  if (kept_out(c, name) && !methods->empty()) /* the reference is always kept */
    return;
  auto hone = std::make_shared<Hone>(c, device, chosen);
  Method m;
  m.name = name;
  if (kept) {
    int st = hone->create(s);
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

/* ---- rounds ---- */

namespace {

enum { CHECKED_COLUMNS = 10 };

/* Checks the answers of a batch, at most CHECKED_COLUMNS of each system. */
void check(const Bench &bench, const Systems &s, int64_t first, const double *x,
           Method *m) {
  const int64_t step = (s.nrhs + CHECKED_COLUMNS - 1) / CHECKED_COLUMNS;
  for (int64_t k = 0; k < m->batch; k++)
    for (int64_t j = 0; j < s.nrhs; j += step) {
      double e = backward_error(
          s.n, s.matrix(first + k), s.side(first + k) + j * s.n * s.parts,
          x + (k * s.nrhs + j) * s.n * s.parts, bench.c.host_threads, s.parts);
      m->checked++;
      m->accepted = m->accepted && e <= 4.04 * 0x1p-53;
      if (!(e <= m->error) && !std::isnan(m->error))
        m->error = e;
    }
}

/* Times a batch and checks it; returns milliseconds, or NaN if it failed. */
double time_once(const Bench &bench, const Systems &s, int64_t first, double *x,
                 Method *m) {
  std::string why;
  const int64_t length = s.n * s.nrhs * s.parts;
  std::fill(x, x + m->batch * length, NAN); /* erases older answers */
  for (int64_t k = 0; k < m->batch && m->prepare; k++)
    m->prepare(first + k, k, x + k * length);
  double start = now_s();
  for (int64_t k = 0; k < m->batch && why.empty(); k++)
    why = m->solve(first + k, x + k * length);
  double ms = 1e3 * (now_s() - start) / m->batch;
  if (why.empty() && m->after)
    why = m->after(&m->note);
  m->failed = why;
  if (why.empty())
    check(bench, s, first, x, m);
  return why.empty() ? ms : NAN;
}

/* Some methods take the time themselves. */
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
  std::vector<double> x(static_cast<size_t>(s.n * s.nrhs * s.parts * most));
  size_t count = methods->size();
  for (int round = -1; round < rounds; round++)
    for (size_t k = 0; k < count; k++)
      one_turn(bench, s, round, x.data(),
               &(*methods)[(k + static_cast<size_t>(round + 1)) % count]);
}

bool out_of_time(Bench *bench, const char *section, int64_t n) {
  if (bench->budget.affords("", n))
    return false;
  printf("\n%s, n = %lld: skipped, out of time\n", section,
         static_cast<long long>(n));
  Method none;
  none.name = "all";
  none.skipped = "out of time";
  bench->record.add(text("\"section\": \"%s\", \"n\": %lld", section,
                         static_cast<long long>(n)),
                    {none}, 0);
  return true;
}

int rounds_of(const Config &c, int64_t n) {
  if (n >= large)
    return c.large_rounds > 0 ? c.large_rounds : n > large ? 3 : 5;
  return c.rounds > 0 ? c.rounds : 7;
}

bool left_out(const Config &c, const std::string &name, int64_t n,
              std::vector<Method> *methods) {
  for (const std::string &word : c.large_skip)
    if (n > large && name.find(word) != std::string::npos &&
        !kept_out(c, name)) {
      Method m;
      m.name = name;
      m.skipped = "left out beyond n = " + std::to_string(large) +
                  "; --large-skip chooses";
      methods->push_back(m);
      return true;
    }
  return false;
}

void run_by_shares(Bench *bench, const std::vector<Part> &parts,
                   void (*run)(Bench *bench, const std::string &section)) {
  const double end = now_s() + bench->c.seconds;
  const Words &wanted = bench->c.sections;
  double shares = 0.0; /* of the sections still to come */
  auto is_wanted = [&](const Part &part) {
    return std::find(wanted.begin(), wanted.end(), part.section) !=
           wanted.end();
  };
  for (const Part &part : parts)
    shares += is_wanted(part) ? part.share : 0.0;
  for (const Part &part : parts) {
    if (!is_wanted(part))
      continue;
    const double start = now_s(), left = end - start;
    bench->budget = Budget(bench->c.seconds > 0.0
                               ? std::max(1e-9, left * part.share / shares)
                               : 0.0);
    shares -= part.share;
    run(bench, part.section);
    fprintf(stderr, "section %s: %.1f s\n", part.section, now_s() - start);
  }
}

int batch_of(int64_t n) {
  const double guess_us = 0.5 + 1e-4 * std::pow(static_cast<double>(n), 3.0);
  return static_cast<int>(std::ceil(100.0 / guess_us));
}

void add_row(Bench *bench, const char *section, const char *kind,
             const Systems &s, int threads, const std::string &more,
             const std::vector<Method> &methods, size_t reference) {
  bench->record.add(
      text("\"section\": \"%s\", \"kind\": \"%s\", \"n\": %lld, "
           "\"nrhs\": %lld",
           section, kind, static_cast<long long>(s.n),
           static_cast<long long>(s.nrhs)) +
          (threads > 0 ? text(", \"threads\": %d", threads) : "") +
          (more.empty() ? "" : ", " + more),
      methods, reference);
  for (const Method &m : methods)
    if (m.checked > 0 && spread(m.ms).count > 0)
      bench->points.push_back({section, kind, m.name, s.n, s.nrhs, threads,
                               spread(m.ms).median, m.accepted});
}

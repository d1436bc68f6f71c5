/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeats Cejka's comparison, in single and double precision, from host memory
   to host memory: Crout's direct method on one thread of the CPU, and the
   iterative one on the GPU with thread blocks of 8, 16 and 32. cuSOLVER's LU,
   which he did not measure, is added. See papers.h.

   All matrices are first factored on the GPU, then on the CPU in ascending
   order. The runs on the CPU take minutes and go on at the same time, each on a
   core of its own. The iterative method is the library's (scaled guess, the
   product of finished columns once for each section); one way has it as
   published, except for the corrections that gpu_sp/forms/crout.h names. */
#include "bench/papers/cejka.h"
#include "bench/papers/checks.h"
#include "bench/papers/crout_cpu.h"
#include "bench/papers/matrices.h"
#include "bench/papers/source.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace {

enum { CPU, ICM8, ICM16, ICM32, PUBLISHED, PIVOTED, UNPIVOTED, CROUT_WAYS };
const char *const way_names[CROUT_WAYS] = {"CPU, one thread",
                                           "ICM8",
                                           "ICM16",
                                           "ICM32",
                                           "ICM32, as published",
                                           "cuSOLVER getrf",
                                           "cuSOLVER getrf, no pivoting"};
const char *const precision_names[] = {"single", "double"};
enum { MOST_COLUMNS = 16384, MOST_PUBLISHED = 3000 };
enum { LEAST_TELLING = 256 }; /* smaller matrices predict no times */

/* A matrix with its results in both precisions. */
struct Case {
  PaperMatrix matrix;
  std::vector<Way> ways[2];
  hone_crout_report reports[2][CROUT_WAYS] = {};
};

int crout_cpu(int64_t n, float *a, int64_t *column) {
  return hone_crout_cpu_s(n, a, n, column);
}
int crout_cpu(int64_t n, double *a, int64_t *column) {
  return hone_crout_cpu_d(n, a, n, column);
}

template <class T> std::vector<T> rounded(const PaperMatrix &m) {
  return std::vector<T>(m.a.begin(), m.a.end());
}

/* ---- on the GPU ---- */

template <class T>
Way iterative_way(int which, const std::shared_ptr<CroutWork<T>> &work,
                  hone_crout_report *report) {
  hone_crout_options o = {};
  o.block = which == ICM8 ? 8 : which == ICM16 ? 16 : 32;
  if (which == PUBLISHED) {
    o.guess = HONE_CROUT_RAW;
    o.prefix = HONE_CROUT_REDONE;
    o.sweeps_per_read = 1;
  }
  return crout_way(o, work, report);
}

template <class T>
Way getrf_way(bool pivoted, const std::shared_ptr<CroutWork<T>> &work) {
  Way w;
  auto first = std::make_shared<bool>(true);
  w.m.time = [=](double *ms, double *error) {
    const std::string why =
        gpu_getrf(work->n, work->a.data(), work->z.data(),
                  pivoted ? work->pivots.data() : nullptr, ms);
    if (why.empty() && *first)
      *error =
          crout_defect(*work, false, pivoted ? work->pivots.data() : nullptr);
    *first = false;
    return why;
  };
  return w;
}

/* Returns the published time, NaN if there is none. */
double published_ms(const std::string &matrix, int precision, int which) {
  const Cejka *row = cejka(matrix);
  if (row == nullptr || which > PUBLISHED)
    return NAN;
  const int column = which == PUBLISHED ? static_cast<int>(ICM32) : which;
  return 1e3 * row->seconds[precision][column];
}

template <class T>
std::vector<Way> gpu_ways(const Papers &papers, Case *c, int precision) {
  const PaperMatrix &m = c->matrix;
  std::vector<Way> ways;
  std::shared_ptr<CroutWork<T>> work;
  if (papers.no_gpu.empty())
    work = crout_work<T>(m.n, m.a);
  for (int k = ICM8; k < CROUT_WAYS; k++) {
    if (!papers.no_gpu.empty())
      ways.push_back(missing("", papers.no_gpu));
    else if (k == PUBLISHED && m.n > MOST_PUBLISHED)
      ways.push_back(missing("", "as published: up to " +
                                     std::to_string(MOST_PUBLISHED) + " only"));
    else if (k >= PIVOTED)
      ways.push_back(getrf_way<T>(k == PIVOTED, work));
    else
      ways.push_back(iterative_way<T>(k, work, &c->reports[precision][k]));
    ways.back().m.name =
        std::string(way_names[k]) + ", " + precision_names[precision];
    ways.back().paper_ms = published_ms(m.name, precision, k);
  }
  return ways;
}

/* Both precisions take turns, so that time runs out for both. */
void gpu_part(Papers *papers, Share *share, Case *c) {
  std::vector<Way> all = gpu_ways<float>(*papers, c, 0);
  const std::vector<Way> more = gpu_ways<double>(*papers, c, 1);
  const auto half = static_cast<std::vector<Way>::difference_type>(all.size());
  all.insert(all.end(), more.begin(), more.end());
  take_turns(share, papers->o.rounds, c->matrix.n, 3.0, &all);
  for (Way &w : all)
    w.m.time = nullptr; /* frees the matrices */
  c->ways[0].assign(all.begin(), all.begin() + half);
  c->ways[1].assign(all.begin() + half, all.end());
}

/* ---- on the CPU ---- */

/* A run on a thread of its own. */
struct Run {
  int precision;
  double ms = NAN, error = NAN;
  std::string why;
};

template <class T> void run_cpu(const PaperMatrix &m, bool check, Run *r) {
  const std::vector<T> a = rounded<T>(m);
  std::vector<T> z = a;
  int64_t column = -1;
  const double start = now_s();
  const int st = crout_cpu(m.n, z.data(), &column);
  r->ms = 1e3 * (now_s() - start);
  r->why = crout_status(st, column);
  if (check && r->why.empty())
    r->error = largest_defect<T>(m.n, a.data(), z.data(), true, nullptr);
}

void cpu_part(Papers *papers, Share *share, Case *c) {
  const PaperMatrix &m = c->matrix;
  const int rounds = papers->o.rounds;
  std::vector<Run> runs;
  /* Factors of sparse matrices have denormal numbers, which take longer. */
  const char *const name = m.dense ? "dense" : "given";
  const double expected = share->expected(name, m.n, 3.2);
  const bool there = share->affords(name, m.n, 3.2);
  for (int k = 0; k < 2 * rounds && there; k++) {
    Run r;
    r.precision = k % 2;
    runs.push_back(r);
  }
  const int threads =
      std::min(papers->o.host_threads, static_cast<int>(runs.size()));
  const double start = now_s();
  std::atomic<size_t> next{0};
  in_parallel(threads, [&](int) {
    for (size_t k; (k = next++) < runs.size();)
      if (runs[k].precision == 0)
        run_cpu<float>(m, k == 0, &runs[k]);
      else
        run_cpu<double>(m, k == 1, &runs[k]);
  });
  const double took = now_s() - start;
  bool whole = there && m.n >= LEAST_TELLING;
  for (const Run &r : runs)
    whole = whole && r.why.empty();
  if (whole)
    share->took(name, m.n, took);
  if (whole && !m.dense && share->expected("dense", m.n, 3.2) == 0.0)
    share->took("dense", m.n, took); /* until a dense matrix was timed */
  fprintf(stderr, "n %lld, Crout's method on the CPU, %zu runs: %.3g s\n",
          static_cast<long long>(m.n), runs.size(), took);
  for (int precision = 0; precision < 2; precision++) {
    Way w;
    w.m.name = std::string(way_names[CPU]) + ", " + precision_names[precision];
    w.paper_ms = published_ms(m.name, precision, CPU);
    w.m.skipped = there ? "" : no_time(expected);
    w.m.error = there ? runs[static_cast<size_t>(precision)].error : 0.0;
    for (const Run &r : runs)
      if (r.precision == precision) {
        w.m.failed = r.why;
        if (r.why.empty())
          w.m.ms.push_back(r.ms);
      }
    w.m.checked = there && w.m.failed.empty();
    w.m.note = there ? text("%d at a time", threads) : "";
    c->ways[precision].insert(c->ways[precision].begin(), w);
  }
}

/* ---- tables ---- */

const char *const sweeps_header =
    "| matrix | n | precision | columns of a section | diagonal sections: "
    "sweeps, mean, most, allowed | pairs: sweeps, mean, most, allowed | "
    "solved directly | max abs(A - L U): CPU | ICM8 | ICM16 | ICM32 | as "
    "published | getrf | getrf, no pivoting | max abs(A) |";

std::string count(int64_t k) { return std::to_string(k); }

std::string mean(int64_t sum, int64_t of) {
  return of > 0
             ? text("%.1f", static_cast<double>(sum) / static_cast<double>(of))
             : "-";
}

/* Adds a row of times. no_gpu is not repeated in it; it is printed below the
   table. */
void times_row(const Case &c, int precision, const std::string &no_gpu,
               Summary *table) {
  std::vector<std::string> cells = {c.matrix.name, count(c.matrix.n),
                                    precision_names[precision]};
  std::string remarks;
  for (const Way &w : c.ways[precision]) {
    std::string cell = times_text(w.m.ms);
    if (!std::isnan(w.paper_ms))
      cell += " / " + figure(w.paper_ms, "%.4g");
    cells.push_back(cell);
    const std::string more = w.m.failed.empty() ? w.m.skipped : w.m.failed;
    if (!more.empty() && more != no_gpu &&
        remarks.find(more) == std::string::npos)
      remarks += (remarks.empty() ? "" : "; ") + more;
  }
  cells.push_back(remarks);
  table->rows.push_back(row_text(cells));
}

void sweeps_row(const Case &c, int precision, Summary *table) {
  const hone_crout_report &r = c.reports[precision][ICM32];
  std::vector<std::string> cells = {c.matrix.name, count(c.matrix.n),
                                    precision_names[precision]};
  if (r.section > 0) {
    const int64_t s = std::min(r.section, r.n);
    cells.push_back(count(r.section));
    cells.push_back(mean(r.diagonal_sweeps, r.diagonals) + ", " +
                    count(r.diagonal_most) + ", " + count(2 * s));
    cells.push_back(mean(r.pair_sweeps, r.pairs) + ", " + count(r.pair_most) +
                    ", " + count(s + 1));
    cells.push_back(count(r.direct));
  } else {
    cells.insert(cells.end(), 4, "-");
  }
  for (const Way &w : c.ways[precision])
    cells.push_back(error_text(w.m.error, w.m.checked > 0));
  cells.push_back(
      text("%.3g", largest_entry(c.matrix.n * c.matrix.n, c.matrix.a.data())));
  table->rows.push_back(row_text(cells));
}

void record_case(Papers *papers, Case *c, int precision) {
  std::vector<Way> &ways = c->ways[precision];
  const double top =
      largest_entry(c->matrix.n * c->matrix.n, c->matrix.a.data());
  for (size_t k = 0; k < ways.size(); k++) {
    const hone_crout_report r = c->reports[precision][k];
    ways[k].m.report = [r] { return crout_json(r); };
  }
  accept_within(crout_limit(c->matrix.n, top, precision), &ways);
  record_ways(
      papers,
      "\"section\": \"cejka\", \"kind\": " + json_string(c->matrix.name) +
          text(", \"n\": %lld, \"precision\": %d",
               static_cast<long long>(c->matrix.n), precision == 0 ? 32 : 64) +
          ", \"max_abs\": " + json_number(top),
      ways);
}

std::vector<Case> all_cases(const Papers &papers) {
  std::vector<Case> cases;
  for (PaperMatrix &m : list_matrices(papers.o.matrices)) {
    Case c;
    c.matrix = std::move(m);
    cases.push_back(std::move(c));
  }
  for (int64_t n : papers.o.dense) {
    Case c;
    c.matrix.name = "Cejka" + std::to_string(n);
    c.matrix.n = n;
    c.matrix.dense = true;
    cases.push_back(std::move(c));
  }
  return cases;
}

} // namespace

void section_crout(Papers *papers) {
  Share dense(*papers, 0.65), given(*papers, 0.5);
  Summary times = {
      "Cejka, tables 3.4 and 3.5: A to L U, ms, host memory to host memory, "
      "here / published (A100, EPYC 7543)",
      "| matrix | n | precision | CPU, one thread | ICM8 | ICM16 | ICM32 | "
      "ICM32, as published | getrf | getrf, no pivoting | |",
      {}};
  Summary sweeps = {"Cejka: sweeps (of ICM32) and accuracy", sweeps_header, {}};
  std::vector<Case> cases = all_cases(*papers);
  auto read = [&](Case *c) {
    return read_matrix(&c->matrix, papers->o.seed, papers->o.host_threads,
                       papers->o.quick ? 2000 : (int)MOST_COLUMNS);
  };
  printf("\n%s\n", cejka_errors);
  for (Case &c : cases)
    if (read(&c)) {
      gpu_part(papers, c.matrix.dense ? &dense : &given, &c);
      c.matrix.a = std::vector<double>(); /* saves memory; is read again */
    }
  Share cpu(*papers, 0.95);
  std::stable_sort(
      cases.begin(), cases.end(),
      [](const Case &a, const Case &b) { return a.matrix.n < b.matrix.n; });
  for (Case &c : cases) {
    if (!read(&c)) {
      times.rows.push_back(
          row_text({c.matrix.name, c.matrix.n > 0 ? count(c.matrix.n) : "-",
                    "-", "-", "-", "-", "-", "-", "-", "-", c.matrix.refused}));
      continue;
    }
    cpu_part(papers, &cpu, &c);
    for (int precision = 0; precision < 2; precision++) {
      times_row(c, precision, papers->no_gpu, &times);
      sweeps_row(c, precision, &sweeps);
      record_case(papers, &c, precision);
    }
    c.matrix.a = std::vector<double>();
  }
  print_summary(times);
  print_summary(sweeps);
  if (!papers->no_gpu.empty())
    printf("\nGPU: %s\n", papers->no_gpu.c_str());
}

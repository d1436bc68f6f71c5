/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method as a way (papers/cejka.h), and the table that
   searches for the best number of columns of a section. */
#include "bench/papers/cejka.h"
#include "bench/papers/checks.h"
#include "bench/papers/crout_cpu.h"
#include "bench/papers/matrices.h"

#include <algorithm>
#include <cstdio>

/* ---- the method as a way ---- */

template <class T>
std::shared_ptr<CroutWork<T>> crout_work(int64_t n,
                                         const std::vector<double> &a) {
  auto work = std::make_shared<CroutWork<T>>();
  work->n = n;
  work->a.assign(a.begin(), a.end());
  work->z.resize(work->a.size());
  work->pivots.resize(static_cast<size_t>(n));
  return work;
}

std::string crout_status(int status, int64_t column) {
  if (status == HONE_OK)
    return "";
  const std::string at = ", column " + std::to_string(column);
  return status == HONE_SINGULAR   ? "zero pivot" + at
         : status == HONE_OVERFLOW ? "not finite" + at
                                   : hone_status_text(status);
}

std::string crout_json(const hone_crout_report &r) {
  if (r.section == 0)
    return "";
  return text("\"section_columns\": %lld, \"diagonals\": %lld, "
              "\"diagonal_sweeps\": %lld, \"diagonal_most\": %lld, "
              "\"pairs\": %lld, \"pair_sweeps\": %lld, \"pair_most\": %lld, "
              "\"at_bound\": %lld, \"direct\": %lld, \"device_ms\": ",
              static_cast<long long>(r.section),
              static_cast<long long>(r.diagonals),
              static_cast<long long>(r.diagonal_sweeps),
              static_cast<long long>(r.diagonal_most),
              static_cast<long long>(r.pairs),
              static_cast<long long>(r.pair_sweeps),
              static_cast<long long>(r.pair_most),
              static_cast<long long>(r.at_bound),
              static_cast<long long>(r.direct)) +
         json_number(r.milliseconds);
}

double crout_limit(int64_t n, double largest, int precision) {
  return 1024.0 * static_cast<double>(n) * largest *
         (precision == 0 ? 0x1p-24 : 0x1p-53);
}

namespace {

enum { BY_CPU_UP_TO = 2048 }; /* the CPU is fast enough up to this order */

int factor_cpu(int64_t n, float *a) {
  return hone_crout_cpu_s(n, a, n, nullptr);
}
int factor_cpu(int64_t n, double *a) {
  return hone_crout_cpu_d(n, a, n, nullptr);
}

/* Tells whether device and CPU find the same error in factors that have been
   made wrong. */
template <class T> bool device_agrees() {
  enum { N = 1100 }; /* more than one block of gpu_defect */
  Systems s;
  if (!systems_allocate(&s, N, 1))
    return false;
  systems_fill(&s, SPD, 5, 1);
  const std::vector<T> a(s.a, s.a + N * N);
  std::vector<T> z = a;
  systems_free(&s);
  if (factor_cpu(N, z.data()) != HONE_OK)
    return false;
  z[700 + N * 3] += T(0.125);
  z[2 + N * 1050] += T(0.0625);
  for (bool crout : {true, false}) {
    double there = NAN;
    const double here =
        largest_defect<T>(N, a.data(), z.data(), crout, nullptr);
    if (!gpu_defect(N, a.data(), z.data(), crout, nullptr, &there).empty())
      return false;
    if (!(std::fabs(there - here) <= 1e-9 * here)) {
      fprintf(stderr,
              "max |A - L U| is %g on the device and %g on the CPU; the CPU "
              "computes it from here on\n",
              there, here);
      return false;
    }
  }
  return true;
}

} // namespace

template <class T>
double crout_defect(const CroutWork<T> &w, bool crout, const int64_t *pivots) {
  double error = NAN;
  if (w.n > BY_CPU_UP_TO) {
    static const bool agrees = device_agrees<T>();
    /* As on the CPU, every entry of the factors must be finite. */
    const double top = agrees ? largest_entry(w.n * w.n, w.z.data()) : NAN;
    if (agrees && !std::isfinite(top))
      return NAN;
    if (agrees &&
        gpu_defect(w.n, w.a.data(), w.z.data(), crout, pivots, &error).empty())
      return error;
  }
  return largest_defect(w.n, w.a.data(), w.z.data(), crout, pivots);
}

template <class T>
Way crout_way(const hone_crout_options &o,
              const std::shared_ptr<CroutWork<T>> &work,
              hone_crout_report *report) {
  Way w;
  auto first = std::make_shared<bool>(true);
  w.m.time = [=](double *ms, double *error) {
    std::string why =
        gpu_crout(work->n, work->a.data(), work->z.data(), o, report, ms);
    if (why.empty())
      why = crout_status(report->status, report->column);
    if (!why.empty())
      *error = NAN; /* z has no factors */
    else if (*first)
      *error = crout_defect(*work, true, nullptr);
    *first = false;
    return why;
  };
  return w;
}

template std::shared_ptr<CroutWork<float>>
crout_work(int64_t, const std::vector<double> &);
template std::shared_ptr<CroutWork<double>>
crout_work(int64_t, const std::vector<double> &);
template double crout_defect(const CroutWork<float> &, bool, const int64_t *);
template double crout_defect(const CroutWork<double> &, bool, const int64_t *);
template Way crout_way(const hone_crout_options &,
                       const std::shared_ptr<CroutWork<float>> &,
                       hone_crout_report *);
template Way crout_way(const hone_crout_options &,
                       const std::shared_ptr<CroutWork<double>> &,
                       hone_crout_report *);

/* ---- the columns of a section ---- */

namespace {

const int64_t widths[] = {32, 64, 128, 256, 512, 1024};

template <class T>
void search_widths(Papers *papers, Share *share, const PaperMatrix &m,
                   Summary *table) {
  const int precision = sizeof(T) == 4 ? 0 : 1;
  const double top = largest_entry(m.n * m.n, m.a.data());
  std::vector<Way> ways;
  std::vector<hone_crout_report> reports(sizeof widths / sizeof *widths);
  std::shared_ptr<CroutWork<T>> work;
  if (papers->no_gpu.empty())
    work = crout_work<T>(m.n, m.a);
  size_t k = 0;
  for (int64_t columns : widths) {
    hone_crout_options o = {};
    o.block = 16;
    o.section = columns;
    ways.push_back(work == nullptr ? missing("", papers->no_gpu)
                                   : crout_way(o, work, &reports[k]));
    ways.back().m.name = "ICM16, sections of " + std::to_string(columns);
    k++;
    if (columns >= m.n)
      break; /* one section has all columns */
  }
  take_turns(share, papers->o.rounds, m.n, 3.0, &ways);
  accept_within(crout_limit(m.n, top, precision), &ways);
  for (k = 0; k < ways.size(); k++) {
    const hone_crout_report r = reports[k];
    ways[k].m.report = [r] { return crout_json(r); };
    table->rows.push_back(
        row_text({m.name, precision == 0 ? "single" : "double", ways[k].m.name,
                  times_text(ways[k].m.ms),
                  std::to_string(r.diagonal_sweeps + r.pair_sweeps),
                  error_text(ways[k].m.error, ways[k].m.checked > 0),
                  remarks_text(ways[k].m)}));
  }
  record_ways(papers,
              text("\"section\": \"cejka sections\", \"kind\": \"%s\", \"n\": "
                   "%lld, \"precision\": %d",
                   m.name.c_str(), static_cast<long long>(m.n),
                   precision == 0 ? 32 : 64),
              ways);
}

} // namespace

void section_sections(Papers *papers) {
  Share share(*papers, 0.15);
  Summary table = {"Cejka: columns of a section, thread blocks of 16, random "
                   "dense matrices",
                   "| matrix | precision | way | ms | sweeps | max abs(A - L "
                   "U) | |",
                   {}};
  std::vector<int64_t> orders = {papers->o.sections_n};
  if (!papers->o.quick && !papers->o.dense.empty())
    orders.push_back(papers->o.dense.front());
  for (int64_t n : orders) {
    PaperMatrix m;
    m.name = "Cejka" + std::to_string(n);
    m.n = n;
    m.dense = true;
    if (!read_matrix(&m, papers->o.seed, papers->o.host_threads, n)) {
      table.rows.push_back(
          row_text({m.name, "-", "-", "-", "-", "-", m.refused}));
      continue;
    }
    search_widths<float>(papers, &share, m, &table);
    search_widths<double>(papers, &share, m, &table);
  }
  print_summary(table);
}

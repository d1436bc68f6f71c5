/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures the quality of answers instead of times: omega, the componentwise
   backward error, of every answer to the gallery of hard matrices, and how
   refinement converges on some of them. The report draws both; see bench.h. */
#include "bench/harness/bench.h"

extern "C" {
#include "api/hone.h"
#include "base/lapack.h"
#include "tests/gallery/gallery.h"
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

void make_system(Systems *s, const gallery_family *family, double parameter,
                 int rhs, uint64_t seed) {
  gallery_make(family, s->n, parameter, seed, s->a, s->n);
  gallery_rhs(rhs, s->n, s->a, s->n, seed, s->b);
  for (int64_t k = 1; k < RIGHT_SIDES; k++)
    memcpy(s->b + k * s->n, s->b, static_cast<size_t>(s->n) * sizeof *s->b);
}

/* ---- omega of every answer ---- */

/* The table of one family as JSON, one list for each column. */
struct Answers {
  std::string n, parameter, b, status, precision, hone, dgesv, dsgesv;
  void add(std::string *column, const std::string &value) {
    *column += (column->empty() ? "" : ", ") + value;
  }
};

/* Returns the omega of dgesv or dsgesv, or null if it fails. */
std::string omega_of(const Config &c, const Systems &s, bool mixed, double *x) {
  std::vector<Method> m;
  add_lapack(c, &m, s, false, mixed, 1);
  m[0].prepare(0, 0, x);
  if (!m[0].solve(0, x).empty())
    return "null";
  return json_number(backward_error(s.n, s.a, s.b, x, 1));
}

void answer(Bench *bench, const Systems &s, Answers *out) {
  std::vector<double> x(static_cast<size_t>(s.n));
  hone_options options;
  hone_report report = HONE_REPORT_INIT;
  options = HONE_OPTIONS_INIT;
  options.device = bench->c.device;
  options.threads = 1;
  options.factor_precision = HONE_FACTOR_SINGLE;
  const int status =
      hone_solve(s.n, 1, s.a, s.n, s.b, s.n, x.data(), s.n, &options, &report);
  out->add(&out->status, std::to_string(status));
  out->add(&out->precision, std::to_string(report.precision));
  out->add(&out->hone, status < 0 ? "null"
                                  : json_number(backward_error(s.n, s.a, s.b,
                                                               x.data(), 1)));
  out->add(&out->dgesv, omega_of(bench->c, s, false, x.data()));
  out->add(&out->dsgesv, omega_of(bench->c, s, true, x.data()));
}

/* Measures six systems of a family: orders and kinds of right-hand sides take
   turns, and the parameter runs from its lowest to its highest value. */
void family_answers(Bench *bench, const gallery_family *family) {
  const int64_t orders[] = {10, 33, 64, 100, 200, 300};
  const int sides[] = {GALLERY_B_RANDOM, GALLERY_B_ONES, GALLERY_B_GRADED};
  const int count = sizeof orders / sizeof *orders;
  Answers out;
  for (int k = 0; k < count; k++) {
    Systems s;
    const double part = static_cast<double>(k) / (count - 1);
    const double parameter = family->low + part * (family->high - family->low);
    const int64_t n =
        std::clamp(orders[(k * 5) % count], family->least_n, family->most_n);
    if (!systems_allocate(&s, n, 1))
      return;
    make_system(&s, family, parameter, sides[k % 3],
                bench->c.seed + static_cast<uint64_t>(k));
    out.add(&out.n, std::to_string(n));
    out.add(&out.parameter, json_number(parameter));
    out.add(&out.b, json_string(gallery_rhs_names[sides[k % 3]]));
    answer(bench, s, &out);
    systems_free(&s);
  }
  bench->record.add_row(
      "  {\"section\": \"gallery\", \"kind\": " + json_string(family->name) +
      ", \"what\": " + json_string(family->what) + ",\n   \"answers\": {" +
      "\"n\": [" + out.n + "], \"parameter\": [" + out.parameter +
      "], \"b\": [" + out.b + "],\n    \"status\": [" + out.status +
      "], \"precision\": [" + out.precision + "],\n    \"hone\": [" + out.hone +
      "],\n    \"dgesv\": [" + out.dgesv + "],\n    \"dsgesv\": [" +
      out.dsgesv + "]}}");
  printf("| %-22s | %s | %s |\n", family->name, out.status.c_str(),
         out.hone.c_str());
}

/* ---- how refinement converges ---- */

struct Case {
  const char *title, *family;
  double parameter;
  int64_t n;
};

void history_case(Bench *bench, const Case &chosen, uint64_t seed) {
  const gallery_family *family = gallery_find(chosen.family);
  Systems s;
  if (family == nullptr || !systems_allocate(&s, chosen.n, 1))
    return;
  make_system(&s, family, chosen.parameter, GALLERY_B_RANDOM, seed);
  std::vector<Method> m;
  Choices choices;
  choices.history = true;
  choices.factor_precision = HONE_FACTOR_SINGLE;
  add_form(bench->c, &m, "Hone once", s, bench->c.device, false, choices);
  measure(bench, s, 1, &m);
  printf("| %-34s | %5lld | %s |\n", chosen.title, static_cast<long long>(s.n),
         m[0].note.c_str());
  add_row(bench, "history", chosen.title, s, 0,
          text("\"family\": \"%s\", \"parameter\": %g", chosen.family,
               chosen.parameter),
          m, 0);
  m.clear();
  systems_free(&s);
}

} // namespace

/* Runs on one thread, which is fastest for the small orders here. */
void gallery_section(Bench *bench) {
  const int before = hone_blas_threads();
  hone_blas_set_threads(1);
  printf("\n## The gallery: status and omega of every answer, single precision "
         "first\n\n| family | status | omega |\n|---|---|---|\n");
  for (int k = 0; k < gallery_count; k++) {
    if (out_of_time(bench, "gallery", 300))
      break;
    family_answers(bench, &gallery_families[k]);
  }
  hone_blas_set_threads(before);
}

void history_section(Bench *bench) {
  const Case cases[] = {{"uniform", "uniform", 0.0, 1000},
                        {"geometric, condition 1e5", "dlatms_3", 5.0, 500},
                        {"geometric, condition 1e7", "dlatms_3", 7.0, 500},
                        {"geometric, condition 3e7", "dlatms_3", 7.5, 300},
                        {"geometric, condition 1e12", "dlatms_3", 12.0, 500},
                        {"one small, condition 1e12", "dlatms_2", 12.0, 500},
                        {"arithmetic, condition 1e14", "dlatms_4", 14.0, 500},
                        {"positive definite, 1e6", "spd", 6.0, 500},
                        {"boundary elements", "bem_spheres", 3.0, 500}};
  printf("\n## How refinement converges\n\n| matrix | n | path |\n"
         "|---|---|---|\n");
  for (const Case &chosen : cases)
    if (!out_of_time(bench, "history", chosen.n))
      history_case(bench, chosen, bench->c.seed);
}

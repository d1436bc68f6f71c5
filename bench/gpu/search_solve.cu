/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/gpu/search_solve.h"

#include "api/engines.h"
#include "api/hone.h"
#include "api/hone_complex.h"

#include <chrono>
#include <cmath>
#include <cstring>

namespace {

enum { UNTIMED = 2 };

hone_trial trial; /* of every solve, from the next one on */

int32_t solve(bool complex, int64_t n, const double *a, const double *b,
              double *x, const hone_options *options, hone_report *report) {
  if (!complex)
    return hone_solve(n, 1, a, n, b, n, x, n, options, report);
  return hone_z_solve(n, 1, reinterpret_cast<const hone_complex *>(a), n,
                      reinterpret_cast<const hone_complex *>(b), n,
                      reinterpret_cast<hone_complex *>(x), n, options, report);
}

} // namespace

/* The program is linked with ld's --wrap=hone_choices_of, which prescribes
   these names. */
extern "C" {
hone_choices __real_hone_choices_of(const hone_options *options);
hone_choices __wrap_hone_choices_of(const hone_options *options);

hone_choices __wrap_hone_choices_of(const hone_options *options) {
  hone_choices choices = __real_hone_choices_of(options);
  choices.trial = trial;
  return choices;
}
}

std::string time_solves(const hone_bench_form &form, bool complex, int64_t n,
                        const double *a, int threads, int rounds,
                        std::vector<double> *ms) {
  const size_t numbers = static_cast<size_t>(complex ? 2 * n : n);
  std::vector<double> b(numbers), x(numbers);
  for (size_t i = 0; i < numbers; i++)
    b[i] = std::sin(static_cast<double>(i));
  hone_options options = HONE_OPTIONS_INIT;
  options.device = HONE_DEVICE_CUDA;
  options.structure =
      form.cholesky != 0 ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_GENERAL;
  options.threads = threads;
  trial.outer = form.outer;
  trial.strip = form.strip;
  trial.ahead_from = form.ahead_from;
  trial.feed = form.feed;
  std::string failed;
  for (int round = -UNTIMED; round < rounds && failed.empty(); round++) {
    hone_report report = HONE_REPORT_INIT;
    const auto start = std::chrono::steady_clock::now();
    const int32_t st =
        solve(complex, n, a, b.data(), x.data(), &options, &report);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - start;
    if (st != HONE_OK)
      failed = std::string(hone_status_text(st)) + ": " + report.reason;
    else if (report.precision != 32 || strstr(report.path, "set aside"))
      failed = std::string("other factors have served: ") + report.path;
    else if (round >= 0)
      ms->push_back(took.count());
  }
  trial = {};
  hone_release_kept(); /* the next way must not have this one's engine */
  return failed;
}

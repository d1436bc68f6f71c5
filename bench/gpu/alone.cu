/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the factorization alone, of real and of complex matrices that
   are on the device; see gpu_bench.h. */
#include "bench/gpu/gpu_bench.h"

extern "C" {
/* These are NULL in a program that is linked without hook.cu. */
int hone_bench_factor(int64_t, const float *, int64_t, int, int, double *,
                      double *, char *, size_t) __attribute__((weak));
int hone_z_bench_factor(int64_t, const float *, int64_t, int, int, double *,
                        double *, char *, size_t) __attribute__((weak));
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

/* Adds a method for each arithmetic of the library. The residual is computed in
   the first round only. */
void add_arithmetics(const Config &c, const SingleLu &peer, int64_t n,
                     decltype(&hone_bench_factor) factor,
                     std::vector<Method> *methods) {
  const float *d_a = peer.matrix();
  for (int arithmetic = 0; arithmetic < 16; arithmetic++) {
    char name[200] = "";
    double probe_ms = 0.0;
    int rc = factor(std::min<int64_t>(n, 256), d_a, n, arithmetic, 1, &probe_ms,
                    nullptr, name, sizeof name);
    if (rc > 0)
      return;
    Method m;
    m.name = "Hone " + (rc == 0 ? std::string(name) : text("%d", arithmetic));
    m.failed = rc < 0 ? name : "";
    if (!methods->empty() && kept_out(c, m.name))
      continue;
    auto first = std::make_shared<bool>(true);
    m.time = [=](double *ms, double *error) {
      char why[200] = "";
      int st = factor(n, d_a, n, arithmetic, 1, ms, *first ? error : nullptr,
                      why, sizeof why);
      *first = false;
      return std::string(st == 0 ? "" : why[0] != 0 ? why : "no reason given");
    };
    methods->push_back(m);
  }
}

void add_single_peer(SingleLu *peer, int parts, const std::string &failed,
                     std::vector<Method> *methods) {
  Method m;
  m.name = parts == 2 ? "Xgetrf C32F, pivoting" : "Xgetrf FP32, pivoting";
  m.group = PAGEABLE;
  m.failed = failed;
  auto first = std::make_shared<bool>(true);
  m.time = [=](double *ms, double *error) {
    std::string why = peer->run(ms);
    if (why.empty() && *first)
      why = peer->residual(error);
    *first = false;
    return why;
  };
  methods->push_back(m);
}

/* The peer is the last method. The others are accepted if their residual is at
   most 4 times the peer's. */
void report_factor(Bench *bench, const char *section, int parts, bool normal,
                   int64_t n, std::vector<Method> *methods) {
  const Method &peer = methods->back();
  const Method &ours = methods->front();
  double work = parts * parts * 2.0 / 3.0 * pow(static_cast<double>(n), 3.0);
  for (Method &m : *methods) {
    m.accepted = m.error <= 4.0 * peer.error;
    if (spread(m.ms).count > 0)
      m.note = text("%.1f TFLOP/s", 1e-9 * work / spread(m.ms).median);
  }
  const char *kind = kind_names[normal ? NORMAL : UNIFORM];
  print_table(text("%s, n = %lld", kind, static_cast<long long>(n)), *methods,
              0, "residual");
  double hone_ms = spread(ours.ms).median;
  double peer_ms = spread(peer.ms).median;
  bench->factors.rows.push_back(
      text("| %s%s | %lld | ", parts == 2 ? "complex " : "", kind,
           static_cast<long long>(n)) +
      figure(hone_ms, "%.4g") + " | " + figure(1e-9 * work / hone_ms, "%.1f") +
      " | " + figure(peer_ms, "%.4g") + " | " +
      figure(1e-9 * work / peer_ms, "%.1f") + " | " +
      text_of(ratio(peer, ours), "%.2f") +
      (parts == 1 && n >= 8192 ? " | 2.5 | " : " | | ") +
      figure(ours.checked > 0 ? ours.error / peer.error : NAN, "%.2f") + " |");
  bench->record.add(text("\"section\": \"%s\", \"kind\": \"%s\", "
                         "\"n\": %lld",
                         section, kind, static_cast<long long>(n)),
                    *methods, 0);
}

} // namespace

void factor_alone(Bench *bench, const char *section, int parts, bool normal,
                  int64_t n) {
  const auto factor = parts == 2 ? hone_z_bench_factor : hone_bench_factor;
  SingleLu peer;
  std::vector<Method> methods;
  std::string failed = peer.open(n, normal, bench->c.seed, parts);
  if (factor != nullptr && failed.empty())
    add_arithmetics(bench->c, peer, n, factor, &methods);
  if (methods.empty()) {
    Method none;
    none.name = "Hone";
    none.failed = failed.empty() ? "linked without hone_bench_factor" : failed;
    methods.push_back(none);
  }
  add_single_peer(&peer, parts, failed, &methods);
  Systems order; /* only its n is used */
  order.n = n;
  measure(bench, order, rounds_of(bench->c, n), &methods);
  report_factor(bench, section, parts, normal, n, &methods);
}

void factor_section(Bench *bench) {
  printf("\n## The factorization alone, single precision, A on the device\n"
         "\nThe residual is ||P A - L U|| / ||A|| in Frobenius norms, computed "
         "in double. It is accepted up to 4 times cuSOLVER's.\n");
  for (const std::string &size : bench->c.sizes)
    for (const std::string &kind : bench->c.kinds) {
      int64_t n = atoll(size.c_str());
      if (!out_of_time(bench, "factor", n))
        factor_alone(bench, "factor", 1, kind == "normal", n);
    }
}

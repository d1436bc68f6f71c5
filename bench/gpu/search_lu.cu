/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the factorization alone, of a random matrix on the device, with other
   widths of outer panels, other strips of the trailing update, and with and
   without look-ahead: what AHEAD_FROM, STRIP and the orders of outer_width
   (gpu_sp/create.cu, gpu_sp/forms/queues.cu) were chosen by for real matrices.
   bench/gpu/hook.cu does the work. */
#include "bench/gpu/peers.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

const char usage[] =
    "usage: search_lu [--complex] [--arithmetic K] [--rounds R] N ...\n"
    "Factors random matrices of these orders (1 .. 65536) in every way: outer\n"
    "panels of 64 to 1024 columns, strips of 2048 to 16384, with look-ahead\n"
    "and without. Prints the ways by their times, the fastest first; each has\n"
    "R (5) rounds in two turns. K: 0 FP16x3, 1 FP32, 2 TF32, 3 BF16x3.\n";

struct Wanted {
  bool complex = false;
  int arithmetic = 0, rounds = 5;
};

struct Way {
  hone_bench_form form;
  std::vector<double> ms;
  double median() const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

/* The first way is the library's own. */
std::vector<Way> ways_for(const Wanted &wanted, int64_t n) {
  std::vector<Way> ways(1);
  ways[0].form = {wanted.arithmetic, 0, 0, 0, 0, 0};
  for (const int64_t outer : {64, 128, 256, 512, 1024})
    for (const int64_t strip : {2048, 4096, 8192, 16384})
      for (const int64_t ahead_from : {int64_t{1}, n + 1})
        if (outer <= n && (strip <= n || strip == 2048))
          ways.push_back(
              {{wanted.arithmetic, 0, 0, outer, strip, ahead_from}, {}});
  return ways;
}

void print(const std::vector<Way> &ways, int64_t n) {
  for (const Way &way : ways) {
    const hone_bench_form &f = way.form;
    const auto ends = std::minmax_element(way.ms.begin(), way.ms.end());
    printf("%10.4g ms (%.4g .. %.4g)  ", way.median(), *ends.first,
           *ends.second);
    if (f.outer == 0)
      printf("the library's own\n");
    else
      printf("outer %lld, strip %lld, %s\n", static_cast<long long>(f.outer),
             static_cast<long long>(f.strip),
             f.ahead_from > n ? "no look-ahead" : "look-ahead");
  }
}

/* Returns why it failed, or an empty text. */
std::string search(const Wanted &wanted, int64_t n) {
  const auto factor =
      wanted.complex ? hone_z_bench_form_factor : hone_bench_form_factor;
  const int64_t floats = n * n * (wanted.complex ? 2 : 1);
  Calls c;
  float *a = nullptr;
  char why[200] = "";
  if (!c.ok(cudaMalloc(&a, static_cast<size_t>(floats) * sizeof *a),
            "cudaMalloc"))
    return c.why;
  std::string failed = device_fill(a, floats, false, 1);
  std::vector<Way> ways = ways_for(wanted, n);
  for (int turn = 0; turn < 2; turn++) {
    for (Way &way : ways) {
      std::vector<double> ms(static_cast<size_t>(wanted.rounds));
      if (failed.empty() && factor(&way.form, n, a, n, wanted.rounds, ms.data(),
                                   nullptr, why, sizeof why) != 0)
        failed = why[0] != 0 ? why : "no such arithmetic";
      way.ms.insert(way.ms.end(), ms.begin(), ms.end());
    }
    std::reverse(ways.begin(), ways.end());
  }
  cudaFree(a);
  if (!failed.empty())
    return failed;
  std::stable_sort(ways.begin(), ways.end(), [](const Way &x, const Way &y) {
    return x.median() < y.median();
  });
  printf("n = %lld, %s\n", static_cast<long long>(n),
         wanted.complex ? "complex" : "real");
  print(ways, n);
  return "";
}

/* Returns true if text is a whole number from 0 to most. */
bool parse(const char *text, long most, long *value) {
  char *end = nullptr;
  *value = text != nullptr ? strtol(text, &end, 10) : -1;
  return end != nullptr && end != text && *end == 0 && *value >= 0 &&
         *value <= most;
}

} // namespace

int main(int argc, char **argv) {
  Wanted wanted;
  std::vector<int64_t> orders;
  for (int i = 1; i < argc; i++) {
    long value = 0;
    bool fine = true;
    if (strcmp(argv[i], "--complex") == 0)
      wanted.complex = true;
    else if (strcmp(argv[i], "--arithmetic") == 0) {
      fine = parse(argv[++i], 5, &value);
      wanted.arithmetic = static_cast<int>(value);
    } else if (strcmp(argv[i], "--rounds") == 0) {
      fine = parse(argv[++i], 1000, &value) && value > 0;
      wanted.rounds = static_cast<int>(value);
    } else {
      fine = parse(argv[i], 65536, &value) && value > 0;
      orders.push_back(value);
    }
    if (!fine) {
      fputs(usage, stderr);
      return 2;
    }
  }
  if (orders.empty()) {
    fputs(usage, stderr);
    return 2;
  }
  for (const int64_t n : orders) {
    const std::string failed = search(wanted, n);
    if (!failed.empty()) {
      fprintf(stderr, "search_lu: n = %lld: %s\n", static_cast<long long>(n),
              failed.c_str());
      return 1;
    }
  }
  return 0;
}

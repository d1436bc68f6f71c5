/* SPDX-License-Identifier: BSD-3-Clause */
/* Times the factorization alone, of a random matrix, with other widths of outer
   panels, other strips of the trailing update, and with and without look-ahead:
   what AHEAD_FROM and STRIP (gpu_sp/forms/queues.cu, gpu_sp/layout.cu) were
   chosen by. The matrix is on the device, or comes there from the host's
   memory; then the lists of parts of gpu_sp/factor/load.cu are compared.
   bench/gpu/hook.cu does the work. Or it times whole solves from the host's
   memory with these lists, by which the plans of gpu_sp/layout.cu were chosen.
   */
#include "bench/gpu/peers.h"
#include "bench/gpu/search_solve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

const char usage[] =
    "usage: search_lu [--complex] [--spd] [--arrive | --solve] [--threads T]\n"
    "                 [--arithmetic K] [--rounds R] N ...\n"
    "Factors random matrices of these orders (1 .. 65536) in every way: outer\n"
    "panels of 64 to 1024 columns, strips of 2048 to 16384, with look-ahead\n"
    "and without; --spd: by Cholesky, whose products along the diagonal are\n"
    "varied too; --arrive: from the host's memory by T (16) threads, with\n"
    "every list of parts; --solve: whole solves from there, with at most T\n"
    "threads, again with every list. Prints the ways by their times, the\n"
    "fastest first; each has R (5) rounds in two turns. K, but not of whole\n"
    "solves: 0 FP16x3, 1 FP32, 2 TF32, 3 BF16x3.\n";

struct Wanted {
  bool complex = false, spd = false, arrive = false, solve = false;
  int arithmetic = 0, rounds = 5, threads = 0;
  bool from_host() const { return arrive || solve; }
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

enum { LISTS = 10 }; /* of gpu_sp/factor/load.cu */

Way way_of(const Wanted &wanted, int64_t outer, int64_t strip,
           int64_t ahead_from, int64_t diagonal, int64_t feed) {
  return {{wanted.arithmetic, wanted.spd ? 1 : 0, 0, outer, strip, ahead_from,
           diagonal, feed},
          {}};
}

/* The first way is the library's own. */
std::vector<Way> ways_for(const Wanted &wanted, int64_t n) {
  std::vector<Way> ways(1, way_of(wanted, 0, 0, 0, 0, 0));
  for (const int64_t ahead_from : {int64_t{1}, n + 1}) {
    for (int64_t feed = 1; wanted.from_host() && feed <= LISTS; feed++)
      for (const int64_t outer : {64, 128, 256, 512})
        if (outer <= n && (outer > 64 || wanted.complex))
          ways.push_back(way_of(wanted, outer, 0, ahead_from, 0, feed));
    for (const int64_t diagonal : {256, 512, 2048, 4096, 65536})
      if (wanted.spd && !wanted.from_host())
        ways.push_back(way_of(wanted, 0, 0, ahead_from, diagonal, 0));
    for (const int64_t outer : {64, 128, 256, 512, 1024})
      for (const int64_t strip : {2048, 4096, 8192, 16384})
        if (!wanted.from_host() && outer <= n && (strip <= n || strip == 2048))
          ways.push_back(way_of(wanted, outer, strip, ahead_from, 0, 0));
  }
  return ways;
}

void print(const std::vector<Way> &ways, int64_t n) {
  for (const Way &way : ways) {
    const hone_bench_form &f = way.form;
    const auto ends = std::minmax_element(way.ms.begin(), way.ms.end());
    printf("%10.4g ms (%.4g .. %.4g)  ", way.median(), *ends.first,
           *ends.second);
    if (f.ahead_from == 0) {
      printf("the library's own\n");
      continue;
    }
    const struct {
      const char *name;
      int64_t value;
    } chosen[] = {{"outer", f.outer},
                  {"strip", f.strip},
                  {"diagonal", f.diagonal},
                  {"list of parts", f.feed}};
    for (const auto &choice : chosen)
      if (choice.value > 0)
        printf("%s %lld, ", choice.name, static_cast<long long>(choice.value));
    printf("%s\n", f.ahead_from > n ? "no look-ahead" : "look-ahead");
  }
}

/* Returns a hash of k in [-1, 1). */
double random_number(int64_t k) {
  uint64_t v = static_cast<uint64_t>(k) * 0x9e3779b97f4a7c15U;
  v = (v ^ v >> 32) * 0xd6e8feb86659fd93U;
  return static_cast<double>(v >> 11) * 0x1p-52 - 1.0;
}

/* A random matrix, on the device in single precision or in the host's memory in
   double precision. If that is wanted its diagonal makes it positive definite:
   on the device, where one triangle is read, without making it symmetric. */
struct Matrix {
  float *there = nullptr;
  std::vector<double> here;
  std::string why;

  Matrix(const Wanted &wanted, int64_t n) {
    const int64_t parts = wanted.complex ? 2 : 1;
    if (wanted.from_host()) {
      fill(wanted, n, parts);
      return;
    }
    fill_there(n * n * parts);
    if (wanted.spd && why.empty())
      set_diagonal(n, parts);
  }
  ~Matrix() { cudaFree(there); }
  Matrix(const Matrix &) = delete;
  Matrix &operator=(const Matrix &) = delete;

private:
  /* The largest eigenvalue of the rest is below it. */
  static double diagonal(int64_t n) {
    return 2.0 * std::sqrt(static_cast<double>(n));
  }
  static double entry(bool spd, int64_t n, int64_t i, int64_t j, int64_t part,
                      int64_t parts) {
    if (!spd || i < j)
      return random_number((i + j * n) * parts + part);
    if (i == j)
      return part == 0 ? diagonal(n) : 0.0;
    const double mirrored = random_number((j + i * n) * parts + part);
    return part == 0 ? mirrored : -mirrored;
  }
  void fill(const Wanted &wanted, int64_t n, int64_t parts) {
    const int threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const bool spd = wanted.spd;
    here.resize(static_cast<size_t>(n * n * parts));
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
      all.emplace_back([=] {
        for (int64_t j = n * t / threads; j < n * (t + 1) / threads; j++)
          for (int64_t k = 0; k < n * parts; k++)
            here[static_cast<size_t>(j * n * parts + k)] =
                entry(spd, n, k / parts, j, k % parts, parts);
      });
    for (std::thread &one : all)
      one.join();
  }
  void fill_there(int64_t floats) {
    Calls c;
    if (c.ok(cudaMalloc(&there, static_cast<size_t>(floats) * sizeof *there),
             "cudaMalloc"))
      why = device_fill(there, floats, false, 1);
    else
      why = c.why;
  }
  void set_diagonal(int64_t n, int64_t parts) {
    const size_t entry = static_cast<size_t>(parts) * sizeof(float);
    std::vector<float> numbers(static_cast<size_t>(n * parts), 0.0F);
    for (int64_t i = 0; i < n; i++)
      numbers[static_cast<size_t>(i * parts)] = static_cast<float>(diagonal(n));
    Calls c;
    if (!c.ok(cudaMemcpy2D(there, static_cast<size_t>(n + 1) * entry,
                           numbers.data(), entry, entry, static_cast<size_t>(n),
                           cudaMemcpyHostToDevice),
              "cudaMemcpy2D"))
      why = c.why;
  }
};

/* Times one way. Returns why it failed, or an empty text. */
std::string time_way(const Wanted &wanted, int64_t n, const Matrix &a,
                     Way *way) {
  if (wanted.solve)
    return time_solves(way->form, wanted.complex, n, a.here.data(),
                       wanted.threads, wanted.rounds, &way->ms);
  std::vector<double> ms(static_cast<size_t>(wanted.rounds));
  char why[200] = "";
  int failed = 0;
  if (wanted.arrive)
    failed =
        (wanted.complex ? hone_z_bench_form_arrive : hone_bench_form_arrive)(
            &way->form, n, a.here.data(), n,
            wanted.threads > 0 ? wanted.threads : 16, wanted.rounds, ms.data(),
            why, sizeof why);
  else
    failed =
        (wanted.complex ? hone_z_bench_form_factor : hone_bench_form_factor)(
            &way->form, n, a.there, n, wanted.rounds, ms.data(), nullptr, why,
            sizeof why);
  way->ms.insert(way->ms.end(), ms.begin(), ms.end());
  if (failed == 0)
    return "";
  return why[0] != 0 ? why : "no such arithmetic";
}

/* Returns why it failed, or an empty text. */
std::string search(const Wanted &wanted, int64_t n) {
  const Matrix a(wanted, n);
  std::string failed = a.why;
  std::vector<Way> ways = ways_for(wanted, n);
  for (int turn = 0; turn < 2; turn++) {
    for (Way &way : ways)
      if (failed.empty())
        failed = time_way(wanted, n, a, &way);
    std::reverse(ways.begin(), ways.end());
  }
  if (!failed.empty())
    return failed;
  std::stable_sort(ways.begin(), ways.end(), [](const Way &x, const Way &y) {
    return x.median() < y.median();
  });
  printf("n = %lld, %s%s%s\n", static_cast<long long>(n),
         wanted.complex ? "complex" : "real", wanted.spd ? ", Cholesky" : "",
         wanted.arrive  ? ", from the host"
         : wanted.solve ? ", whole solves"
                        : "");
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
    else if (strcmp(argv[i], "--spd") == 0)
      wanted.spd = true;
    else if (strcmp(argv[i], "--arrive") == 0)
      wanted.arrive = true;
    else if (strcmp(argv[i], "--solve") == 0)
      wanted.solve = true;
    else if (strcmp(argv[i], "--threads") == 0) {
      fine = parse(argv[++i], 1024, &value) && value > 0;
      wanted.threads = static_cast<int>(value);
    } else if (strcmp(argv[i], "--arithmetic") == 0) {
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
  if (orders.empty() || (wanted.arrive && wanted.solve) ||
      (wanted.solve && wanted.arithmetic != 0)) {
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

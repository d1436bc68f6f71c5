/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times hone_batch_solve beside a loop over dgesv or zgesv that as many threads
 * share, and beside one reading of all matrices. `bench_batch --help` for
 * options.
 *
 * The methods take turns, each round beginning with another one; the first
 * round is not counted, and ratios are formed within a round. The threads of
 * the loop exist before it is timed and take systems in portions, as the
 * library's do; OpenBLAS has one thread in each. The loop's copies of A and b,
 * which the routines overwrite, are made untimed. Backward errors are computed
 * in long double, of every 37th system.
 */
#include "bench/harness/bench.h"

extern "C" {
#include "api/hone.h"
#include "base/lapack.h"
void zgesv_(const int *n, const int *nrhs, std::complex<double> *a,
            const int *lda, int *ipiv, std::complex<double> *b, const int *ldb,
            int *info);
}

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

namespace {

using complex = std::complex<double>;

double now_ms() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::milli>(
             clock::now().time_since_epoch())
      .count();
}

/* Threads that wait, spinning, for work in portions. */
class Team {
public:
  explicit Team(int threads) {
    for (int t = 1; t < threads; t++)
      others_.emplace_back([this] { follow(); });
  }
  ~Team() {
    run(0, nullptr);
    for (std::thread &t : others_)
      t.join();
  }
  /* Calls work(from, to) for portions of 0 .. count - 1; NULL ends. */
  void run(int64_t count, const std::function<void(int64_t, int64_t)> *work) {
    work_ = work;
    count_ = count;
    next_ = 0;
    busy_ = static_cast<int>(others_.size());
    turn_++;
    if (work)
      take();
    while (work && busy_ > 0)
      std::this_thread::yield();
  }

private:
  void take() {
    const int64_t portion = std::max<int64_t>(
        1, count_ / (16 * static_cast<int64_t>(others_.size() + 1)));
    for (int64_t from = next_.fetch_add(portion); from < count_;
         from = next_.fetch_add(portion))
      (*work_)(from, std::min(from + portion, count_));
  }
  void follow() {
    for (int turn = 0;;) {
      while (turn_ == turn)
        std::this_thread::yield();
      turn = turn_;
      if (!work_)
        return;
      take();
      busy_--;
    }
  }
  std::vector<std::thread> others_;
  const std::function<void(int64_t, int64_t)> *work_ = nullptr;
  int64_t count_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<int> busy_{0}, turn_{0};
};

/* Random systems with entries in [-1, 1]. */
template <class T> struct Batch {
  int n;
  int64_t count;
  std::vector<T> a, b, x, factored;
  std::vector<hone_batch_result> results;
  double sum = 0.0; /* of all entries, so that they are read */

  Batch(int order, int64_t systems, uint64_t seed)
      : n(order), count(systems), a(at(n, count)), b(at(1, count)), x(b.size()),
        factored(a.size()), results(static_cast<size_t>(count)) {
    std::mt19937_64 bits(seed);
    std::uniform_real_distribution<double> number(-1.0, 1.0);
    double *part = reinterpret_cast<double *>(a.data());
    for (size_t i = 0; i < a.size() * sizeof(T) / sizeof(double); i++)
      part[i] = number(bits);
    for (T &v : b)
      v = number(bits);
  }
  size_t at(int64_t columns, int64_t k) const {
    return static_cast<size_t>(k) * static_cast<size_t>(columns * n);
  }
};

int solve(const hone_batch &b, const hone_options &o, hone_batch_result *r) {
  return hone_batch_solve(&b, &o, r, nullptr);
}
int solve(const hone_z_batch &b, const hone_options &o, hone_batch_result *r) {
  return hone_z_batch_solve(&b, &o, r, nullptr);
}
hone_batch init(const double *) { return HONE_BATCH_INIT; }
hone_z_batch init(const complex *) { return HONE_Z_BATCH_INIT; }

int gesv(int n, double *a, int *pivots, double *b) {
  const int one = 1;
  int info = 0;
  dgesv_(&n, &one, a, &n, pivots, b, &n, &info);
  return info;
}
int gesv(int n, complex *a, int *pivots, complex *b) {
  const int one = 1;
  int info = 0;
  zgesv_(&n, &one, a, &n, pivots, b, &n, &info);
  return info;
}

template <class T> std::string by_hone(Batch<T> *s, int threads) {
  auto batch = init(s->a.data());
  hone_options options = HONE_OPTIONS_INIT;
  options.threads = threads;
  batch.count = s->count;
  batch.n = batch.lda = batch.ldb = batch.ldx = s->n;
  batch.nrhs = 1;
  batch.a = s->a.data();
  batch.stride_a = static_cast<int64_t>(s->n) * s->n;
  batch.b = s->b.data();
  batch.x = s->x.data();
  batch.stride_b = batch.stride_x = s->n;
  const int status = solve(batch, options, s->results.data());
  return status == HONE_OK ? "" : hone_status_text(status);
}

template <class T> std::string by_loop(Batch<T> *s, Team *team) {
  std::atomic<int> failed{0};
  const std::function<void(int64_t, int64_t)> work = [&](int64_t from,
                                                         int64_t to) {
    std::vector<int> pivots(static_cast<size_t>(s->n));
    for (int64_t k = from; k < to; k++)
      failed += gesv(s->n, &s->factored[s->at(s->n, k)], pivots.data(),
                     &s->x[s->at(1, k)]) != 0;
  };
  team->run(s->count, &work);
  return failed == 0 ? "" : "singular";
}

template <class T> std::string by_reading(Batch<T> *s, Team *team) {
  std::atomic<int64_t> odd{0};
  const std::function<void(int64_t, int64_t)> work = [&](int64_t from,
                                                         int64_t to) {
    const double *part = reinterpret_cast<const double *>(s->a.data());
    const size_t by = sizeof(T) / sizeof(double);
    double sum[16] = {0.0};
    const size_t end = by * s->at(s->n, to);
    for (size_t i = by * s->at(s->n, from); i + 16 <= end; i += 16)
      for (size_t l = 0; l < 16; l++)
        sum[l] += part[i + l];
    for (double v : sum)
      odd += v > 0.0;
  };
  team->run(s->count, &work);
  s->sum += static_cast<double>(odd);
  return "";
}

/* The larger of two errors; a NaN stays. */
template <class Real> Real larger(Real worst, Real e) {
  return std::isnan(worst) || e <= worst ? worst : e;
}

/* The largest componentwise backward error of some systems. */
template <class T> double error_of(const Batch<T> &s) {
  using wide = std::complex<long double>;
  long double worst = 0.0L;
  for (int64_t k = 0; k < s.count; k += 37)
    for (int i = 0; i < s.n; i++) {
      wide r = s.b[s.at(1, k) + static_cast<size_t>(i)];
      long double den = std::abs(r);
      for (int j = 0; j < s.n; j++) {
        const wide a = s.a[s.at(s.n, k) + static_cast<size_t>(i + j * s.n)];
        const wide x = s.x[s.at(1, k) + static_cast<size_t>(j)];
        r -= a * x;
        den += std::abs(a) * std::abs(x);
      }
      const long double omega = std::abs(r) / den;
      worst = larger(worst, omega);
    }
  return static_cast<double>(worst);
}

/* One table of three methods for an order. */
template <class T>
void measure(Bench *bench, const char *kind, int n, Team *team) {
  const int64_t bytes = static_cast<int64_t>(n) * n * sizeof(T);
  const int64_t count =
      std::min<int64_t>(10000, std::max<int64_t>(64, (48 << 20) / bytes)) / 8 *
      8;
  Batch<T> s(n, count, bench->c.seed);
  const int rounds = bench->c.rounds > 0 ? bench->c.rounds : 9;
  std::vector<Method> methods(3);
  const std::string names[] = {"Hone batch", "loop over gesv",
                               "one reading of A"};
  for (size_t m = 0; m < methods.size(); m++) {
    methods[m].name = names[m];
    methods[m].group = m == 0 ? OURS : PAGEABLE;
  }
  for (int round = -1; round < rounds; round++)
    for (size_t turn = 0; turn < methods.size(); turn++) {
      const size_t m = (turn + static_cast<size_t>(round + 1)) % 3;
      if (m == 1) {
        s.factored = s.a;
        s.x = s.b;
      }
      const double start = now_ms();
      methods[m].failed = m == 0   ? by_hone(&s, bench->c.host_threads)
                          : m == 1 ? by_loop(&s, team)
                                   : by_reading(&s, team);
      const double ms = (now_ms() - start) / static_cast<double>(count);
      if (round >= 0)
        methods[m].ms.push_back(ms);
      if (m < 2)
        methods[m].error = larger(methods[m].error, error_of(s));
      methods[m].checked++;
    }
  const Spread peer = ratio(methods[1], methods[0]);
  const Spread floor = ratio(methods[0], methods[2]);
  printf("%-8s %4d %6lld  %9.3f %9.3f  %-20s %8.1f  %8.1e %8.1e\n", kind, n,
         static_cast<long long>(count), 1e3 * spread(methods[0].ms).median,
         1e3 * spread(methods[1].ms).median, text_of(peer, "%.2f").c_str(),
         floor.median, methods[0].error, methods[1].error);
  fflush(stdout);
  bench->record.add(
      text("\"section\": \"batch\", \"kind\": \"%s\", \"n\": %d, \"nrhs\": 1, "
           "\"count\": %lld, \"threads\": %d",
           kind, n, static_cast<long long>(count), bench->c.host_threads),
      methods, 0);
}

int run(Bench *bench, int argc, char **argv) {
  bench->c.host_threads =
      bench->c.threads > 0
          ? bench->c.threads
          : static_cast<int>(std::thread::hardware_concurrency());
  state_program(bench, argc, argv);
  state(bench, "device", "CPU");
  state_host(bench);
  hone_blas_set_threads(1);
  Team team(bench->c.host_threads);
  printf("Times for one system in us; ratios are medians (lowest .. highest); "
         "error: componentwise backward error\n"
         "kind        n  count       Hone      gesv  gesv / Hone      Hone / "
         "reading   error     gesv's\n");
  for (const std::string &size : bench->c.sizes)
    measure<double>(bench, "real", std::stoi(size), &team);
  for (const std::string &size : bench->c.sizes)
    measure<complex>(bench, "complex", std::stoi(size), &team);
  return bench->record.save() ? 0 : 2;
}

} // namespace

int main(int argc, char **argv) {
  Bench bench;
  bench.c.sizes = {"4",  "8",  "12",  "16",  "24",  "32",  "48", "64",
                   "80", "96", "112", "128", "160", "192", "256"};
  for (int i = 1; i < argc; i += 2)
    if (i + 1 >= argc || !parse_common(&bench.c, argv[i], argv[i + 1])) {
      fprintf(stderr, "usage: bench_batch [options]\n%s", common_usage);
      return 2;
    }
  bench.record = Record(bench.c.json_name);
  return run(&bench, argc, argv);
}

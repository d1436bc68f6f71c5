/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of many small systems at once: hone_batch_solve beside cuBLAS's
   getrfBatched and getrsBatched, or for definite ones cuSOLVER's potrfBatched
   and potrsBatched, all in FP64. See gpu_bench.h.

   In most tables A, b and x lie in device memory. The peers overwrite A and b,
   and their copies are made on the device, untimed; the clock stops when the
   device has finished. Hone leaves its results on the host or on the device, as
   cuBLAS does its infos. Hone's kernel alone, timed by events, shows which part
   of its time a call spends on the host. Where the systems lie in pageable host
   memory, the peers get A and b by cudaMemcpy, and x comes back so, timed. The
   floor is one reading of A by a kernel, or one cudaMemcpy of A to the device.

   Errors are componentwise backward errors in long double, of other systems in
   each round, as many as have a million entries together. */
#include "bench/gpu/batch_kernel.h"

extern "C" {
#include "api/hone.h"
}

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <memory>

namespace {

using complex = std::complex<double>;

/* 'wanted' is the goal for Hone's time; 0: none. */
struct Table {
  const char *kind;
  int parts; /* of a number */
  bool definite, from_host;
  int n;
  int64_t count;
  double wanted_ms;
};

/* Small orders first: they end soon, and show what a call costs by itself. */
const Table tables[] = {
    {"real", 1, false, false, 8, 10000, 0.025},
    {"real", 1, false, false, 16, 10000, 0.04},
    {"complex", 2, false, false, 16, 10000, 0.0},
    {"real", 1, false, false, 32, 10000, 0.10},
    {"definite", 1, true, false, 32, 10000, 0.10},
    {"complex", 2, false, false, 32, 10000, 0.3},
    {"real", 1, false, false, 64, 10000, 0.6},
    {"definite", 1, true, false, 64, 10000, 0.4},
    {"complex", 2, false, false, 64, 10000, 1.6},
    {"from the host", 1, false, true, 64, 10000, 0.0},
    {"real", 1, false, false, 128, 10000, 2.4},
    {"definite", 1, true, false, 128, 10000, 1.5},
    {"complex", 2, false, false, 128, 10000, 7.0},
    {"real", 1, false, false, 256, 4096, 8.0},
    {"definite", 1, true, false, 256, 4096, 4.5},
    {"complex", 2, false, false, 256, 2048, 0.0},
    {"real", 1, false, false, 512, 1024, 10.0},
    {"real", 1, false, false, 1024, 256, 0.0},
};

/* From host memory Hone is to take at most so many times as long as the copy
   of A alone. */
const double FROM_HOST = 1.3;

int solve(const hone_batch &b, const hone_options &o, hone_batch_result *r) {
  return hone_batch_solve(&b, &o, r, nullptr);
}
int solve(const hone_z_batch &b, const hone_options &o, hone_batch_result *r) {
  return hone_z_batch_solve(&b, &o, r, nullptr);
}
hone_batch init(const double *) { return HONE_BATCH_INIT; }
hone_z_batch init(const complex *) { return HONE_Z_BATCH_INIT; }

/* Arrays of pointers to count matrices and right-hand sides, for the peers. */
struct Peer_arrays {
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  int n, count;
  void **a, **b;
  int *pivots, *info;
};

bool lu(const Peer_arrays &p, Calls *c, const double *) {
  const auto a = reinterpret_cast<double **>(p.a);
  const auto b = reinterpret_cast<double **>(p.b);
  int wrong = 0;
  return c->ok(cublasDgetrfBatched(p.blas, p.n, a, p.n, p.pivots, p.info,
                                   p.count),
               "getrfBatched") &&
         c->ok(cublasDgetrsBatched(p.blas, CUBLAS_OP_N, p.n, 1, a, p.n,
                                   p.pivots, b, p.n, &wrong, p.count),
               "getrsBatched");
}

bool lu(const Peer_arrays &p, Calls *c, const complex *) {
  const auto a = reinterpret_cast<cuDoubleComplex **>(p.a);
  const auto b = reinterpret_cast<cuDoubleComplex **>(p.b);
  int wrong = 0;
  return c->ok(cublasZgetrfBatched(p.blas, p.n, a, p.n, p.pivots, p.info,
                                   p.count),
               "getrfBatched") &&
         c->ok(cublasZgetrsBatched(p.blas, CUBLAS_OP_N, p.n, 1, a, p.n,
                                   p.pivots, b, p.n, &wrong, p.count),
               "getrsBatched");
}

bool cholesky(const Peer_arrays &p, Calls *c) {
  const auto a = reinterpret_cast<double **>(p.a);
  const auto b = reinterpret_cast<double **>(p.b);
  const auto lower = CUBLAS_FILL_MODE_LOWER;
  return c->ok(cusolverDnDpotrfBatched(p.solver, lower, p.n, a, p.n, p.info,
                                       p.count),
               "potrfBatched") &&
         c->ok(cusolverDnDpotrsBatched(p.solver, lower, p.n, 1, a, p.n, b, p.n,
                                       p.info, p.count),
               "potrsBatched");
}

/* A thread's sums are stored only if they are a number that they never are. */
__global__ void read_all(const double *a, int64_t count, double *out) {
  double sum = 0.0;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
       i < count; i += static_cast<int64_t>(gridDim.x) * blockDim.x)
    sum += a[i];
  if (sum == 1e300)
    *out = sum;
}

/* The larger of two errors; a NaN stays. */
template <class Real> Real larger(Real worst, Real e) {
  return std::isnan(worst) || e <= worst ? worst : e;
}

/* The systems, on the host and on the device. */
template <class T> class Batch {
public:
  Batch(const Table &t, uint64_t seed)
      : t_(t), size_(static_cast<size_t>(t.n)),
        a_(static_cast<size_t>(t.count) * size_ * size_),
        b_(static_cast<size_t>(t.count) * size_), x_(b_.size()),
        results_(static_cast<size_t>(t.count)) {
    fill(seed);
  }
  ~Batch() {
    cublasDestroy(p_.blas);
    cusolverDnDestroy(p_.solver);
    void *const all[] = {d_a_,    d_b_,      d_x_,    f_,        y_,
                         d_list_, p_.pivots, p_.info, d_results_};
    for (void *at : all)
      cudaFree(at);
  }
  Batch(const Batch &) = delete;
  Batch &operator=(const Batch &) = delete;

  std::string open() {
    Calls c;
    const size_t all = a_.size() * sizeof(T), sides = b_.size() * sizeof(T);
    const size_t count = static_cast<size_t>(t_.count);
    (void)(c.ok(cublasCreate(&p_.blas), "cublasCreate") &&
           c.ok(cusolverDnCreate(&p_.solver), "cusolverDnCreate") &&
           c.ok(cudaMalloc(&d_a_, all), "cudaMalloc of A") &&
           c.ok(cudaMalloc(&f_, all), "cudaMalloc of the factors") &&
           c.ok(cudaMalloc(&d_b_, sides), "cudaMalloc of b") &&
           c.ok(cudaMalloc(&d_x_, sides), "cudaMalloc of x") &&
           c.ok(cudaMalloc(&y_, sides), "cudaMalloc of the peer's x") &&
           c.ok(cudaMalloc(&d_list_, 2 * count * sizeof *d_list_),
                "cudaMalloc of lists") &&
           c.ok(cudaMalloc(&p_.pivots, b_.size() * sizeof(int)),
                "cudaMalloc of pivots") &&
           c.ok(cudaMalloc(&p_.info, count * sizeof(int)),
                "cudaMalloc of info") &&
           c.ok(cudaMalloc(&d_results_, count * sizeof *d_results_),
                "cudaMalloc of results") &&
           c.ok(cudaMemcpy(d_a_, a_.data(), all, cudaMemcpyHostToDevice),
                "copy of A") &&
           c.ok(cudaMemcpy(d_b_, b_.data(), sides, cudaMemcpyHostToDevice),
                "copy of b"));
    if (c.why.empty())
      c.why =
          kernel_.open(t_.parts, t_.definite, t_.n, t_.count, d_a_, d_b_, d_x_);
    return c.why.empty() ? make_lists() : c.why;
  }

  /* Every x becomes NaN, so that none of another method is taken for an
     answer; for a peer that overwrites A and b, copies are made. */
  std::string prepare(bool peer) {
    Calls c;
    const size_t all = a_.size() * sizeof(T), sides = b_.size() * sizeof(T);
    const double nan[2] = {NAN, NAN};
    T none;
    memcpy(&none, nan, sizeof none);
    std::fill(x_.begin(), x_.end(), none);
    (void)(c.ok(cudaMemset(d_x_, 0xff, sides), "cudaMemset of x") &&
           (!peer || t_.from_host ||
            (c.ok(cudaMemcpy(f_, d_a_, all, cudaMemcpyDeviceToDevice),
                  "copy of A") &&
             c.ok(cudaMemcpy(y_, d_b_, sides, cudaMemcpyDeviceToDevice),
                  "copy of b"))) &&
           c.ok(cudaDeviceSynchronize(), "preparation"));
    return c.why;
  }

  std::string by_hone(int threads, bool results_there) {
    auto batch = init(a_.data());
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CUDA;
    o.threads = threads;
    o.structure = t_.definite ? HONE_STRUCTURE_SPD : HONE_STRUCTURE_AUTO;
    batch.count = t_.count;
    batch.n = batch.lda = batch.ldb = batch.ldx = t_.n;
    batch.stride_b = batch.stride_x = t_.n;
    batch.stride_a = static_cast<int64_t>(t_.n) * t_.n;
    batch.nrhs = 1;
    batch.a = t_.from_host ? a_.data() : d_a_;
    batch.b = t_.from_host ? b_.data() : d_b_;
    batch.x = t_.from_host ? x_.data() : d_x_;
    const int st =
        solve(batch, o, results_there ? d_results_ : results_.data());
    return st == HONE_OK ? "" : hone_status_text(st);
  }

  std::string by_kernel(double *ms) { return kernel_.run(ms); }

  std::string by_peer() {
    Calls c;
    const size_t all = a_.size() * sizeof(T), sides = b_.size() * sizeof(T);
    if (t_.from_host)
      (void)(c.ok(cudaMemcpy(f_, a_.data(), all, cudaMemcpyHostToDevice),
                  "copy of A") &&
             c.ok(cudaMemcpy(y_, b_.data(), sides, cudaMemcpyHostToDevice),
                  "copy of b"));
    if (!c.why.empty() ||
        !(t_.definite ? cholesky(p_, &c) : lu(p_, &c, a_.data())))
      return c.why;
    if (t_.from_host)
      c.ok(cudaMemcpy(x_.data(), y_, sides, cudaMemcpyDeviceToHost),
           "copy of x");
    else
      c.ok(cudaDeviceSynchronize(), "the batched solver");
    return c.why;
  }

  std::string by_reading() {
    Calls c;
    if (t_.from_host) {
      c.ok(cudaMemcpy(f_, a_.data(), a_.size() * sizeof(T),
                      cudaMemcpyHostToDevice),
           "copy of A");
      return c.why;
    }
    read_all<<<2048, 512>>>(
        reinterpret_cast<const double *>(d_a_),
        static_cast<int64_t>(a_.size() * sizeof(T) / sizeof(double)),
        reinterpret_cast<double *>(d_x_));
    (void)(c.ok(cudaGetLastError(), "reading") &&
           c.ok(cudaDeviceSynchronize(), "reading"));
    return c.why;
  }

  /* Brings the answers of the last method to the host, if they are not there,
     and its results. */
  std::string fetch(bool peer, bool results_there) {
    Calls c;
    if (results_there)
      c.ok(cudaMemcpy(results_.data(), d_results_,
                      results_.size() * sizeof results_[0],
                      cudaMemcpyDeviceToHost),
           "copy of results");
    if (!t_.from_host)
      c.ok(cudaMemcpy(x_.data(), peer ? y_ : d_x_, x_.size() * sizeof(T),
                      cudaMemcpyDeviceToHost),
           "copy of x");
    return c.why;
  }

  /* The largest backward error of some systems, other ones in each round. */
  double error(int round) const {
    const int64_t entries = static_cast<int64_t>(t_.n) * t_.n;
    const int64_t step = t_.count * entries / 1000000 + 1;
    double worst = 0.0;
    for (int64_t k = round % step; k < t_.count; k += step)
      worst = larger(worst, error_of(k));
    return worst;
  }

  /* How the systems were solved, in one line. */
  std::string note() const {
    int64_t accepted = 0;
    double bound = 0.0;
    for (const hone_batch_result &r : results_) {
      accepted += r.status == HONE_OK;
      bound = std::max(bound, r.forward_error);
    }
    return text("%lld of %lld accepted, largest error bound %.1e",
                static_cast<long long>(accepted),
                static_cast<long long>(t_.count), bound);
  }

private:
  /* Entries uniform in [-0.5, 0.5); definite matrices are symmetric, with a
     diagonal of 2 sqrt(n), which is beyond the norm of the rest, sqrt(n / 3).
   */
  void fill(uint64_t seed) {
    uint64_t state = seed * 0x9e3779b97f4a7c15U + 1;
    const auto next = [&state] {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      return static_cast<double>(state >> 11) * 0x1p-53 - 0.5;
    };
    const size_t parts = sizeof(T) / sizeof(double);
    double *a = reinterpret_cast<double *>(a_.data());
    double *b = reinterpret_cast<double *>(b_.data());
    for (size_t i = 0; i < a_.size() * parts; i++)
      a[i] = next();
    for (size_t i = 0; i < b_.size() * parts; i++)
      b[i] = next();
    if (!t_.definite)
      return;
    for (size_t k = 0; k < a_.size(); k += size_ * size_)
      for (size_t j = 0; j < size_; j++) {
        a_[k + j + j * size_] = 2.0 * std::sqrt(static_cast<double>(t_.n));
        for (size_t i = 0; i < j; i++)
          a_[k + i + j * size_] = a_[k + j + i * size_];
      }
  }

  std::string make_lists() {
    Calls c;
    const size_t count = static_cast<size_t>(t_.count);
    std::vector<void *> list(2 * count);
    for (size_t k = 0; k < count; k++) {
      list[k] = f_ + k * size_ * size_;
      list[count + k] = y_ + k * size_;
    }
    c.ok(cudaMemcpy(d_list_, list.data(), list.size() * sizeof list[0],
                    cudaMemcpyHostToDevice),
         "copy of lists");
    p_.n = t_.n;
    p_.count = static_cast<int>(t_.count);
    p_.a = d_list_;
    p_.b = d_list_ + count;
    return c.why;
  }

  double error_of(int64_t k) const {
    using wide = std::complex<long double>;
    const T *a = a_.data() + static_cast<size_t>(k) * size_ * size_;
    const T *b = b_.data() + static_cast<size_t>(k) * size_;
    const T *x = x_.data() + static_cast<size_t>(k) * size_;
    long double worst = 0.0L;
    for (size_t i = 0; i < size_; i++) {
      wide r = b[i];
      long double den = std::abs(r);
      for (size_t j = 0; j < size_; j++) {
        const wide entry = a[i + j * size_], at = x[j];
        r -= entry * at;
        den += std::abs(entry) * std::abs(at);
      }
      worst = larger(worst, std::abs(r) / den);
    }
    return static_cast<double>(worst);
  }

  Table t_;
  size_t size_; /* n */
  std::vector<T> a_, b_, x_;
  std::vector<hone_batch_result> results_;
  hone_batch_result *d_results_ = nullptr;
  T *d_a_ = nullptr, *d_b_ = nullptr, *d_x_ = nullptr; /* on the device */
  T *f_ = nullptr, *y_ = nullptr; /* the peers' A, and b that becomes x */
  void **d_list_ = nullptr;
  Peer_arrays p_ = {};
  Batch_kernel kernel_;
};

enum { HONE, THERE, KERNEL, PEER, FLOOR, METHODS };

template <class T> std::string run_once(Batch<T> *s, int m, int threads) {
  return m == HONE || m == THERE ? s->by_hone(threads, m == THERE)
         : m == PEER             ? s->by_peer()
                                 : s->by_reading();
}

/* The milliseconds of one run: the kernel alone is timed by events, all else by
   the clock. */
template <class T>
std::string time_once(Batch<T> *s, int m, int threads, double *ms) {
  if (m == KERNEL)
    return s->by_kernel(ms);
  const double start = now_s();
  const std::string failed = run_once(s, m, threads);
  *ms = 1e3 * (now_s() - start);
  return failed;
}

/* One turn of a method; round -1 is not counted. */
template <class T>
void turn(Batch<T> *s, int m, int round, int threads, Method *method) {
  method->failed = s->prepare(m == PEER);
  if (!method->failed.empty())
    return;
  double ms = NAN;
  method->failed = time_once(s, m, threads, &ms);
  if (round < 0)
    return;
  method->ms.push_back(method->failed.empty() ? ms : NAN);
  if (m == FLOOR || m == KERNEL || !method->failed.empty())
    return;
  method->failed = s->fetch(m == PEER, m == THERE);
  const double e = s->error(round);
  method->error = larger(method->error, e);
  method->accepted = method->accepted && e <= 4.04 * 0x1p-53;
  method->checked++;
  if (m != PEER)
    method->note = s->note();
}

template <class T> void measure_table(Bench *bench, const Table &t) {
  std::vector<Method> m(METHODS);
  m[HONE].name = "Hone batch";
  m[THERE].name = "Hone batch, results on the device";
  m[KERNEL].name = "Hone's kernel alone";
  m[KERNEL].group = PAGEABLE;
  m[PEER].name = t.definite ? "potrfBatched + potrsBatched"
                            : "getrfBatched + getrsBatched";
  m[PEER].group = PAGEABLE;
  m[FLOOR].name = t.from_host ? "A to the device" : "one reading of A";
  m[FLOOR].group = PAGEABLE;
  const auto s = std::make_unique<Batch<T>>(t, bench->c.seed);
  const std::string failed = s->open();
  const int rounds = bench->c.rounds > 0 ? bench->c.rounds : 9;
  for (Method &method : m)
    method.failed = failed;
  if (t.from_host && failed.empty())
    m[THERE].failed = "the systems are on the host";
  for (int round = -1; round < rounds; round++)
    for (int k = 0; k < METHODS; k++) {
      const int now = (k + round + 1) % METHODS;
      if (m[now].failed.empty())
        turn(s.get(), now, round, bench->c.threads, &m[now]);
    }
  print_table(
      text("%s, %lld of n = %d", t.kind, static_cast<long long>(t.count), t.n),
      m, HONE, "backward error");
  const double wanted =
      t.from_host ? FROM_HOST * spread(m[FLOOR].ms).median : t.wanted_ms;
  if (wanted > 0.0)
    printf("\nwanted: %.3g ms\n", wanted);
  bench->record.add(
      text("\"section\": \"batch\", \"kind\": \"%s\", \"n\": %d, \"nrhs\": 1, "
           "\"count\": %lld, \"threads\": %d, \"wanted\": %s",
           t.kind, t.n, static_cast<long long>(t.count), bench->c.host_threads,
           wanted > 0.0 ? json_number(wanted).c_str() : "null"),
      m, HONE);
}

} // namespace

void batch_section(Bench *bench) {
  printf("\n## Many small systems, most of them in device memory\n");
  for (const Table &t : tables)
    if (!out_of_time(bench, "batch", t.n))
      (t.parts == 1 ? measure_table<double> : measure_table<complex>)(bench, t);
}

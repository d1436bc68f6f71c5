/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of many small systems in pageable host memory that several GPUs
   share: hone_batch_solve on one of them and on all, beside the copy of A alone
   from the same memory, to one and, in equal parts by a thread for each, to
   all. See several.h.

   The library keeps pinned memory for the devices of the last call only, so
   that each timed call follows an untimed one for the same devices. Every
   result must be HONE_OK, and every x of the timed call is checked. */
#include "bench/gpu/several.h"

extern "C" {
#include "api/hone.h"
}

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <memory>

namespace {

const int64_t ORDERS[] = {32, 64, 128, 256};
const int64_t BYTES = INT64_C(1) << 30; /* of all matrices: 16 portions of those
                                          beyond order 128, more of others */

class Batches {
public:
  Batches(Bench *bench, int count) : bench_(bench), devices_(count) {}
  ~Batches();
  Batches(const Batches &) = delete;
  Batches &operator=(const Batches &) = delete;

  std::string open(int64_t n);
  int64_t count() const { return s_.count; }
  /* Solves all systems on one device or, devices = -1, on all. */
  std::string solve(int devices);
  /* Copies A, to so many devices. */
  std::string copy(int devices);
  void forget(); /* makes every x NaN, and every status a failure */
  /* Checks the results and x of the last solve, and notes what it found. */
  void check(Method *m) const;

private:
  Bench *bench_;
  int devices_;
  Systems s_; /* count matrices; their right-hand sides, one after the other */
  std::vector<double> x_;
  std::vector<hone_batch_result> results_;
  hone_report report_ = HONE_REPORT_INIT;
  std::vector<void *> copies_; /* by device */
};

Batches::~Batches() {
  int before = 0;
  (void)cudaGetDevice(&before);
  for (size_t d = 0; d < copies_.size(); d++) {
    (void)cudaSetDevice(static_cast<int>(d));
    (void)cudaFree(copies_[d]);
  }
  (void)cudaSetDevice(before);
  systems_free(&s_);
}

std::string Batches::open(int64_t n) {
  const int64_t size = n * n * static_cast<int64_t>(sizeof(double));
  const int64_t sides = std::max<int64_t>(1, BYTES / size / RIGHT_SIDES);
  const int64_t all = sides * RIGHT_SIDES; /* systems */
  Calls c;
  int before = 0;
  if (!systems_allocate(&s_, n, static_cast<int>(all), sides))
    return "out of host memory";
  systems_fill(&s_, UNIFORM, bench_->c.seed, bench_->c.host_threads);
  x_.resize(static_cast<size_t>(all * n));
  results_.resize(static_cast<size_t>(all));
  copies_.resize(static_cast<size_t>(devices_));
  if (!c.ok(cudaGetDevice(&before), "cudaGetDevice"))
    return c.why;
  for (int d = 0; d < devices_ && c.why.empty(); d++)
    (void)(c.ok(cudaSetDevice(d), "cudaSetDevice") &&
           c.ok(cudaMalloc(&copies_[static_cast<size_t>(d)],
                           static_cast<size_t>(all * size)),
                "cudaMalloc of A"));
  (void)cudaSetDevice(before);
  return c.why;
}

std::string Batches::solve(int devices) {
  hone_batch batch = HONE_BATCH_INIT;
  hone_options o = HONE_OPTIONS_INIT;
  o.device = HONE_DEVICE_CUDA;
  o.devices = devices;
  o.threads = bench_->c.threads;
  batch.count = s_.count;
  batch.n = batch.lda = batch.ldb = batch.ldx = s_.n;
  batch.stride_a = s_.n * s_.n;
  batch.stride_b = batch.stride_x = s_.n;
  batch.nrhs = 1;
  batch.a = s_.a;
  batch.b = s_.b;
  batch.x = x_.data();
  const int st = hone_batch_solve(&batch, &o, results_.data(), &report_);
  return st == HONE_OK ? "" : hone_status_text(st);
}

std::string Batches::copy(int devices) {
  std::vector<Calls> calls(static_cast<size_t>(devices));
  int before = 0;
  (void)cudaGetDevice(&before);
  in_parallel(devices, [&](int d) {
    const size_t k = static_cast<size_t>(d);
    const int64_t from = s_.count * int64_t{d} / devices;
    const int64_t to = s_.count * int64_t{d + 1} / devices;
    const size_t bytes =
        static_cast<size_t>((to - from) * s_.n * s_.n) * sizeof(double);
    (void)(calls[k].ok(cudaSetDevice(d), "cudaSetDevice") &&
           calls[k].ok(cudaMemcpy(copies_[k], s_.matrix(from), bytes,
                                  cudaMemcpyHostToDevice),
                       "copy of A") &&
           calls[k].ok(cudaDeviceSynchronize(), "copy of A"));
  });
  (void)cudaSetDevice(before); /* thread 0 is this one */
  for (const Calls &c : calls)
    if (!c.why.empty())
      return c.why;
  return "";
}

void Batches::forget() {
  std::fill(x_.begin(), x_.end(), NAN);
  for (hone_batch_result &r : results_)
    r.status = HONE_DEVICE_FAILED;
}

void Batches::check(Method *m) const {
  std::vector<double> errors(results_.size());
  std::atomic<int64_t> next{0};
  in_parallel(bench_->c.host_threads, [&](int) {
    for (int64_t k; (k = next++) < s_.count;)
      errors[static_cast<size_t>(k)] = backward_error(
          s_.n, s_.matrix(k), s_.b + k * s_.n, x_.data() + k * s_.n, 1);
  });
  int64_t solved = 0;
  for (size_t k = 0; k < errors.size(); k++) {
    const bool fine = errors[k] <= 4.04 * 0x1p-53;
    solved += results_[k].status == HONE_OK && fine;
    if (!(errors[k] <= m->error) && !std::isnan(m->error))
      m->error = errors[k];
  }
  m->checked++;
  m->accepted = m->accepted && solved == s_.count;
  m->note = text("%lld of %lld accepted, ", static_cast<long long>(solved),
                 static_cast<long long>(s_.count)) +
            report_.path;
}

enum { ONE, ALL, TO_ONE, TO_ALL, METHODS };

/* One turn of a method; round -1 is not counted. */
void turn(Batches *b, int which, int count, int round, Method *m) {
  const bool ours = which == ONE || which == ALL;
  const auto run = [=] {
    return ours ? b->solve(which == ONE ? 0 : -1)
                : b->copy(which == TO_ONE ? 1 : count);
  };
  m->failed = ours ? run() : "";
  if (!m->failed.empty())
    return;
  b->forget();
  const double start = now_s();
  m->failed = run();
  const double ms = 1e3 * (now_s() - start);
  if (round < 0)
    return;
  m->ms.push_back(m->failed.empty() ? ms : NAN);
  if (ours && m->failed.empty())
    b->check(m);
}

void batch_table(Bench *bench, int count, int64_t n) {
  std::vector<Method> m(METHODS);
  m[ONE].name = "Hone batch, one GPU";
  m[ALL].name = "Hone batch, all GPUs";
  m[TO_ONE].name = "A to one GPU";
  m[TO_ALL].name = "A to all GPUs";
  m[TO_ONE].group = m[TO_ALL].group = PAGEABLE;
  Batches b(bench, count);
  const std::string failed = b.open(n);
  const int rounds = bench->c.rounds > 0 ? bench->c.rounds : 7;
  for (Method &method : m)
    method.failed = failed;
  for (int round = -1; round < rounds; round++)
    for (int k = 0; k < METHODS; k++) {
      const int now = (k + round + 1) % METHODS;
      if (m[now].failed.empty())
        turn(&b, now, count, round, &m[now]);
    }
  print_table(text("%lld of n = %lld", static_cast<long long>(b.count()),
                   static_cast<long long>(n)),
              m, ONE, "backward error");
  printf("\none / all: %s; all / A to all: %s\n",
         text_of(ratio(m[ONE], m[ALL]), "%.2f").c_str(),
         text_of(ratio(m[ALL], m[TO_ALL]), "%.2f").c_str());
  bench->record.add(
      text("\"section\": \"several\", \"kind\": \"batch\", \"n\": %lld, "
           "\"nrhs\": 1, \"count\": %lld, \"threads\": %d, \"devices\": %d",
           static_cast<long long>(n), static_cast<long long>(b.count()),
           bench->c.host_threads, count),
      m, ONE);
}

} // namespace

void several_batch_section(Bench *bench) {
  const int count =
      several_begin("Several GPUs, many small systems in host memory");
  for (int64_t n : ORDERS)
    if (count > 0 && !out_of_time(bench, "several_batch", n)) {
      batch_table(bench, count, n);
      (void)hone_release_kept();
    }
}

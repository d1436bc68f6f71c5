/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of systems that lie in device memory: A, b and x, for Hone and for
   cuSOLVER's getrf + getrs in FP64. See gpu_bench.h. Before each solve,
   untimed, b comes to the device, and for cuSOLVER, which overwrites A, a copy
   of A made there: the times are those of a caller who has no further use for
   A. Hone leaves A as it is. The clock stops when x is complete on the device.
 */
#include "bench/gpu/gpu_bench.h"

extern "C" {
#include "api/hone.h"
}

#include <cstdio>
#include <memory>

namespace {

const int64_t LEAST = 4096; /* smaller orders are not in the table */

double wanted(int64_t n) { return n >= large ? 2.5 : 2.0; }

/* A, b and x on the device, and a solver of Hone's. */
struct There {
  const Systems *s;
  double *a = nullptr, *b = nullptr, *x = nullptr;
  double *host_x = nullptr; /* where the harness wants x */
  hone_solver *solver = nullptr;
  hone_report factor = HONE_REPORT_INIT, solve = HONE_REPORT_INIT;

  explicit There(const Systems *systems) : s(systems) {}
  ~There() {
    hone_solver_destroy(&solver);
    cudaFree(a);
    cudaFree(b);
    cudaFree(x);
  }
  There(const There &) = delete;
  There &operator=(const There &) = delete;

  size_t vector() const { return static_cast<size_t>(s->n) * sizeof(double); }

  std::string open(const Config &c) {
    Calls calls;
    hone_options o = HONE_OPTIONS_INIT;
    o.device = HONE_DEVICE_CUDA;
    o.threads = c.threads;
    const size_t matrix = vector() * static_cast<size_t>(s->n);
    if (!(calls.ok(cudaMalloc(&a, matrix), "cudaMalloc of A") &&
          calls.ok(cudaMalloc(&b, vector()), "cudaMalloc of b") &&
          calls.ok(cudaMalloc(&x, vector()), "cudaMalloc of x") &&
          calls.ok(cudaMemcpy(a, s->a, matrix, cudaMemcpyHostToDevice),
                   "copy of A")))
      return calls.why;
    const int st = hone_solver_create(&solver, s->n, &o);
    return st < 0 ? hone_status_text(st) : "";
  }

  /* Untimed. */
  void bring(int64_t k, double *to) {
    host_x = to;
    (void)cudaMemcpy(b, s->side(k), vector(), cudaMemcpyHostToDevice);
    (void)cudaMemset(x, 0xff, vector());
    (void)cudaDeviceSynchronize();
  }

  std::string run() {
    int st = hone_solver_factor(solver, a, s->n, &factor);
    if (st >= 0)
      st = hone_solver_solve(solver, 1, b, s->n, x, s->n, nullptr, &solve);
    return st < 0 ? std::string(hone_status_text(st)) : std::string();
  }

  std::string fetch(const double *from) const {
    Calls calls;
    calls.ok(cudaMemcpy(host_x, from, vector(), cudaMemcpyDeviceToHost),
             "copy of x");
    return calls.why;
  }

  std::string note() const {
    return std::string(solve.path) +
           text(", %.3g n^2 bytes from the device",
                static_cast<double>(solve.from_device_bytes) /
                    (static_cast<double>(s->n) * static_cast<double>(s->n)));
  }

  std::string report() const {
    std::string all;
    const hone_report *both[] = {&factor, &solve};
    for (const hone_report *r : both) {
      std::vector<char> buffer(hone_report_json(r, nullptr, 0) + 1);
      hone_report_json(r, buffer.data(), buffer.size());
      all += (r == &factor ? "\"factor\": " : ",\n    \"solve\": ") +
             std::string(buffer.data());
    }
    return all;
  }
};

Method ours(const std::shared_ptr<There> &there, const std::string &failed) {
  Method m;
  m.name = "Hone kept";
  m.failed = failed;
  m.prepare = [=](int64_t k, int64_t, double *x) { there->bring(k, x); };
  m.solve = [=](int64_t, double *) { return there->run(); };
  m.after = [=](std::string *note) {
    *note = there->note();
    return there->fetch(there->x);
  };
  m.report = [=] { return there->report(); };
  return m;
}

Method cusolver(const std::shared_ptr<There> &there, Peers *peers,
                const std::string &failed) {
  Method m;
  m.name = "getrf FP64 + getrs";
  m.group = PAGEABLE;
  m.failed = failed;
  m.prepare = [=](int64_t k, int64_t, double *x) {
    there->bring(k, x);
    (void)peers->bring(there->a, there->b); /* a failure shows in x */
  };
  m.solve = [=](int64_t, double *) { return peers->solve_there(PEER_LU); };
  m.after = [=](std::string *note) {
    const std::string why = peers->verify(PEER_LU, note);
    return why.empty() ? there->fetch(peers->solution(PEER_LU)) : why;
  };
  return m;
}

void device_size(Bench *bench, int64_t n) {
  Systems s;
  Peers peers;
  bool use[PEERS] = {true};
  if (!systems_allocate(&s, n, 1)) {
    printf("\nn = %lld: failed: out of host memory\n",
           static_cast<long long>(n));
    return;
  }
  systems_fill(&s, UNIFORM, bench->c.seed, bench->c.host_threads);
  std::vector<Method> m;
  {
    const auto there = std::make_shared<There>(&s);
    const std::string failed = there->open(bench->c);
    m.push_back(ours(there, failed));
    m.push_back(
        cusolver(there, &peers, failed.empty() ? peers.open(n, use) : failed));
  }
  measure(bench, s, rounds_of(bench->c, n), &m);
  print_table(text("uniform, n = %lld", static_cast<long long>(n)), m, 0,
              "backward error");
  printf("\ngetrf + getrs / Hone: %s; wanted: %.1f\n",
         text_of(ratio(m[1], m[0]), "%.2f").c_str(), wanted(n));
  add_row(bench, "device", kind_names[UNIFORM], s, 0,
          text("\"wanted\": %.1f", wanted(n)), m, 0);
  m.clear(); /* they use the systems and the peers */
  peers.close();
  systems_free(&s);
}

} // namespace

void device_section(Bench *bench) {
  printf("\n## A, b and x in device memory\n");
  for (const std::string &size : bench->c.sizes) {
    const int64_t n = atoll(size.c_str());
    if (n >= LEAST && !out_of_time(bench, "device", n))
      device_size(bench, n);
  }
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Igual's tables 4.1, which factors the diagonal block on the CPU and on the
   GPU, and 4.2, which refines with single-precision factors. His ways are
   compared with Hone and with the libraries of today. See papers.h. */
#include "bench/papers/checks.h"
#include "bench/papers/papers.h"
#include "bench/papers/source.h"

#include <algorithm>
#include <cstdio>

extern "C" {
#include "base/lapack.h"
}

/* ---- table 4.1 ---- */

namespace {

enum { TO_HOST, BY_CPU, TO_GPU, SCALAR, VENDOR, HONE, DIAGONAL_WAYS };
const int repeats = 10;
const double enough_s = 0.02; /* after this time there are fewer repeats */

/* A diagonal block inside a matrix of order AROUND, as in a factorization. */
struct Blocks {
  enum { AROUND = 2048 };
  int64_t b;
  std::vector<float> block, work;
  Place *large = nullptr; /* has the whole matrix */
  Place *alone = nullptr; /* has the block alone */

  Part part() const { return {AROUND - b, b, AROUND - b, b}; }
};

std::vector<float> singles(const double *a, int64_t count) {
  std::vector<float> s(static_cast<size_t>(count));
  std::transform(a, a + count, s.begin(),
                 [](double v) { return static_cast<float>(v); });
  return s;
}

/* Returns the mean time of ten calls of work, or of as many as fit in 20 ms.
   prepare is called before each, untimed. */
template <class P, class W> double mean_ms(P prepare, W work) {
  double sum = 0.0;
  int count = 0;
  for (; count < repeats && sum < enough_s; count++) {
    prepare();
    const double start = now_s();
    work();
    sum += now_s() - start;
  }
  return 1e3 * sum / count;
}

/* Checks, untimed, the factor of the block in s->work. */
void check_factor(Blocks *s, double *error) {
  note_error(factors_error(s->b, s->block.data(), s->work.data(), nullptr, 1),
             error);
}

void check_copy(Blocks *s, double *error) {
  note_error(s->work == s->block ? 0.0 : HUGE_VAL, error);
}

std::string by_cpu(Blocks *s, double *ms, double *error) {
  int w = static_cast<int>(s->b), info = 0, failed = 0;
  *ms = mean_ms([&] { s->work = s->block; },
                [&] {
                  spotrf_("L", &w, s->work.data(), &w, &info);
                  failed |= info;
                });
  check_factor(s, error);
  return failed == 0 ? "" : "not positive definite";
}

/* Runs one of the ways that need the GPU. */
std::string on_gpu(Blocks *s, int which, double *ms, double *error) {
  Place *p = which == VENDOR || which == HONE ? s->alone : s->large;
  const Part part = s->part();
  bool fine = true;
  std::string why;
  if (which == HONE) {
    double e = NAN;
    why = p->hone(true, 0, ms, &e);
    note_error(e, error);
    return why;
  }
  auto again = [&] {
    fine = fine &&
           (which == VENDOR ? p->restore() : p->bring(part, s->block.data()));
  };
  *ms = mean_ms(again, [&] {
    fine = fine && (which == TO_HOST  ? p->fetch(part, s->work.data())
                    : which == TO_GPU ? p->bring(part, s->block.data())
                    : which == SCALAR ? p->scalar(part) && p->wait()
                                      : p->vendor(true) && p->wait());
  });
  if (which != TO_HOST) {
    s->work.assign(s->block.size(), NAN);
    const Part there = which == VENDOR ? Part{0, s->b, 0, s->b} : part;
    fine = fine && p->fetch(there, s->work.data());
  }
  if (which == TO_HOST || which == TO_GPU)
    check_copy(s, error);
  else
    check_factor(s, error);
  return fine ? "" : p->why;
}

std::vector<Way> diagonal_ways(Blocks *s, const Igual41 &row,
                               const std::string &none) {
  const char *const names[DIAGONAL_WAYS] = {
      "GPU to host",     "potrf, CPU",          "host to GPU",
      "by scalars, GPU", "cuSOLVER potrf FP32", "Hone's potrf FP32"};
  const double theirs[DIAGONAL_WAYS] = {row.to_host, row.factor, row.to_device,
                                        row.gpu,     NAN,        NAN};
  std::vector<Way> ways;
  for (int k = 0; k < DIAGONAL_WAYS; k++) {
    if (k != BY_CPU && !none.empty())
      ways.push_back(missing(names[k], none));
    else
      ways.push_back(Way());
    Way &w = ways.back();
    w.m.name = names[k];
    w.paper_ms = theirs[k];
    w.m.time = [s, k](double *ms, double *error) {
      return k == BY_CPU ? by_cpu(s, ms, error) : on_gpu(s, k, ms, error);
    };
  }
  return ways;
}

std::string beside(const Way &w) {
  return times_text(w.m.ms) + " / " + figure(w.paper_ms, "%.4g");
}

std::string diagonal_row(const Igual41 &row, const std::vector<Way> &w) {
  const double cpu = median_of(w[TO_HOST].m.ms) + median_of(w[BY_CPU].m.ms) +
                     median_of(w[TO_GPU].m.ms);
  return row_text({std::to_string(row.b), beside(w[TO_HOST]), beside(w[BY_CPU]),
                   beside(w[TO_GPU]),
                   figure(cpu, "%.4g") + " / " + figure(row.total, "%.4g"),
                   beside(w[SCALAR]), times_text(w[VENDOR].m.ms),
                   times_text(w[HONE].m.ms),
                   figure(median_of(w[SCALAR].m.ms) / cpu, "%.3g") + " / " +
                       figure(row.gpu / row.total, "%.3g")});
}

} // namespace

void section_diagonal(Papers *papers) {
  Share share(*papers, 0.1);
  Systems around;
  std::string none = papers->no_gpu;
  std::unique_ptr<Place> large, alone;
  Summary table = {
      "Igual, table 4.1: Cholesky of a diagonal block, ms, here / published",
      "| b | GPU to host | potrf, CPU | host to GPU | sum of these | by "
      "scalars on the GPU | cuSOLVER potrf FP32 | Hone's GPU potrf | scalars / "
      "sum |",
      {}};
  if (!systems_allocate(&around, Blocks::AROUND, 1)) {
    printf("\nTable 4.1: out of memory\n");
    return;
  }
  systems_fill(&around, SPD, papers->o.seed, papers->o.host_threads);
  const std::vector<float> whole =
      singles(around.a, Blocks::AROUND * Blocks::AROUND);
  if (none.empty())
    large = gpu_place(&none);
  if (none.empty())
    alone = gpu_place(&none);
  if (none.empty() &&
      !large->load(Blocks::AROUND, whole.data(), Blocks::AROUND))
    none = large->why;
  for (const Igual41 &row : igual_41()) {
    Blocks s;
    s.b = row.b;
    s.large = large.get();
    s.alone = alone.get();
    s.block.resize(static_cast<size_t>(s.b * s.b));
    for (int64_t j = 0; j < s.b; j++)
      std::copy(whole.data() + j * Blocks::AROUND,
                whole.data() + j * Blocks::AROUND + s.b,
                s.block.data() + j * s.b);
    s.work = s.block;
    std::string why = none;
    if (why.empty() && !alone->load(s.b, s.block.data(), s.b))
      why = alone->why;
    std::vector<Way> ways = diagonal_ways(&s, row, why);
    take_turns(&share, std::max(papers->o.rounds, 5), row.b, 3.0, &ways);
    accept_within(1e-4, &ways); /* the limit in single precision */
    table.rows.push_back(diagonal_row(row, ways));
    record_ways(papers,
                text("\"section\": \"igual 4.1\", \"kind\": \"spd\", \"b\": "
                     "%lld",
                     static_cast<long long>(row.b)),
                ways);
  }
  systems_free(&around);
  print_summary(table);
  if (!none.empty())
    printf("\nGPU: %s\n", none.c_str());
}

/* ---- table 4.2 ---- */

namespace {

/* A system, and the places where it is factored. */
struct Problem {
  const Papers *papers;
  bool cholesky;
  Systems s;
  std::vector<double> x, copy; /* copy: for routines that overwrite A */
  std::vector<float> rounded, factors;
  std::unique_ptr<Place> gpu, cpu;
  std::unique_ptr<Vendor> vendor;
  std::string no_gpu, no_vendor;
};

/* Checks x, untimed. */
void check(const Problem &p, double *error) {
  note_error(
      backward_error(p.s.n, p.s.a, p.s.b, p.x.data(), p.papers->o.host_threads),
      error);
}

/* His algorithm 1: A is rounded, padded, and factored left-looking, with the
   diagonal block or panel on the CPU; the factors are copied to the host, and x
   is refined there. */
std::string igual_way(Problem *p, Place *place, Found *found, double *ms,
                      double *error) {
  enum { BLOCK = 128, PADDING = 32 };
  const int64_t n = p->s.n;
  const double start = now_s();
  p->rounded = singles(p->s.a, n * n);
  if (!place->load(n, p->rounded.data(), padded_to(n, PADDING)))
    return place->why;
  const double loaded = now_s();
  if (!(factor_blocked(place, p->cholesky ? CHOLESKY_LEFT : LU_LEFT, BLOCK,
                       true) &&
        place->wait()))
    return place->why;
  const double factored = now_s();
  if (!place->fetch({0, n, 0, n}, p->factors.data()))
    return place->why;
  const double fetched = now_s();
  const Refined r = igual_refine(n, p->s.a, p->factors.data(),
                                 p->cholesky ? nullptr : place->pivots.data(),
                                 p->s.b, p->x.data());
  const double end = now_s();
  *ms = 1e3 * (end - start);
  found->factor_ms.push_back(1e3 * (factored - loaded));
  found->refine_ms.push_back(1e3 * (end - fetched));
  found->iterations = r.iterations;
  check(*p, error);
  return r.stopped ? "" : "Igual's rule did not hold after 30 iterations";
}

std::string double_way(Problem *p, double *ms, double *error) {
  int n = static_cast<int>(p->s.n), one = 1, info = 0;
  std::vector<int> pivots(static_cast<size_t>(n));
  p->copy.resize(static_cast<size_t>(p->s.n * p->s.n));
  copy_in_parallel(p->copy.data(), p->s.a, p->s.n * p->s.n,
                   p->papers->o.host_threads);
  std::copy(p->s.b, p->s.b + n, p->x.begin());
  const double start = now_s();
  if (p->cholesky)
    dposv_("L", &n, &one, p->copy.data(), &n, p->x.data(), &n, &info);
  else
    dgesv_(&n, &one, p->copy.data(), &n, pivots.data(), p->x.data(), &n, &info);
  *ms = 1e3 * (now_s() - start);
  check(*p, error);
  return info == 0 ? "" : "info " + std::to_string(info);
}

std::string vendor_way(Problem *p, VendorSolve which, Found *found, double *ms,
                       double *error) {
  std::string note;
  const double start = now_s();
  std::string why = p->vendor->solve(which, p->s.a, p->s.b, p->x.data());
  *ms = 1e3 * (now_s() - start);
  if (why.empty())
    why = p->vendor->verify(which, &note);
  if (which == VENDOR_IRS && why.empty())
    found->iterations = atoi(note.c_str());
  if (why.empty())
    check(*p, error);
  return why;
}

/* This library, with a solver that is made untimed. */
struct Hone {
  hone_solver *solver = nullptr;
  ~Hone() { hone_solver_destroy(&solver); }
  int create(const Problem &p, int device) {
    hone_options o = HONE_OPTIONS_INIT;
    o.device = device;
    o.threads = p.papers->o.threads;
    if (p.cholesky)
      o.structure = HONE_STRUCTURE_SPD;
    return hone_solver_create(&solver, p.s.n, &o);
  }
};

std::string hone_way(Problem *p, Hone *h, Found *found, double *ms,
                     double *error) {
  hone_report r = HONE_REPORT_INIT;
  const int64_t n = p->s.n;
  const double start = now_s();
  int st = hone_solver_factor(h->solver, p->s.a, n, &r);
  const double factored = now_s();
  if (st >= 0)
    st =
        hone_solver_solve(h->solver, 1, p->s.b, n, p->x.data(), n, nullptr, &r);
  const double end = now_s();
  *ms = 1e3 * (end - start);
  found->factor_ms.push_back(1e3 * (factored - start));
  found->refine_ms.push_back(1e3 * (end - factored));
  found->iterations = r.iterations;
  if (st >= 0)
    check(*p, error);
  return st == HONE_OK ? "" : std::string(hone_status_text(st));
}

void add_hone_way(Problem *p, int device, const char *name,
                  std::vector<Way> *ways) {
  auto hone = std::make_shared<Hone>();
  const int st = hone->create(*p, device);
  Way w;
  if (st != HONE_OK)
    w = missing(name, hone_status_text(st));
  w.m.name = name;
  w.m.time = [p, hone, found = w.found](double *ms, double *error) {
    return hone_way(p, hone.get(), found.get(), ms, error);
  };
  ways->push_back(w);
}

void add_igual_way(Problem *p, Place *place, const std::string &why,
                   const char *name, std::vector<Way> *ways) {
  Way w;
  if (place == nullptr)
    w = missing(name, why);
  w.m.name = name;
  w.m.time = [p, place, found = w.found](double *ms, double *error) {
    return igual_way(p, place, found.get(), ms, error);
  };
  ways->push_back(w);
}

void add_vendor_way(Problem *p, VendorSolve which, const char *name,
                    std::vector<Way> *ways) {
  Way w;
  if (p->vendor == nullptr)
    w = missing(name, p->no_vendor);
  w.m.name = name;
  w.m.time = [p, which, found = w.found](double *ms, double *error) {
    return vendor_way(p, which, found.get(), ms, error);
  };
  ways->push_back(w);
}

std::vector<Way> gpu_ways(Problem *p) {
  std::vector<Way> ways;
  if (p->papers->no_gpu.empty())
    add_hone_way(p, HONE_DEVICE_CUDA, "Hone, GPU", &ways);
  else
    ways.push_back(missing("Hone, GPU", p->papers->no_gpu));
  add_igual_way(p, p->gpu.get(), p->no_gpu, "Igual's way, GPU", &ways);
  if (p->cholesky) {
    add_vendor_way(p, VENDOR_CHOLESKY, "cuSOLVER potrf FP64", &ways);
  } else {
    add_vendor_way(p, VENDOR_LU, "cuSOLVER getrf FP64", &ways);
    add_vendor_way(p, VENDOR_IRS, "cuSOLVER IRS FP32", &ways);
  }
  if (const Igual42 *row = igual_42(p->s.n)) {
    const int k = p->cholesky ? 0 : 1;
    ways[1].paper_ms = 1e3 * row->factor[k];
    ways[1].paper_refine_ms = 1e3 * row->refine[k];
    ways[1].paper_iterations = row->iterations[k];
  }
  return ways;
}

std::vector<Way> cpu_ways(Problem *p) {
  std::vector<Way> ways;
  Way w;
  add_hone_way(p, HONE_DEVICE_CPU, "Hone, CPU", &ways);
  add_igual_way(p, p->cpu.get(), "", "Igual's way, CPU", &ways);
  w.m.name = p->cholesky ? "OpenBLAS dposv" : "OpenBLAS dgesv";
  w.m.time = [p](double *ms, double *error) {
    return double_way(p, ms, error);
  };
  ways.push_back(w);
  return ways;
}

std::string count_text(int k) { return k < 0 ? "-" : std::to_string(k); }

/* A row of Igual's table is an order and a factorization. */
struct Solved {
  int64_t n;
  bool cholesky;
  std::vector<Way> ways;
};

void refinement_rows(const Solved &s, Summary *table) {
  const std::string n = std::to_string(s.n), kind = s.cholesky ? "SPD" : "LU";
  if (const Igual42 *row = igual_42(s.n)) {
    const int k = s.cholesky ? 0 : 1;
    table->rows.push_back(row_text(
        {n, kind, "Igual, 2011", text("%.0f", 1e3 * row->factor[k]),
         text("%.0f", 1e3 * row->refine[k]), std::to_string(row->iterations[k]),
         text("%.0f", 1e3 * (row->factor[k] + row->refine[k])), "-", "-", ""}));
  }
  for (const Way &w : s.ways) {
    const bool there = w.m.checked > 0;
    table->rows.push_back(row_text(
        {n, kind, w.m.name, times_text(w.found->factor_ms),
         times_text(w.found->refine_ms), count_text(w.found->iterations),
         times_text(w.m.ms), error_text(w.m.error, there),
         !there         ? "-"
         : w.m.accepted ? "yes"
                        : "NO",
         remarks_text(w.m)}));
  }
}

/* Runs the ways of a row on the GPU, or those on the CPU. */
void run_ways(Papers *papers, Share *share, bool on_gpu, Solved *row) {
  Problem p;
  p.papers = papers;
  p.cholesky = row->cholesky;
  p.no_gpu = p.no_vendor = papers->no_gpu;
  if (share->over() || !systems_allocate(&p.s, row->n, 1)) {
    row->ways.push_back(missing(on_gpu ? "GPU" : "CPU", share->over()
                                                            ? "no time for it"
                                                            : "out of memory"));
    return;
  }
  systems_fill(&p.s, p.cholesky ? SPD : UNIFORM, papers->o.seed,
               papers->o.host_threads);
  p.x.resize(static_cast<size_t>(row->n));
  p.factors.resize(static_cast<size_t>(row->n * row->n));
  if (!on_gpu)
    p.cpu = host_place();
  if (on_gpu && p.no_gpu.empty()) {
    p.gpu = gpu_place(&p.no_gpu);
    p.vendor = vendor_open(row->n, &p.no_vendor);
  }
  std::vector<Way> ways = on_gpu ? gpu_ways(&p) : cpu_ways(&p);
  take_turns(share, papers->o.rounds, row->n, 3.0, &ways);
  accept_within(4.04 * 0x1p-53, &ways);
  for (Way &w : ways) {
    w.m.time = nullptr; /* it uses p, which ends here */
    row->ways.push_back(w);
  }
  systems_free(&p.s);
}

} // namespace

/* The ways on the GPU run first, since the CPU's LU in double takes longer than
   all others together. This table is the most important, and may take most of
   the time. */
void section_refinement(Papers *papers) {
  Summary table = {
      "Igual, table 4.2: factored in single precision and refined, ms, host "
      "memory to host memory (Igual: without the copies)",
      "| n | matrix | way | factor | refine | iterations | whole | backward "
      "error | accepted | |",
      {}};
  std::vector<Solved> rows;
  for (int64_t n : papers->o.orders)
    for (bool cholesky : {true, false})
      rows.push_back({n, cholesky, {}});
  for (bool on_gpu : {true, false}) {
    Share share(*papers, on_gpu ? 0.4 : 0.6);
    for (Solved &row : rows)
      run_ways(papers, &share, on_gpu, &row);
  }
  for (const Solved &row : rows) {
    refinement_rows(row, &table);
    record_ways(papers,
                text("\"section\": \"igual 4.2\", \"kind\": \"%s\", \"n\": "
                     "%lld, \"nrhs\": 1",
                     row.cholesky ? "spd" : "uniform",
                     static_cast<long long>(row.n)),
                row.ways);
  }
  print_summary(table);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Repeats Igual's searches for the best padding, around multiples of 32 and 64,
   and for the best block size. As in his work, only factorizations in single
   precision are timed, of a matrix that is on the device already. See papers.h.
 */
#include "bench/papers/checks.h"
#include "bench/papers/papers.h"
#include "bench/papers/source.h"

#include <algorithm>
#include <cstdio>
#include <functional>

std::string time_factors(Place *p, const PaperSource &source,
                         const PaperWork &work, int threads, double *ms,
                         double *error) {
  const int64_t n = source.n;
  if (!p->restore())
    return p->why;
  const double start = now_s();
  if (!(work(p) && p->wait()))
    return p->why;
  *ms = 1e3 * (now_s() - start);
  std::vector<float> f(static_cast<size_t>(n * n));
  if (!p->fetch({0, n, 0, n}, f.data()))
    return p->why;
  note_error(factors_error(n, source.a, f.data(),
                           source.cholesky ? nullptr : p->pivots.data(),
                           threads),
             error);
  return "";
}

namespace {

enum { BLOCK = 128 };

/* A matrix of floats, for Cholesky or for LU. */
struct Subject {
  int64_t n;
  bool cholesky;
  std::vector<float> a;
};

bool fill(const Papers &papers, Subject *s) {
  Systems d;
  if (!systems_allocate(&d, s->n, 1))
    return false;
  systems_fill(&d, s->cholesky ? SPD : UNIFORM, papers.o.seed,
               papers.o.host_threads);
  s->a.resize(static_cast<size_t>(s->n * s->n));
  std::transform(d.a, d.a + s->n * s->n, s->a.begin(),
                 [](double v) { return static_cast<float>(v); });
  systems_free(&d);
  return true;
}

/* If place is NULL the way does not run, and why says why. */
Way work_way(const Papers &papers, const std::string &name, Place *place,
             const std::string &why, const Subject &s, const PaperWork &work) {
  Way w;
  if (place == nullptr)
    w = missing(name, why);
  w.m.name = name;
  const int threads = papers.o.host_threads;
  w.m.time = [=, &s](double *ms, double *error) {
    return time_factors(place, {s.n, s.cholesky, s.a.data()}, work, threads, ms,
                        error);
  };
  return w;
}

Way hone_way(const std::string &name, Place *place, const std::string &why,
             bool cholesky, int64_t block) {
  Way w;
  if (place == nullptr)
    w = missing(name, why);
  w.m.name = name;
  w.m.time = [=](double *ms, double *error) {
    double e = NAN;
    const std::string failed = place->hone(cholesky, block, ms, &e);
    if (failed.empty())
      note_error(e, error);
    return failed;
  };
  return w;
}

PaperWork by_vendor(bool cholesky) {
  return [=](Place *p) { return p->vendor(cholesky); };
}
PaperWork by_blocks(Variant v, int64_t b, bool by_cpu) {
  return [=](Place *p) { return factor_blocked(p, v, b, by_cpu); };
}

/* Accepts factors that are right in single precision. */
void judge(std::vector<Way> *ways) { accept_within(1e-4, ways); }

double work_of(bool cholesky, int64_t n) {
  return cholesky ? cholesky_work(n) : lu_work(n);
}

} // namespace

/* ---- padding ---- */

namespace {

const int64_t paddings[] = {1, 32, 64};

/* The matrix on the CPU or the GPU with each padding. */
struct Padded {
  std::unique_ptr<Place> at[3];
  std::string why;
};

void load_padded(const Papers &papers, bool gpu, const Subject &s, Padded *p) {
  p->why = gpu ? papers.no_gpu : "";
  for (int k = 0; k < 3 && p->why.empty(); k++) {
    p->at[k] = gpu ? gpu_place(&p->why) : host_place();
    if (p->why.empty() &&
        !p->at[k]->load(s.n, s.a.data(), padded_to(s.n, paddings[k])))
      p->why = p->at[k]->why;
  }
}

std::vector<Way> padding_ways(const Papers &papers, const Subject &s,
                              const Padded &gpu, const Padded &cpu) {
  const Variant v = s.cholesky ? CHOLESKY_LEFT : LU_LEFT;
  const char *const suffix[] = {"", ", to 32", ", to 64"};
  std::vector<Way> ways;
  for (int k = 0; k < 3; k++)
    ways.push_back(work_way(papers, std::string("Igual's, GPU") + suffix[k],
                            gpu.why.empty() ? gpu.at[k].get() : nullptr,
                            gpu.why, s, by_blocks(v, BLOCK, true)));
  for (int k = 0; k < 3; k++)
    ways.push_back(work_way(papers, std::string("cuSOLVER") + suffix[k],
                            gpu.why.empty() ? gpu.at[k].get() : nullptr,
                            gpu.why, s, by_vendor(s.cholesky)));
  ways.push_back(hone_way("Hone", gpu.why.empty() ? gpu.at[0].get() : nullptr,
                          gpu.why, s.cholesky, 0));
  for (int k = 0; k < 3; k++)
    ways.push_back(work_way(papers, std::string("OpenBLAS") + suffix[k],
                            cpu.at[k].get(), cpu.why, s,
                            by_vendor(s.cholesky)));
  return ways;
}

/* The GFLOP/s are those of the order without padding. */
std::string padding_row(const Subject &s, const std::vector<Way> &ways) {
  const double work = work_of(s.cholesky, s.n);
  std::vector<std::string> cells = {s.cholesky ? "SPD" : "LU",
                                    std::to_string(s.n)};
  for (size_t k = 0; k < ways.size(); k++) {
    const std::string rate = rate_text(work, median_of(ways[k].m.ms));
    if (k == 0 || k == 3 || k == 6 || k == 7) /* the first of a cell */
      cells.push_back(rate);
    else
      cells.back() += " / " + rate;
  }
  return row_text(cells);
}

std::vector<int64_t> padding_orders(int64_t base, bool quick) {
  std::vector<int64_t> orders;
  for (int64_t off : {-32, -31, -1, 0, 1, 32, 33, 64})
    if (!quick || off == -1 || off == 0 || off == 1 || off == 33)
      orders.push_back(base + off);
  return orders;
}

/* The range of a way's rates over the orders, which shows how much they depend
   on the order. */
struct Range {
  std::string name;
  double low = INFINITY, high = 0.0;
};

void note_rates(const Subject &s, const std::vector<Way> &ways,
                std::vector<Range> *ranges) {
  ranges->resize(ways.size());
  for (size_t k = 0; k < ways.size(); k++) {
    const double rate =
        1e-6 * work_of(s.cholesky, s.n) / median_of(ways[k].m.ms);
    Range &r = (*ranges)[k];
    r.name = ways[k].m.name;
    if (rate > 0.0) {
      r.low = std::min(r.low, rate);
      r.high = std::max(r.high, rate);
    }
  }
}

std::string padding_fields(const Subject &s) {
  return text("\"section\": \"igual padding\", \"kind\": \"%s\", \"n\": %lld",
              s.cholesky ? "spd" : "uniform", static_cast<long long>(s.n));
}

void padding_of(Papers *papers, Share *share, int64_t n, bool cholesky,
                std::vector<Range> *ranges, Summary *table) {
  Subject s = {n, cholesky, {}};
  Padded gpu, cpu;
  if (share->over() || !fill(*papers, &s)) {
    const std::vector<Way> none = {
        missing("all", share->over() ? "no time for it" : "out of memory")};
    table->rows.push_back(row_text({cholesky ? "SPD" : "LU", std::to_string(n),
                                    none[0].m.failed, "-", "-", "-"}));
    record_ways(papers, padding_fields(s), none);
    return;
  }
  load_padded(*papers, true, s, &gpu);
  load_padded(*papers, false, s, &cpu);
  std::vector<Way> ways = padding_ways(*papers, s, gpu, cpu);
  take_turns(share, papers->o.rounds, n, 3.0, &ways);
  judge(&ways);
  table->rows.push_back(padding_row(s, ways));
  note_rates(s, ways, ranges);
  record_ways(papers, padding_fields(s), ways);
}

} // namespace

void section_padding(Papers *papers) {
  Share share(*papers, 0.25);
  Summary table = {
      "Igual, padding with the identity: GFLOP/s without padding / "
      "to a multiple of 32 / of 64",
      "| matrix | n | Igual's way, GPU | cuSOLVER FP32 | Hone, "
      "GPU | OpenBLAS |",
      {}};
  std::vector<Range> ranges[2];
  printf("\n%s\n", igual_padding);
  for (int64_t n : padding_orders(papers->o.padding_n, papers->o.quick))
    for (bool cholesky : {true, false})
      padding_of(papers, &share, n, cholesky, &ranges[cholesky ? 0 : 1],
                 &table);
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const std::string &a, const std::string &b) {
                     return a.compare(0, 5, b, 0, 5) > 0; /* SPD, LU */
                   });
  print_summary(table);
  printf("\n");
  for (bool cholesky : {true, false})
    for (const Range &r : ranges[cholesky ? 0 : 1])
      if (r.high > 0.0)
        printf("%s, %s: slowest order / fastest %.2f\n",
               cholesky ? "SPD" : "LU", r.name.c_str(), r.low / r.high);
  if (!papers->no_gpu.empty())
    printf("\nGPU: %s\n", papers->no_gpu.c_str());
}

/* ---- block size ---- */

namespace {

struct Search {
  Papers *papers;
  Share *share;
  const Subject *s;
  Place *gpu, *cpu; /* NULL: no search there */
};

void add_gpu(const Search &q, int64_t b, std::vector<Way> *ways) {
  const Papers &papers = *q.papers;
  const bool cholesky = q.s->cholesky;
  for (int v = 0; v < VARIANTS; v++)
    if (is_cholesky(static_cast<Variant>(v)) == cholesky)
      ways->push_back(work_way(papers, std::string("GPU: ") + variant_names[v],
                               q.gpu, "", *q.s,
                               by_blocks(static_cast<Variant>(v), b, true)));
  if (cholesky)
    ways->push_back(work_way(papers, "GPU: left-looking, blocks by scalars",
                             b <= 128 ? q.gpu : nullptr, "up to 128 only", *q.s,
                             by_blocks(CHOLESKY_LEFT, b, false)));
  ways->push_back(hone_way("GPU: Hone, outer panels",
                           b >= 64 && b <= 512 ? q.gpu : nullptr,
                           "64 to 512 only", cholesky, b));
}

void add_searched(const Search &q, int64_t b, std::vector<Way> *ways) {
  if (q.gpu != nullptr)
    add_gpu(q, b, ways);
  if (q.cpu != nullptr)
    ways->push_back(
        work_way(*q.papers, "CPU: left-looking", q.cpu, "", *q.s,
                 by_blocks(q.s->cholesky ? CHOLESKY_LEFT : LU_LEFT, b, true)));
}

std::string search_fields(const Subject &s, int64_t b) {
  return text("\"section\": \"igual blocks\", \"kind\": \"%s\", \"n\": %lld, "
              "\"b\": %lld",
              s.cholesky ? "spd" : "uniform", static_cast<long long>(s.n),
              static_cast<long long>(b));
}

/* Adds rows of a block size b; 0 for OpenBLAS and cuSOLVER, which choose it. */
void search_row(const Search &q, int64_t b, std::vector<Way> *ways,
                Summary *table) {
  take_turns(q.share, q.papers->o.rounds, q.s->n, 3.0, ways);
  judge(ways);
  for (const Way &w : *ways)
    table->rows.push_back(
        row_text({q.s->cholesky ? "SPD" : "LU", std::to_string(q.s->n),
                  b > 0 ? std::to_string(b) : "-", w.m.name, times_text(w.m.ms),
                  rate_text(work_of(q.s->cholesky, q.s->n), median_of(w.m.ms)),
                  error_text(w.m.error, w.m.checked > 0), remarks_text(w.m)}));
  record_ways(q.papers, search_fields(*q.s, b), *ways);
}

void search(Papers *papers, Share *share, int64_t n, bool cholesky,
            bool with_cpu, const std::vector<int64_t> &sizes, Summary *table) {
  Subject s = {n, cholesky, {}};
  std::string no_gpu = papers->no_gpu;
  std::unique_ptr<Place> gpu, cpu;
  if (share->over() || !fill(*papers, &s)) {
    const std::vector<Way> none = {
        missing("all", share->over() ? "no time for it" : "out of memory")};
    table->rows.push_back(row_text({cholesky ? "SPD" : "LU", std::to_string(n),
                                    "-", none[0].m.failed, "-", "-", "-", ""}));
    record_ways(papers, search_fields(s, 0), none);
    return;
  }
  if (no_gpu.empty())
    gpu = gpu_place(&no_gpu);
  if (no_gpu.empty() && !gpu->load(n, s.a.data(), n)) {
    no_gpu = gpu->why;
    gpu.reset();
  }
  if (with_cpu) {
    cpu = host_place();
    cpu->load(n, s.a.data(), n);
  }
  const Search q = {papers, share, &s, gpu.get(), cpu.get()};
  for (int64_t b : sizes) {
    std::vector<Way> ways;
    add_searched(q, b, &ways);
    search_row(q, b, &ways, table);
  }
  std::vector<Way> peers = {work_way(*papers, "GPU: cuSOLVER FP32", gpu.get(),
                                     no_gpu, s, by_vendor(cholesky))};
  if (cpu != nullptr)
    peers.push_back(work_way(*papers, "CPU: OpenBLAS", cpu.get(), "", s,
                             by_vendor(cholesky)));
  search_row(q, 0, &peers, table);
}

} // namespace

namespace {

const char blocks_header[] =
    "| matrix | n | b | way | ms | GFLOP/s | error | |";

} // namespace

void section_blocks(Papers *papers) {
  Share share(*papers, 0.35);
  Summary table = {"Igual, the size of the blocks: single precision, diagonal "
                   "block or panel factored by the CPU",
                   blocks_header,
                   {}};
  const std::vector<int64_t> all = {32, 64, 128, 192, 256, 384, 512, 768};
  const std::vector<int64_t> few = {64, 128, 256, 512};
  const int64_t n = papers->o.blocks_n;
  const bool gpu = papers->no_gpu.empty();
  printf("\n%s\n", igual_blocks);
  for (bool cholesky : {true, false}) { /* half the order for the CPU */
    search(papers, &share, n / 2, cholesky, true, few, &table);
    if (gpu)
      search(papers, &share, n, cholesky, false, papers->o.quick ? few : all,
             &table);
  }
  print_summary(table);
}

/* Runs last, because two block sizes take a minute. */
void section_large(Papers *papers) {
  Share share(*papers, 0.95);
  Summary table = {
      "Igual, the size of the blocks at his own order", blocks_header, {}};
  for (bool cholesky : {true, false})
    if (papers->no_gpu.empty() && !papers->o.quick)
      search(papers, &share, 20000, cholesky, false, {128, 512}, &table);
  print_summary(table);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of bench_papers share this: bench_papers.cc has the options and the
   machine, turns.cc the rounds; igual.cc, search.cc and cejka.cc have the
   tables of a publication each. */
#ifndef HONE_BENCH_PAPERS_PAPERS_H
#define HONE_BENCH_PAPERS_PAPERS_H

#include "bench/harness/record.h"
#include "bench/harness/systems.h"
#include "bench/papers/gpu.h"

extern "C" {
#include "api/hone.h"
}

#include <cmath>

struct PaperOptions {
  std::vector<std::string> sections = {"diagonal", "refinement", "padding",
                                       "blocks",   "sections",   "crout",
                                       "large"};
  std::vector<int64_t> orders = {1024, 2048, 4096, 8192, 10240};
  std::vector<int64_t> dense = {2842, 5943, 7580, 10793}; /* Cejka's */
  std::vector<std::string> matrices; /* files of Matrix Market */
  int64_t padding_n = 2048, blocks_n = 4096;
  int64_t sections_n = 1000;   /* order of the section sizes' search */
  int rounds = 3, threads = 0; /* 0: all */
  int host_threads = 1;
  bool quick = false, plan = false;
  uint64_t seed = 1;
  double seconds = 0.0; /* 0: no limit */
  std::string commit, json_name;
};

struct Papers {
  PaperOptions o;
  Record record{""};
  double end_s = INFINITY; /* of now_s */
  std::string no_gpu;      /* why; empty: there is one */
};

/* The results of a method besides its time, by round. */
struct Found {
  std::vector<double> factor_ms, refine_ms;
  int iterations = -1;
};

/* One way, its figures, and what the publication has: milliseconds; NaN:
   nothing. */
struct Way {
  Method m;
  std::shared_ptr<Found> found = std::make_shared<Found>();
  double paper_ms = NAN, paper_refine_ms = NAN;
  int paper_iterations = -1;
  bool checks = true; /* its time sets the error */
};

/* A share of the time left for a section: affords says whether a way can be
   expected to end within it, from its last time, as n^growth. Where time is
   limited, what takes 1/200 of all of it runs once, and what takes 1/1000 is
   not warmed up: every row gets a time before any gets three. */
class Share {
public:
  Share(const Papers &papers, double share);
  /* Seconds; 0: not known. */
  double expected(const std::string &name, int64_t n, double growth) const;
  bool affords(const std::string &name, int64_t n, double growth) const;
  void took(const std::string &name, int64_t n, double seconds);
  bool over() const { return !(now_s() < end_s_); }
  bool warms(double seconds) const { return seconds < warm_s_; }
  bool repeats(double seconds) const { return seconds < once_s_; }

private:
  double end_s_, warm_s_, once_s_;
  std::map<std::string, std::pair<int64_t, double>> last_;
};

/* "no time for it", with the seconds expected where they are known. */
std::string no_time(double expected_s);

/* All ways in turn until each has run 'rounds' times. The first time is not
   counted where it took less than a second, nor are its findings. */
void take_turns(Share *share, int rounds, int64_t n, double growth,
                std::vector<Way> *ways);

/* Accepted: checked, and the largest error within the limit; never NaN. */
void accept_within(double limit, std::vector<Way> *ways);

/* A matrix that was loaded somewhere, and one factorization of it. */
struct PaperSource {
  int64_t n;
  bool cholesky;
  const float *a;
};
using PaperWork = std::function<bool(Place *p)>;

/* ms of work on a fresh copy; every time, outside the clock, its factors are
   held against the source: the largest error so far, NaN once it was. */
std::string time_factors(Place *p, const PaperSource &source,
                         const PaperWork &work, int threads, double *ms,
                         double *error);

/* A way that is only a line: why it is not there. */
Way missing(const std::string &name, const std::string &why);

/* The median, "12.3 (11.9 .. 14.0)", with the number of rounds where there
   were not three; "-" where it never ran. */
std::string times_text(const std::vector<double> &ms);
/* "NaN" for what is not a number, whether or not there was an answer; "-" where
   there was none. */
std::string error_text(double error, bool there);
/* note, skipped, failed: in one cell. */
std::string remarks_text(const Method &m);
/* "| a | b |", no cell ending early. */
std::string row_text(const std::vector<std::string> &cells);

/* The row for the record, with Found of every way in it. */
void record_ways(Papers *papers, const std::string &fields,
                 const std::vector<Way> &ways);

/* Billions of operations a second, "-" without a time. */
std::string rate_text(double operations, double ms);
inline double cholesky_work(int64_t n) { return std::pow(double(n), 3) / 3; }
inline double lu_work(int64_t n) { return 2 * std::pow(double(n), 3) / 3; }
inline double median_of(const std::vector<double> &ms) {
  return spread(ms).median;
}

void section_diagonal(Papers *papers);   /* Igual, table 4.1 */
void section_refinement(Papers *papers); /* Igual, table 4.2 */
void section_padding(Papers *papers);
void section_blocks(Papers *papers);
void section_large(Papers *papers);    /* block sizes at Igual's own order */
void section_crout(Papers *papers);    /* Cejka */
void section_sections(Papers *papers); /* Cejka's: how many columns */

#endif

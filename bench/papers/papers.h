/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of bench_papers share this header. bench_papers.cc reads the
   options and describes the machine, turns.cc runs the rounds; igual.cc and
   search.cc have the tables of Igual's publication, cejka.cc and sections.cc
   those of Cejka's. A way is a method with the figures published for it. */
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
  /* Orders of Cejka's random dense matrices. */
  std::vector<int64_t> dense = {2842, 5943, 7580, 10793};
  std::vector<std::string> matrices; /* files of Matrix Market */
  int64_t padding_n = 2048, blocks_n = 4096;
  int64_t sections_n = 1000;   /* order for the search of section sizes */
  int rounds = 3, threads = 0; /* 0: all */
  int host_threads = 1;
  bool quick = false, plan = false;
  uint64_t seed = 1;
  double seconds = 0.0; /* 0: no limit */
  double long_s = 1.0;  /* longer runs need no warm-up */
  std::string commit, json_name;
};

struct Papers {
  PaperOptions o;
  Record record{""};
  double end_s = INFINITY; /* in the time of now_s */
  std::string no_gpu;      /* why there is no GPU; empty if there is one */
};

/* The results of a way besides its time, by round. */
struct Found {
  std::vector<double> factor_ms, refine_ms;
  int iterations = -1;
};

struct Way {
  Method m;
  std::shared_ptr<Found> found = std::make_shared<Found>();
  double paper_ms = NAN, paper_refine_ms = NAN; /* published; NaN: nothing */
  int paper_iterations = -1;
  bool checks = true; /* time sets the error */
};

/* A section's share of the time that is left. affords tells whether a way is
   expected to end within it, from its last time, which grows with n^growth. If
   time is limited, a way that takes 1/200 of all of it runs once, and one that
   takes 1/1000 is not warmed up, so that every row gets a time before any gets
   three. */
class Share {
public:
  Share(const Papers &papers, double share);
  /* Returns seconds, or 0 if it is not known. */
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

/* Returns "no time for it", with the seconds expected if they are known. */
std::string no_time(double expected_s);

/* Runs all ways in turn until each has 'rounds' times. A first run that took
   less than a second is not counted. */
void take_turns(Share *share, int rounds, int64_t n, double growth,
                std::vector<Way> *ways);

/* Accepts the ways whose error was checked and is at most the limit. */
void accept_within(double limit, std::vector<Way> *ways);

/* A matrix that was loaded into a Place, and a factorization of it. */
struct PaperSource {
  int64_t n;
  bool cholesky;
  const float *a;
};
using PaperWork = std::function<bool(Place *p)>;

/* Times work on a fresh copy. Then, untimed, compares its factors with the
   source, and sets *error to the larger of it and the error found, or NaN. */
std::string time_factors(Place *p, const PaperSource &source,
                         const PaperWork &work, int threads, double *ms,
                         double *error);

/* Returns a way that does not run, with the reason. */
Way missing(const std::string &name, const std::string &why);

/* Returns the median and the range, "12.3 (11.9 .. 14.0)", with the number of
   rounds if it is 1 or 2; "-" without any. */
std::string times_text(const std::vector<double> &ms);
/* Returns the error, also "Inf" or "NaN"; "-" without an answer, unless the
   error is NaN. */
std::string error_text(double error, bool there);
/* Returns note, skipped and failed in one cell. */
std::string remarks_text(const Method &m);
/* Returns "| a | b |"; characters that would end a cell are replaced. */
std::string row_text(const std::vector<std::string> &cells);

/* Adds a row to the record, with the Found of every way. */
void record_ways(Papers *papers, const std::string &fields,
                 const std::vector<Way> &ways);

/* Returns 1e9 operations per second, "-" without a time. */
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
void section_crout(Papers *papers);    /* Cejka, tables 3.4 and 3.5 */
void section_sections(Papers *papers); /* columns of a section of Cejka's */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method, for papers/cejka.cc, which compares it with other
   methods, and papers/sections.cc, which searches for the number of columns of
   a section. */
#ifndef HONE_BENCH_PAPERS_CEJKA_H
#define HONE_BENCH_PAPERS_CEJKA_H

#include "bench/papers/papers.h"

/* A in one precision, and space for its factors. */
template <class T> struct CroutWork {
  int64_t n;
  std::vector<T> a, z;
  std::vector<int64_t> pivots;
};

/* Rounds a to that precision. */
template <class T>
std::shared_ptr<CroutWork<T>> crout_work(int64_t n,
                                         const std::vector<double> &a);

/* Returns max |A - L U| of the factors in z. For large n it is computed on the
   device, if a test has shown that this gives what the CPU computes. */
template <class T>
double crout_defect(const CroutWork<T> &w, bool crout, const int64_t *pivots);

/* Makes a way of the method, whose first run sets the error. report is written
   by every run and must outlive the way. */
template <class T>
Way crout_way(const hone_crout_options &o,
              const std::shared_ptr<CroutWork<T>> &work,
              hone_crout_report *report);

/* Describes a failure; empty for HONE_OK. */
std::string crout_status(int status, int64_t column);

/* Returns the sweeps for the record, or an empty text if it did not run. */
std::string crout_json(const hone_crout_report &r);

/* Returns the largest error that is accepted: 1024 n eps times the largest
   entry, which allows for rounding and moderate growth. precision is 0 for
   single and 1 for double. */
double crout_limit(int64_t n, double largest, int precision);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method as a way, for papers/cejka.cc (beside its peers)
   and papers/sections.cc (how many columns a section should have). */
#ifndef HONE_BENCH_PAPERS_CEJKA_H
#define HONE_BENCH_PAPERS_CEJKA_H

#include "bench/papers/papers.h"

/* A in a precision, and a place for its factors. */
template <class T> struct CroutWork {
  int64_t n;
  std::vector<T> a, z;
  std::vector<int64_t> pivots;
};

/* a in that precision */
template <class T>
std::shared_ptr<CroutWork<T>> crout_work(int64_t n,
                                         const std::vector<double> &a);

/* max |A - L U| of what is in z: on the device where that is worth the way
   there, and where it has been seen to agree with the CPU's. */
template <class T>
double crout_defect(const CroutWork<T> &w, bool crout, const int64_t *pivots);

/* Its first time sets the error; report stays the caller's. */
template <class T>
Way crout_way(const hone_crout_options &o,
              const std::shared_ptr<CroutWork<T>> &work,
              hone_crout_report *report);

/* How it ended, for people; empty: well. */
std::string crout_status(int status, int64_t column);

/* Sweeps, for the record; empty where it did not run. */
std::string crout_json(const hone_crout_report &r);

/* 2^10 roundings of the largest entry for each of n steps: rounding, growth
   aside. precision: 0 single, 1 double. */
double crout_limit(int64_t n, double largest, int precision);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds how cost grows with n: exponents by least squares of the logarithms of
   medians, and the n from which on one method is faster than another. Times of
   peers count here whether their answers are accepted or not, and the number of
   accepted answers is printed. See bench.h. */
#include "bench/harness/bench.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace {

struct Fit {
  double from, to, exponent, error; /* error: of the exponent, standard */
  int points, accepted;
};

/* Fits t = c x^p; returns false with fewer than three points. */
bool fit(const std::vector<std::pair<double, double>> &points, Fit *out) {
  const double count = static_cast<double>(points.size());
  double mx = 0.0, mt = 0.0, xx = 0.0, xt = 0.0, left = 0.0;
  if (points.size() < 3)
    return false;
  for (const auto &p : points) {
    mx += std::log(p.first) / count;
    mt += std::log(p.second) / count;
  }
  for (const auto &p : points) {
    xx += (std::log(p.first) - mx) * (std::log(p.first) - mx);
    xt += (std::log(p.first) - mx) * (std::log(p.second) - mt);
  }
  if (!(xx > 0.0))
    return false;
  out->exponent = xt / xx;
  for (const auto &p : points) {
    const double d =
        std::log(p.second) - mt - out->exponent * (std::log(p.first) - mx);
    left += d * d;
  }
  out->error = std::sqrt(left / (count - 2.0) / xx);
  out->points = static_cast<int>(points.size());
  out->from = points.front().first;
  out->to = points.back().first;
  return true;
}

/* Returns the points (x, ms) of the method of a section that like names, where
   against names x: n, nrhs or threads. */
std::vector<std::pair<double, double>> line(const Bench &bench,
                                            const Point &like,
                                            const std::string &against,
                                            double from, int *accepted) {
  std::vector<std::pair<double, double>> found;
  *accepted = 0;
  for (const Point &p : bench.points) {
    const double x = against == "n"      ? static_cast<double>(p.n)
                     : against == "nrhs" ? static_cast<double>(p.nrhs)
                                         : p.threads;
    if (p.section == like.section && p.kind == like.kind &&
        p.method == like.method && x >= from &&
        (against == "n" || p.n == like.n)) {
      found.emplace_back(x, p.ms);
      *accepted += p.accepted;
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_fits(Bench *bench, const std::string &section,
              const std::string &against, double from, std::string *json) {
  std::set<std::string> seen;
  for (const Point &p : bench->points) {
    const bool by_n = against == "n";
    const std::string key =
        p.kind + "/" + p.method + "/" + (by_n ? "" : std::to_string(p.n));
    Fit f;
    if (p.section != section || !seen.insert(key).second ||
        !fit(line(*bench, p, against, from, &f.accepted), &f))
      continue;
    printf("| %s | %s | %s | %s | %s | %g .. %g | %.2f +- %.2f | %d of %d |\n",
           section.c_str(), p.kind.c_str(), p.method.c_str(),
           by_n ? "" : std::to_string(p.n).c_str(), against.c_str(), f.from,
           f.to, f.exponent, f.error, f.accepted, f.points);
    *json += (json->empty() ? "" : ",\n  ") + std::string("{\"section\": ") +
             json_string(section) + ", \"kind\": " + json_string(p.kind) +
             ", \"method\": " + json_string(p.method) +
             (by_n ? "" : ", \"n\": " + std::to_string(p.n)) +
             ", \"against\": " + json_string(against) +
             text(", \"from\": %g, \"to\": %g, \"points\": %d, "
                  "\"accepted\": %d, \"exponent\": %.3f, "
                  "\"standard_error\": %.3f}",
                  f.from, f.to, f.points, f.accepted, f.exponent, f.error);
  }
}

/* Finds the n from which on ours is always faster than the other: between the
   last n where it is slower and the next one, the logarithm of the ratio is
   taken to be linear in that of n. */
void add_crossover(Bench *bench, const std::string &section,
                   const std::string &ours, const std::string &other,
                   std::string *json) {
  Point like;
  like.section = section;
  like.kind = kind_names[UNIFORM];
  like.method = ours;
  int accepted;
  const auto a = line(*bench, like, "n", 1.0, &accepted);
  like.method = other;
  const auto b = line(*bench, like, "n", 1.0, &accepted);
  std::vector<std::pair<double, double>> both; /* n, ours / other */
  for (const auto &p : a)
    for (const auto &q : b)
      if (p.first == q.first)
        both.emplace_back(p.first, p.second / q.second);
  for (size_t k = both.size(); k-- > 1 && both[k].second <= 1.0;)
    if (both[k - 1].second > 1.0) {
      const double part = std::log(both[k - 1].second) /
                          std::log(both[k - 1].second / both[k].second);
      const double n =
          both[k - 1].first * std::pow(both[k].first / both[k - 1].first, part);
      printf("%s is faster than %s from n = %.0f on (measured: %g slower, %g "
             "faster)\n",
             ours.c_str(), other.c_str(), n, both[k - 1].first, both[k].first);
      *json += (json->empty() ? "" : ",\n  ") + std::string("{\"section\": ") +
               json_string(section) + ", \"faster\": " + json_string(ours) +
               ", \"than\": " + json_string(other) +
               text(", \"n\": %.0f, \"slower_at\": %g, \"faster_at\": %g}", n,
                    both[k - 1].first, both[k].first);
    }
}

} // namespace

void costs(Bench *bench) {
  std::string fits, crossovers;
  printf("\n## How cost grows: t = c x^p, n from 512 on\n\n"
         "| section | matrix | method | n | against | from .. to | p | "
         "answers accepted |\n|---|---|---|---|---|---|---|---|\n");
  add_fits(bench, "solve", "n", 512.0, &fits);
  add_fits(bench, "columns", "nrhs", 1.0, &fits);
  add_fits(bench, "threads", "threads", 1.0, &fits);
  printf("\n");
  for (const char *section : {"solve", "small"})
    for (const auto &pair :
         {std::pair<const char *, const char *>{"Hone once", "dgesv"},
          {"Hone kept", "dgesv"},
          {"Hone once", "dsgesv"},
          {"Hone kept", "dsgesv"},
          {"Hone CUDA kept", "Hone CPU kept"}})
      add_crossover(bench, section, pair.first, pair.second, &crossovers);
  bench->record.set("fits", "[" + fits + "]");
  bench->record.set("crossovers", "[" + crossovers + "]");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds, rows and record of bench_papers; see papers.h. */
#include "bench/papers/papers.h"

#include <algorithm>
#include <cstdio>

/* ---- time ---- */

Share::Share(const Papers &papers, double share) {
  const double now = now_s();
  const double limit = papers.o.seconds > 0.0 ? papers.o.seconds : INFINITY;
  end_s_ = std::isinf(papers.end_s) ? papers.end_s
                                    : now + share * (papers.end_s - now);
  warm_s_ = std::fmin(papers.o.long_s, limit / 1000.0);
  once_s_ = limit / 200.0;
}

double Share::expected(const std::string &name, int64_t n,
                       double growth) const {
  const auto last = last_.find(name);
  if (last == last_.end())
    return 0.0;
  return last->second.second *
         std::pow(static_cast<double>(n) /
                      static_cast<double>(last->second.first),
                  growth);
}

bool Share::affords(const std::string &name, int64_t n, double growth) const {
  return now_s() + expected(name, n, growth) <= end_s_;
}

void Share::took(const std::string &name, int64_t n, double seconds) {
  last_[name] = {n, seconds};
}

/* ---- rounds ---- */

std::string no_time(double expected_s) {
  return "no time for it" +
         (expected_s > 0.0 ? text(", about %.2g s", expected_s) : "");
}

namespace {

/* Runs one way once, if it needs another time and there is time for it. */
void one_turn(Share *share, int64_t n, double growth, int round, int rounds,
              Way *w) {
  Method &m = w->m;
  const int done = static_cast<int>(m.ms.size());
  if (!m.failed.empty() || !m.skipped.empty() || done >= rounds)
    return;
  if (!share->affords(m.name, n, growth)) {
    m.skipped = done == 0 ? no_time(share->expected(m.name, n, growth))
                          : "no time after " + std::to_string(done) + " runs";
    return;
  }
  const Found before = *w->found;
  const double start = now_s();
  double ms = NAN;
  m.failed = m.time(&ms, &m.error);
  const double took = now_s() - start;
  share->took(m.name, n, took);
  fprintf(stderr, "n %lld, %s: %.4g ms %s\n", static_cast<long long>(n),
          m.name.c_str(), ms, m.failed.c_str());
  if (!m.failed.empty())
    return;
  m.checked += w->checks;
  if (round == 0 && share->warms(took)) {
    w->found->factor_ms = before.factor_ms;
    w->found->refine_ms = before.refine_ms;
    return;
  }
  m.ms.push_back(ms);
  if (done == 0 && rounds > 1 && !share->repeats(took))
    m.skipped = "run once: longer than 1/200 of the time allowed";
}

} // namespace

void take_turns(Share *share, int rounds, int64_t n, double growth,
                std::vector<Way> *ways) {
  for (int round = 0; round <= rounds; round++)
    for (size_t k = 0; k < ways->size(); k++)
      one_turn(share, n, growth, round, rounds,
               &(*ways)[(k + static_cast<size_t>(round)) % ways->size()]);
}

void accept_within(double limit, std::vector<Way> *ways) {
  for (Way &w : *ways)
    w.m.accepted = w.m.checked > 0 && w.m.error <= limit;
}

Way missing(const std::string &name, const std::string &why) {
  Way w;
  w.m.name = name;
  w.m.failed = why;
  return w;
}

/* ---- cells ---- */

std::string times_text(const std::vector<double> &ms) {
  const Spread s = spread(ms);
  std::string cell = text_of(s, "%.4g");
  if (s.count == 1)
    cell = figure(s.median, "%.4g") + " (1 run)";
  else if (s.count == 2)
    cell += " (2 runs)";
  return cell;
}

std::string error_text(double error, bool there) {
  return std::isnan(error)    ? "NaN"
         : !there             ? "-"
         : !std::isinf(error) ? text("%.2g", error)
                              : "Inf";
}

std::string remarks_text(const Method &m) {
  std::string all = m.note;
  for (const std::string *more : {&m.skipped, &m.failed})
    if (!more->empty())
      all += (all.empty() ? "" : "; ") + *more;
  return all;
}

std::string row_text(const std::vector<std::string> &cells) {
  std::string row = "|";
  for (std::string cell : cells) {
    std::replace(cell.begin(), cell.end(), '|', '/');
    std::replace(cell.begin(), cell.end(), '\n', ' ');
    row += " " + cell + " |";
  }
  return row;
}

std::string rate_text(double operations, double ms) {
  return figure(1e-6 * operations / ms, "%.4g");
}

/* ---- the record ---- */

namespace {

std::string list_of(const std::vector<double> &values) {
  std::string list = "[";
  for (double v : values)
    list += (list.size() > 1 ? ", " : "") + json_number(v);
  return list + "]";
}

std::string found_json(const Way &w) {
  const Found &f = *w.found;
  std::string out =
      "\"error_text\": " + json_string(error_text(w.m.error, w.m.checked > 0));
  if (!f.factor_ms.empty())
    out += ", \"factor_ms\": " + list_of(f.factor_ms);
  if (!f.refine_ms.empty())
    out += ", \"refine_ms\": " + list_of(f.refine_ms);
  if (f.iterations >= 0)
    out += ", \"iterations\": " + std::to_string(f.iterations);
  if (!std::isnan(w.paper_ms))
    out += ", \"paper_ms\": " + json_number(w.paper_ms);
  if (!std::isnan(w.paper_refine_ms))
    out += ", \"paper_refine_ms\": " + json_number(w.paper_refine_ms);
  if (w.paper_iterations >= 0)
    out += ", \"paper_iterations\": " + std::to_string(w.paper_iterations);
  return out;
}

} // namespace

void record_ways(Papers *papers, const std::string &fields,
                 const std::vector<Way> &ways) {
  std::vector<Method> methods;
  if (ways.empty())
    return;
  for (const Way &w : ways) {
    methods.push_back(w.m);
    methods.back().report = [w] {
      const std::string more = w.m.report ? w.m.report() : "";
      return found_json(w) + (more.empty() ? "" : ", " + more);
    };
  }
  papers->record.add(fields, methods, 0);
}

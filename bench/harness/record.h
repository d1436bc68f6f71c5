/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of bench_cpu and bench_gpu: times by method and round, their
   statistics, the tables that are printed, and the record in JSON. */
#ifndef HONE_BENCH_HARNESS_RECORD_H
#define HONE_BENCH_HARNESS_RECORD_H

#include <climits>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

enum Group { OURS, PAGEABLE, PINNED };

/* A way to solve (or factor) and what came of it. */
struct Method {
  std::string name;
  Group group = OURS;
  int most_rounds = INT_MAX;
  int batch = 1; /* systems to a timing; times are for one */
  /* Solves system k into x; timed. Empty, or why it failed. NULL where the
     method times itself: see time. */
  std::function<std::string(int64_t k, double *x)> solve;
  /* Untimed, before a batch: readies system k, the place-th of it, for a solve
     that destroys A, and x for one that takes b there. May be NULL. */
  std::function<void(int64_t k, int64_t place, double *x)> prepare;
  /* In place of solve: milliseconds, and the error in place of the check. */
  std::function<std::string(double *ms, double *error)> time;
  /* Untimed, after solve: empty, or why it failed after all; sets note. */
  std::function<std::string(std::string *note)> after;
  std::function<std::string()> report; /* JSON, or empty; may be NULL */

  std::vector<double> ms; /* by round; NaN: did not run */
  double error = 0.0;     /* largest seen */
  int checked = 0;        /* answers */
  bool accepted = true;   /* every one of them */
  std::string failed, skipped, note;
};

/* The statistics of the rounds that ran. */
struct Spread {
  double low, median, high;
  int count;
};
Spread spread(const std::vector<double> &values);
/* The ratio of a's times to b's, in the rounds where both ran. */
Spread ratio(const Method &a, const Method &b);
/* The one with the smallest median of a group, if its answers are answers at
   all (errors up to 1e-9); NULL: none. */
const Method *fastest(const std::vector<Method> &methods, Group group);

/* "12.3 (11.9 .. 14.0)", or "-" */
std::string text_of(const Spread &s, const char *format);
/* "-" unless finite */
std::string figure(double value, const char *format);
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One table: every method, times and ratios to methods[reference]. */
void print_table(const std::string &title, const std::vector<Method> &methods,
                 size_t reference, const char *error_name);

/* A table that grows over the run and is printed at its end. */
struct Summary {
  std::string title, header;
  std::vector<std::string> rows;
};
void print_summary(const Summary &summary);

std::string json_string(const std::string &text);
std::string json_number(double value); /* null unless finite */

/* The record, written anew after every row: a run that is cut off leaves a
   whole file. Empty file name: none. */
class Record {
public:
  explicit Record(std::string file); /* begins with the format's name */
  /* value: JSON */
  void set(const std::string &key, const std::string &value);
  /* fields: `"key": value` pairs, separated by commas */
  void add(const std::string &fields, const std::vector<Method> &methods,
           size_t reference);
  void add_row(const std::string &json);
  bool save() const;

private:
  std::string file_;
  std::vector<std::pair<std::string, std::string>> head_;
  std::vector<std::string> rows_;
};

/* Seconds left, and whether a method can be expected to stay within them:
   from its last time, taken as growing with n^2.5. */
class Budget {
public:
  explicit Budget(double seconds);
  bool affords(const std::string &name, int64_t n) const;
  void took(const std::string &name, int64_t n, double seconds);

private:
  double end_s_;
  std::map<std::string, std::pair<int64_t, double>> last_;
};

/* The first line a command prints, or "unknown". */
std::string first_line(const char *command);

/* The command line as typed, but the program and a record's name (--json)
   without the folders they are in. */
std::string command_of(int argc, char **argv);

/* The commit measured: as given, or $HONE_COMMIT, or git's HEAD where nothing
   has been changed since; else "unknown", and why. */
std::string commit_of(const std::string &given);

#endif

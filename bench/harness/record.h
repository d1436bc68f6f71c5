/* SPDX-License-Identifier: BSD-3-Clause */
/* The measurements of the benchmarks: times by method and round, their
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

/* This library, or a peer whose A is in pageable or in pinned memory. */
enum Group { OURS, PAGEABLE, PINNED };

/* A method to solve or factor, and its results. Functions that return a text
   return why they failed, or an empty one. */
struct Method {
  std::string name;
  Group group = OURS;
  int most_rounds = INT_MAX;
  int batch = 1; /* systems that one timing solves; times are for one */
  /* Solves system k into x, and is timed. NULL if there is time. */
  std::function<std::string(int64_t k, double *x)> solve;
  /* Is called before a batch, untimed: copies A of system k, the place-th of
     the batch, for a solve that overwrites A, and b to x for one that expects
     it there. May be NULL. */
  std::function<void(int64_t k, int64_t place, double *x)> prepare;
  /* Replaces solve in methods that take the time themselves: sets the
     milliseconds, and the error, which is then not checked here. */
  std::function<std::string(double *ms, double *error)> time;
  /* Is called after solve, untimed, and sets note. May be NULL. */
  std::function<std::string(std::string *note)> after;
  std::function<std::string()> report; /* JSON, or empty; may be NULL */

  std::vector<double> ms; /* by round; NaN: did not run */
  double error = 0.0;     /* the largest of all answers */
  int checked = 0;        /* answers checked */
  bool accepted = true;   /* all of them are */
  std::string failed, skipped, note;
};

/* The statistics of the rounds that ran. */
struct Spread {
  double low, median, high;
  int count;
};
Spread spread(const std::vector<double> &values);
/* The ratios of a's times to b's in the rounds where both ran. */
Spread ratio(const Method &a, const Method &b);
/* Returns the method of a group with the smallest median, among those whose
   errors are at most 1e-9; NULL if there is none. */
const Method *fastest(const std::vector<Method> &methods, Group group);

/* Returns "12.3 (11.9 .. 14.0)", or "-" without values. */
std::string text_of(const Spread &s, const char *format);
/* Returns the formatted value, or "-" if it is not finite. */
std::string figure(double value, const char *format);
std::string text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a table of all methods with times and ratios to methods[reference]. */
void print_table(const std::string &title, const std::vector<Method> &methods,
                 size_t reference, const char *error_name);

/* A table that gains rows during the run and is printed at its end. */
struct Summary {
  std::string title, header;
  std::vector<std::string> rows;
};
void print_summary(const Summary &summary);

std::string json_string(const std::string &text);
std::string json_number(double value); /* null unless finite */

/* The record. The whole file is written again after every row, so that a run
   which is interrupted leaves a valid file. Without a file name nothing is
   written. */
class Record {
public:
  explicit Record(std::string file);
  /* value is JSON. */
  void set(const std::string &key, const std::string &value);
  /* fields has `"key": value` pairs, separated by commas. */
  void add(const std::string &fields, const std::vector<Method> &methods,
           size_t reference);
  void add_row(const std::string &json);
  bool save() const;

private:
  std::string file_;
  std::vector<std::pair<std::string, std::string>> head_;
  std::vector<std::string> rows_;
};

/* The seconds left, and whether a method is expected to need no more: its last
   time is assumed to grow with n^2.5. */
class Budget {
public:
  explicit Budget(double seconds);
  bool affords(const std::string &name, int64_t n) const;
  void took(const std::string &name, int64_t n, double seconds);

private:
  double end_s_;
  std::map<std::string, std::pair<int64_t, double>> last_;
};

/* Returns the first line that a command prints, or "unknown". */
std::string first_line(const char *command);

/* Returns the command line, with the folders of the program and of the record
   (--json) left out. */
std::string command_of(int argc, char **argv);

/* Returns the commit measured: the given one, $HONE_COMMIT, or git's HEAD. If
   tracked files were changed since, or git is missing, it says "unknown". */
std::string commit_of(const std::string &given);

#endif

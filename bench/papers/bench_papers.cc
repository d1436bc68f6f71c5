/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repeats the tables of two publications, which papers/source.h names, on this
 * machine. The published figures stand beside those measured here, and beside
 * those of Hone, OpenBLAS and cuSOLVER. `bench_papers --help` lists the
 * options.
 *
 * All ways of a row take turns; the first run of each is not counted. The
 * tables have medians of three runs, with the smallest and the largest, or say
 * for how many runs there was time. If a GPU, cuSOLVER or a matrix is missing,
 * a line in the table says so. Progress is printed to stderr, tables to stdout,
 * and all times go to --json FILE.
 */
#include "bench/papers/papers.h"

extern "C" {
#include "base/lapack.h"
}

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

namespace {

const char usage[] =
    "usage: bench_papers [options] [matrix or directory]...\n"
    "  --section A,...  diagonal, refinement, padding, blocks, sections,\n"
    "                   crout, large (all)\n"
    "  -n A,B,...       orders of refinement (1024,2048,4096,8192,10240)\n"
    "  --dense A,...    orders of crout's random matrices\n"
    "                   (2842,5943,7580,10793); none: 0\n"
    "  --padding-n N    order around which padding is measured (2048)\n"
    "  --blocks-n N     order for the search of block sizes (4096)\n"
    "  --sections-n N   order for the search of section sizes (1000)\n"
    "  --rounds R       runs that are counted (3)\n"
    "  --threads T      threads on the CPU (all)\n"
    "  --seed S         seed of the matrices (1)\n"
    "  --seconds S      skip what would take longer than S in all, and run\n"
    "                   once what takes 1/200 of S (no limit)\n"
    "  --quick          small orders only; must come before other options\n"
    "  --plan           only print what would run, with estimates for an\n"
    "                   H200 and 16 cores\n"
    "  --commit TEXT    the commit to record ($HONE_COMMIT, else from git)\n"
    "  --json FILE      record all times and the machine as JSON\n"
    "Matrices are files of Matrix Market; the default is tests/matrices.\n";

/* ---- options ---- */

std::vector<std::string> split(const std::string &list) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= list.size();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    words.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

/* Reads a whole number in low .. high. */
bool parse(const std::string &text, int64_t low, int64_t high, int64_t *value) {
  char *end = nullptr;
  *value = strtoll(text.c_str(), &end, 10);
  return end != text.c_str() && *end == 0 && *value >= low && *value <= high;
}

bool parse_orders(const std::string &list, std::vector<int64_t> *orders) {
  orders->clear();
  if (list == "0")
    return true;
  for (const std::string &word : split(list)) {
    int64_t n = 0;
    if (!parse(word, 1, 32768, &n))
      return false;
    orders->push_back(n);
  }
  return true;
}

bool parse_int(const std::string &text, int high, int *value) {
  int64_t number = 0;
  const bool valid = parse(text, 1, high, &number);
  *value = static_cast<int>(number);
  return valid;
}

bool parse_sections(const std::string &list, PaperOptions *o) {
  const std::vector<std::string> known = PaperOptions().sections;
  o->sections = split(list);
  return std::all_of(
      o->sections.begin(), o->sections.end(), [&](const std::string &word) {
        return std::find(known.begin(), known.end(), word) != known.end();
      });
}

bool parse_option(PaperOptions *o, const std::string &name,
                  const std::string &value) {
  char *end = nullptr;
  if (name == "--section")
    return parse_sections(value, o);
  if (name == "-n")
    return parse_orders(value, &o->orders);
  if (name == "--dense")
    return parse_orders(value, &o->dense);
  if (name == "--padding-n")
    return parse(value, 64, 32768, &o->padding_n);
  if (name == "--blocks-n")
    return parse(value, 64, 32768, &o->blocks_n);
  if (name == "--sections-n")
    return parse(value, 64, 32768, &o->sections_n);
  if (name == "--rounds")
    return parse_int(value, 1000, &o->rounds);
  if (name == "--threads")
    return parse_int(value, 1024, &o->threads);
  if (name == "--commit")
    return !(o->commit = value).empty();
  if (name == "--json")
    return !(o->json_name = value).empty();
  if (name == "--seed")
    o->seed = strtoull(value.c_str(), &end, 10);
  else if (name == "--seconds")
    o->seconds = strtod(value.c_str(), &end);
  return end != nullptr && end != value.c_str() && *end == 0;
}

void be_quick(PaperOptions *o) {
  o->quick = true;
  o->orders = {512, 1024};
  o->dense = {512, 1000};
  o->padding_n = 1024;
  o->blocks_n = 2048;
  o->sections_n = 512;
}

/* Returns false after printing what is wrong. */
bool read_options(int argc, char **argv, PaperOptions *o) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--quick") == 0) {
      be_quick(o);
    } else if (strcmp(argv[i], "--plan") == 0) {
      o->plan = true;
    } else if (argv[i][0] != '-') {
      o->matrices.push_back(argv[i]);
    } else if (i + 1 < argc && parse_option(o, argv[i], argv[i + 1])) {
      i++;
    } else {
      fprintf(stderr, "bench_papers: bad option %s\n%s", argv[i], usage);
      return false;
    }
  }
  if (o->matrices.empty())
    o->matrices.push_back("tests/matrices");
  return true;
}

/* ---- the machine ---- */

void state(Papers *papers, const std::string &key, const std::string &value) {
  printf("%-18s %s\n", key.c_str(), value.c_str());
  papers->record.set(key, json_string(value));
}

std::string smi(const char *field) {
  return first_line(text("nvidia-smi -i 0 --query-gpu=%s "
                         "--format=csv,noheader 2>/dev/null",
                         field)
                        .c_str());
}

void describe(Papers *papers, int argc, char **argv) {
  const PaperOptions &o = papers->o;
  char date[32] = "";
  const time_t now = time(nullptr);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  std::vector<std::pair<std::string, std::string>> facts;
  papers->no_gpu = gpu_open(&facts);
  state(papers, "program", command_of(argc, argv));
  state(papers, "date", date);
  state(papers, "commit", commit_of(o.commit));
  state(papers, "hone", hone_version());
  if (!papers->no_gpu.empty())
    state(papers, "device", "none: " + papers->no_gpu);
  for (const auto &fact : facts)
    state(papers, fact.first, fact.second);
  if (papers->no_gpu.empty())
    for (const char *field : {"clocks.sm", "power.limit", "driver_version"})
      state(papers, field, smi(field));
  state(papers, "host_compiler", text("gcc %s", __VERSION__));
  state(papers, "host",
        first_line("sed -n 's/^model name[^:]*: //p' /proc/cpuinfo"));
  state(papers, "host_threads", text("%d", o.host_threads));
  state(papers, "openblas", hone_blas_config());
  state(papers, "openblas_threads", text("%d", hone_blas_threads()));
  state(papers, "seed", std::to_string(o.seed));
  papers->record.set("sources",
                     json_string("F. D. Igual 2011 (Tesla C1060, 2 x Xeon "
                                 "E5520); L. Cejka 2022 (A100, EPYC 7543)"));
  papers->record.set(
      "check",
      json_string("igual 4.2: max |b - A x| / (|A| |x| + |b|), accepted <= "
                  "4.04 * 2^-53; 4.1, padding, blocks: ||A v - L U v|| / "
                  "(||A|| ||v||), of Hone's ||A - L U|| / ||A||, <= 1e-4; "
                  "cejka: max |A - L U|, <= 1024 n eps max |A|; error_text "
                  "says NaN where error is one"));
}

/* Seconds of whole sections on an H200 with 16 cores, estimated from the times
   at n = 1024. */
const std::map<std::string, double> estimates = {
    {"diagonal", 8.0}, {"refinement", 70.0}, {"padding", 20.0},
    {"blocks", 38.0},  {"sections", 10.0},   {"crout", 115.0},
    {"large", 45.0}};

int plan(const PaperOptions &o) {
  double sum = 0.0;
  printf("section     estimated s   so far%s\n",
         o.seconds > 0.0 ? text("   of %g", o.seconds).c_str() : "");
  for (const std::string &section : o.sections) {
    const double here = (o.quick ? 0.1 : 1.0) * estimates.at(section);
    sum += here;
    printf("%-12s%11.0f%9.0f%s\n", section.c_str(), here, sum,
           o.seconds > 0.0 && sum > o.seconds ? "   not all of it" : "");
  }
  return 0;
}

void run(Papers *papers) {
  const std::map<std::string, void (*)(Papers *)> known = {
      {"diagonal", section_diagonal}, {"refinement", section_refinement},
      {"padding", section_padding},   {"blocks", section_blocks},
      {"sections", section_sections}, {"crout", section_crout},
      {"large", section_large}};
  for (const std::string &section : papers->o.sections) {
    const double start = now_s();
    known.at(section)(papers);
    fprintf(stderr, "section %s: %.1f s\n", section.c_str(), now_s() - start);
  }
}

} // namespace

int main(int argc, char **argv) {
  Papers papers;
  PaperOptions &o = papers.o;
  const double start = now_s();
  if (argc > 1 && strcmp(argv[1], "--help") == 0) {
    fputs(usage, stdout);
    return 0;
  }
  if (!read_options(argc, argv, &o))
    return 2;
  if (o.plan)
    return plan(o);
  o.host_threads = o.threads;
  if (o.threads > 0)
    hone_blas_set_threads(o.threads);
  else
    o.host_threads =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (o.seconds > 0.0)
    papers.end_s = start + o.seconds;
  papers.record = Record(o.json_name);
  describe(&papers, argc, argv);
  run(&papers);
  papers.record.set("seconds", json_number(now_s() - start));
  printf("\n%-18s %.1f\n", "seconds", now_s() - start);
  if (!papers.record.save()) {
    perror(o.json_name.c_str());
    return 2;
  }
  return 0;
}

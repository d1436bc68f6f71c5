/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of two publications again, on the machine at hand, with their
 * figures beside ours and what a user would take today: papers_source.h says
 * which. `bench_papers --help` for options.
 *
 * How: all ways of a row take turns, one run before them not counted; medians
 * of at least three with the smallest and the largest, and where time did not
 * allow three, the table says how many. What is not there (no GPU, no
 * cuSOLVER, a matrix that cannot be taken) is a line in a table. Progress goes
 * to stderr, tables to stdout, every single time to --json FILE.
 */
#include "bench/papers.h"

extern "C" {
char *openblas_get_config(void);
int openblas_get_num_threads(void);
void openblas_set_num_threads(int threads);
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
    "  --section A,...  diagonal, refinement, padding, blocks, crout (all)\n"
    "  -n A,B,...       orders of refinement (1024,2048,4096,8192,10240)\n"
    "  --dense A,...    orders of crout's random matrices\n"
    "                   (2842,5943,7580,10793); none: 0\n"
    "  --padding-n N    order around which padding is looked at (4096)\n"
    "  --blocks-n N     order of the block sizes' search (4096)\n"
    "  --rounds R       runs that count (3)\n"
    "  --threads T      threads of the CPU's ways (all)\n"
    "  --seed S         seed of the matrices (1)\n"
    "  --seconds S      what would not end within is skipped (no limit)\n"
    "  --quick          small orders only; before other options\n"
    "  --commit TEXT    for the record (git rev-parse HEAD)\n"
    "  --json FILE      every single time and the machine, as JSON\n"
    "Matrices: files of Matrix Market; without any, tests/matrices.\n";

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

/* A whole number in low .. high. */
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
}

/* False: what is wrong has been said. */
bool read_options(int argc, char **argv, PaperOptions *o) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--quick") == 0) {
      be_quick(o);
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
  std::string command = "bench_papers", commit = o.commit;
  for (int i = 1; i < argc; i++)
    command += std::string(" ") + argv[i];
  if (commit.empty())
    commit = first_line("exec 2>/dev/null; c=$(git rev-parse --verify -q HEAD)"
                        " && printf %s \"$c\" && { git diff --quiet HEAD ||"
                        " printf ' (modified)'; }");
  std::vector<std::pair<std::string, std::string>> facts;
  papers->no_gpu = gpu_open(&facts);
  state(papers, "program", command);
  state(papers, "date", date);
  state(papers, "commit", commit);
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
  state(papers, "openblas", openblas_get_config());
  state(papers, "openblas_threads", text("%d", openblas_get_num_threads()));
  state(papers, "seed", std::to_string(o.seed));
  papers->record.set("sources",
                     json_string("F. D. Igual 2011 (Tesla C1060, 2 x Xeon "
                                 "E5520); L. Cejka 2022 (A100, EPYC 7543)"));
  papers->record.set(
      "check",
      json_string("igual 4.2: max |b - A x| / (|A| |x| + |b|), accepted <= "
                  "4.04 * 2^-53; padding, blocks: ||A v - L U v|| / (||A|| "
                  "||v||), <= 1e-4; cejka: max |A - L U|, <= 1024 n eps max "
                  "|A|; error_text says NaN where error is one"));
}

void run(Papers *papers) {
  for (const std::string &section : papers->o.sections) {
    fprintf(stderr, "section %s\n", section.c_str());
    if (section == "diagonal")
      section_diagonal(papers);
    else if (section == "refinement")
      section_refinement(papers);
    else if (section == "padding")
      section_padding(papers);
    else if (section == "blocks")
      section_blocks(papers);
    else
      section_crout(papers);
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
  o.host_threads = o.threads;
  if (o.threads > 0)
    openblas_set_num_threads(o.threads);
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

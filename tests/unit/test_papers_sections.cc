/* SPDX-License-Identifier: BSD-3-Clause */
/* Small runs of whole sections of bench_papers where things are missing: what
   they print and record. */
#include "tests/unit/test_papers.h"

#include <cstring>

namespace {

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

int occurrences(const std::string &text, const std::string &part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at++)
    count++;
  return count;
}

/* The output and the record of a section, kept out of the tests' own output. */
struct Printed {
  std::string table, record;
};

std::string content(const std::string &path) {
  std::string all;
  char part[4096];
  FILE *f = fopen(path.c_str(), "r");
  for (size_t got; f != nullptr && (got = fread(part, 1, sizeof part, f)) > 0;)
    all.append(part, got);
  if (f != nullptr)
    fclose(f);
  return all;
}

Printed print(Papers *papers, void (*section)(Papers *)) {
  Folder folder;
  folder.add("out", "");
  folder.add("err", "");
  folder.add("json", "");
  papers->record = Record(folder.files[2]);
  {
    const Redirect out(stdout, folder.files[0]), err(stderr, folder.files[1]);
    section(papers);
  }
  return {content(folder.files[0]), content(folder.files[2])};
}

Papers small_papers() {
  Papers papers;
  papers.no_gpu = "none for this test";
  papers.o.quick = true;
  papers.o.orders = {64};
  papers.o.dense = {40};
  papers.o.padding_n = papers.o.blocks_n = papers.o.sections_n = 64;
  papers.o.rounds = 3;
  papers.o.long_s = INFINITY; /* however busy the machine is */
  return papers;
}

TEST(papers, sections_without_a_gpu_have_the_columns_of_the_cpu) {
  Papers papers = small_papers();
  Printed p = print(&papers, section_diagonal);
  CHECK(contains(p.table, "| 32 | - / 0.016 |"));
  CHECK(contains(p.table, "/ 0.009 |"));
  CHECK(contains(p.table, "GPU: none for this test"));
  CHECK(contains(p.record, "\"section\": \"igual 4.1\""));
  CHECK(contains(p.record, "\"paper_ms\": 193.247"));
  CHECK(!contains(p.record, "\"accepted\": true, \"failed\""));
  /* Every timing of every block is checked. */
  CHECK_EQ_INT(occurrences(p.record, "\"checked\": 6, "), 15);
  CHECK(!contains(p.record, "\"error_text\": \"0\"")); /* only rounding */
  CHECK_EQ_INT(occurrences(p.record, "\"accepted\": true"), 15);
  papers = small_papers();
  p = print(&papers, section_refinement);
  CHECK(contains(p.table, "| 64 | SPD | Hone, GPU | - | - | - | - | - | - | "
                          "none for this test |"));
  CHECK(contains(p.table, "| 64 | LU | Igual's way, CPU |"));
  CHECK(contains(p.record, "\"iterations\": "));
  CHECK(contains(p.record, "\"refine_ms\": ["));
  CHECK(contains(p.record, "\"failed\": \"none for this test\""));
  papers = small_papers();
  p = print(&papers, section_padding);
  CHECK(contains(p.table, "| LU | 97 | - / - / - | - / - / - | - | "));
  CHECK(contains(p.table, "LU, OpenBLAS, to 64: slowest order / fastest 0."));
  /* 4 orders, Cholesky and LU, 3 paddings: 3 rounds and one before them */
  CHECK_EQ_INT(occurrences(p.record, "\"checked\": 4, "), 24);
  CHECK_EQ_INT(occurrences(p.record, "\"accepted\": true"), 24);
  papers = small_papers();
  p = print(&papers, section_blocks);
  CHECK(contains(p.table, "| SPD | 32 | 64 | CPU: left-looking |"));
  CHECK(contains(p.table, "| GPU: cuSOLVER FP32 | - | - | - | none for this"));
  papers = small_papers();
  p = print(&papers, section_sections);
  CHECK(contains(p.table, "| Cejka64 | double | ICM16, sections of 64 | - |"));
  CHECK(contains(p.record, "\"section\": \"cejka sections\""));
}

/* The record names the methods for which there was no time. */
TEST(papers, sections_out_of_time_say_so_in_the_record) {
  Papers papers = small_papers();
  papers.end_s = now_s() - 1.0;
  Printed p = print(&papers, section_padding);
  CHECK_EQ_INT(occurrences(p.record, "\"failed\": \"no time for it\""), 8);
  p = print(&papers, section_blocks);
  CHECK_EQ_INT(occurrences(p.record, "\"failed\": \"no time for it\""), 2);
  p = print(&papers, section_diagonal);
  CHECK_EQ_INT(occurrences(p.record, "\"skipped\": \"no time for it\""), 15);
}

/* Files that are taken and files that are not, a zero pivot, and NaN in the
   places of missing numbers. */
TEST(papers, crout_says_nan_where_there_are_no_factors) {
  Folder folder;
  folder.add("good.mtx", good);
  folder.add("oblong.mtx", oblong);
  folder.add("zero.mtx", zero_pivot);
  Papers papers = small_papers();
  papers.o.matrices = {folder.path};
  const Printed p = print(&papers, section_crout);
  CHECK(contains(p.table, "| not square: 2 x 3 |"));
  CHECK(contains(p.table, "| zero pivot, column 0 |"));
  CHECK(
      contains(p.table, "| zero | 2 | single | - | - | - | - | NaN | - | - |"));
  CHECK(contains(p.table, "| good | 3 | double |"));
  CHECK(contains(p.table, "| Cejka40 | 40 | single |"));
  CHECK(contains(p.record, "\"error_text\": \"NaN\""));
  CHECK(contains(p.record, "\"kind\": \"Cejka40\", \"n\": 40, "
                           "\"precision\": 64"));
  CHECK(!contains(p.record, "nan"));
}

/* On a true or emulated device the section prints its sweeps and errors, and
   that there is no getrf. */
TEST(papers, crout_runs_on_a_device) {
  float a = 4.0F, z = 0.0F;
  hone_crout_report r = {};
  double ms = -1.0;
  const std::string why = gpu_crout(1, &a, &z, hone_crout_options{}, &r, &ms);
  if (!why.empty()) {
    const char *required = getenv("HONE_REQUIRE_GPU");
    REQUIRE(required == nullptr || strcmp(required, "1") != 0);
    SKIP("no usable CUDA device");
  }
  CHECK_EQ_INT(z == 4.0F, 1);
  CHECK_LE(0.0, ms);
  Folder folder;
  folder.add("good.mtx", good);
  folder.add("zero.mtx", zero_pivot);
  Papers papers = small_papers();
  papers.no_gpu.clear();
  papers.o.matrices = {folder.path};
  const Printed p = print(&papers, section_crout);
  CHECK(contains(p.table, "| good | 3 | double | 32 | "));
  CHECK(contains(p.table, "| zero | 2 | double | 32 | "));
  CHECK(contains(p.table, "| NaN | NaN | NaN | NaN | NaN | - | - |"));
  CHECK(contains(p.table, "zero pivot, column 0; built without CUDA |"));
  CHECK(contains(p.table, "| Cejka40 | 40 | double | 64 | "));
  CHECK(contains(p.record, "\"pair_most\": "));
  CHECK(contains(p.record, "\"name\": \"ICM8, double\""));
  const Printed widths = print(&papers, section_sections);
  CHECK(
      contains(widths.table, "| Cejka64 | single | ICM16, sections of 32 | "));
  CHECK_EQ_INT(occurrences(widths.record, "\"accepted\": true"), 4);
  CHECK(contains(widths.record, "\"section_columns\": 32"));
}

} // namespace

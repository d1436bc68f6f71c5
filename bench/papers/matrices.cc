/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and reads the matrices; see papers/matrices.h. */
#include "bench/papers/matrices.h"

#include "bench/harness/systems.h"

extern "C" {
#include "examples/matrix_market.h"
}

#include <algorithm>
#include <filesystem>

namespace {

bool refuse(PaperMatrix *m, const std::string &why) {
  m->refused = why;
  return false;
}

bool make_random(PaperMatrix *m, uint64_t seed, int threads) {
  Systems s;
  if (!systems_allocate(&s, m->n, 1))
    return refuse(m, "out of memory");
  systems_fill(&s, UNIFORM, seed, threads);
  m->a.resize(static_cast<size_t>(m->n * m->n));
  for (size_t i = 0; i < m->a.size(); i++) {
    m->a[i] = 2000.0 * s.a[i];
    m->a[i] += m->a[i] == 0.0; /* his generator makes no zeros */
  }
  systems_free(&s);
  return true;
}

} // namespace

bool read_matrix(PaperMatrix *m, uint64_t seed, int threads, int64_t most) {
  if (!m->refused.empty())
    return false;
  if (m->n > most)
    return refuse(m, "more than " + std::to_string(most) + " columns");
  if (m->file.empty())
    return make_random(m, seed, threads);
  char why[400] = "";
  mm_matrix read;
  if (mm_read_file(m->file.c_str(), &read, why, sizeof why) != MM_OK)
    return refuse(m, why);
  m->n = read.rows;
  if (read.rows != read.cols)
    refuse(m, "not square: " + std::to_string(read.rows) + " x " +
                  std::to_string(read.cols));
  else if (read.rows == 0)
    refuse(m, "empty");
  else if (read.is_complex)
    refuse(m, "complex");
  else if (read.rows > most)
    refuse(m, "more than " + std::to_string(most) + " columns");
  else
    m->a.assign(read.a, read.a + read.rows * read.cols);
  mm_free(&read);
  return m->refused.empty();
}

std::vector<PaperMatrix> list_matrices(const std::vector<std::string> &names) {
  namespace fs = std::filesystem;
  std::vector<PaperMatrix> all;
  for (const std::string &name : names) {
    std::vector<fs::path> files;
    std::error_code e;
    if (fs::is_directory(name, e)) {
      for (fs::directory_iterator at(name, e), end; !e && at != end;
           at.increment(e))
        if (at->path().extension() == ".mtx")
          files.push_back(at->path());
    } else {
      files.push_back(name);
    }
    std::sort(files.begin(), files.end());
    for (const fs::path &file : files) {
      PaperMatrix m;
      m.name = file.stem().string();
      m.file = file.string();
      all.push_back(m);
    }
    if (files.empty()) {
      PaperMatrix m;
      m.name = name;
      m.refused = "a directory without matrices (*.mtx)";
      all.push_back(m);
    }
  }
  return all;
}

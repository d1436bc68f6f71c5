/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of bench_papers: temporary files, and streams redirected
   into them. */
#ifndef TESTS_TEST_PAPERS_H
#define TESTS_TEST_PAPERS_H

#include "bench/papers/papers.h"

#include "tests/unit/ct.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace {

/* Redirects a stream into a file as long as it exists. */
class Redirect {
public:
  Redirect(FILE *stream, const std::string &path) : stream_(stream) {
    fflush(stream);
    kept_ = dup(fileno(stream));
    const int file = open(path.c_str(), O_WRONLY | O_TRUNC);
    if (kept_ < 0 || file < 0 || dup2(file, fileno(stream)) < 0)
      abort();
    close(file);
  }
  Redirect(const Redirect &) = delete;
  ~Redirect() {
    fflush(stream_);
    if (dup2(kept_, fileno(stream_)) < 0)
      abort();
    close(kept_);
  }

private:
  FILE *stream_;
  int kept_;
};

inline std::string write_file(const std::string &folder, const char *name,
                              const char *content) {
  const std::string path = folder + "/" + name;
  FILE *f = fopen(path.c_str(), "w");
  if (f == nullptr || fputs(content, f) < 0 || fclose(f) != 0)
    abort();
  return path;
}

/* A temporary folder with files. */
struct Folder {
  std::string path;
  std::vector<std::string> files;
  Folder() {
    char name[] = "/tmp/hone_papers_XXXXXX";
    if (mkdtemp(name) == nullptr)
      abort();
    path = name;
  }
  Folder(const Folder &) = delete;
  ~Folder() {
    for (const std::string &file : files)
      unlink(file.c_str());
    rmdir(path.c_str());
  }
  void add(const char *name, const char *content) {
    files.push_back(write_file(path, name, content));
  }
};

const char good[] = "%%MatrixMarket matrix array real general\n"
                    "3 3\n4\n1\n0\n1\n4\n1\n0\n1\n4\n";
const char zero_pivot[] = "%%MatrixMarket matrix coordinate real general\n"
                          "2 2 2\n1 2 1.0\n2 1 1.0\n";
const char oblong[] = "%%MatrixMarket matrix array real general\n"
                      "2 3\n1\n2\n3\n4\n5\n6\n";
const char imaginary[] = "%%MatrixMarket matrix array complex general\n"
                         "1 1\n1 2\n";

} // namespace

#endif

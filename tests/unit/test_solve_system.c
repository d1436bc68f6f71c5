/* SPDX-License-Identifier: BSD-3-Clause */
/* The program solve_system, and the files and names that it is given. */
#include "examples/matrix_market.h"
#include "tests/unit/ct.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char matrix[] = "%%MatrixMarket matrix array real general\n"
                             "2 2\n2\n0\n0\n4\n";

/* A folder for one test, with the matrix in it as a.mtx. */
typedef struct place {
  char folder[32], program[PATH_MAX], text[4096];
} place;

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void read_text(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  const size_t length = file != NULL ? fread(text, 1, size - 1, file) : 0;
  text[length] = '\0';
  if (file != NULL)
    fclose(file);
}

/* Enters the folder. Returns false where the program was not built. */
static int place_enter(place *p, char *before) {
  const ssize_t length = readlink("/proc/self/exe", p->program, PATH_MAX - 32);
  CHECK(length > 0);
  p->program[length > 0 ? length : 0] = '\0';
  char *slash = strrchr(p->program, '/');
  strcpy(slash != NULL ? slash + 1 : p->program, "solve_system");
  strcpy(p->folder, "/tmp/hone-solve-XXXXXX");
  if (access(p->program, X_OK) != 0)
    return 0;
  CHECK(getcwd(before, PATH_MAX) != NULL);
  CHECK(mkdtemp(p->folder) != NULL && chdir(p->folder) == 0);
  write_text("a.mtx", matrix);
  return 1;
}

static void place_leave(const place *p, const char *before) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", p->folder);
  CHECK_EQ_INT(chdir(before), 0);
  CHECK_EQ_INT(system(command), 0);
}

/* Runs the program with these arguments, in the shell's words, for at most 10
   s; p->text is what it printed. */
static int run(place *p, const char *arguments) {
  char command[PATH_MAX + 512];
  snprintf(command, sizeof command, "timeout 10 '%s' %s >log 2>&1", p->program,
           arguments);
  const int status = system(command);
  read_text("log", p->text, sizeof p->text);
  CHECK_EQ_INT(unlink("log"), 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Returns the number of files in the current folder. */
static int count_files(void) {
  DIR *folder = opendir(".");
  int count = 0;
  CHECK(folder != NULL);
  for (const struct dirent *entry; folder && (entry = readdir(folder));)
    count +=
        strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  if (folder != NULL)
    closedir(folder);
  return count;
}

TEST(solve_system, refuses_its_input_as_output) {
  place p;
  char before[PATH_MAX], text[256];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  CHECK_EQ_INT(symlink("a.mtx", "link"), 0);
  CHECK_EQ_INT(link("a.mtx", "twin"), 0);
  const char *const calls[] = {"--out a.mtx a.mtx", "--out ./link a.mtx",
                               "--out twin a.mtx", "--plot a.mtx link",
                               "--rhs twin --out link --random 2"};
  for (int i = 0; i < 5; i++) {
    ct_note("%s", calls[i]);
    CHECK_EQ_INT(run(&p, calls[i]), 2);
    CHECK(strstr(p.text, "would be overwritten") != NULL);
    read_text("a.mtx", text, sizeof text);
    CHECK_STR(text, matrix);
  }
  CHECK_EQ_INT(count_files(), 3);
  place_leave(&p, before);
}

TEST(solve_system, replaces_an_output_as_a_whole_or_not_at_all) {
  place p;
  char before[PATH_MAX], text[256];
  struct stat old;
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  write_text("x.mtx", "old");
  CHECK_EQ_INT(chmod("x.mtx", 0640), 0);
  CHECK_EQ_INT(symlink("x.mtx", "link"), 0);
  CHECK_EQ_INT(link("x.mtx", "twin"), 0);
  CHECK_EQ_INT(run(&p, "--quiet --out link a.mtx"), 0);
  read_text("x.mtx", text, sizeof text);
  CHECK(strstr(text, "%%MatrixMarket") == text);
  read_text("twin", text, sizeof text); /* the old file was not written to */
  CHECK_STR(text, "old");
  CHECK(lstat("link", &old) == 0 && S_ISLNK(old.st_mode));
  CHECK(stat("x.mtx", &old) == 0 && (old.st_mode & 0777) == 0640);
  CHECK_EQ_INT(run(&p, "--quiet --out new.mtx a.mtx"), 0);
  CHECK_EQ_INT(run(&p, "--quiet --out no/where a.mtx"), 2);
  CHECK_EQ_INT(run(&p, "--quiet --out . a.mtx"), 2);
  CHECK_EQ_INT(run(&p, "--quiet --out /dev/full a.mtx"), 2);
  CHECK_EQ_INT(run(&p, "--quiet --out /dev/stdout a.mtx"), 0);
  CHECK(strstr(p.text, "%%MatrixMarket") != NULL);
  /* A file of 1 MB cannot be written: nothing is left behind. */
  char command[PATH_MAX + 128];
  snprintf(command, sizeof command,
           "(ulimit -f 8; trap '' XFSZ; '%s' --quiet --random 900 --nrhs 60 "
           "--out x.mtx 2>/dev/null)",
           p.program);
  read_text("x.mtx", text, sizeof text);
  CHECK(system(command) != 0);
  char after[256];
  read_text("x.mtx", after, sizeof after);
  CHECK_STR(after, text);
  CHECK_EQ_INT(count_files(), 5);
  place_leave(&p, before);
}

TEST(solve_system, ends_with_an_input_that_has_no_end) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  CHECK_EQ_INT(run(&p, "/dev/full"), 2);
  CHECK(strstr(p.text, "not a text file") != NULL);
  CHECK_EQ_INT(run(&p, "--rhs /dev/zero a.mtx"), 2);
  CHECK_EQ_INT(run(&p, "/dev/null"), 2);
  CHECK_EQ_INT(run(&p, "."), 2);

  place_leave(&p, before);
}

TEST(solve_system, escapes_control_characters_in_names) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  static const char name[] = "a\033[31m\n\x7f\xc2\x9b\xff\xc3\xa4.mtx";
  static const char shown[] = "a\\x1b[31m\\n\\x7f\\xc2\\x9b\\xff\xc3\xa4.mtx";
  write_text(name, matrix);
  const char *const calls[] = {"a*31m*.mtx", "--rhs a*31m*.mtx a.mtx",
                               "no$(printf '\\033')[31m"};
  CHECK_EQ_INT(run(&p, calls[0]), 0);
  CHECK(strstr(p.text, shown) != NULL && strchr(p.text, '\033') == NULL);
  (void)run(&p, calls[1]);
  CHECK(strstr(p.text, shown) != NULL && strchr(p.text, '\033') == NULL);
  CHECK_EQ_INT(run(&p, calls[2]), 2);
  CHECK(strstr(p.text, "no\\x1b[31m") != NULL);
  CHECK(strchr(p.text, '\033') == NULL);
  place_leave(&p, before);
}

#define ARRAY "%%MatrixMarket matrix array "

/* Runs the program, which must end with this status and say this. */
static void expect(place *p, const char *arguments, int status,
                   const char *said) {
  ct_note("%s", arguments);
  CHECK_EQ_INT(run(p, arguments), status);
  CHECK_CONTAINS(p->text, said);
  ct_note(NULL);
}

/* Expects x.mtx to be a complex array of these numbers. */
static void expect_x(int64_t rows, int64_t cols, const double *x) {
  char message[200];
  mm_matrix m;
  CHECK_EQ_INT(mm_read_file("x.mtx", &m, message, sizeof message), MM_OK);
  CHECK_STR(m.field, "complex");
  if (CHECK_EQ_INT(m.rows, rows) && CHECK_EQ_INT(m.cols, cols))
    for (int64_t k = 0; k < 2 * rows * cols; k++)
      CHECK_NEAR(m.a[k], x[k], 1e-15);
  mm_free(&m);
  CHECK_EQ_INT(unlink("x.mtx"), 0);
}

TEST(solve_system, solves_complex_systems_of_every_kind) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  write_text("z.mtx", ARRAY "complex general\n2 2\n2 0\n0 1\n1 0\n0 -2\n");
  write_text("b.mtx", ARRAY "complex general\n2 2\n2 2\n4 -8\n0 2\n4 0\n");
  write_text("r.mtx", ARRAY "real general\n2 1\n3\n-1\n");
  /* A is the real diag(2, 4): two columns of b, four real ones. */
  expect(&p, "--out x.mtx --rhs b.mtx a.mtx", 0,
         "4 columns, real and imaginary parts in turn");
  expect_x(2, 2, (double[]){1, 1, 1, -2, 0, 1, 1, 0});
  /* [2 1; i -2i] x = (3, -1): x = (1.2 + 0.2 i, 0.6 - 0.4 i) */
  expect(&p, "--out x.mtx --rhs r.mtx z.mtx", 0, "complex general array");
  expect_x(2, 1, (double[]){1.2, 0.2, 0.6, -0.4});
  /* [2 i; 1 -2i] x = (3, -1): x = (1, -i) */
  expect(&p, "--out x.mtx --transpose --rhs r.mtx z.mtx", 0, "accepted");
  expect_x(2, 1, (double[]){1, 0, 0, -1});
  /* [2 -i; 1 2i] x = (3, -1): x = (1, i) */
  expect(&p, "--out x.mtx --conjugate-transpose --rhs r.mtx z.mtx", 0,
         "accepted");
  expect_x(2, 1, (double[]){1, 0, 0, 1});
  place_leave(&p, before);
}

TEST(solve_system, knows_the_error_of_complex_solutions) {
  place p;
  char before[PATH_MAX], path[PATH_MAX + 64];
  const char *folder = getenv("HONE_TEST_MATRICES");
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  snprintf(path, sizeof path, "--nrhs 2 --conjugate-transpose %s%s/young1c.mtx",
           folder != NULL ? "" : before,
           folder != NULL ? folder : "/tests/matrices");
  expect(&p, path, 0, "841 x 841, 4089 entries stored, complex");
  CHECK_CONTAINS(p.text, "A^H * (ones, then random signs): 2 columns");
  const char *error = strstr(p.text, "error of x");
  REQUIRE(error != NULL);
  CHECK_LE(atof(error + strlen("error of x")), 1e-13);
  expect(&p, "--random 300 --complex --double --seed 7", 0,
         "random, 300 x 300, complex, seed 7");
  error = strstr(p.text, "error of x");
  REQUIRE(error != NULL);
  CHECK_LE(atof(error + strlen("error of x")), 1e-11);
  expect(&p, "--json --random 30 --complex", 0, "\"field\": \"complex\"");
  expect(&p, "--random 30 --devices 2", 0, "accepted");
  expect(&p, "--random 30 --devices -1", 0, "accepted");
  place_leave(&p, before);
}

TEST(solve_system, counts_one_entry_and_prints_nothing_if_quiet) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  write_text("one.mtx",
             "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n");
  expect(&p, "one.mtx", 0, " 1 x 1, 1 entry stored, real");
  CHECK_EQ_INT(run(&p, "--json --quiet one.mtx"), 0);
  CHECK_STR(p.text, "");
  CHECK_EQ_INT(run(&p, "--quiet one.mtx"), 0);
  CHECK_STR(p.text, "");
  place_leave(&p, before);
}

TEST(solve_system, names_what_is_not_finite_in_the_matrix) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  write_text("nan.mtx", ARRAY "real general\n2 2\n2\nnan\n0\n4\n");
  write_text("inf.mtx", ARRAY "complex general\n2 2\n2 0\n1 0\n0 -inf\n0 4\n");
  write_text("big.mtx", ARRAY "real general\n2 2\n1e308\n1\n1e308\n3\n");
  expect(&p, "--json --quiet nan.mtx", 2, "A contains NaN");
  CHECK(strchr(p.text, '{') == NULL);
  write_text("wide.mtx", ARRAY "complex general\n1 1\n1.5e308 1.5e308\n");
  expect(&p, "wide.mtx", 2, "the modulus of A(0, 0) is beyond double");
  for (int transposed = 0; transposed < 2; transposed++) {
    expect(&p, transposed ? "--transpose nan.mtx" : "nan.mtx", 2,
           "row 2 column 1 (counted from 1)");
    CHECK_CONTAINS(p.text, "A contains NaN or Inf");
    expect(&p, transposed ? "--transpose inf.mtx" : "inf.mtx", 2,
           "row 1 column 2 (counted from 1)");
    CHECK_CONTAINS(p.text, "Inf in its imaginary part");
  }
  expect(&p, "--json nan.mtx", 2, "\"reason\": \"A(1, 0) is NaN\"");
  expect(&p, "big.mtx", 2, "above the range of double: give b by --rhs");
  expect(&p, "--transpose big.mtx", 0, "accepted");
  place_leave(&p, before);
}

/* /dev/full has no end that would ever be reached, and is no matrix. */
TEST(solve_system, checks_options_before_it_reads_a_file) {
  place p;
  char before[PATH_MAX];
  if (!place_enter(&p, before))
    SKIP("there is no solve_system beside this program");
  CHECK_EQ_INT(mkdir("folder", 0700), 0);
  CHECK_EQ_INT(symlink("/dev/full", "full.mtx"), 0);
  expect(&p, "--tolerance 1.5 full.mtx", 2, "not a value this option takes");
  expect(&p, "--tolerance nan full.mtx", 2, "not a value this option takes");
  expect(&p, "--devices -2 full.mtx", 2, "not a value this option takes");
  expect(&p, "--devices two full.mtx", 2, "not a value this option takes");
  expect(&p, "--devices 3000000000 full.mtx", 2,
         "not a value this option takes");
  expect(&p, "--out no/where full.mtx", 2, "no/where: cannot be written");
  expect(&p, "--plot no/where full.mtx", 2, "no/where: cannot be written");
  expect(&p, "--out folder full.mtx", 2, "folder: cannot be written");
  expect(&p, "--out '' full.mtx", 2, ": cannot be written");
  expect(&p, "--complex full.mtx", 2, "--complex belongs to --random");
  expect(&p, "--rhs full.mtx --nrhs 2 full.mtx", 2, "--nrhs cannot be used");
  if (run(&p, "--quiet --device cuda a.mtx") != 0)
    expect(&p, "--device cuda full.mtx", 2,
           "the device asked for cannot be used: ");
  expect(&p, "full.mtx", 2, "not a text file");
  place_leave(&p, before);
}

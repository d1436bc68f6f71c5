/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The C++ half of ct.h: registers the tests that the constructors have listed
 * with GoogleTest (testing::RegisterTest) and runs them.
 *
 * Not only a failed check makes the program fail, but also: no test ran, two
 * tests have one name, an argument is unknown, or the tested code calls exit().
 * The last line is always "tests: N passed, N failed, N skipped".
 */
#define GTEST_DONT_DEFINE_TEST 1 /* ct.h has its own TEST */
#include <gtest/gtest.h>

#include "ct.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <string>

#include <unistd.h>

#ifdef __SANITIZE_THREAD__
// Tests fork, and their children make threads.
extern "C" const char *__tsan_default_options();
extern "C" const char *__tsan_default_options() { return "die_after_fork=0"; }
#endif

namespace {

// The list of tests. It is constant-initialized, hence valid before any
// constructor runs.
ct_record *first = nullptr;
ct_record **last_link = &first;

char note[512];
bool finished = false;

class Fixture : public testing::Test {
public:
  explicit Fixture(const ct_record *record) : record_(record) {}
  void SetUp() override { note[0] = '\0'; }
  void TestBody() override {
    if (record_->body)
      record_->body();
    else
      record_->body_with_arg(record_->arg);
  }

private:
  const ct_record *record_;
};

int fail(const char *file, int line, const std::string &what) {
  std::string text = what;
  if (note[0])
    text += std::string("\n     Note: ") + note;
  ADD_FAILURE_AT(file, line) << text;
  return 0;
}

std::string shown(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string shown(const char *value) {
  return value ? std::string("\"") + value + "\"" : "NULL";
}

int fail_pair(const char *file, int line, const char *a_text, const char *op,
              const char *b_text, const std::string &a, const std::string &b) {
  std::ostringstream text;
  text << " Expected: (" << a_text << ") " << op << " (" << b_text << ")\n"
       << "   Actual: " << a << " vs " << b;
  return fail(file, line, text.str());
}

// Registers the whole list; false when two tests have the same name.
bool register_all() {
  std::set<std::string> names;
  bool ok = true;
  for (const ct_record *r = first; r; r = r->next) {
    std::string name = std::string(r->suite) + "." + r->name;
    if (!names.insert(name).second) {
      std::fprintf(stderr, "%s:%d: there are two tests %s\n", r->file, r->line,
                   name.c_str());
      ok = false;
    }
    testing::RegisterTest(r->suite, r->name, nullptr, nullptr, r->file, r->line,
                          [r]() -> Fixture * { return new Fixture(r); });
  }
  return ok;
}

// exit(0) in the code under test must not pass for success.
void at_exit() {
  if (finished)
    return;
  std::fflush(stdout);
  std::fputs("tests: exit() was called before the tests had ended\n", stderr);
  _exit(3);
}

bool asks_for_help(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (!std::strcmp(argv[i], "--help") || !std::strcmp(argv[i], "-h"))
      return true;
  return false;
}

// Runs what is registered and prints the closing line.
int run_all() {
  int failed = RUN_ALL_TESTS();
  const testing::UnitTest &unit = *testing::UnitTest::GetInstance();
  if (!failed && unit.test_to_run_count() == 0) {
    std::puts("no test ran: none is linked in, or none matches the filter");
    failed = 1;
  }
  std::printf("tests: %d passed, %d failed, %d skipped\n",
              unit.successful_test_count(), unit.failed_test_count(),
              unit.skipped_test_count());
  std::fflush(stdout);
  return failed ? 1 : 0;
}

} // namespace

extern "C" {

void ct_link(ct_record *record) {
  record->next = nullptr;
  *last_link = record;
  last_link = &record->next;
}

void ct_register(const char *suite, const char *name,
                 void (*fn)(const void *arg), const void *arg) {
  // Records live as long as the process, like those of TEST.
  ct_record *record = new ct_record();
  record->suite = strdup(suite);
  record->name = strdup(name);
  record->file = "(ct_register)";
  record->body_with_arg = fn;
  record->arg = arg;
  ct_link(record);
}

void ct_note(const char *format, ...) {
  note[0] = '\0';
  if (!format)
    return;
  va_list args;
  va_start(args, format);
  std::vsnprintf(note, sizeof note, format, args);
  va_end(args);
}

int ct_check(int holds, const char *text, const char *file, int line) {
  if (holds)
    return 1;
  return fail(file, line, std::string(" Expected: ") + text);
}

int ct_check_eq_int(int64_t a, int64_t b, const char *a_text,
                    const char *b_text, const char *file, int line) {
  if (a == b)
    return 1;
  return fail_pair(file, line, a_text, "==", b_text, std::to_string(a),
                   std::to_string(b));
}

int ct_check_le(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line) {
  if (a <= b)
    return 1;
  return fail_pair(file, line, a_text, "<=", b_text, shown(a), shown(b));
}

int ct_check_lt(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line) {
  if (a < b)
    return 1;
  return fail_pair(file, line, a_text, "<", b_text, shown(a), shown(b));
}

int ct_check_ge(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line) {
  if (a >= b)
    return 1;
  return fail_pair(file, line, a_text, ">=", b_text, shown(a), shown(b));
}

int ct_check_near(double a, double b, double tol, const char *a_text,
                  const char *b_text, const char *file, int line) {
  if (tol >= 0 && (a == b || std::fabs(a - b) <= tol))
    return 1;
  return fail_pair(file, line, a_text, "~", b_text, shown(a),
                   shown(b) + ", apart by " + shown(std::fabs(a - b)) +
                       ", allowed " + shown(tol));
}

int ct_check_str(const char *a, const char *b, const char *a_text,
                 const char *b_text, const char *file, int line) {
  if (a == b || (a && b && !std::strcmp(a, b)))
    return 1;
  return fail_pair(file, line, a_text, "==", b_text, shown(a), shown(b));
}

int ct_check_contains(const char *haystack, const char *needle,
                      const char *a_text, const char *b_text, const char *file,
                      int line) {
  if (haystack && needle && std::strstr(haystack, needle))
    return 1;
  return fail_pair(file, line, a_text, "contains", b_text, shown(haystack),
                   shown(needle));
}

int ct_check_mem_eq(const void *p, const void *q, size_t bytes,
                    const char *p_text, const char *q_text, const char *file,
                    int line) {
  const auto *a = static_cast<const unsigned char *>(p);
  const auto *b = static_cast<const unsigned char *>(q);
  size_t i = 0;
  while (i < bytes && a[i] == b[i])
    i++;
  if (i == bytes)
    return 1;
  std::ostringstream text;
  text << " Expected: the " << bytes << " bytes of (" << p_text << ") and ("
       << q_text << ") are equal\n   Actual: byte " << i << " is " << +a[i]
       << " vs " << +b[i];
  if (bytes % sizeof(double) == 0) {
    double x, y;
    size_t k = i / sizeof(double);
    std::memcpy(&x, a + k * sizeof x, sizeof x);
    std::memcpy(&y, b + k * sizeof y, sizeof y);
    text << "; as doubles, number " << k << " is " << shown(x) << " vs "
         << shown(y);
  }
  return fail(file, line, text.str());
}

void ct_skip(const char *reason, const char *file, int line) {
  const testing::TestInfo *test =
      testing::UnitTest::GetInstance()->current_test_info();
  GTEST_SKIP() << file << ":" << line << ": " << test->test_suite_name() << "."
               << test->name() << ": " << reason;
}

} // extern "C"

int main(int argc, char **argv) {
  const bool help = asks_for_help(argc, argv);
  std::atexit(at_exit);
  GTEST_FLAG_SET(brief, true); // failures and skips; --gtest_brief=0 for all
  testing::InitGoogleTest(&argc, argv);
  int rc;
  if (help || GTEST_FLAG_GET(list_tests)) {
    rc = register_all() ? RUN_ALL_TESTS() : 1;
  } else if (argc > 1) {
    std::fprintf(stderr, "unknown argument %s\n", argv[1]);
    rc = 2;
  } else {
    rc = register_all() ? run_all() : 1;
  }
  finished = true;
  return rc;
}

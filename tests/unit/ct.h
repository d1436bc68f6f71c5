/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ct: GoogleTest for C. A test file is plain C,
 *
 *     #include "ct.h"
 *     TEST(refine, falls_back_when_single_pivot_is_zero) {
 *       REQUIRE(setup());
 *       CHECK_LE(error, 1e-15);
 *     }
 *
 * and its object file is linked directly (not out of an archive, where the
 * linker would drop it) with ct.o and -lgtest. ct.cc has main.
 *
 * CHECK... record a failure and go on; they may stand in helper functions
 * and their value is 1 when they hold. REQUIRE and SKIP return, so they
 * stand only in the body of a test (any function returning void).
 */
#ifndef CT_H
#define CT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One test. It stays in the list that ct_link makes until the program ends. */
typedef struct ct_record {
  const char *suite, *name, *file;
  int line;
  void (*body)(void);                     /* TEST, or */
  void (*body_with_arg)(const void *arg); /* ct_register */
  const void *arg;
  struct ct_record *next;
} ct_record;

void ct_link(ct_record *record);

/*
 * Registers fn(arg) as the test suite.name, so that one list of checks can
 * be registered for several engines. Call it from a CT_CONSTRUCTOR. suite
 * and name are copied; arg must stay valid until the program ends.
 */
void ct_register(const char *suite, const char *name,
                 void (*fn)(const void *arg), const void *arg);

#define CT_CONSTRUCTOR __attribute__((constructor))

#define TEST(unit, sentence)                                                   \
  static void ct_body_##unit##_##sentence(void);                               \
  static ct_record ct_record_##unit##_##sentence = {                           \
      #unit, #sentence, __FILE__, __LINE__, ct_body_##unit##_##sentence,       \
      NULL,  NULL,      NULL};                                                 \
  CT_CONSTRUCTOR static void ct_link_##unit##_##sentence(void) {               \
    ct_link(&ct_record_##unit##_##sentence);                                   \
  }                                                                            \
  static void ct_body_##unit##_##sentence(void)

/*
 * Adds a line such as "n = 7, trans = 1" to each failure from now on. The
 * next call replaces it; ct_note(NULL) and the end of the test clear it.
 * Call it from the test's own thread only.
 */
__attribute__((format(printf, 1, 2))) void ct_note(const char *format, ...);

/* The functions behind the macros. Each returns 1 if the check holds. */
int ct_check(int holds, const char *text, const char *file, int line);
int ct_check_eq_int(int64_t a, int64_t b, const char *a_text,
                    const char *b_text, const char *file, int line);
int ct_check_le(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line);
int ct_check_lt(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line);
int ct_check_ge(double a, double b, const char *a_text, const char *b_text,
                const char *file, int line);
int ct_check_near(double a, double b, double tol, const char *a_text,
                  const char *b_text, const char *file, int line);
int ct_check_str(const char *a, const char *b, const char *a_text,
                 const char *b_text, const char *file, int line);
int ct_check_contains(const char *haystack, const char *needle,
                      const char *a_text, const char *b_text, const char *file,
                      int line);
int ct_check_mem_eq(const void *p, const void *q, size_t bytes,
                    const char *p_text, const char *q_text, const char *file,
                    int line);
void ct_skip(const char *reason, const char *file, int line);

#define CHECK(cond) ct_check((cond) ? 1 : 0, #cond, __FILE__, __LINE__)
/* Integers of any type, compared as int64_t. */
#define CHECK_EQ_INT(a, b)                                                     \
  ct_check_eq_int((int64_t)(a), (int64_t)(b), #a, #b, __FILE__, __LINE__)
/* Doubles; a NaN on either side fails. */
#define CHECK_LE(a, b)                                                         \
  ct_check_le((double)(a), (double)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_LT(a, b)                                                         \
  ct_check_lt((double)(a), (double)(b), #a, #b, __FILE__, __LINE__)
#define CHECK_GE(a, b)                                                         \
  ct_check_ge((double)(a), (double)(b), #a, #b, __FILE__, __LINE__)
/* |a - b| <= tol, or equal infinities. */
#define CHECK_NEAR(a, b, tol)                                                  \
  ct_check_near((double)(a), (double)(b), (double)(tol), #a, #b, __FILE__,     \
                __LINE__)
/* Strings; NULL equals only NULL. */
#define CHECK_STR(a, b) ct_check_str(a, b, #a, #b, __FILE__, __LINE__)
#define CHECK_CONTAINS(haystack, needle)                                       \
  ct_check_contains(haystack, needle, #haystack, #needle, __FILE__, __LINE__)
/* Compares bit for bit; a failure names the byte and, in arrays of doubles, the
   entry. */
#define CHECK_MEM_EQ(p, q, bytes)                                              \
  ct_check_mem_eq(p, q, bytes, #p, #q, __FILE__, __LINE__)

#define REQUIRE(cond)                                                          \
  do {                                                                         \
    if (!CHECK(cond))                                                          \
      return;                                                                  \
  } while (0)

#define SKIP(reason)                                                           \
  do {                                                                         \
    ct_skip(reason, __FILE__, __LINE__);                                       \
    return;                                                                    \
  } while (0)

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of reports that no call of the library wrote: fields without a
   closing zero, bytes that are not UTF-8. */
#include "tests/unit/ct.h"
#include "tests/unit/support.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = 8192 };

/* A text field without a closing zero ends where the field does. */
TEST(rubbish, texts_of_a_report_end_with_their_fields) {
  char text[TEXT], json[TEXT], want[TEXT];
  hone_report r;
  memset(&r, 'z', sizeof r);
  r.struct_size = sizeof r;
  r.null_count = r.dependent_count = 0;
  memset(r.device, 'd', sizeof r.device);
  memset(r.path, 'p', sizeof r.path);
  memset(r.reason, 'r', sizeof r.reason);
  CHECK_LT(hone_report_text(&r, text, sizeof text), sizeof text);
  CHECK_LT(hone_report_json(&r, json, sizeof json), sizeof json);
  snprintf(want, sizeof want, "\npath            %.160s\n", r.path);
  CHECK_CONTAINS(text, want);
  snprintf(want, sizeof want, "\nreason          %.320s\n", r.reason);
  CHECK_CONTAINS(text, want);
  snprintf(want, sizeof want, "\ndevice          %.64s\n", r.device);
  CHECK_CONTAINS(text, want);
  snprintf(want, sizeof want,
           "\"device\": \"%.64s\", \"path\": \"%.160s\", \"reason\": "
           "\"%.320s\", ",
           r.device, r.path, r.reason);
  CHECK_CONTAINS(json, want);
}

TEST(rubbish, json_replaces_what_is_not_utf8) {
  static const struct {
    const char *bytes, *want;
  } cases[] = {
      {"\xc3\xa9", "\xc3\xa9"},
      {"\xe2\x82\xac", "\xe2\x82\xac"},
      {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
      {"\xff", "\\ufffd"},
      {"a\x80z", "a\\ufffdz"},
      {"\xc3z", "\\ufffdz"},
      {"\xc3", "\\ufffd"},
      {"\xc0\xaf", "\\ufffd\\ufffd"},            /* overlong */
      {"\xe0\x80\x80", "\\ufffd\\ufffd\\ufffd"}, /* overlong */
      {"\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"}, /* a surrogate */
      {"\xf4\x90\x80\x80", "\\ufffd\\ufffd\\ufffd\\ufffd"} /* too large */};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    char json[TEXT], want[128];
    hone_report r = HONE_REPORT_INIT;
    strcpy(r.path, cases[k].bytes);
    snprintf(want, sizeof want, "\"path\": \"%s\", ", cases[k].want);
    CHECK_LT(hone_report_json(&r, json, sizeof json), sizeof json);
    CHECK_CONTAINS(json, want);
  }
}

/* A character that the end of the field cuts in two is replaced. */
TEST(rubbish, json_reads_no_character_past_its_field) {
  char json[TEXT];
  hone_report r = HONE_REPORT_INIT;
  memset(r.device, 'd', sizeof r.device);
  r.device[sizeof r.device - 1] = '\xc3';
  r.path[0] = '\xa9';
  CHECK_LT(hone_report_json(&r, json, sizeof json), sizeof json);
  CHECK_CONTAINS(json, "d\\ufffd\", \"path\": \"\\ufffd\", ");
}

TEST(rubbish, the_text_calls_later_factorizations_a_fallback) {
  char text[TEXT];
  hone_report r = HONE_REPORT_INIT;
  r.fallback_ms = 2.5; /* of double LU, or of LU after Cholesky */
  CHECK_LT(hone_report_text(&r, text, sizeof text), sizeof text);
  CHECK_CONTAINS(text, "fallback 2.500\n");
}

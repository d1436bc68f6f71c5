/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/json_reader.h"

#include "tests/unit/ct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void skip_space(json *j) { j->at += strspn(j->at, " \t\r\n"); }

static void expect(json *j, char c) {
  skip_space(j);
  j->bad = j->bad || *j->at != c;
  j->at += *j->at != '\0';
}

static void take_digits(json *j) {
  size_t digits = strspn(j->at, "0123456789");
  j->bad = j->bad || digits == 0;
  j->at += digits;
}

/* -? (0 | [1-9] digits) (. digits)? ([eE] [+-]? digits)? */
static void take_number(json *j) {
  j->at += *j->at == '-';
  if (*j->at == '0')
    j->at++;
  else
    take_digits(j);
  if (*j->at == '.') {
    j->at++;
    take_digits(j);
  }
  if (*j->at == 'e' || *j->at == 'E') {
    j->at++;
    j->at += *j->at == '+' || *j->at == '-';
    take_digits(j);
  }
}

static void take_string(json *j) {
  expect(j, '"');
  while (!j->bad && *j->at != '"') {
    unsigned char c = (unsigned char)*j->at++;
    j->bad = c < 0x20;
    if (c != '\\')
      continue;
    c = (unsigned char)*j->at++;
    if (c == 'u') {
      j->bad = strspn(j->at, "0123456789abcdefABCDEF") < 4;
      j->at += j->bad ? 0 : 4;
    } else {
      j->bad = c == '\0' || strchr("\"\\/bfnrt", c) == NULL;
    }
  }
  expect(j, '"');
}

/* [ number, ... ] */
static void take_numbers(json *j) {
  expect(j, '[');
  skip_space(j);
  while (!j->bad && *j->at != ']') {
    take_number(j);
    skip_space(j);
    j->bad = j->bad || (*j->at != ',' && *j->at != ']');
    j->at += *j->at == ',';
    skip_space(j);
  }
  expect(j, ']');
}

static void take_value(json *j) {
  skip_space(j);
  if (*j->at == '"')
    take_string(j);
  else if (strncmp(j->at, "null", 4) == 0)
    j->at += 4;
  else if (*j->at == '[')
    take_numbers(j);
  else
    take_number(j);
}

const member *json_find(const json *j, const char *name) {
  for (int i = 0; i < j->members; i++)
    if (strcmp(j->member[i].name, name) == 0)
      return &j->member[i];
  return NULL;
}

bool json_read(json *j, const char *text) {
  *j = (json){.at = text};
  expect(j, '{');
  do {
    member m = {.name = ""};
    skip_space(j);
    const char *name = j->at + 1;
    take_string(j);
    if (j->bad || j->at - name > (ptrdiff_t)sizeof m.name ||
        j->members == MEMBERS)
      return false;
    memcpy(m.name, name, (size_t)(j->at - name) - 1);
    expect(j, ':');
    skip_space(j);
    m.value = j->at;
    take_value(j);
    m.length = (size_t)(j->at - m.value);
    if (j->bad || json_find(j, m.name) != NULL)
      return false;
    j->member[j->members++] = m;
    skip_space(j);
  } while (*j->at == ',' && j->at++);
  expect(j, '}');
  skip_space(j);
  return !j->bad && *j->at == '\0';
}

bool json_is(const json *j, const char *name, const char *value) {
  const member *m = json_find(j, name);
  return m != NULL && m->length == strlen(value) &&
         memcmp(m->value, value, m->length) == 0;
}

/* The member must equal value to the last bit, or be null if value is not
   finite. */
static void check_number(const json *j, const char *name, double value) {
  const member *m = json_find(j, name);
  ct_note("%s", name);
  if (!CHECK(m != NULL))
    return;
  if (isfinite(value))
    CHECK_NEAR(strtod(m->value, NULL), value, 0.0);
  else
    CHECK(json_is(j, name, "null"));
}

void json_check_report(const json *j, const hone_report *r) {
#define NUMBER(name) check_number(j, #name, (double)r->name)
  NUMBER(status), NUMBER(n), NUMBER(nrhs), NUMBER(accepted);
  NUMBER(backward_error), NUMBER(normwise_error), NUMBER(residual_error);
  NUMBER(forward_error), NUMBER(tolerance), NUMBER(iterations);
  NUMBER(precision), NUMBER(fallback_columns), NUMBER(threads);
  NUMBER(bad_row), NUMBER(bad_col), NUMBER(norm1), NUMBER(rcond);
  NUMBER(growth), NUMBER(max_abs), NUMBER(min_abs), NUMBER(scale_exponent_min);
  NUMBER(scale_exponent_max), NUMBER(underflows), NUMBER(inspect_ms),
      NUMBER(factor_ms);
  NUMBER(refine_ms), NUMBER(certify_ms), NUMBER(fallback_ms);
  NUMBER(total_ms), NUMBER(host_passes), NUMBER(host_bytes),
      NUMBER(device_bytes);
  NUMBER(to_device_bytes), NUMBER(from_device_bytes), NUMBER(digits);
  NUMBER(min_pivot_row), NUMBER(min_pivot_col), NUMBER(null_count);
  NUMBER(dependent_count);
#undef NUMBER
  ct_note(NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A strict reader of JSON (RFC 8259): one flat object of numbers, strings, null
   and arrays of numbers. */
#ifndef TESTS_JSON_READER_H
#define TESTS_JSON_READER_H

#include "api/hone.h"

#include <stdbool.h>
#include <stddef.h>

enum { MEMBERS = 80 };

typedef struct member {
  char name[64];
  const char *value; /* in the text; a string's first quote */
  size_t length;
} member;

typedef struct json {
  const char *at;
  bool bad;
  int members;
  member member[MEMBERS];
} json;

/* Reads the whole text; false if it is no such object, or a name comes twice.
 */
bool json_read(json *j, const char *text);

const member *json_find(const json *j, const char *name); /* or NULL */

/* Is value, character by character, what the text has under that name? */
bool json_is(const json *j, const char *name, const char *value);

/* Checks that every number of the report is there, to the last bit; null for
   NaN and Inf. */
void json_check_report(const json *j, const hone_report *r);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "examples/text.h"

#include <stdbool.h>

/* Returns the length of the well-formed UTF-8 sequence at s, or 0. */
static int utf8_length(const unsigned char *s) {
  int length = s[0] < 0x80                   ? 1
               : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
               : (s[0] & 0xf0) == 0xe0       ? 3
               : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                             : 0;
  for (int i = 1; i < length; i++)
    if ((s[i] & 0xc0) != 0x80)
      return 0;
  if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
      (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
    return 0;
  return length;
}

/* U+0000 to U+001F, U+007F to U+009F. */
static bool is_control(const unsigned char *s) {
  return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

void text_put(FILE *to, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  while (*s != 0) {
    const int length = utf8_length(s);
    if (*s == '\n') {
      fputs("\\n", to);
      s++;
    } else if (length == 0 || is_control(s)) {
      const unsigned char *end = s + (length > 0 ? length : 1);
      for (; s < end; s++)
        fprintf(to, "\\x%02x", *s);
    } else {
      fprintf(to, "%.*s", length, (const char *)s);
      s += length;
    }
  }
}

void text_put_json(FILE *to, const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  putc('"', to);
  while (*s != 0) {
    const int length = utf8_length(s);
    if (*s == '"' || *s == '\\')
      fprintf(to, "\\%c", *s);
    else if (*s < 0x20)
      fprintf(to, "\\u%04x", *s);
    else if (length == 0)
      fputs("\\ufffd", to);
    else
      fprintf(to, "%.*s", length, (const char *)s);
    s += length > 0 ? length : 1;
  }
  putc('"', to);
}

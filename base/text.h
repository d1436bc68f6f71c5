/* SPDX-License-Identifier: BSD-3-Clause */
/* Short texts put together without snprintf, which took a third of a call on
   the smallest systems. What does not fit is cut off. */
#ifndef HONE_TEXT_H
#define HONE_TEXT_H

#include <stddef.h>

typedef struct hone_text {
  char *at;    /* the zero that ends the text */
  size_t left; /* characters that fit before the last zero */
} hone_text;

/* An empty text in an array of 'size' characters, at least one. */
static inline hone_text hone_text_begin(char *to, size_t size) {
  to[0] = '\0';
  return (hone_text){to, size - 1};
}

static inline void hone_text_add(hone_text *text, const char *more) {
  while (text->left > 0 && *more != '\0') {
    *text->at++ = *more++;
    text->left--;
  }
  *text->at = '\0';
}

/* count is not negative. */
static inline void hone_text_add_count(hone_text *text, int count) {
  char digits[12];
  size_t at = sizeof digits;
  digits[--at] = '\0';
  do {
    digits[--at] = (char)('0' + count % 10);
    count /= 10;
  } while (count > 0);
  hone_text_add(text, digits + at);
}

#endif

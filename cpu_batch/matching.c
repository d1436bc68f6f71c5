/* SPDX-License-Identifier: BSD-3-Clause */
/* An assignment of rows to columns by shortest augmenting paths (Kuhn 1955;
   Jonker & Volgenant 1987), with integer weights, so that nothing is rounded.
   The weight of an entry is minus its exponent, and row[i] + col[j] is at most
   that, with equality for rows and columns that are assigned to each other. */
#include "cpu_batch/matching.h"

#include <stddef.h>

static const int64_t FAR = INT64_MAX;

/* The search for a path from a row that has no column yet. Columns count from
   1, and number 0 stands for that row. */
typedef struct search {
  int64_t n;
  const int32_t *exponent;
  int64_t *row, *col; /* col: of column j, in col[j - 1] */
  int64_t *owner;     /* the row that has column j, or -1 */
  int64_t *distance;  /* from the columns reached to column j */
  int64_t *from;      /* the column before j on the shortest path */
  int64_t *reached;   /* 0 or 1 */
} search;

/* Column j0 was reached: brings distances up to date with the entries of its
   row. Returns the nearest column that was not, or 0 if there is none. */
static int64_t look_from(const search *s, int64_t j0) {
  const int64_t i = s->owner[j0];
  int64_t nearest = 0;
  for (int64_t j = 1; j <= s->n; j++) {
    const int32_t e = s->exponent[i + (j - 1) * s->n];
    if (s->reached[j])
      continue;
    if (e != HONE_NO_EXPONENT) {
      const int64_t d = -(int64_t)e - s->row[i] - s->col[j - 1];
      if (d < s->distance[j]) {
        s->distance[j] = d;
        s->from[j] = j0;
      }
    }
    if (s->distance[j] < FAR &&
        (nearest == 0 || s->distance[j] < s->distance[nearest]))
      nearest = j;
  }
  return nearest;
}

/* Moves all that was reached so that the nearest column is at no distance. */
static void approach(const search *s, int64_t by) {
  for (int64_t j = 0; j <= s->n; j++)
    if (s->reached[j]) {
      s->row[s->owner[j]] += by;
      if (j > 0)
        s->col[j - 1] -= by;
    } else if (s->distance[j] < FAR) {
      s->distance[j] -= by;
    }
}

/* Gives row i a column, and others another one. */
static bool assign(const search *s, int64_t i) {
  int64_t j = 0;
  s->owner[0] = i;
  for (int64_t c = 0; c <= s->n; c++) {
    s->distance[c] = FAR;
    s->reached[c] = 0;
  }
  while (s->owner[j] >= 0) {
    s->reached[j] = 1;
    const int64_t next = look_from(s, j);
    if (next == 0)
      return false;
    approach(s, s->distance[next]);
    j = next;
  }
  for (; j > 0; j = s->from[j])
    s->owner[j] = s->owner[s->from[j]];
  return true;
}

bool hone_match(int64_t n, const int32_t *exponent, int64_t *row, int64_t *col,
                int64_t *work) {
  const search s = {.n = n,
                    .exponent = exponent,
                    .row = row,
                    .col = col,
                    .owner = work,
                    .distance = work + n + 1,
                    .from = work + 2 * (n + 1),
                    .reached = work + 3 * (n + 1)};
  for (int64_t j = 0; j < n; j++) {
    row[j] = col[j] = 0;
    s.owner[j + 1] = -1;
  }
  for (int64_t i = 0; i < n; i++)
    if (!assign(&s, i))
      return false;
  return true;
}

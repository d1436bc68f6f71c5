/* SPDX-License-Identifier: BSD-3-Clause */
/* How A is divided into pieces, and these among pinned buffers: which rows of
   which columns a piece's number stands for. Included by pieces.cu alone; read
   that first. */
#ifndef HONE_CUDA_PIECE_AT_H
#define HONE_CUDA_PIECE_AT_H

#include "gpu_sp/state.h"

namespace {

enum {
  GROUP = 8,   /* columns that a projection along rows takes at once */
  PIECES = 64, /* that a small matrix is divided into */
  LINE = 64,   /* bytes of which columns begin at a multiple in a buffer */
  STEPS = 8    /* so many buffers or more have one triangle beside each other,
                  unless single pieces are wider */
};
const int64_t PIECE = 1 << 20, SMALL_PIECE = 1 << 17; /* bytes, about */
const int64_t PIECE_ROWS = PIECE / GROUP / (int64_t)sizeof(hone_entry);

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t rows_of_piece(int64_t n) { return n < PIECE_ROWS ? n : PIECE_ROWS; }

/* From column to column in a buffer, where a column has so many rows. */
int64_t buffer_ld(int64_t rows) {
  const int64_t step = LINE / (int64_t)sizeof(hone_entry);
  return divide_up(rows, step) * step;
}

int64_t columns_of_piece(int64_t n) {
  const int64_t column =
      buffer_ld(rows_of_piece(n)) * (int64_t)sizeof(hone_entry);
  int64_t bytes = n * column / PIECES;
  bytes = bytes < SMALL_PIECE ? SMALL_PIECE : bytes;
  bytes = bytes > PIECE ? PIECE : bytes;
  const int64_t columns = bytes / column / GROUP * GROUP;
  return columns > GROUP ? columns : (int64_t)GROUP;
}

/* Columns j .. j+w-1, and of these 'rows' rows from 'row' on; 'set' is the
   number of the projection's sums for these rows. The piece is number 'place'
   of 'together' in its buffer, whose first column is 'begin'. */
struct piece {
  int64_t j, w, row, rows, set, place, together, begin;
};

hone_cuda_column *column_of(const hone_cuda_job *job, int64_t number) {
  hone_cuda_column *col = job->column;
  while (number >= col->first + col->pieces)
    col++;
  return col;
}

/* Returns how many pieces go to one buffer. They have the same rows, those of
   one triangle from its first column's diagonal on: there fewer go together
   where that would be much more than the triangle. */
int64_t most_together(const hone_cuda *c) {
  int64_t most = HONE_CUDA_TOGETHER;
  while (c->one_triangle && most > 1 && STEPS * most * c->job.width > c->n)
    most /= 2;
  return most;
}

/* Finds the columns of piece k of a block column, its set, and its place in a
   buffer. Pieces whose columns follow each other go to one buffer, with the
   same rows; then come those with the next rows. */
void place_piece(const hone_cuda *c, const hone_cuda_column *col, int64_t k,
                 piece *p) {
  const hone_cuda_job *job = &c->job;
  const int64_t most = most_together(c), groups = col->pieces / job->parts;
  const int64_t full = groups / most * most; /* in buffers that they fill */
  const bool rest = k >= full * job->parts;
  p->together = rest ? groups - full : most;
  const int64_t round = p->together * job->parts;
  const int64_t first = rest ? full : k / round * most;
  k = rest ? k - full * job->parts : k % round;
  p->set = k / p->together;
  p->place = k % p->together;
  p->begin = col->j + first * job->width;
  p->j = p->begin + p->place * job->width;
  p->w =
      col->j + col->w - p->j < job->width ? col->j + col->w - p->j : job->width;
}

/* Returns a piece by its number. Where one triangle is sent, a piece has only
   the rows from the diagonal of its buffer's first column down; behind the
   first 'column_pieces' follow as many pieces with the rows above it, which are
   not sent. The part of the rows that holds this row has then two pieces, and
   so sums of its own for the second one. */
piece piece_at(const hone_cuda *c, int64_t number) {
  const hone_cuda_job *job = &c->job;
  const bool above = number >= job->column_pieces;
  number -= above ? job->column_pieces : 0;
  const hone_cuda_column *col = column_of(job, number);
  piece p = {};
  place_piece(c, col, number - col->first, &p);
  p.row = p.set * job->part_rows;
  int64_t end = c->n - p.row < job->part_rows ? c->n : p.row + job->part_rows;
  const int64_t diagonal = hone_cuda_dealt_column(c, p.begin);
  if (above && end > diagonal) {
    p.set = job->parts;
    end = diagonal;
  } else if (c->one_triangle && !above && p.row < diagonal) {
    p.row = diagonal;
  }
  p.rows = end > p.row ? end - p.row : 0;
  return p;
}

} // namespace

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small reader and writer of Matrix Market files, for the examples, tests
 * and measurements: every file becomes a dense matrix in double.
 *
 * Why our own: the reader at hand, CHOLMOD's, takes surplus entries without
 * a word, invents values for pattern files and brings in a large dependency.
 * This one says line and reason for whatever it refuses, and is fuzzed
 * (fuzz/fuzz_matrix_market.c).
 *
 * Read: coordinate and array; real, integer and pattern (every entry is 1);
 * general, symmetric and skew-symmetric. Not yet: complex and hermitian.
 * The array form of a symmetric matrix holds the lower triangle column by
 * column; of a skew-symmetric one, the same without its diagonal.
 *
 * Also taken: any letter case in the banner; comments and blank lines
 * anywhere after it; CRLF; Fortran's 1.5D+03; nan and inf (the solver says
 * what it thinks of them). Coordinates that occur twice are summed, as in
 * assembling finite elements, and an entry of -0 thereby reads as +0; the
 * array form keeps it. A number above the range of double is an error, one
 * below rounds to a denormal or zero.
 *
 * Numbers pass through strtod and printf, whose decimal point is the
 * locale's: nothing here calls setlocale, and a program that does should
 * leave LC_NUMERIC at "C".
 */
#ifndef HONE_EXAMPLES_MATRIX_MARKET_H
#define HONE_EXAMPLES_MATRIX_MARKET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mm_matrix {
  int64_t rows, cols;
  int64_t stored_entries; /* numbers, or coordinates, that the file holds */
  double *a;              /* rows x cols, column by column, ld = rows; owned,
                             free with mm_free; NULL when rows * cols == 0 */
  char symmetry[20];      /* the banner's words in lower case: "general", */
  char format[12];        /* "coordinate", */
  char field[10];         /* "real" */
} mm_matrix;

enum {
  MM_OK = 0,
  MM_OPEN,        /* the file cannot be opened, read or written */
  MM_SYNTAX,      /* not Matrix Market, or a line is not as its banner says */
  MM_UNSUPPORTED, /* Matrix Market, but not yet for us: complex, vector */
  MM_RANGE,       /* a size, an index or a number is out of range */
  MM_COUNT,       /* fewer or more entries than the size line says */
  MM_MEMORY       /* the dense matrix does not fit; the message says how big */
};

/*
 * Reads the file at path into *m. On error *m is all zero and message (may
 * be NULL with size 0) says "path:line: what is wrong".
 */
int mm_read_file(const char *path, mm_matrix *m, char *message,
                 size_t message_size);

/*
 * The same from an open stream up to its end; name stands for the path in
 * messages. max_elements: more than so many rows * cols is MM_MEMORY; 0: no
 * limit but the memory.
 */
int mm_read_stream(FILE *f, const char *name, int64_t max_elements,
                   mm_matrix *m, char *message, size_t message_size);

/*
 * Writes the rows x cols matrix a, leading dimension lda >= rows, as "array
 * real general" with 17 digits: reading it back gives the same bits (of a
 * NaN, only that it is one). MM_OK, MM_RANGE for impossible arguments or
 * MM_OPEN when the stream refuses.
 */
int mm_write_array(FILE *f, int64_t rows, int64_t cols, const double *a,
                   int64_t lda);

/* Frees what a read allocated and zeroes *m. NULL is allowed. */
void mm_free(mm_matrix *m);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small reader and writer of Matrix Market files, for the examples, tests
 * and benchmarks. Every file becomes a dense matrix in double, real or complex.
 *
 * It exists because CHOLMOD's reader silently accepts surplus entries, invents
 * values for pattern files and is a large dependency. This one names line and
 * reason for everything that it refuses, and is fuzzed
 * (fuzz/fuzz_matrix_market.c).
 *
 * It reads coordinate and array files of real, complex, integer and pattern
 * matrices (whose entries are 1) that are general, symmetric, skew-symmetric or
 * (complex ones) hermitian. The array form of a symmetric or hermitian matrix
 * holds the lower triangle column by column, that of a skew-symmetric matrix
 * the lower triangle without its diagonal.
 *
 * The banner may be in any letter case; comments and blank lines may stand
 * anywhere after it. CRLF, Fortran's 1.5D+03, nan and inf are accepted.
 * Coordinates that occur twice are summed, as in assembling finite elements; an
 * entry of -0 therefore becomes +0, except in the array form. A number above
 * the range of double is an error; one below it is rounded to a denormal or
 * zero. In a file of integers one that is not a double (such as 2^53 + 1) is an
 * error.
 *
 * Numbers pass through strtod and printf, whose decimal point depends on the
 * locale. Nothing here calls setlocale; a program that does should leave
 * LC_NUMERIC at "C".
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
  double *a;              /* rows x cols, column by column, ld = rows; to be
                             freed by mm_free; NULL if rows * cols == 0 */
  /* The banner's words in lower case, such as general, coordinate, real. */
  char symmetry[20];
  char format[12];
  char field[12];
  int is_complex; /* every element of a is two numbers: the real and the
                     imaginary part */
} mm_matrix;

enum {
  MM_OK = 0,
  MM_OPEN,        /* the file cannot be opened, read or written */
  MM_SYNTAX,      /* not Matrix Market, or a line contradicts the banner */
  MM_UNSUPPORTED, /* Matrix Market, but a vector */
  MM_RANGE,       /* a size, an index or a number is out of range */
  MM_COUNT,       /* fewer or more entries than the size line says */
  MM_MEMORY       /* the dense matrix does not fit; the message says how big */
};

/*
 * Reads the file at path into *m. After an error *m is all zero, and message
 * says "path:line: what is wrong" ("path: ..." before there is a line); it may
 * be NULL with size 0.
 */
int mm_read_file(const char *path, mm_matrix *m, char *message,
                 size_t message_size);

/*
 * Reads an open stream up to its end in the same way; name stands for the path
 * in messages. A matrix with more than max_elements elements is MM_MEMORY; 0
 * means no limit.
 */
int mm_read_stream(FILE *f, const char *name, int64_t max_elements,
                   mm_matrix *m, char *message, size_t message_size);

/*
 * Writes the rows x cols matrix a, leading dimension lda >= rows, as "array
 * real general", or "array complex general" where its elements are two numbers,
 * with 17 digits, so that reading it back gives the same bits, except those of
 * a NaN. Returns MM_OK, MM_RANGE for impossible arguments, or MM_OPEN if the
 * stream cannot be written.
 */
int mm_write_array(FILE *f, int64_t rows, int64_t cols, int is_complex,
                   const double *a, int64_t lda);

/* Frees what a read allocated and zeroes *m. NULL is allowed. */
void mm_free(mm_matrix *m);

#ifdef __cplusplus
}
#endif
#endif

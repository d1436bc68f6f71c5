/* SPDX-License-Identifier: BSD-3-Clause */
/* Igual's blocked factorizations in single precision, written with block
   operations that OpenBLAS does on the host and cuBLAS on a GPU. The diagonal
   block (Cholesky) or the column panel (LU) is copied to the CPU, factored
   there and copied back, as he recommends. The diagonal block may also be
   factored where the matrix is. */
#ifndef HONE_BENCH_PAPERS_BLOCKED_H
#define HONE_BENCH_PAPERS_BLOCKED_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/* Igual's variants 1, 2 and 3 of Cholesky, and of LU with partial pivoting. */
enum Variant {
  CHOLESKY_RIGHT,
  CHOLESKY_BORDERED,
  CHOLESKY_LEFT,
  LU_RIGHT,
  LU_LEFT,
  LU_CROUT,
  VARIANTS
};
extern const char *const variant_names[VARIANTS];
inline bool is_cholesky(Variant v) { return v < LU_RIGHT; }

/* Rows i .. i+m-1 and columns j .. j+n-1. */
struct Part {
  int64_t i, m, j, n;
};

/* A place, CPU or GPU, with a matrix of floats stored by columns, and the
   operations on it there. Functions that return bool return false after a
   failure, and why describes it. Operations may be asynchronous until wait. */
class Place {
public:
  std::string why;
  int64_t n = 0;           /* order, padding included */
  std::vector<int> pivots; /* as in LAPACK, counted from 1 */

  virtual ~Place() {}
  virtual const char *name() const = 0;
  /* Copies a, order x order with ld order [host], and pads it with the identity
     to the order padded. */
  virtual bool load(int64_t order, const float *a, int64_t padded) = 0;
  /* Restores the matrix that was loaded last, and waits. */
  virtual bool restore() = 0;
  virtual bool wait() = 0;
  /* Copy a part to or from the host, where its ld is its number of rows. */
  virtual bool fetch(Part p, float *to) = 0;
  virtual bool bring(Part p, const float *from) = 0;
  /* b := b inv(L)^T, where L is the lower triangle of t */
  virtual bool divide_right(Part t, Part b) = 0;
  /* b := inv(L) b, where L is the unit lower triangle of t */
  virtual bool divide_left(Part t, Part b) = 0;
  /* c := c - a a^T, lower triangle */
  virtual bool square(Part c, Part a) = 0;
  /* c := c - a b, or c - a b^T */
  virtual bool multiply(Part c, Part a, Part b, bool transposed) = 0;
  /* Exchanges rows k .. k+b-1 with their pivot rows in columns c0 .. c1-1. */
  virtual bool exchange(int64_t k, int64_t b, int64_t c0, int64_t c1) = 0;
  /* Factors a diagonal block by Cholesky, unblocked, where it is. */
  virtual bool scalar(Part block) = 0;
  /* Factors the whole matrix by potrf, or by getrf, which sets pivots, of
     OpenBLAS or cuSOLVER. */
  virtual bool vendor(bool cholesky) = 0;
  /* Factors the loaded matrix by Hone's single-precision factorization for the
     GPU. Sets its milliseconds and, untimed, the error ||P A - L U|| / ||A|| in
     Frobenius norms, computed in double. block is the width of the outer panel,
     0 for Hone's own choice. Returns why it failed, or an empty text. */
  virtual std::string hone(bool cholesky, int64_t block, double *ms,
                           double *error) = 0;
};

std::unique_ptr<Place> host_place();

/* Factors the loaded matrix, b columns at a time, without waiting for the end.
   If by_cpu is true the CPU factors the diagonal blocks; it always factors the
   panels of LU. */
bool factor_blocked(Place *p, Variant v, int64_t b, bool by_cpu);

/* Rounds k up to a multiple. */
int64_t padded_to(int64_t k, int64_t multiple);

#endif

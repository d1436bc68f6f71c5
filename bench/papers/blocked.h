/* SPDX-License-Identifier: BSD-3-Clause */
/* Igual's blocked factorizations in single precision, over a table of block
   operations: the same lines run by OpenBLAS on the host and by cuBLAS on a
   GPU. The diagonal block (Cholesky) or the column panel (LU) goes to the CPU
   and back, as he recommends, or stays where the matrix is. */
#ifndef HONE_BENCH_PAPERS_BLOCKED_H
#define HONE_BENCH_PAPERS_BLOCKED_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/* His variants 1, 2, 3; of LU with partial pivoting. */
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

/* A matrix of floats, column by column, and what is done to it there. What
   returns bool is false after a failure, and why says which. Nothing need be
   done before wait returns. */
class Place {
public:
  std::string why;
  int64_t n = 0;           /* order, padding included */
  std::vector<int> pivots; /* as LAPACK has them, from 1 */

  virtual ~Place() {}
  virtual const char *name() const = 0;
  /* a: order x order, packed [host]; the rest up to padded: identity. */
  virtual bool load(int64_t order, const float *a, int64_t padded) = 0;
  /* Restores the matrix that was loaded last, and waits. */
  virtual bool restore() = 0;
  virtual bool wait() = 0;
  /* Packed, on the host. */
  virtual bool fetch(Part p, float *to) = 0;
  virtual bool bring(Part p, const float *from) = 0;
  /* b := b inv(L)^T, L the lower triangle of t, with its diagonal */
  virtual bool divide_right(Part t, Part b) = 0;
  /* b := inv(L) b, L the strictly lower triangle of t and ones */
  virtual bool divide_left(Part t, Part b) = 0;
  /* c := c - a a^T, lower triangle */
  virtual bool square(Part c, Part a) = 0;
  /* c := c - a b, or c - a b^T */
  virtual bool multiply(Part c, Part a, Part b, bool transposed) = 0;
  /* Rows k .. k+b-1 change places with their pivots in columns c0 .. c1-1. */
  virtual bool exchange(int64_t k, int64_t b, int64_t c0, int64_t c1) = 0;
  /* Cholesky of a diagonal block by scalars and vectors, where it is. */
  virtual bool scalar(Part block) = 0;
  /* The whole matrix by the library a user would take: potrf, or getrf, which
     sets pivots. */
  virtual bool vendor(bool cholesky) = 0;
  /* Hone's own single-precision factorization, on the device alone: its
     milliseconds, of what was loaded, and, outside the clock, how far the
     factors are from it: ||P A - L U|| / ||A||, Frobenius norms, in double.
     block: of its outer panel, 0: its own. Empty, or why not. */
  virtual std::string hone(bool cholesky, int64_t block, double *ms,
                           double *error) = 0;
};

std::unique_ptr<Place> host_place();

/* Factors what was loaded, b columns at a time; by_cpu: the diagonal block
   (LU: the panel, always) by the CPU. Does not wait. */
bool factor_blocked(Place *p, Variant v, int64_t b, bool by_cpu);

/* k to the next multiple. */
int64_t padded_to(int64_t k, int64_t multiple);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone_batch.h
 * Many systems A_k x_k = b_k in one call, which hone.h includes. Each is solved
 * and verified by itself, with the promises of hone_solve, and has a result of
 * its own; a system that fails leaves its neighbours alone. Small systems of
 * one order are solved several at once, one in each lane of the processor's
 * vectors.
 *
 *     #include <hone.h>
 *     hone_batch batch = HONE_BATCH_INIT;
 *     batch.count = 1000, batch.n = 8, batch.nrhs = 1;
 *     batch.a = a, batch.lda = 8, batch.stride_a = 64;
 *     batch.b = b, batch.ldb = 8, batch.stride_b = 8;
 *     batch.x = x, batch.ldx = 8, batch.stride_x = 8;
 *     int st = hone_batch_solve(&batch, NULL, results, NULL);
 */
#ifndef HONE_BATCH_H
#define HONE_BATCH_H

#include "hone_complex.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The result for one system. Numbers that are not known are NaN or Inf, places
    -1. */
typedef struct hone_batch_result {
  int32_t status;        /* of this system: a status as of hone_solve */
  int32_t iterations;    /* corrections, the most of its columns */
  int32_t precision;     /* of the factors that solved it: 32 or 64; 0: none */
  int32_t digits;        /* digits of the largest |x_i| that are certain */
  double backward_error; /* componentwise, of the x returned; with other
                            denominators in the sparse rows of the columns that
                            report.sparse_columns counts */
  double normwise_error; /* as in LAPACK */
  double residual_error; /* ||b - A x|| / ||b||, infinity norms */
  double forward_error; /* bound on ||x - x_true|| / ||x||, infinity norms, that
                           holds for this system but for a probability of 1e-9;
                           above 0.1 no digit is certain; Inf: no bound */
  double rcond;         /* 1 / (||A|| ||inv(A)||), estimated, in the 1-norm or,
                           with a row-major or transposed A, also the
                           infinity norm */
  int32_t row, col;     /* of the first NaN or Inf if the status is
                           HONE_NOT_FINITE_A or _B; of the smallest pivot if it
                           is HONE_SINGULAR or HONE_ILL_CONDITIONED */
  double log_abs_det;   /* batch.determinants: log |det A|, natural; -Inf if the
                          status is HONE_SINGULAR, or a pivot is zero in double.
                          Beside HONE_OK the sign of a real A is right but for
                          a probability of 1e-9, or all three are NaN (also for
                          lack of memory); beside others, and if
                          hone_batch_solve is given an nrhs of 0, it is not
                          verified, nor is the size ever */
  double det_re, det_im; /* and det op(A) / |det A|; 0 if det A is 0 */
} hone_batch_result;

/**
 * The systems and where they lie: start with HONE_BATCH_INIT. System k has
 * A_k = a + k stride_a if a_list is NULL, and a_list[k] otherwise; b and x
 * likewise. A stride may be 0 for a and b: one array for all systems; one below
 * 0 is HONE_BAD_SIZE. Lists and orders lie in host memory. x_k may be b_k
 * itself, with ldx == ldb, and overlaps no other array else: that is not looked
 * for between the arrays of different systems, nor in lists, but for the x of
 * all systems, which a stride puts one behind the other or in other rows of one
 * array (else HONE_BAD_OVERLAP).
 */
typedef struct hone_batch {
  size_t struct_size;    /* sizeof(hone_batch) */
  size_t result_size;    /* sizeof(hone_batch_result) */
  int64_t count;         /* systems */
  int64_t n;             /* the order of every system, without orders */
  const int64_t *orders; /* the order of each system, or NULL */
  int64_t nrhs;          /* right-hand sides of every system */
  const double *a;       /* n x n, never written */
  int64_t lda, stride_a; /* in numbers */
  const double *const *a_list;
  const double *b; /* n x nrhs, by columns */
  int64_t ldb, stride_b;
  const double *const *b_list;
  double *x; /* n x nrhs, by columns */
  int64_t ldx, stride_x;
  double *const *x_list;
  int32_t determinants; /* nonzero: fill log_abs_det, det_re, det_im; for a
                           solver in factor, and its solves give NaN */
  int32_t reserved;     /* 0 */
} hone_batch;

/** Complex systems, member by member as above. */
typedef struct hone_z_batch {
  size_t struct_size;
  size_t result_size;
  int64_t count;
  int64_t n;
  const int64_t *orders;
  int64_t nrhs;
  const hone_complex *a;
  int64_t lda, stride_a;
  const hone_complex *const *a_list;
  const hone_complex *b;
  int64_t ldb, stride_b;
  const hone_complex *const *b_list;
  hone_complex *x;
  int64_t ldx, stride_x;
  hone_complex *const *x_list;
  int32_t determinants;
  int32_t reserved;
} hone_z_batch;

#ifdef __cplusplus
#define HONE_BATCH_INIT                                                        \
  HONE_INITIAL_(hone_batch,                                                    \
                hone_initial_.result_size = sizeof(hone_batch_result);)
#define HONE_Z_BATCH_INIT                                                      \
  HONE_INITIAL_(hone_z_batch,                                                  \
                hone_initial_.result_size = sizeof(hone_batch_result);)
#else
#define HONE_BATCH_INIT                                                        \
  {                                                                            \
    .struct_size = sizeof(hone_batch),                                         \
    .result_size = sizeof(hone_batch_result)                                   \
  }
#define HONE_Z_BATCH_INIT                                                      \
  {                                                                            \
    .struct_size = sizeof(hone_z_batch),                                       \
    .result_size = sizeof(hone_batch_result)                                   \
  }
#endif

/**
 * Solves op(A_k) x_k = b_k for all k.
 *
 * The arrays lie in host memory or in the memory of a CUDA device, a, b and x
 * each where it likes. Systems that have an array on a device, of order up to
 * 1024, are solved there; systems in host memory only if
 * options.device is HONE_DEVICE_CUDA, and none with HONE_DEVICE_CPU. With
 * another criterion, extra_precise or HONE_FACTOR_SINGLE each system is solved
 * as by hone_solve instead. If all arrays lie in host memory up to
 * options.devices GPUs share the systems.
 *
 * @param batch    the systems
 * @param options  as for hone_solve, NULL: defaults. options.columns has count
 *                 x nrhs entries, those of system k from k nrhs on, in host or
 *                 device memory. A triangle, x0 and error_bounds are
 *                 HONE_BAD_OPTION.
 *                 structure, layout, trans, criterion and tolerance hold for
 *                 every system. progress is called with the phase "batch".
 * @param results  count entries, result_size bytes apart, in host memory or in
 *                 that of a CUDA device, or NULL. If x lies on a device too,
 *                 systems lie at equal distances, there are no options.columns
 *                 and the device solves all systems, the host looks at none of
 *                 them: that is the fastest way to solve many small ones.
 *                 Results and columns overlap no other array, as far as strides
 *                 show: else HONE_BAD_OVERLAP
 * @param report   NULL: none. Errors, rcond and digits are the worst of all
 *                 systems that have an x; accepted counts right-hand sides;
 *                 bound_failure is the probability for each matrix, not for
 *                 all together; reason names the first system that is not
 *                 solved.
 * @return 0 if every right-hand side of every system is accepted; otherwise the
 *         status of the first system with an error (< 0) or, if there is none,
 *         of the first one with a weaker x (> 0). If the arguments of the call
 *         are refused, every result has that status, and nothing else is
 *         written (results neither, if a struct_size, result_size or count are
 *         wrong, or if they overlap another array). A NULL pointer in a list,
 *         an order in orders and its leading dimensions are matters of that
 *         system alone.
 *
 * Method: up to order 256, LU with partial pivoting in double, below order 96
 * of a block of systems, one in each lane; corrections with residuals in
 * double-double; the certificate of hone_solve, whose random vectors are shared
 * by the systems of a block. A system for which that does not suffice at once,
 * and every larger one, is solved as by hone_solve. With options.deterministic
 * the random vectors are the same for all systems of an order. Several threads
 * take blocks as they come; x and the bounds do not depend on which. On a
 * device a thread block, or for small orders a part of a warp, computes the
 * inverse of one matrix in its registers, by Gauss-Jordan elimination with
 * partial pivoting, and applies that to the same end; beyond order 128
 * (complex: 64, and from 33 to 40) it makes block LU factors of it, in device
 * memory of up to the size of the matrices that are under way. Neither looks
 * for pivots if structure says that the matrices are positive definite (real
 * ones from order 17 on, complex ones that have factors). A system for which
 * that claim is wrong is solved as by hone_solve. All memory of a device stays
 * within options.device_memory_limit_bytes; where that is too little, or there
 * is not enough, there are fewer thread blocks, or each system is solved as by
 * hone_solve.
 */
HONE_API int hone_batch_solve(const hone_batch *batch,
                              const hone_options *options,
                              hone_batch_result *results, hone_report *report);
/** Solves complex systems: see hone_batch_solve. */
HONE_API int hone_z_batch_solve(const hone_z_batch *batch,
                                const hone_options *options,
                                hone_batch_result *results,
                                hone_report *report);

/** A batch of matrices with their factors, to solve with many times. Opaque. */
typedef struct hone_batch_solver hone_batch_solver;
/** A batch of complex matrices with their factors. Opaque. */
typedef struct hone_z_batch_solver hone_z_batch_solver;

/** Creates a solver for batches, on the CPU. options are copied; trans counts
    here, for all solves; columns and HONE_DEVICE_CUDA are HONE_BAD_OPTION. On
    error *solver is NULL. */
HONE_API int hone_batch_solver_create(hone_batch_solver **solver,
                                      const hone_options *options);

/**
 * Scales, factors and certifies the matrices of the batch; b, x and nrhs are
 * not looked at. Results have statuses, rcond and determinants. The matrices
 * are borrowed: they must stay, unchanged, until another factor, or destroy;
 * a_list and orders are copied. A matrix with an error keeps it: its systems
 * get it from every solve; one that was not reached (HONE_CANCELLED) is
 * factored by the next solve. If the arguments of the call are refused, or
 * HONE_BUSY, the solver keeps what it has. Kept are some 16 n^2 bytes for each
 * matrix, and for one that is not for a block (see Method) what a hone_solver
 * holds. options.memory_limit_bytes is for all of it: matrices for which no
 * memory is left are HONE_NO_MEMORY, and report.host_bytes is the most that the
 * solver held.
 */
HONE_API int hone_batch_solver_factor(hone_batch_solver *solver,
                                      const hone_batch *batch,
                                      hone_batch_result *results,
                                      hone_report *report);

/**
 * Solves for the b of this batch, of which count, n and orders are those of the
 * batch that was factored (else HONE_BAD_SIZE), and a is not looked at. options
 * of this solve, or NULL: columns, deadline_s, progress. HONE_NOT_FACTORED
 * before the first factor, HONE_BUSY while another call uses the solver.
 */
HONE_API int hone_batch_solver_solve(hone_batch_solver *solver,
                                     const hone_batch *batch,
                                     const hone_options *options,
                                     hone_batch_result *results,
                                     hone_report *report);

/** Frees the solver and sets *solver to NULL. NULL and *NULL are allowed. No
    other call may be using it. */
HONE_API void hone_batch_solver_destroy(hone_batch_solver **solver);

/** For complex matrices: see hone_batch_solver_create. */
HONE_API int hone_z_batch_solver_create(hone_z_batch_solver **solver,
                                        const hone_options *options);
/** For complex matrices: see hone_batch_solver_factor. */
HONE_API int hone_z_batch_solver_factor(hone_z_batch_solver *solver,
                                        const hone_z_batch *batch,
                                        hone_batch_result *results,
                                        hone_report *report);
/** For complex matrices: see hone_batch_solver_solve. */
HONE_API int hone_z_batch_solver_solve(hone_z_batch_solver *solver,
                                       const hone_z_batch *batch,
                                       const hone_options *options,
                                       hone_batch_result *results,
                                       hone_report *report);
/** For complex matrices: see hone_batch_solver_destroy. */
HONE_API void hone_z_batch_solver_destroy(hone_z_batch_solver **solver);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone.h
 * Hone solves dense systems A x = b given in double precision, to full double
 * accuracy: it factors A in single precision (on an NVIDIA GPU where there is
 * one) and refines x in double until the componentwise backward error of the
 * very x returned, computed on the caller's own matrix, is a few roundings.
 *
 * Matrices are dense and stored by columns (element (i, j) of A stands at
 * a[i + j * lda]) unless options say otherwise. Sizes are int64_t, indices
 * count from 0. Nothing is printed unless HONE_LOG is set in the environment.
 * Threads may use different solvers at once; one that a call uses is HONE_BUSY
 * for others, and has no matrix in a child forked then. If a progress function
 * forks, the child's call may be HONE_CANCELLED. A call has a floating-point
 * environment of its own and gives the caller's back, with its flags, in which
 * progress functions run. It takes up to 400 KiB of the calling thread's stack.
 *
 *     #include <hone.h>
 *     int st = hone_solve(n, 1, a, n, b, n, x, n, NULL, NULL);
 */
#ifndef HONE_H
#define HONE_H

#include <stddef.h>
#include <stdint.h>

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0

#ifdef __GNUC__
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif
#ifdef __cplusplus
extern "C" {
#endif

/**
 * Status. The sign is the contract:
 *   0    every right-hand side is accepted;
 *   > 0  x holds the best solution found, which is weaker than asked for; the
 *        report says how good it is. A column of x for which none was found
 *        (its own status, in options.columns, is < 0) is untouched;
 *   < 0  an error; x is untouched, and report.reason names the cause.
 * X(name, number, text): one list gives all three.
 */
#define HONE_STATUS_LIST(X)                                                    \
  X(HONE_OK, 0, "solved: every right-hand side is accepted")                   \
  X(HONE_NOT_CONVERGED, 1,                                                     \
    "not converged: x is the best found, its errors are in the report")        \
  X(HONE_ILL_CONDITIONED, 2,                                                   \
    "numerically singular: x is the best found, no digit of it is certain")    \
  X(HONE_INTERRUPTED, 3,                                                       \
    "stopped by the caller or the deadline: x is the best found so far")       \
  X(HONE_NULL_POINTER, -10, "a required pointer is NULL")                      \
  X(HONE_BAD_SIZE, -11, "a size is negative or too large")                     \
  X(HONE_BAD_LEADING_DIMENSION, -12,                                           \
    "a leading dimension is smaller than max(1, n) or too large")              \
  X(HONE_BAD_OPTION, -13,                                                      \
    "an option has an unknown value, or one that this call does not take")     \
  X(HONE_BAD_STRUCT_SIZE, -14,                                                 \
    "a struct_size or column_size is not set (HONE_OPTIONS_INIT and "          \
    "HONE_REPORT_INIT do it), or it is of a later version of the library")     \
  X(HONE_BAD_OVERLAP, -15,                                                     \
    "an array that is written overlaps another; x may be b or x0 itself")      \
  X(HONE_NOT_FACTORED, -16, "the solver holds no factored matrix")             \
  X(HONE_BUSY, -17, "another call uses this solver: nothing was done")         \
  X(HONE_NOT_FINITE_A, -20, "A contains NaN or Inf: the report says where")    \
  X(HONE_NOT_FINITE_B, -21,                                                    \
    "b or x0 contains NaN or Inf: the report says where")                      \
  X(HONE_SINGULAR, -30,                                                        \
    "singular: a row, a column or a pivot in double precision is exactly "     \
    "zero; the report says which")                                             \
  X(HONE_OVERFLOW, -31,                                                        \
    "the solution or the factors overflow double precision")                   \
  X(HONE_NO_MEMORY, -40, "out of memory, or above options.memory_limit_bytes") \
  X(HONE_NO_DEVICE, -50, "the device asked for cannot be used")                \
  X(HONE_DEVICE_FAILED, -51, "the device failed during the call")              \
  X(HONE_CANCELLED, -60,                                                       \
    "stopped by the caller or the deadline before there was an x")             \
  X(HONE_INTERNAL, -90, "internal error: please report it")

typedef enum hone_status {
#define HONE_STATUS_ENUM(name, number, text) name = number,
  HONE_STATUS_LIST(HONE_STATUS_ENUM)
#undef HONE_STATUS_ENUM
} hone_status;

/** Text for a status, valid for any int, never NULL. Static memory. */
HONE_API const char *hone_status_text(int status);
/** Version as "0.1.0". Static memory. */
HONE_API const char *hone_version(void);

/** options.layout: how A is stored. b and x are always stored by columns. */
enum { HONE_COL_MAJOR = 0, HONE_ROW_MAJOR = 1 };
/** options.trans: A x = b, A^T x = b, or A^H x = b (of real A, A^T x = b). */
enum { HONE_NO_TRANS = 0, HONE_TRANS = 1, HONE_CONJ_TRANS = 2 };
/** options.device: where the factorization runs. AUTO is a GPU if there is one
    and n is large enough for it to pay, else the CPU. With CUDA the status is
    HONE_NO_DEVICE if no GPU can be used (and there is anything to solve). */
enum { HONE_DEVICE_AUTO = 0, HONE_DEVICE_CPU = 1, HONE_DEVICE_CUDA = 2 };

/** options.factor_precision: precision of the first factorization. AUTO is
    single where it pays, double for small n. */
enum { HONE_FACTOR_AUTO = 0, HONE_FACTOR_SINGLE = 1, HONE_FACTOR_DOUBLE = 2 };

/** options.structure: what the caller knows about A. */
enum {
  /* Nothing: the library looks, which costs little. It solves diagonal and
     triangular matrices by substitution and narrow bands by LU of the band, in
     double on the CPU, whatever device and factor_precision say. What may be
     positive definite it factors by Cholesky where that pays. */
  HONE_STRUCTURE_AUTO = 0,
  /* A is symmetric positive definite: Cholesky takes half the work of LU. If A
     is not, a pivot or a residual, for which all of A is read, shows it and LU
     follows. No effect with HONE_FACTOR_DOUBLE. */
  HONE_STRUCTURE_SPD = 1,
  HONE_STRUCTURE_GENERAL = 2 /* do not look for structure; use LU */
};

/** options.triangle: the part of A that is read. One triangle, with the
    diagonal (LOWER: i >= j), is that of a symmetric A; hone_z_... takes it as
    Hermitian, unless _SYMMETRIC says otherwise. The library makes a whole copy,
    8 n^2 bytes: A is borrowed for that call alone. x may not lie in A. */
enum {
  HONE_TRIANGLE_BOTH = 0,
  HONE_TRIANGLE_LOWER = 1,
  HONE_TRIANGLE_UPPER = 2,
  HONE_TRIANGLE_LOWER_SYMMETRIC = 3,
  HONE_TRIANGLE_UPPER_SYMMETRIC = 4
};

/** report.structure: what was found in all of A (docs/numerics.md says how). */
enum {
  HONE_FOUND_GENERAL = 0,  /* none that pays, or not looked for (with SPD) */
  HONE_FOUND_DEFINITE = 1, /* symmetric (-0 is 0), a_ii > 0 and, on a GPU in a
                              sample, a_ij^2 <= a_ii a_jj; Cholesky decides */
  HONE_FOUND_BANDED = 2,
  HONE_FOUND_TRIANGULAR = 3,
  HONE_FOUND_DIAGONAL = 4
};

/** options.criterion: the error of x that options.tolerance limits. With every
    criterion, x is rejected if forward_error certifies no digit. */
enum {
  /* max_i |b - A x|_i / (|A| |x| + |b|)_i       (Oettli & Prager 1964) */
  HONE_CRITERION_COMPONENTWISE = 0,
  /* ||b - A x|| / (sqrt(n) ||A|| ||x||), infinity norms (LAPACK xxGESV) */
  HONE_CRITERION_NORMWISE = 1,
  /* ||b - A x|| / ||b||, infinity norms */
  HONE_CRITERION_RESIDUAL = 2
};

/** The result for one right-hand side: see options.columns. */
typedef struct hone_column {
  int32_t status;     /* of this column alone; a NaN in any refuses the call */
  int32_t iterations; /* corrections, by all factorizations together */
  int32_t precision;  /* of the factors that solved it: 32 or 64; 0: none */
  int32_t digits;     /* digits of the largest |x_i| that are certain, by
                         forward_error: 0 to 16 */
  double backward_error; /* componentwise, of the x returned; Inf: no x. See
                            also hone_report.sparse_columns */
  double normwise_error; /* as in LAPACK */
  double residual_error; /* ||b - A x|| / ||b||, infinity norms */
  double forward_error;  /* bound on ||x - x_true|| / ||x||, infinity norms;
                            above 0.1 no digit is certain; Inf: no bound */
} hone_column;

/** The event that a progress callback receives, valid during the callback. */
typedef struct hone_progress {
  const char *phase;     /* inspect, factor, refine, factor in double, batch */
  double fraction;       /* of this phase's work, 0 to 1; in refine 0 */
  double elapsed_s;      /* since the call began */
  int32_t iteration;     /* refine: corrections made, by these factors and by
                            this method (refinement or GMRES) */
  int32_t precision;     /* refine: of the factors; else, and in bounds, 0 */
  double backward_error; /* refine: the criterion's error of the current x,
                            largest; NaN while x is bounded, and else */
  int32_t gmres;         /* refine: nonzero if GMRES makes the corrections */
  int32_t reserved;
} hone_progress;

/** Nonzero stops what is not accepted yet. Runs on the calling thread. */
typedef int (*hone_progress_fn)(void *user, const hone_progress *event);
struct hone_tuning; /* a GPU's, that only measurements justify: hone_tuning.h */

/**
 * Options. Start with  hone_options options = HONE_OPTIONS_INIT;  and change
 * what you need: zero is the default everywhere. Fields behind struct_size,
 * which an older program does not know, count as zero. struct_size may be 8 to
 * the library's own and not end in a pointer, column_size from 24 to its own.
 *
 * trans, x0, columns and error_bounds belong to one solve: hone_solve and
 * hone_solver_solve take them, hone_solver_create refuses them
 * (HONE_BAD_OPTION). deadline_s and progress may be given to a solve too, or to
 * hone_solver_create for all calls of the solver that have none of their own.
 * All other options belong to the solver: in hone_solver_solve each is zero,
 * which there means "as created" (even for layout), or its value at creation;
 * any other value is refused.
 *
 * The error bounds hold whatever A and b are: they are derived from products of
 * A and of its factors with random vectors (Dixon 1983; docs/numerics.md), and
 * can only be wrong if those vectors are unlucky, with the probability
 * report.bound_failure. With deterministic, the vectors follow from the largest
 * magnitudes in the rows and columns of the scaled A alone; the bounds hold for
 * an A that was not chosen to suit them. x_true solves with the A and b given.
 */
typedef struct hone_options {
  size_t struct_size;        /* sizeof(hone_options) */
  size_t column_size;        /* sizeof(hone_column); needed with columns */
  int32_t device;            /* HONE_DEVICE_... */
  int32_t factor_precision;  /* HONE_FACTOR_... */
  int32_t structure;         /* HONE_STRUCTURE_... */
  int32_t layout;            /* HONE_COL_MAJOR or HONE_ROW_MAJOR */
  int32_t criterion;         /* HONE_CRITERION_... */
  int32_t extra_precise;     /* nonzero: x is right to a few units in the last
                                place of its largest entry (forward_error <= 8
                                eps, eps = 2^-53), else HONE_NOT_CONVERGED. Up
                                to 128 columns take three more vectors each */
  int32_t max_iterations;    /* corrections with one factorization, as many anew
                                if x begins anew, and steps of GMRES; 0: auto */
  int32_t threads;           /* at most, never more than CPUs (affinity, quota);
                                0: by HONE_, OPENBLAS_ or OMP_NUM_THREADS */
  int32_t deterministic;     /* nonzero: the bits of x and of its bounds are the
                                same in every process, with any threads, and
                                whatever a solver has solved before, unless that
                                took other factors or showed A to be singular */
  int32_t trans;             /* HONE_NO_TRANS, _TRANS or _CONJ_TRANS */
  double tolerance;          /* largest error accepted, at most 1; 0: 4 eps
                                (componentwise), eps (normwise), 1e-12 */
  const double *x0;          /* initial x, n x nrhs, or NULL */
  int64_t ldx0;              /* leading dimension of x0 */
  hone_column *columns;      /* nrhs entries column_size bytes apart, apart from
                                every other array, or NULL; written if status
                                >= 0, else of no meaning */
  double deadline_s;         /* seconds for the call; 0: no deadline */
  hone_progress_fn progress; /* NULL: none */
  void *progress_user;       /* the callback's first argument */
  int64_t memory_limit_bytes;              /* of the host; 0: no limit */
  int64_t device_memory_limit_bytes;       /* 0: what is free */
  void *(*alloc)(size_t bytes, void *ctx); /* memory hooks: both or neither; */
  void (*free)(void *memory, void *ctx);   /* any alignment will do */
  void *alloc_ctx;                         /* their last argument */
  const struct hone_tuning *tuning;        /* or NULL; copied by the call */
  int32_t devices;         /* GPUs that factor A together: 0: one; k: up to k,
                              from the current one on; -1: all */
  int32_t triangle;        /* HONE_TRIANGLE_... */
  double *error_bounds;    /* n x nrhs, apart from every other array, or NULL:
                              bounds on |x_i - x_true,i| for every entry of x,
                              Inf where there is none; written if status >= 0,
                              else of no meaning */
  int64_t ld_error_bounds; /* leading dimension of error_bounds */
} hone_options;

/** Sets struct_size bytes of options to zero, the default, and its field
    struct_size. column_size stays 0: HONE_OPTIONS_INIT sets it too. */
HONE_API void hone_options_init(hone_options *options, size_t struct_size);

/**
 * What was done and how good the result is. Start with
 * hone_report report = HONE_REPORT_INIT;  or hone_report_init. Every call that
 * takes a report writes all of it, whatever the status, up to struct_size; a
 * struct_size below 96 or above this library's own is HONE_BAD_STRUCT_SIZE, and
 * nothing is written. A number that is not known is NaN or 0, a place -1.
 */
typedef struct hone_report {
  size_t struct_size; /* sizeof(hone_report), set by the caller */
  int32_t status;
  int32_t accepted; /* right-hand sides accepted */
  int64_t n, nrhs;
  double backward_error;    /* componentwise, the largest of all columns */
  double normwise_error;    /* as in LAPACK, the largest of all columns */
  double residual_error;    /* ||b - A x|| / ||b||, the largest */
  double forward_error;     /* bound on the error of x, the largest */
  double tolerance;         /* that the criterion's error was compared with */
  int32_t iterations;       /* corrections, the most of all columns */
  int32_t precision;        /* of the last factors used: 32 or 64; 0: none */
  int32_t fallback_columns; /* columns that used a second factorization, double
                               or LU after Cholesky, of this call or before */
  int32_t digits;           /* the fewest of all columns: see hone_column */
  int32_t gmres_steps;      /* of the iterations, those by GMRES; the most */
  int32_t threads;          /* of the call, with the calling one */
  int64_t bad_row, bad_col; /* of the NaN, the Inf, the zero row, column or
                               pivot (its column; row-major: its row); or -1 */
  double norm1;             /* ||A||_1; of a row-major A, ||A||_inf */
  double rcond;             /* 1 / (||A|| ||inv(A)||) in that norm, estimated
                               with the factors (Hager & Higham) */
  double growth;            /* max |u_ij| / max |a_ij|; Cholesky:
                               max u_ij^2 / max |a_ij| */
  double max_abs;           /* largest |a_ij| */
  double min_abs;           /* smallest nonzero maximum of a row or column */
  int32_t scale_exponent_min; /* rows and columns were scaled by powers of */
  int32_t scale_exponent_max; /* two with such exponents; 0, 0: not scaled */
  int64_t underflows; /* nonzero entries too small for single precision */
  double inspect_ms;  /* norms, structure and scaling of A */
  double factor_ms;   /* first factorization; small A: all before refine_ms */
  double refine_ms;   /* solves and residuals */
  double certify_ms;  /* condition estimate */
  double fallback_ms; /* all later factorizations */
  double total_ms;
  int32_t host_passes, device_passes; /* over A for residuals, by the host, and
                                         by the device over its copy of A */
  int64_t host_bytes, device_bytes;   /* the most memory that the solver held */
  int64_t to_device_bytes, from_device_bytes; /* transfers */
  char device[64];                            /* "CPU, 2 threads, avx512" */
  char path[160];            /* "single LU, 3 refinements, GMRES 4 steps" */
  char reason[320];          /* why this call fell back or failed, or empty */
  int32_t certificate_steps; /* passes over A by which deflation showed that
                                the factors tell A from a singular matrix */
  int32_t structure;         /* HONE_FOUND_... */
  /* If A is singular or nearly so (HONE_SINGULAR, HONE_ILL_CONDITIONED), these
     say where, as the caller counts: of A x = b, with trans of A^T x = b. */
  int64_t null_count;    /* unknowns that can change while A x hardly does:
                            entries of the approximate null vector of at least
                            1/10 of its largest; 0: not known */
  int64_t null_index[8]; /* the first eight of them, largest first */
  double null_weight[8]; /* their entries, in the caller's units, of the null
                            vector of Euclidean length 1 */
  int64_t min_pivot_row; /* row and column of A of the smallest pivot, or of */
  int64_t min_pivot_col; /* the zeros; -1: not known. Of a pivot of zero the
                            row or the column is the first one listed here */
  int64_t dependent_count; /* equations whose combination nearly vanishes: the
                              left null vector, as above */
  int64_t dependent_index[8];
  double dependent_weight[8];
  /* Filled by the choices of hone_tuning.h, for the last factorization. */
  double diagonal_ms;           /* diagonal blocks on the CPU, with transfers */
  double diagonal_wait_ms;      /* part of it for which the GPU had to wait */
  int32_t block_rows;           /* block rows of U computed iteratively */
  int32_t block_row_sweeps;     /* iterations, for all of them together */
  int32_t block_row_sweeps_max; /* and the most for one */
  int32_t block_row_fallbacks;  /* block rows that did not converge and were
                                   solved by cuBLAS */
  double bound_failure;   /* forward_error, digits and options.error_bounds hold
                             but for this probability, for a caller who does
                             not know the random draws: 1e-9, and a little for
                             each column with its own; 0: none was stated */
  int32_t sparse_columns; /* accepted columns with rows in which entries of x
                             near 0 are alone; there Arioli, Demmel & Duff's
                             measure replaced backward_error (numerics.md) */
} hone_report;

/** Sets struct_size bytes of report to zero, and its field struct_size. */
HONE_API void hone_report_init(hone_report *report, size_t struct_size);

/* Initial values, as the compiler that reads this header has the structs. C++17
   has no designated initializers. */
#ifdef __cplusplus
#define HONE_INITIAL_(type, set)                                               \
  ([] {                                                                        \
    type hone_initial_ = type();                                               \
    hone_initial_.struct_size = sizeof(type);                                  \
    set return hone_initial_;                                                  \
  }())
#define HONE_OPTIONS_INIT                                                      \
  HONE_INITIAL_(hone_options, hone_initial_.column_size = sizeof(hone_column);)
#define HONE_REPORT_INIT HONE_INITIAL_(hone_report, )
#else
#define HONE_OPTIONS_INIT                                                      \
  { .struct_size = sizeof(hone_options), .column_size = sizeof(hone_column) }
#define HONE_REPORT_INIT                                                       \
  { .struct_size = sizeof(hone_report) }
#endif

/**
 * Solves A x = b (or A^T x = b) for nrhs right-hand sides.
 *
 * @param n, nrhs  order of A, number of right-hand sides: 0 to 2^29 each
 * @param a     n x n, lda >= max(1, n); never written
 * @param b     n x nrhs, ldb >= max(1, n); never written unless x == b
 * @param x     n x nrhs, ldx >= max(1, n); may be b or x0 itself (ldx == ldb,
 *              or ldx0) or other rows of its array; else it overlaps no array
 * @param options  NULL: defaults
 * @param report   NULL: none
 * @return a hone_status
 * Each array spans less than 2^62 bytes. If n or nrhs is 0, arrays are not
 * read and may be NULL: the status is 0, errors are 0, digits 16, and every
 * column is accepted.
 *
 * Method: scaling by powers of two (Ruiz 2001); LU with partial pivoting in
 * single precision, or what suits the structure of A (options.structure);
 * iterative refinement (Wilkinson 1963; Skeel 1980) with residuals in double or
 * double-double; GMRES with the same factors if that converges too slowly
 * (Carson & Higham 2017); acceptance by the criterion's error; LU in double if
 * that fails. Memory: 4 n^2 bytes and 500 n, or 900 n with GMRES; 8 n^2 with
 * the double factorization; 17 n^2 to n = 256, solved as by hone_batch_solve.
 *
 * Each of a, b, x, x0, columns and error_bounds may lie in host memory
 * (pageable, or pinned or managed, which a GPU reads directly) or in the memory
 * of a CUDA device, which the library recognises. Work that writes them must
 * have finished before the call (cudaStreamSynchronize); results are complete
 * when it returns. An A on the GPU that is used is factored from there, and
 * stays there: the host verifies x by random sums of A that the GPU takes (path
 * says so), and fetches a copy of A only if it must read A. Copies count within
 * memory_limit_bytes but not in hone_memory_needed: 8 n (n + 1) bytes for A,
 * fetched or not, up to 16 MiB of pinned memory for its transfer, 8 n nrhs for
 * each of the others. Options and report lie in host memory.
 */
HONE_API int hone_solve(int64_t n, int64_t nrhs, const double *a, int64_t lda,
                        const double *b, int64_t ldb, double *x, int64_t ldx,
                        const hone_options *options, hone_report *report);

/** A matrix with its factors, to solve with many times. Opaque. */
typedef struct hone_solver hone_solver;

/** Creates a solver for matrices of order n. options are copied; see there
    which of them a solver refuses. On error *solver is NULL. */
HONE_API int hone_solver_create(hone_solver **solver, int64_t n,
                                const hone_options *options);

/**
 * Inspects, scales and factors A. a is borrowed, wherever it lies: it must
 * stay, unchanged, until another factor or update, or destroy. If such a call
 * refuses an argument (HONE_NULL_POINTER to HONE_BAD_STRUCT_SIZE, HONE_BUSY),
 * the solver keeps the matrix it has, which stays borrowed; after any other
 * error it has none: solves return HONE_NOT_FACTORED. After the first factor
 * and solve a solver allocates no more, except for the vectors of GMRES and for
 * factors of a kind that is first needed (double, general), or a larger nrhs.
 */
HONE_API int hone_solver_factor(hone_solver *solver, const double *a,
                                int64_t lda, hone_report *report);

/**
 * Takes a nearby matrix and keeps the factors of the old one: solves refine
 * against the new matrix, and factor it only if that does not converge (a solve
 * that is stopped or fails while it factors leaves the solver without a
 * matrix). The factors of a diagonal, triangular or banded matrix
 * (report.structure) are not worth keeping: after one of those the new matrix
 * is factored at once. A is borrowed, or refused, as by hone_solver_factor.
 */
HONE_API int hone_solver_update(hone_solver *solver, const double *a,
                                int64_t lda, hone_report *report);

/**
 * Solves for nrhs right-hand sides; arguments are those of hone_solve (nrhs = 0
 * needs no matrix). options of this solve: trans, x0, columns, error_bounds,
 * deadline_s, progress; see hone_options.
 */
HONE_API int hone_solver_solve(hone_solver *solver, int64_t nrhs,
                               const double *b, int64_t ldb, double *x,
                               int64_t ldx, const hone_options *options,
                               hone_report *report);

/** Frees the solver, at the end of a call that is using it, and sets *solver to
    NULL. NULL and *NULL are allowed. */
HONE_API void hone_solver_destroy(hone_solver **solver);

/**
 * Bytes of host memory that hone_solve holds at most beside the caller's
 * arrays, if these lie in host memory: on the single-precision path
 * (*single_bytes), and if the double factorization is needed (*double_bytes).
 * Either may be NULL. Both include some 6.5 MB that small systems do not use.
 * Arguments are refused as by hone_solve. A reusable solver holds the memory of
 * every factorization that it has needed, and of the most right-hand sides.
 */
HONE_API int hone_memory_needed(int64_t n, int64_t nrhs,
                                const hone_options *options,
                                int64_t *single_bytes, int64_t *double_bytes);

/**
 * Bytes of device memory for order n (no GPU is needed; 0: built without CUDA):
 * with a copy of A in double, for residuals (*with_residuals: 12 n^2 for large
 * n), and without (*without: 4 n^2), or NULL; on each of options.devices, with
 * room for A to come by parts, and without. The first is taken if it fits and
 * is allowed, else the other, else, from n = 4096 on, block columns with less
 * (docs/several.md), else the CPU. LU in double may take 8 n^2 more.
 */
HONE_API int hone_device_memory_needed(int64_t n, const hone_options *options,
                                       int64_t *with_residuals,
                                       int64_t *without);

/**
 * Frees what the library keeps when hone_solve returns, for the next call: its
 * threads, which sleep; host memory, at most 512 MiB and a 64th of what there
 * is; and if a GPU was used the device memory, pinned host memory and handles
 * for that order, at most a quarter of the device's memory. Returns the bytes
 * of device memory freed. Solvers that exist are not touched. A child process
 * inherits nothing but host memory.
 */
HONE_API int64_t hone_release_kept(void);

/**
 * The report as one JSON object, and as lines for people. Writes at most size
 * bytes and returns the length of the whole text, as snprintf does. Fields
 * beyond the report's struct_size count as zero, places as -1; the text is
 * empty if struct_size is wrong.
 */
HONE_API size_t hone_report_json(const hone_report *report, char *buffer,
                                 size_t size);
HONE_API size_t hone_report_text(const hone_report *report, char *buffer,
                                 size_t size);

#ifdef __cplusplus
}
#endif
#include "hone_batch.h"   /* hone_batch_solve: many systems in one call */
#include "hone_complex.h" /* hone_z_solve and hone_z_solver_... */
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file hone.h
 * Hone solves dense systems  A x = b  given in double precision, to full
 * double accuracy, by factoring A in single precision (on an NVIDIA GPU
 * where there is one) and refining x in double until the componentwise
 * backward error of the very x returned, computed on the caller's own
 * matrix, is a few units of rounding.
 *
 * Matrices are dense, column by column (element (i, j) of A stands at
 * a[i + j * lda]) unless options say otherwise. Sizes are int64_t, indices
 * are counted from 0. Nothing is printed unless HONE_LOG is set in the
 * environment; nothing exits; no global handle is kept. Different solvers
 * may be used from different threads; one solver by one thread at a time.
 *
 *     #include <hone.h>
 *     int st = hone_solve(n, 1, a, n, b, n, x, n, NULL, NULL);
 *     if (st != HONE_OK) puts(hone_status_text(st));
 */
#ifndef HONE_H
#define HONE_H

#include <stddef.h>
#include <stdint.h>

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0

#if defined(__GNUC__)
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
 *   > 0  x holds the best solution found, weaker than asked: see the report;
 *   < 0  an error: x is untouched.
 * X(name, number, text): one list gives all three.
 */
#define HONE_STATUS_LIST(X)                                                    \
  X(HONE_OK, 0, "solved: every right-hand side is accepted")                   \
  X(HONE_NOT_CONVERGED, 1,                                                     \
    "not converged: x is the best found, its backward error is in the report") \
  X(HONE_ILL_CONDITIONED, 2,                                                   \
    "numerically singular: x is the best found, none of its digits is "        \
    "certain")                                                                 \
  X(HONE_INTERRUPTED, 3,                                                       \
    "stopped by the caller or the deadline: x is the best found so far")       \
  X(HONE_NULL_POINTER, -10, "a required pointer is NULL")                      \
  X(HONE_BAD_SIZE, -11, "a size is negative or too large")                     \
  X(HONE_BAD_LEADING_DIMENSION, -12,                                           \
    "a leading dimension is smaller than max(1, n) or too large")              \
  X(HONE_BAD_OPTION, -13, "an option has a value that does not exist")         \
  X(HONE_BAD_STRUCT_SIZE, -14,                                                 \
    "options.struct_size is not set (use hone_options_init) or belongs to a "  \
    "newer version of the library")                                            \
  X(HONE_BAD_OVERLAP, -15,                                                     \
    "x overlaps A, or overlaps b or x0 without being the same array")          \
  X(HONE_NOT_FACTORED, -16, "the solver holds no factored matrix yet")         \
  X(HONE_NOT_FINITE_A, -20, "A contains NaN or Inf: the report says where")    \
  X(HONE_NOT_FINITE_B, -21,                                                    \
    "b or x0 contains NaN or Inf: the report says where")                      \
  X(HONE_SINGULAR, -30,                                                        \
    "singular: a row, a column or a pivot is exactly zero; the report says "   \
    "which")                                                                   \
  X(HONE_OVERFLOW, -31,                                                        \
    "the solution or the factors overflow double precision")                   \
  X(HONE_NO_MEMORY, -40, "out of memory, or above options.memory_limit_bytes") \
  X(HONE_NO_DEVICE, -50, "the device asked for cannot be used")                \
  X(HONE_DEVICE_FAILED, -51, "the device failed during the factorization")     \
  X(HONE_CANCELLED, -60,                                                       \
    "stopped by the caller or the deadline before there was any x")            \
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

/** options.layout */
enum { HONE_COL_MAJOR = 0, HONE_ROW_MAJOR = 1 };

/** options.trans: solve A x = b or A^T x = b. */
enum { HONE_NO_TRANS = 0, HONE_TRANS = 1 };

/** options.device: where the factorization runs. */
enum {
  HONE_DEVICE_AUTO = 0, /* a GPU where there is one and it pays, else CPU */
  HONE_DEVICE_CPU = 1,
  HONE_DEVICE_CUDA = 2 /* HONE_NO_DEVICE when it cannot be used */
};

/** options.start: precision of the first factorization tried. */
enum {
  HONE_START_AUTO = 0, /* single where it pays, double for small n */
  HONE_START_SINGLE = 1,
  HONE_START_DOUBLE = 2
};

/** options.structure: what the caller says of A. */
enum {
  /* Nothing: it is looked for. Diagonal and triangular matrices are solved by
     substitution, narrow bands by LU of the band, in double, on the CPU,
     whatever device and start say; what may be positive definite is tried by
     Cholesky, in single, then in double, where that pays. The look costs a
     matrix without structure next to nothing, and every x passes the same
     tests. */
  HONE_STRUCTURE_AUTO = 0,
  /* Symmetric positive definite: A = U^T U by Cholesky, half the work of LU,
     which reads one triangle of A alone. Residuals are those of all of A: a
     matrix that is not so is found out by them or by a pivot, and then solved
     by LU. With HONE_START_DOUBLE of no effect. */
  HONE_STRUCTURE_SPD = 1,
  HONE_STRUCTURE_GENERAL = 2 /* do not look: LU */
};

/** report.structure: what was found of A, all of it exact. */
enum {
  HONE_FOUND_GENERAL = 0,  /* nothing that pays, or it was not looked for */
  HONE_FOUND_DEFINITE = 1, /* symmetric, diagonal > 0, a_ij^2 <= a_ii a_jj:
                              Cholesky tells whether it is definite */
  HONE_FOUND_BANDED = 2,
  HONE_FOUND_TRIANGULAR = 3,
  HONE_FOUND_DIAGONAL = 4
};

/** options.criterion: what "accepted" means; see options.tolerance. Whatever
    is asked for, no x is accepted of which forward_error leaves no digit. */
enum {
  /* max_i |b - A x|_i / (|A| |x| + |b|)_i       (Oettli & Prager 1964) */
  HONE_COMPONENTWISE = 0,
  /* ||b - A x|| / (sqrt(n) ||A|| ||x||), infinity norms (LAPACK xxGESV) */
  HONE_NORMWISE = 1,
  /* ||b - A x|| / ||b||, infinity norms */
  HONE_RESIDUAL = 2
};

/**
 * Choices for a GPU; zero is what measurement found best, and a CPU takes no
 * notice of them.
 *
 * options.arithmetic: how the products of the factorization are made.
 */
enum {
  HONE_ARITHMETIC_AUTO = 0,
  HONE_FP32 = 1,
  HONE_TF32 = 2,
  HONE_FP16X3 = 3, /* two FP16 pieces, three products: about 22 bits */
  HONE_BF16X3 = 4, /* two BF16 pieces, three products: about 16 bits */
  HONE_FP16 = 5,
  HONE_BF16 = 6
};

/** options.pivoting */
enum {
  HONE_PIVOT_AUTO = 0,  /* tournament: as stable as partial in practice */
  HONE_PIVOT_BLOCK = 1, /* inside the diagonal block of 128 only */
  HONE_PIVOT_NONE = 2   /* for diagonally dominant matrices */
};

/** options.diagonal: where the diagonal blocks of 128 are factored. */
enum {
  HONE_DIAGONAL_AUTO = 0, /* on the GPU: what measurement found best */
  HONE_DIAGONAL_GPU = 1,
  HONE_DIAGONAL_CPU = 2 /* by the CPU, where the GPU's update of what lies to
                           the right takes long enough to hide it; the others,
                           in the first panel, near the end and in all of a
                           small matrix, on the GPU */
};

/** options.sections: how the rows of U beside a diagonal block are found. */
enum {
  HONE_SECTIONS_AUTO = 0,   /* substitution in registers */
  HONE_SECTIONS_TRSM = 1,   /* by cuBLAS */
  HONE_SECTIONS_SEEDED = 2, /* with the inverse of the diagonal block, then
                               corrected until they are at rest */
  HONE_SECTIONS_CROUT = 3   /* by the iterative Crout method */
};

/** options.residuals: where those between the first and the last are taken.
    The one that accepts x is always the CPU's, on the caller's own A. */
enum {
  HONE_RESIDUALS_AUTO = 0, /* on the device where it has room for A */
  HONE_RESIDUALS_HOST = 1
};

/** One right-hand side's result: see options.columns. */
typedef struct hone_column {
  int32_t status;        /* this column's own status */
  int32_t iterations;    /* corrections made, over all rungs */
  int32_t precision;     /* 32 or 64: of the factors that solved it */
  int32_t digits;        /* decimal digits of x's largest entries that are
                            certain, from forward_error: 0 to 16 */
  double backward_error; /* componentwise, of the x returned */
  double normwise_error; /* LAPACK's normwise, of the x returned */
  double residual_error; /* ||b - A x|| / ||b||, infinity norms */
  double forward_error;  /* bound on ||x - x_true|| / ||x||, infinity norms;
                            Inf: no digit is certain */
} hone_column;

/** What a progress callback is told. Valid only during the call. */
typedef struct hone_progress {
  const char *phase; /* "inspect", "factor", "refine", "factor in double" */
  double fraction;   /* of this phase's work done, 0 to 1 */
  double elapsed_s;  /* since the call began */
  int32_t iteration; /* refine: corrections made so far with these factors, in
                        this way; from 0 again with the next */
  int32_t precision; /* refine: of the factors, 32 or 64; else 0 */
  double backward_error; /* refine: what the criterion measures, of the present
                            x, largest over columns; else NaN */
  int32_t gmres;         /* refine: nonzero: by GMRES with those factors */
  int32_t reserved;
} hone_progress;

/** Returns nonzero to stop the solve. Runs on the calling thread. */
typedef int (*hone_progress_fn)(void *user, const hone_progress *event);

/**
 * Options. Fill with hone_options_init, then change what you need: zero is
 * the default everywhere.
 */
typedef struct hone_options {
  size_t struct_size;     /* sizeof(hone_options); set by hone_options_init */
  int32_t device;         /* HONE_DEVICE_... */
  int32_t start;          /* HONE_START_... */
  int32_t layout;         /* HONE_COL_MAJOR or HONE_ROW_MAJOR, of A only;
                             b and x are n x nrhs, always column by column */
  int32_t trans;          /* HONE_NO_TRANS or HONE_TRANS */
  int32_t criterion;      /* HONE_COMPONENTWISE, ... */
  int32_t threads;        /* at most so many; 0: as many as OpenBLAS uses.
                             OpenBLAS is set for the time of the call, and
                             its setting is common to the whole process */
  int32_t deterministic;  /* nonzero: bits do not depend on threads (the
                             factorization then runs on one thread) */
  int32_t max_iterations; /* corrections a rung, and as many steps of GMRES;
                             0: from the costs at n */
  double tolerance;       /* accepted at or below; 0: 4 eps componentwise,
                             eps normwise, 1e-12 for HONE_RESIDUAL
                             (eps = 2^-53) */
  double deadline_s;      /* seconds for the call; 0: none */
  int64_t memory_limit_bytes; /* host memory the solver may hold; 0: none */
  hone_progress_fn progress;  /* NULL: none */
  void *progress_user;        /* handed to progress */
  const double *x0;           /* n x nrhs, ld ldx0, warm start, or NULL;
                                 borrowed during the call */
  int64_t ldx0;
  hone_column *columns; /* nrhs entries, written on status >= 0; or NULL */
  void *(*alloc)(size_t bytes, void *ctx); /* memory hooks: both or none; */
  void (*free)(void *memory, void *ctx);   /* 64-byte alignment not needed */
  void *alloc_ctx;
  int32_t arithmetic; /* HONE_ARITHMETIC_AUTO, ...: GPU only, as the next */
  int32_t pivoting;   /* HONE_PIVOT_AUTO, ... */
  int32_t residuals;  /* HONE_RESIDUALS_AUTO, ... */
  int32_t structure;  /* HONE_STRUCTURE_...: of A */
  int64_t device_memory_limit_bytes; /* 0: what is free */
  int32_t diagonal;      /* HONE_DIAGONAL_AUTO, ...: GPU only, as the next */
  int32_t sections;      /* HONE_SECTIONS_AUTO, ... */
  int32_t extra_precise; /* nonzero: x itself to a few units in the last place
                            of its largest entry, forward_error at most 8 eps
                            (eps = 2^-53); columns where that cannot be had
                            are HONE_NOT_CONVERGED. Takes three more
                            vectors for each of up to 64 columns */
  int32_t reserved;      /* 0 */
} hone_options;

/**
 * Sets every option to its default. struct_size: sizeof(hone_options) as
 * the caller compiled it.
 */
HONE_API void hone_options_init(hone_options *options, size_t struct_size);

/**
 * What was done and how good the result is. Written whole by every call
 * that takes one, whatever the status; needs no preparation.
 */
typedef struct hone_report {
  int32_t status;
  int32_t accepted; /* right-hand sides accepted */
  int64_t n, nrhs;
  double backward_error;    /* largest over columns: componentwise, */
  double normwise_error;    /* LAPACK's normwise, */
  double residual_error;    /* ||b - A x|| / ||b||, */
  double forward_error;     /* bound on the error of x; see hone_column */
  double tolerance;         /* what the criterion was compared with */
  int32_t iterations;       /* largest over columns */
  int32_t precision;        /* of the last factorization used: 32 or 64 */
  int32_t fallback_columns; /* columns that needed other factors than the
                               first: double, or LU after Cholesky */
  int32_t threads;
  int64_t bad_row, bad_col; /* 0-based place of NaN/Inf, zero row or column,
                               zero pivot (its column, of a row-major matrix
                               its row); -1: none */
  double norm1;             /* ||A||_1 of the matrix as stored column by column
                               (row-major: of its transpose); rcond likewise */
  double rcond;             /* 1 / (||A||_1 ||inv(A)||_1), estimated (Hager &
                               Higham) with the factors used */
  double growth;            /* max |u_ij| / max |a_ij| of the factorization;
                               of Cholesky's: max u_ij^2 / max |a_ij| */
  double max_abs, min_abs;  /* largest, smallest nonzero |a_ij| of row and
                               column maxima */
  int32_t scale_min, scale_max; /* exponents of two of the row and column
                                   scaling; 0, 0: not scaled */
  int64_t flushed;              /* entries too small for single precision */
  double inspect_ms;            /* inspect and scale */
  double factor_ms;   /* single precision (or double when started so) */
  double refine_ms;   /* solves and residuals */
  double certify_ms;  /* condition estimate */
  double fallback_ms; /* factorizations after the first: LU after Cholesky,
                         double after single */
  double total_ms;
  int32_t passes;        /* over A for residuals, by the host */
  int32_t device_passes; /* and by the device, on its copy of A */
  int64_t host_bytes;    /* peak of what the solver held */
  int64_t device_bytes;
  int64_t to_device_bytes, from_device_bytes;
  char device[64];    /* "CPU, 2 threads" */
  char path[160];     /* "single LU, 3 refinements, GMRES 4 steps" */
  char reason[320];   /* why it climbed or failed; empty: it did not */
  double diagonal_ms; /* diagonal blocks on the CPU: their way there and
                         back and the work on them, */
  double exposed_ms;  /* and for how long of that the GPU had no update to
                         do. Of the last factorization, as the next */
  int32_t sections;   /* that were iterated on: see options.sections */
  int32_t sweeps;     /* all of them together, */
  int32_t sweeps_max; /* and the most that one took */
  int32_t section_fallbacks; /* sections that did not come to rest and were
                                solved by cuBLAS */
  int32_t digits;            /* the fewest of all columns: see hone_column */
  int32_t gmres_steps;       /* corrections by GMRES with the same factors, as
                                part of iterations; largest over columns */
  int32_t certificate_steps; /* passes over A that GMRES took to show that the
                                factors tell A from a singular matrix */
  int32_t structure;         /* HONE_FOUND_... */
  /* Where the matrix is singular or nearly so (HONE_SINGULAR,
     HONE_ILL_CONDITIONED), in the caller's numbering: */
  int64_t null_count;      /* unknowns that could move without b's knowing: the
                              entries of the approximate null vector of at
                              least 1/10 of the largest; 0: not known. The
                              first 8 by size are */
  int64_t null_index[8];   /* these, */
  double null_weight[8];   /* with these entries, in the caller's units, the
                              vector of length 1 in the Euclidean norm */
  int64_t suspect_row;     /* row and column of A of the smallest pivot (a */
  int64_t suspect_col;     /* pivot of zero: the row first in dependent_...,
                              the first such column), or of zeros; -1: not
                              known */
  int64_t dependent_count; /* the same of the equations: the combination of */
  int64_t dependent_index[8]; /* them that vanishes, the left null vector */
  double dependent_weight[8];
  double reserved[11];
} hone_report;

/**
 * Solves A x = b (or A^T x = b) for nrhs right-hand sides.
 *
 * @param n     order of A, >= 0
 * @param nrhs  right-hand sides, >= 0
 * @param a     n x n, lda >= max(1, n); never written
 * @param b     n x nrhs, ldb >= max(1, n); never written unless x == b
 * @param x     n x nrhs, ldx >= max(1, n); may be b itself (ldx == ldb)
 * @param options  NULL: defaults
 * @param report   NULL: none
 * @return a hone_status
 *
 * Method: power-of-two scaling (Ruiz 2001), LU with partial pivoting in
 * single precision (Cholesky where A may be positive definite, and no
 * factorization where A is triangular: options.structure), iterative refinement
 * (Wilkinson 1963; Skeel 1980) with residuals in double or double-double,
 * GMRES with the same factors where that is too slow (Carson & Higham 2017),
 * acceptance by the componentwise backward error, double LU where that fails.
 * Memory: 4 n^2 bytes and a little (400 n where GMRES is taken); 8 n^2 when
 * the double factorization is taken.
 *
 * Each of a, b, x, x0 and columns may lie in host memory (pageable; or pinned
 * or managed, which a GPU reads without the way through the library's own
 * pinned buffers), or in that of a CUDA device, which is recognised. What
 * writes them must have ended before the call (cudaStreamSynchronize); results
 * are there when it returns. A on a device is factored from there, if that is
 * the GPU that is used. x is verified by the host all the same, on a copy of A
 * that is fetched meanwhile and kept as long as A is the solver's. Copies count
 * within memory_limit_bytes, and come on top of hone_memory_needed: 8 n^2 bytes
 * for A, up to 16 MiB pinned for its way, 8 n nrhs for each of the others.
 * Reports and options are the host's.
 */
HONE_API int hone_solve(int64_t n, int64_t nrhs, const double *a, int64_t lda,
                        const double *b, int64_t ldb, double *x, int64_t ldx,
                        const hone_options *options, hone_report *report);

/** A matrix with its factors, to solve with many times. Opaque. */
typedef struct hone_solver hone_solver;

/**
 * Makes a solver for matrices of order n. options are copied; x0 and
 * columns in them are ignored here. On error *solver is NULL.
 */
HONE_API int hone_solver_create(hone_solver **solver, int64_t n,
                                const hone_options *options);

/**
 * Inspects, scales and factors A. a is borrowed, wherever it lies: it must
 * stay, unchanged, until the next factor or update, or destroy. After the first
 * factor and solve of a solver nothing more is allocated, except for the
 * vectors of GMRES and the double factors the first time they are needed, and
 * for a larger nrhs.
 */
HONE_API int hone_solver_factor(hone_solver *solver, const double *a,
                                int64_t lda, hone_report *report);

/**
 * Takes a nearby matrix, keeping the factors of the old one: solves refine
 * against the new matrix and factor it only when that does not converge.
 * After a diagonal, triangular or banded matrix (report.structure) there is
 * nothing worth keeping: the new one is factored at once.
 */
HONE_API int hone_solver_update(hone_solver *solver, const double *a,
                                int64_t lda, hone_report *report);

/**
 * Solves for nrhs right-hand sides; arguments as in hone_solve. x0 (n x
 * nrhs, leading dimension ldx0) and columns (nrhs entries) may be NULL.
 */
HONE_API int hone_solver_solve(hone_solver *solver, int32_t trans, int64_t nrhs,
                               const double *b, int64_t ldb, double *x,
                               int64_t ldx, const double *x0, int64_t ldx0,
                               hone_column *columns, hone_report *report);

/** Frees the solver and sets *solver to NULL. NULL and *NULL are allowed. */
HONE_API void hone_solver_destroy(hone_solver **solver);

/**
 * Bytes of host memory that hone_solve holds at most beside the caller's
 * arrays, these being in host memory: on the single-precision path
 * (*single_bytes) and once the double factorization is needed (*double_bytes).
 * Either may be NULL. A reusable solver holds what each way that it has needed
 * takes: single and double, LU and Cholesky, the band.
 */
HONE_API int hone_memory_needed(int64_t n, int64_t nrhs,
                                const hone_options *options,
                                int64_t *single_bytes, int64_t *double_bytes);

/**
 * Bytes of device memory that solving an order n on a GPU takes: with a copy
 * of A there in double, for residuals (*with_residuals: 12 n^2 and a little),
 * and without (*without: 4 n^2 and a little). The first is chosen where that
 * much is free and options.device_memory_limit_bytes allows it, else the
 * second, else the CPU, and the report says why. Either may be NULL. 0 in a
 * library built without CUDA.
 */
HONE_API int hone_device_memory_needed(int64_t n, const hone_options *options,
                                       int64_t *with_residuals,
                                       int64_t *without);

/**
 * The report as one JSON object, and as lines for people. Writes at most
 * size bytes with the closing zero; returns the length the whole text has
 * (as snprintf does), so buffer may be NULL with size 0.
 */
HONE_API size_t hone_report_json(const hone_report *report, char *buffer,
                                 size_t size);
HONE_API size_t hone_report_text(const hone_report *report, char *buffer,
                                 size_t size);

#ifdef __cplusplus
}
#endif
#endif

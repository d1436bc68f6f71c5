/* SPDX-License-Identifier: BSD-3-Clause */
/* The iterative Crout method by sections for the whole matrix, in single or
   double precision on the device: see crout.h. The host waits for a section
   before it enqueues what depends on it, so the two streams need no events.
   Read next: crout_sweep.h. */
#include "gpu_sp/forms/crout_sweep.h"

#ifndef HONE_EMULATE
#include <cublas_v2.h>
#include <dlfcn.h>
#include <pthread.h>
#endif

#include <cfloat>
#include <climits>
#include <cstdlib>

struct hone_crout {
  hone_crout_queue queues[2];
  hone_crout_options o; /* with defaults filled in, except section */
  int64_t n, width;     /* of the workspace */
  void *memory;         /* device */
  int *seen;            /* pinned */
};

namespace {

/* ---- cuBLAS, loaded when it is first needed ------------------------------ */

#ifdef HONE_EMULATE
bool open_blas(hone_crout_blas *) { return false; }
void close_blas(hone_crout_blas *) {}
#else
struct blas_calls {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  decltype(&cublasSgemm_v2) gemm_s;
  decltype(&cublasDgemm_v2) gemm_d;
};
blas_calls calls;
bool calls_found;
pthread_once_t calls_once = PTHREAD_ONCE_INIT;

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

template <class F> bool find(void *library, const char *name, F *call) {
  *call = reinterpret_cast<F>(dlsym(library, name));
  return *call != nullptr;
}

/* Runs once in a process; the library stays loaded. */
void find_calls() {
  void *library = dlopen("libcublas.so." TEXT(CUBLAS_VER_MAJOR), RTLD_NOW);
  calls_found = library != nullptr &&
                find(library, "cublasCreate_v2", &calls.create) &&
                find(library, "cublasDestroy_v2", &calls.destroy) &&
                find(library, "cublasSetStream_v2", &calls.set_stream) &&
                find(library, "cublasSgemm_v2", &calls.gemm_s) &&
                find(library, "cublasDgemm_v2", &calls.gemm_d);
}

template <class T, class F, class P>
int gemm_by(F call, void *self, void *stream, const P &p) {
  cublasHandle_t handle = static_cast<cublasHandle_t>(self);
  const T one = 1, zero = 0;
  cublasStatus_t s =
      calls.set_stream(handle, static_cast<cudaStream_t>(stream));
  if (s == CUBLAS_STATUS_SUCCESS)
    s = call(handle, CUBLAS_OP_N, CUBLAS_OP_N, (int)p.m, (int)p.n, (int)p.k,
             &one, p.a, (int)p.lda, p.b, (int)p.ldb, &zero, p.c, (int)p.ldc);
  return s == CUBLAS_STATUS_SUCCESS        ? HONE_OK
         : s == CUBLAS_STATUS_ALLOC_FAILED ? HONE_NO_MEMORY
                                           : HONE_DEVICE_FAILED;
}
int gemm_s(void *self, void *stream, const hone_crout_product_s *p) {
  return gemm_by<float>(calls.gemm_s, self, stream, *p);
}
int gemm_d(void *self, void *stream, const hone_crout_product_d *p) {
  return gemm_by<double>(calls.gemm_d, self, stream, *p);
}

bool open_blas(hone_crout_blas *blas) {
  cublasHandle_t handle = nullptr;
  pthread_once(&calls_once, find_calls);
  if (!calls_found || calls.create(&handle) != CUBLAS_STATUS_SUCCESS)
    return false;
  *blas = {gemm_s, gemm_d, handle};
  return true;
}
void close_blas(hone_crout_blas *blas) {
  if (blas->self != nullptr)
    (void)calls.destroy(static_cast<cublasHandle_t>(blas->self));
}
#endif

/* ---- The whole matrix --------------------------------------------------- */

template <class T> struct run {
  hone_crout *c;
  T *z;
  int64_t n, ld, width;
  hone_crout_report *r;
};

int gemm(const task<float> &t, const section<float> &s, int64_t k, float *p) {
  const hone_crout_blas &b = t.on->blas;
  const hone_crout_product_s product = {s.rows, s.cols, k,     s.lower, s.upper,
                                        p,      s.ldl,  s.ldu, s.ldw};
  return b.gemm_s(b.self, t.on->stream, &product);
}
int gemm(const task<double> &t, const section<double> &s, int64_t k,
         double *p) {
  const hone_crout_blas &b = t.on->blas;
  const hone_crout_product_d product = {s.rows, s.cols, k,     s.lower, s.upper,
                                        p,      s.ldl,  s.ldu, s.ldw};
  return b.gemm_d(b.self, t.on->stream, &product);
}

/* Computes the product of the finished columns 0 .. k-1 for the section. */
template <class T> int prefix(const run<T> &f, const task<T> &t, int64_t k) {
  section<T> s = t.s;
  T *p = static_cast<T *>(t.on->prefix);
  s.lower = f.z + t.r0;
  s.upper = f.z + t.c0 * f.ld;
  if (f.r->prefix == HONE_CROUT_GEMM)
    return gemm(t, s, k, p);
  const int block = f.c->o.block;
  void (*kernel)(section<T>, int64_t, T *) = multiply<T, 32>;
  if (block == 8)
    kernel = multiply<T, 8>;
  if (block == 16)
    kernel = multiply<T, 16>;
  HONE_LAUNCH(kernel, tiles(s.rows, s.cols, block), dim3(block, block), 0,
              t.on->stream, s, k, p);
  return launched();
}

/* The rows r0 .. r1-1 and columns c0 .. c1-1 of the matrix. */
struct place {
  int64_t r0, r1, c0, c1;
};

/* Prepares a section whose diagonal section begins at d and has w columns:
   copies what is in Z there, which is A, and writes the guess there. */
template <class T>
int begin(const run<T> &f, task<T> *t, int queue, kind what, int64_t d,
          int64_t w, const place &at) {
  hone_crout_queue *on = &f.c->queues[queue];
  const hone_crout_options &o = f.c->o;
  const bool redone = o.prefix == HONE_CROUT_REDONE;
  const int64_t k0 = redone ? 0 : d, most = what == DIAGONAL ? 2 * w : w + 1;
  const int64_t max = what == DIAGONAL ? o.max_diagonal : o.max_pair;
  *t = task<T>{};
  t->on = on;
  t->r0 = at.r0;
  t->c0 = at.c0;
  t->bound = max > 0 ? HONE_MIN(max, most) : most;
  section<T> &s = t->s;
  s.kind = what;
  s.rows = at.r1 - at.r0;
  s.cols = at.c1 - at.c0;
  s.depth = d - k0;
  s.lower = f.z + at.r0 + k0 * f.ld;
  s.upper = f.z + k0 + at.c0 * f.ld;
  s.z = f.z + at.r0 + at.c0 * f.ld;
  s.pivot = f.z + d + d * f.ld;
  s.ldl = s.ldu = s.ldz = s.ldp = f.ld;
  s.a = static_cast<T *>(on->a);
  s.prefix = !redone && d > 0 ? static_cast<T *>(on->prefix) : nullptr;
  s.ldw = f.c->width;
  s.tolerance = (T)o.tolerance;
  int st = status_of(
      cudaMemcpy2DAsync(on->a, (size_t)s.ldw * sizeof(T), s.z,
                        (size_t)f.ld * sizeof(T), (size_t)s.rows * sizeof(T),
                        (size_t)s.cols, cudaMemcpyDeviceToDevice, on->stream));
  if (s.prefix != nullptr)
    TRY(prefix(f, *t, d));
  if (st != HONE_OK || o.guess == HONE_CROUT_RAW)
    return st;
  HONE_LAUNCH(guess<T>, lines(s.rows, s.cols), LINE, 0, on->stream, s);
  return launched();
}

/* Looks for zero pivots and for entries that are not finite in sections at
   rest. */
template <class T>
int find_breakdown(const run<T> &f, const task<T> *t, int tasks) {
  int st = HONE_OK, verdict = HONE_OK;
  for (int q = 0; q < tasks && st == HONE_OK; q++) {
    st = clear_flags(*t[q].on, BAD, 2);
    if (st != HONE_OK)
      break;
    HONE_LAUNCH(find_bad<T>, lines(t[q].s.rows, t[q].s.cols), LINE, 0,
                t[q].on->stream, t[q].s, f.n - t[q].c0, t[q].on->flags + BAD);
    st = launched();
    TRY(read_flags(*t[q].on, BAD, 2));
  }
  for (int q = 0; q < tasks && st == HONE_OK; q++) {
    st = wait(*t[q].on);
    const int *bad = t[q].on->seen + BAD;
    const int64_t at = f.n - HONE_MAX(bad[0], bad[1]);
    if (at < f.n && (verdict == HONE_OK || at < f.r->column)) {
      verdict = bad[0] >= bad[1] ? HONE_SINGULAR : HONE_OVERFLOW;
      f.r->column = at;
    }
  }
  return st == HONE_OK ? verdict : st;
}

template <class T> int do_diagonal(const run<T> &f, int64_t d, int64_t end) {
  task<T> t;
  int st = begin(f, &t, 0, DIAGONAL, d, end - d, {d, end, d, end});
  TRY(converge(f.c->o.block, f.c->o.sweeps_per_read, &t, 1));
  f.r->diagonals++;
  f.r->diagonal_sweeps += t.sweeps;
  f.r->diagonal_most = HONE_MAX(f.r->diagonal_most, t.sweeps);
  f.r->at_bound += st == HONE_OK && !t.at_rest;
  TRY(find_breakdown(f, &t, 1));
  return st == HONE_OK && !t.at_rest ? (int)HONE_NOT_CONVERGED : st;
}

/* Computes the sections [d, end) x [from, to), of U, and [from, to) x [d, end),
   of L, on a stream each. */
template <class T>
int do_pair(const run<T> &f, int64_t d, int64_t end, int64_t from, int64_t to) {
  task<T> t[2];
  int st = begin(f, t, 0, RIGHT, d, end - d, {d, end, from, to});
  TRY(begin(f, t + 1, 1, BELOW, d, end - d, {from, to, d, end}));
  TRY(converge(f.c->o.block, f.c->o.sweeps_per_read, t, 2));
  if (st != HONE_OK)
    return st;
  const int64_t sweeps = HONE_MAX(t[0].sweeps, t[1].sweeps);
  f.r->pairs++;
  f.r->pair_sweeps += sweeps;
  f.r->pair_most = HONE_MAX(f.r->pair_most, sweeps);
  for (int q = 0; q < 2 && st == HONE_OK; q++) {
    if (t[q].at_rest)
      continue;
    f.r->at_bound++;
    f.r->direct++;
    HONE_LAUNCH(direct<T>, lines(to - from, 1), LINE, 0, t[q].on->stream,
                t[q].s);
    st = launched();
  }
  TRY(find_breakdown(f, t, 2));
  return st;
}

template <class T> int factor(const run<T> &f) {
  int st = HONE_OK;
  const int64_t w = f.width;
  for (int64_t d = 0; d < f.n && st == HONE_OK; d += w) {
    const int64_t end = HONE_MIN(f.n, d + w);
    st = do_diagonal(f, d, end);
    for (int64_t from = end; from < f.n && st == HONE_OK; from += w)
      st = do_pair(f, d, end, from, HONE_MIN(f.n, from + w));
  }
  /* nothing that was enqueued is still running on return */
  for (const hone_crout_queue &on : f.c->queues) {
    const int waited = wait(on);
    st = st == HONE_OK ? waited : st;
  }
  return st;
}

template <class T>
int crout(hone_crout *c, int64_t n, T *a, int64_t lda,
          hone_crout_report *report) {
  hone_crout_report unused, *r = report != nullptr ? report : &unused;
  *r = hone_crout_report{};
  r->n = n;
  r->column = -1;
  if (c == nullptr || (a == nullptr && n > 0))
    return r->status = HONE_NULL_POINTER;
  if (n < 0 || n > c->n)
    return r->status = HONE_BAD_SIZE;
  if (lda < HONE_MAX(n, (int64_t)1) || lda > INT_MAX)
    return r->status = HONE_BAD_LEADING_DIMENSION;
  const double start = hone_now_s();
  r->section = hone_crout_section(n, &c->o);
  r->prefix = c->o.prefix;
  r->status = factor(run<T>{c, a, n, lda, r->section, r});
  r->milliseconds = 1e3 * (hone_now_s() - start);
  return r->status;
}

/* ---- The object ---------------------------------------------------------- */

bool valid(const hone_crout_options &o) {
  return (o.block == 0 || o.block == 8 || o.block == 16 || o.block == 32) &&
         (o.guess == HONE_CROUT_SCALED || o.guess == HONE_CROUT_RAW) &&
         o.prefix >= HONE_CROUT_GEMM && o.prefix <= HONE_CROUT_REDONE &&
         o.sweeps_per_read >= 0 && o.sweeps_per_read <= BATCH &&
         o.section >= 0 && o.tolerance >= 0 && o.tolerance <= DBL_MAX &&
         o.max_diagonal >= 0 && o.max_pair >= 0;
}

/* Chooses the caller's products, or cuBLAS with a handle for each stream (two
   streams must not share a handle's workspace), or our own kernel. */
void choose_blas(hone_crout *c) {
  if (c->o.prefix != HONE_CROUT_GEMM)
    return;
  if (c->o.blas != nullptr) {
    c->queues[0].blas = c->queues[1].blas = *c->o.blas;
    return;
  }
  if (!open_blas(&c->queues[0].blas) || !open_blas(&c->queues[1].blas))
    c->o.prefix = HONE_CROUT_ONCE;
}

int allocate(hone_crout *c) {
  const size_t flags = HONE_CROUT_FLAGS *
                       sizeof(int); /* which are a multiple of the alignment */
  const size_t part = (size_t)(c->width * c->width) * sizeof(double);
  int st = status_of(hone_cuda_null_unless_created(
      &c->memory, cudaMalloc(&c->memory, 2 * flags + 4 * part)));
  TRY(status_of(hone_cuda_null_unless_created(
      &c->seen,
      cudaMallocHost(reinterpret_cast<void **>(&c->seen), 2 * flags))));
  for (int q = 0; q < 2 && st == HONE_OK; q++) {
    hone_crout_queue *on = c->queues + q;
    char *at = static_cast<char *>(c->memory) + (size_t)q * 2 * part;
    on->a = at;
    on->prefix = at + part;
    on->flags = reinterpret_cast<int *>(static_cast<char *>(c->memory) +
                                        4 * part + (size_t)q * flags);
    on->seen = c->seen + q * HONE_CROUT_FLAGS;
    st = status_of(hone_cuda_null_unless_created(
        &on->stream,
        cudaStreamCreateWithFlags(&on->stream, cudaStreamNonBlocking)));
  }
  return st;
}

} // namespace

extern "C" int64_t hone_crout_section(int64_t n,
                                      const hone_crout_options *options) {
  const int64_t block = options && options->block ? options->block : 32;
  int64_t s = options ? options->section : 0;
  if (s == 0)
    s = HONE_MIN(HONE_MAX(n / 10, (int64_t)256), (int64_t)1024);
  s = HONE_MIN(s,
               HONE_MAX(n, (int64_t)1)); /* no larger than the matrix needs */
  return (s + block - 1) / block * block;
}

extern "C" int hone_crout_create(hone_crout **crout, int64_t n,
                                 const hone_crout_options *options) {
  if (crout == nullptr)
    return HONE_NULL_POINTER;
  *crout = nullptr;
  if (n < 0 || n > INT_MAX)
    return HONE_BAD_SIZE;
  if (options != nullptr && !valid(*options))
    return HONE_BAD_OPTION;
  /* calloc, not new: C programs link the library without that of C++ */
  auto *c = static_cast<hone_crout *>(calloc(1, sizeof(hone_crout)));
  if (c == nullptr)
    return HONE_NO_MEMORY;
  if (options != nullptr)
    c->o = *options;
  c->o.block = c->o.block ? c->o.block : 32;
  c->o.sweeps_per_read = c->o.sweeps_per_read ? c->o.sweeps_per_read : 8;
  c->n = n;
  c->width = hone_crout_section(n, &c->o);
  const int st = allocate(c);
  if (st == HONE_OK) {
    choose_blas(c);
    *crout = c;
  } else {
    hone_crout_destroy(c);
  }
  return st;
}

extern "C" void hone_crout_destroy(hone_crout *c) {
  if (c == nullptr)
    return;
  for (hone_crout_queue &on : c->queues) {
    if (on.stream != nullptr)
      (void)cudaStreamSynchronize(on.stream);
    if (c->o.blas == nullptr)
      close_blas(&on.blas);
    if (on.stream != nullptr)
      (void)cudaStreamDestroy(on.stream);
  }
  (void)cudaFreeHost(c->seen);
  (void)cudaFree(c->memory);
  (void)cudaGetLastError();
  free(c);
}

extern "C" int hone_crout_s(hone_crout *c, int64_t n, float *a, int64_t lda,
                            hone_crout_report *report) {
  return crout(c, n, a, lda, report);
}

extern "C" int hone_crout_d(hone_crout *c, int64_t n, double *a, int64_t lda,
                            hone_crout_report *report) {
  return crout(c, n, a, lda, report);
}

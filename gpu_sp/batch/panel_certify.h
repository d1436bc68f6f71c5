/* SPDX-License-Identifier: BSD-3-Clause */
/* The certificate of the factors of panels.h, as in cpu_batch/certify.h: random
   vectors g bound ||E||_2, E = I - inv(M) S, the norms of its rows, and
   ||inv(S)||_2; one gradient step estimates ||inv(S)||_1. Device code. */
#ifndef HONE_DEVICE_BATCH_PANEL_CERTIFY_H
#define HONE_DEVICE_BATCH_PANEL_CERTIFY_H

#include "gpu_sp/batch/panel_solve.h"

namespace {

/* The sums over the vectors of a statement, a thread's part. */
struct probe_sums {
  double squares; /* of E g */
  double inverse; /* of inv(M) g */
};

/* Adds what E g and inv(M) g show for K vectors g, whose products with S are
   there. */
template <class System>
__device__ __forceinline__ void add_probes(const System &t, uint64_t seed,
                                           probe_sums *to) {
  using S = typename System::S;
  t.each_row([&](int i) {
    for (int k = 0; k < S::K; k++)
      t.s->side[S::K + k][i] = rounded_at_random<System>(
          drawn_vector<System>(seed, k, i), seed, k, i);
  });
  t.sync();
  solve_panels<2 * S::K>(t, t.s->side, t.s->side);
  t.each_row([&](int i) {
    double of_row = 0.0;
    for (int k = 0; k < S::K; k++) {
      of_row += square_of(
          difference_of(drawn_vector<System>(seed, k, i), t.s->side[k][i]));
      to->inverse += square_of(t.s->side[S::K + k][i]);
    }
    t.s->rows[i] += of_row;
    to->squares += of_row;
  });
}

/* Makes the statement of t vectors from the sums. */
template <class System>
__device__ __forceinline__ void
state_probes(const System &t, int vectors, double theta, double by_row,
             const probe_sums &s, certified *out) {
  const double rounding =
      sqrt(static_cast<double>(vectors)) * HONE_EPS * sqrt(3.0 * System::P);
  double v[2] = {s.squares, s.inverse};
  t.all(v, plus());
  t.each_row([&](int i) {
    t.s->rows[i] = by_row * (sqrt(t.s->rows[i]) + rounding) * SUMMED;
  });
  out->contraction = theta * sqrt(v[0]) * SUMMED;
  out->inverse = theta * sqrt(v[1]) * SUMMED / (1.0 - out->contraction);
}

template <class System>
__device__ __forceinline__ void probe(const System &t, const matrix_norms &a,
                                      uint64_t seed, const probe_factors &f,
                                      certified *out) {
  using S = typename System::S;
  probe_sums s = {0.0, 0.0};
  t.each_row([&](int i) { t.s->rows[i] = 0.0; });
  add_probes(t, seed, &s);
  state_probes(t, S::K, f.few, f.few_rows, s, out);
  const double noise = (t.n + 4) * HONE_EPS * a.norm_scaled * out->inverse;
  if (out->contraction <= FEW_BOUND && noise <= FEW_NOISE)
    return;
  s = {0.0, 0.0};
  t.each_row([&](int i) { t.s->rows[i] = 0.0; });
  for (int done = 0; done < PROBES_ALL / S::P; done += S::K) {
    scanned<S> v;
    seed += 0x632be59bd9b4e019U;
    t.sync();
    draw_vectors(t, seed);
    scan(t, &v);
    give_products(t, seed, v);
    add_probes(t, seed, &s);
  }
  state_probes(t, PROBES_ALL / S::P, f.all, f.all_rows, s, out);
}

/* conj(v / |v|); 1 for 0. */
template <int P> __device__ __forceinline__ number<P> sign_of(number<P> v) {
  number<P> out = make<P>(1.0);
  if (P == 1) {
    out.part[0] = v.part[0] >= 0.0 ? 1.0 : -1.0;
    return out;
  }
  const double size = modulus_of(v);
  if (size > 0.0) {
    out.part[0] = v.part[0] / size;
    out.part[P - 1] = -v.part[P - 1] / size;
  }
  return out;
}

/* Estimates ||C inv(S) R||_1, or without R and C, from a solution by one
   gradient step (Hager 1984; Higham & Tisseur 2000). */
template <class System>
__device__ __forceinline__ double estimate_inverse(const System &t,
                                                   bool units) {
  using S = typename System::S;
  number<S::P> *y = t.s->y, *v = t.s->c, *u = t.s->r, *w = t.s->d;
  t.each_row(
      [&](int i) { v[i] = scaled(sign_of(y[i]), units ? t.s->col[i] : 1.0); });
  t.sync();
  if (t.definite) { /* M is Hermitian: |w| is that of inv(M)^T v */
    t.each_row([&](int i) { v[i] = conjugated(v[i], sign_word(true)); });
    t.sync();
    apply(t, t.s->c, t.s->d);
  } else {
    solve_transposed(t, v, u, w);
  }
  double most[1] = {-1.0}, at[1] = {static_cast<double>(t.n)};
  const auto size = [&](int i) {
    return modulus_of(w[i]) * (units ? t.s->row[i] : 1.0);
  };
  t.each_row([&](int i) { most[0] = larger()(most[0], size(i)); });
  t.all(most, larger());
  t.each_row([&](int i) {
    if (size(i) == most[0])
      at[0] = smaller()(at[0], static_cast<double>(i));
  });
  t.all(at, smaller());
  t.each_row([&](int i) {
    v[i] = make<S::P>(static_cast<double>(i) != at[0] ? 0.0
                      : units                         ? t.s->row[i]
                                                      : 1.0);
  });
  t.sync();
  apply(t, t.s->c, t.s->d);
  double sum[1] = {0.0};
  t.each_row(
      [&](int i) { sum[0] += modulus_of(w[i]) * (units ? t.s->col[i] : 1.0); });
  t.all(sum, plus());
  return at[0] < t.n ? sum[0] : HONE_INF; /* n: there were NaN */
}

/* Certifies the factors; the first vectors' products are there. */
template <class System>
__device__ __forceinline__ certified certify_panels(const System &t,
                                                    const matrix_norms &a,
                                                    uint64_t seed,
                                                    const probe_factors &f) {
  using S = typename System::S;
  certified out = {};
  probe(t, a, seed, f, &out);
  t.each_row([&](int i) { t.s->y[i] = t.s->side[S::K][i]; });
  out.rcond_scaled = 1.0 / (a.norm_scaled * estimate_inverse(t, false));
  out.rcond = out.rcond_scaled;
  if (!a.plain)
    out.rcond = 1.0 / (a.norm_cols * estimate_inverse(t, true));
  out.rcond = out.rcond > 1.0 ? 1.0 : out.rcond;
  out.serves = a.serves && out.contraction <= ALL_BOUND &&
               out.rcond_scaled >= HONE_EPS && out.rcond > 0.0 &&
               out.inverse <= LARGEST_ENTRY;
  return out;
}

} // namespace

#endif

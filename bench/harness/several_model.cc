/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/harness/several_model.h"

#include <algorithm>

namespace {

enum { HALVINGS = 60 }; /* of an interval, until it is one number */

/* The value in [low, high] at which f, which does not fall, reaches 'wanted'.
 */
template <class F> double where(double low, double high, double wanted, F f) {
  for (int i = 0; i < HALVINGS; i++) {
    const double middle = 0.5 * (low + high);
    (f(middle) < wanted ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

/* The milliseconds in which one device makes a unit of products. */
void set_flops(double one_ms, Several_model *m) {
  const double n = static_cast<double>(m->n);
  const double slowest = one_ms / (2.0 / 3.0 * n * n * n) * 4.0;
  const double each = where(0.0, slowest, one_ms, [&](double ms) {
    m->flops = 1.0 / ms;
    return several_times(*m, 1).ms;
  });
  m->flops = 1.0 / each;
}

} // namespace

Several_times several_times(const Several_model &m, int devices) {
  Several_times t = {0.0, 0.0};
  double panels = 0.0;
  for (int64_t k = 0; k < m.n; k += m.width) {
    const double width = static_cast<double>(std::min(m.width, m.n - k));
    const double left = static_cast<double>(m.n - k) - width;
    const double update = 2.0 * width * left * left / (m.flops * devices);
    t.ms += std::max(update, m.panel_ms);
    panels += update < m.panel_ms ? m.panel_ms : 0.0;
  }
  t.by_panels = t.ms > 0.0 ? panels / t.ms : 0.0;
  return t;
}

bool several_fit(double one_ms, double two_ms, Several_model *m) {
  const double count = static_cast<double>((m->n + m->width - 1) / m->width);
  if (!(two_ms > 0.0) || !(two_ms <= one_ms) || !(2.0 * two_ms >= one_ms))
    return false;
  m->panel_ms = where(0.0, one_ms / count, two_ms, [&](double ms) {
    m->panel_ms = ms;
    set_flops(one_ms, m);
    return several_times(*m, 2).ms;
  });
  set_flops(one_ms, m);
  return true;
}

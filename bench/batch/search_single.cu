/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes that invert in single precision, for search.cu. */
#include "bench/batch/search.h"

using namespace search;

namespace {

/* Inverses in single precision; systems for which these do not suffice are not
   served. */
template <int P, int R, int C, int N, int BLOCKS>
void try_single(const problem &p) {
  try_shape<shape<P, R, C, N, false, float>, BLOCKS>(p);
}

} // namespace

void search::search_single(int64_t count) {
  with(1, count, 32, false, [](const problem &p) {
    try_single<1, 8, 4, 32, 8>(p);
    try_single<1, 8, 4, 32, 10>(p);
    try_single<1, 8, 4, 32, 12>(p);
    try_single<1, 32, 1, 32, 12>(p);
    try_single<1, 32, 1, 32, 16>(p);
    try_single<1, 16, 2, 32, 12>(p);
  });
  with(1, count, 64, false, [](const problem &p) {
    try_single<1, 16, 4, 64, 4>(p);
    try_single<1, 16, 4, 64, 6>(p);
    try_single<1, 32, 2, 64, 6>(p);
    try_single<1, 32, 4, 64, 4>(p);
    try_single<1, 32, 4, 64, 5>(p);
    try_single<1, 16, 8, 64, 4>(p);
    try_single<1, 16, 8, 64, 5>(p);
  });
  with(1, count, 96, false, [](const problem &p) {
    try_single<1, 16, 8, 96, 3>(p);
    try_single<1, 32, 4, 96, 3>(p);
    try_single<1, 32, 8, 96, 2>(p);
    try_single<1, 32, 8, 96, 3>(p);
  });
  with(1, count, 128, false, [](const problem &p) {
    try_single<1, 16, 8, 128, 2>(p);
    try_single<1, 16, 8, 128, 3>(p);
    try_single<1, 32, 4, 128, 2>(p);
    try_single<1, 32, 8, 128, 1>(p);
    try_single<1, 32, 8, 128, 2>(p);
    try_single<1, 16, 16, 128, 2>(p);
  });
  with(2, count, 32, false, [](const problem &p) {
    try_single<2, 16, 4, 32, 5>(p);
    try_single<2, 16, 4, 32, 6>(p);
    try_single<2, 8, 4, 32, 8>(p);
    try_single<2, 16, 2, 32, 8>(p);
  });
  with(2, count, 64, false, [](const problem &p) {
    try_single<2, 32, 4, 64, 2>(p);
    try_single<2, 32, 4, 64, 3>(p);
    try_single<2, 32, 8, 64, 2>(p);
    try_single<2, 16, 8, 64, 3>(p);
  });
}

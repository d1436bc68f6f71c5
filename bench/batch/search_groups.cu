/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes with several systems in a warp, for search.cu. */
#include "bench/batch/search.h"

using namespace search;

namespace {

void search_real_groups(int64_t count) {
  with(1, count, 8, false, [](const problem &p) {
    try_shape<shape<1, 8, 4, 8>, 16>(p);
    try_shape<shape<1, 8, 1, 8>, 16>(p);
    try_shape<shape<1, 8, 1, 8>, 20>(p);
    try_shape<shape<1, 8, 1, 8>, 24>(p);
    try_shape<shape<1, 8, 1, 8, true>, 20>(p);
    try_shape<shape<1, 4, 2, 8>, 20>(p);
    try_shape<shape<1, 4, 2, 8, true>, 20>(p);
    try_shape<shape<1, 4, 4, 8>, 24>(p);
    try_shape<shape<1, 4, 4, 8, true>, 24>(p);
  });
  with(1, count, 16, false, [](const problem &p) {
    try_shape<shape<1, 8, 4, 16>, 16>(p);
    try_shape<shape<1, 16, 1, 16>, 12>(p);
    try_shape<shape<1, 16, 1, 16>, 16>(p);
    try_shape<shape<1, 16, 1, 16>, 20>(p);
    try_shape<shape<1, 16, 1, 16, true>, 16>(p);
    try_shape<shape<1, 8, 2, 16>, 16>(p);
    try_shape<shape<1, 8, 2, 16, true>, 16>(p);
    try_shape<shape<1, 4, 4, 16>, 16>(p);
  });
  with(1, count, 32, false, [](const problem &p) {
    try_shape<shape<1, 8, 4, 32>, 8>(p);
    try_shape<shape<1, 32, 1, 32>, 8>(p);
    try_shape<shape<1, 32, 1, 32>, 12>(p);
    try_shape<shape<1, 32, 1, 32>, 16>(p);
    try_shape<shape<1, 32, 1, 32, true>, 12>(p);
    try_shape<shape<1, 16, 2, 32>, 8>(p);
    try_shape<shape<1, 16, 2, 32>, 12>(p);
    try_shape<shape<1, 8, 4, 32>, 12>(p);
  });
}

void search_complex_groups(int64_t count) {
  with(2, count, 8, false, [](const problem &p) {
    try_shape<shape<2, 8, 4, 8>, 16>(p);
    try_shape<shape<2, 8, 1, 8>, 12>(p);
    try_shape<shape<2, 8, 1, 8>, 16>(p);
    try_shape<shape<2, 8, 1, 8, true>, 16>(p);
    try_shape<shape<2, 4, 2, 8>, 16>(p);
    try_shape<shape<2, 4, 4, 8>, 16>(p);
  });
  with(2, count, 16, false, [](const problem &p) {
    try_shape<shape<2, 8, 4, 16>, 12>(p);
    try_shape<shape<2, 16, 1, 16>, 8>(p);
    try_shape<shape<2, 16, 1, 16>, 12>(p);
    try_shape<shape<2, 16, 1, 16, true>, 12>(p);
    try_shape<shape<2, 8, 2, 16>, 12>(p);
    try_shape<shape<2, 8, 4, 16, true>, 12>(p);
  });
  with(2, count, 32, false, [](const problem &p) {
    try_shape<shape<2, 16, 4, 32>, 5>(p);
    try_shape<shape<2, 32, 1, 32>, 6>(p);
    try_shape<shape<2, 32, 1, 32>, 8>(p);
    try_shape<shape<2, 32, 2, 32>, 5>(p);
    try_shape<shape<2, 16, 2, 32>, 6>(p);
  });
}

} // namespace

void search::search_groups(int64_t count) {
  search_real_groups(count);
  search_complex_groups(count);
}

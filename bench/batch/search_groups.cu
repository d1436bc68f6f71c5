/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes with several systems in a warp, for search.cu. */
#include "bench/batch/search.h"

using namespace search;

namespace {

void search_real_groups(int64_t count) {
  with(1, count, 8, false, [](const problem &p) {
    try_shape<shape<1, 8, 1, 8>, 14>(p);
    try_shape<shape<1, 8, 1, 8>, 16>(p);
    try_shape<shape<1, 8, 1, 8>, 20>(p);
    try_shape<shape<1, 8, 1, 8>, 24>(p);
  });
  with(1, count, 16, false, [](const problem &p) {
    try_shape<shape<1, 16, 1, 16>, 12>(p);
    try_shape<shape<1, 16, 1, 16>, 14>(p);
    try_shape<shape<1, 16, 1, 16>, 16>(p);
    try_shape<shape<1, 16, 1, 16>, 20>(p);
  });
}

void search_complex_groups(int64_t count) {
  with(2, count, 8, false, [](const problem &p) {
    try_shape<shape<2, 8, 1, 8>, 10>(p);
    try_shape<shape<2, 8, 1, 8>, 12>(p);
    try_shape<shape<2, 8, 1, 8>, 14>(p);
    try_shape<shape<2, 8, 1, 8>, 16>(p);
  });
  with(2, count, 16, false, [](const problem &p) {
    try_shape<shape<2, 16, 1, 16>, 8>(p);
    try_shape<shape<2, 16, 1, 16>, 10>(p);
    try_shape<shape<2, 16, 1, 16>, 12>(p);
  });
}

} // namespace

void search::search_groups(int64_t count) {
  search_real_groups(count);
  search_complex_groups(count);
}

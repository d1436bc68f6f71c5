/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of the kernel that solves definite systems by panels. */
#include "bench/batch/search_panels.h"

using namespace search;

void search::search_panels_definite(int64_t count) {
  with(1, count, 32, true, [](const problem &p) {
    try_panels<panels<1, 32, 1, 32>, 12>(p);
    try_panels<panels<1, 32, 1, 32>, 8>(p);
    try_panels<panels<1, 32, 1, 16>, 16>(p);
  });
  with(1, count, 64, true, [](const problem &p) {
    try_panels<panels<1, 64, 1, 32>, 6>(p);
    try_panels<panels<1, 32, 2, 32>, 8>(p);
  });
  with(1, count, 128, true, [](const problem &p) {
    try_panels<panels<1, 128, 1, 32>, 4>(p);
    try_panels<panels<1, 64, 2, 32>, 4>(p);
    try_panels<panels<1, 128, 1, 16>, 5>(p);
  });
  with(1, std::min<int64_t>(count, 4096), 256, true, [](const problem &p) {
    try_panels<panels<1, 128, 2, 32>, 2>(p);
    try_panels<panels<1, 256, 1, 32>, 2>(p);
    try_panels<panels<1, 128, 2, 16>, 4>(p);
  });
}

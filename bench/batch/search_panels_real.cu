/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of the kernel that solves real systems by panels. */
#include "bench/batch/search_panels.h"

using namespace search;

void search::search_panels_real(int64_t count) {
  with(1, count, 64, false, [](const problem &p) {
    try_panels<panels<1, 64, 1, 32>, 6>(p);
    try_panels<panels<1, 32, 2, 32>, 8>(p);
  });
  with(1, count, 128, false, [](const problem &p) {
    try_panels<panels<1, 128, 1, 32>, 4>(p);
    try_panels<panels<1, 64, 2, 32>, 4>(p);
    try_panels<panels<1, 64, 2, 16>, 6>(p);
  });
  with(1, std::min<int64_t>(count, 4096), 256, false, [](const problem &p) {
    try_panels<panels<1, 128, 2, 32>, 2>(p);
    try_panels<panels<1, 128, 2, 16>, 4>(p);
    try_panels<panels<1, 256, 1, 32>, 2>(p);
    try_panels<panels<1, 64, 4, 16>, 4>(p);
  });
  with(1, std::min<int64_t>(count, 1024), 512, false, [](const problem &p) {
    try_panels<panels<1, 256, 2, 32>, 1>(p);
    try_panels<panels<1, 256, 2, 16>, 2>(p);
    try_panels<panels<1, 128, 4, 16>, 2>(p);
    try_panels<panels<1, 512, 1, 32>, 1>(p);
  });
  with(1, std::min<int64_t>(count, 256), 1024, false, [](const problem &p) {
    try_panels<panels<1, 512, 2, 16>, 1>(p);
    try_panels<panels<1, 256, 4, 16>, 1>(p);
  });
}

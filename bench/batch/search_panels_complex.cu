/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of the kernel that solves complex systems by panels. */
#include "bench/batch/search_panels.h"

using namespace search;

void search::search_panels_complex(int64_t count) {
  with(2, count, 64, false, [](const problem &p) {
    try_panels<panels<2, 64, 1, 8>, 3>(p);
    try_panels<panels<2, 64, 1, 8>, 4>(p);
    try_panels<panels<2, 64, 1, 8>, 5>(p);
    try_panels<panels<2, 64, 1, 16>, 4>(p);
    try_panels<panels<2, 64, 1, 16>, 6>(p);
  });
  with(2, count, 128, false, [](const problem &p) {
    try_panels<panels<2, 128, 1, 16>, 3>(p);
    try_panels<panels<2, 128, 1, 16>, 4>(p);
    try_panels<panels<2, 64, 2, 16>, 3>(p);
  });
  with(2, std::min<int64_t>(count, 2048), 256, false, [](const problem &p) {
    try_panels<panels<2, 256, 1, 16>, 2>(p);
    try_panels<panels<2, 128, 2, 16>, 2>(p);
  });
  with(2, std::min<int64_t>(count, 512), 512, false,
       [](const problem &p) { try_panels<panels<2, 512, 1, 16>, 1>(p); });
  with(2, std::min<int64_t>(count, 128), 1024, false,
       [](const problem &p) { try_panels<panels<2, 512, 2, 8>, 1>(p); });
}

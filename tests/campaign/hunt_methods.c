/* SPDX-License-Identifier: BSD-3-Clause */
/* Lets small systems have deflation and GMRES. Every program with the wrapped
   function needs this file, also where there is no GMP. */
#include "refine/ladder.h"
#include "tests/campaign/hunt.h"

/* Deflation and GMRES begin at order 64. The programs that hunt replace this
   function of the library (ld --wrap, build.ninja), so that the small systems
   have them. */
int hunt_methods;
enum { GMRES_STEPS = 10 };
int __real_hone_ladder_create(hone_ladder *ladder, const hone_operator *op,
                              int64_t n, const hone_step *steps, int count,
                              const hone_request *request, hone_mem *mem,
                              hone_pool *pool, hone_watch *watch);
int __wrap_hone_ladder_create(hone_ladder *ladder, const hone_operator *op,
                              int64_t n, const hone_step *steps, int count,
                              const hone_request *request, hone_mem *mem,
                              hone_pool *pool, hone_watch *watch);

int __wrap_hone_ladder_create(hone_ladder *ladder, const hone_operator *op,
                              int64_t n, const hone_step *steps, int count,
                              const hone_request *request, hone_mem *mem,
                              hone_pool *pool, hone_watch *watch) {
  hone_request changed = *request;
  if (hunt_methods & HUNT_DEFLATION)
    changed.deflation = 1;
  if (hunt_methods & HUNT_GMRES)
    changed.gmres_steps = GMRES_STEPS;
  return __real_hone_ladder_create(ladder, op, n, steps, count, &changed, mem,
                                   pool, watch);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The ground floor of the library: numbers, memory with an account, threads,
   the clock and the deadline. Every folder may include this file, and nothing
   here depends on what a linear system is. The interfaces that do are
   base/operator.h (a matrix) and base/engine.h (a factorization). */
#ifndef HONE_BASE_H
#define HONE_BASE_H

#include "api/hone.h"
#include "base/memory.h"
#include "base/numbers.h"
#include "base/pool.h"
#include "base/watch.h"

#include <math.h>
#include <stdbool.h>

#endif

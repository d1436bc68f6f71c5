/* SPDX-License-Identifier: BSD-3-Clause */
/* The reports of solve_system. */
#ifndef HONE_EXAMPLES_SOLVE_REPORT_H
#define HONE_EXAMPLES_SOLVE_REPORT_H

#include "examples/solve_input.h"

/* Prints the library's report and what only this program knows. */
void print_json(const struct settings *s, const struct system *run,
                const hone_report *report);

/* Prints lines for people. */
void print_report(const struct settings *s, const struct system *run,
                  const hone_report *report);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The caller's options, completed and checked. */
#ifndef HONE_OPTIONS_H
#define HONE_OPTIONS_H

#include "api/hone_tuning.h"
#include "base/base.h"

/* Copies the caller's options (NULL: defaults) into *to and their tuning into
   *tuning, to which to->tuning points. Fields that the caller's structs lack
   are 0. HONE_OK, HONE_BAD_STRUCT_SIZE or HONE_BAD_OPTION, and then the
   report's reason names the option; report may be NULL. */
int hone_options_take(const hone_options *from, hone_options *to,
                      hone_tuning *tuning, hone_report *report);

/* Tells whether trans, x0, columns or error_bounds is set: they belong to a
   solve. */
bool hone_options_name_a_solve(const hone_options *o);

/* HONE_OK if every option of the solver is 0 in asked, or equal to the one that
   the solver was created with; else HONE_BAD_OPTION, and a reason. */
int hone_options_check_agreement(const hone_options *asked,
                                 const hone_options *created,
                                 hone_report *report);

/* Tells whether report is NULL or has a struct_size that is valid. */
bool hone_report_is_sized(const hone_report *report);

/* Writes made to *out, as many bytes as *out has; out may be NULL. */
void hone_report_give(const hone_report *made, hone_report *out);

#endif

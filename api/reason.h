/* SPDX-License-Identifier: BSD-3-Clause */
/* report.reason: why a call failed, in words that name the argument, the
   option or the place. */
#ifndef HONE_REASON_H
#define HONE_REASON_H

#include "base/base.h"

/* Appends a sentence to report->reason; report may be NULL. */
void hone_reason_add(hone_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says of entry (row, col) of the array called name, re + i im, why it is not
   finite: it is NaN, Inf or -Inf, or its modulus is beyond double. */
void hone_reason_not_finite(hone_report *report, const char *name, int64_t row,
                            int64_t col, double re, double im);

/* Completes the reason for report->status: who asked the call to stop, which
   memory could not be had, why there is no device and, if there is no reason
   else, the status's text. */
void hone_reason_complete(hone_report *report, const hone_watch *watch,
                          const hone_mem *mem, const char *why_no_device);

#endif

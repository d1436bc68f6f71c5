/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of report.reason that do not come from the ladder. */
#include "api/reason.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hone_reason_add(hone_report *report, const char *format, ...) {
  if (report == NULL)
    return;
  const size_t size = sizeof report->reason;
  size_t used = strlen(report->reason);
  if (used > 0 && used + 3 < size) {
    memcpy(report->reason + used, "; ", 3);
    used += 2;
  }
  va_list args;
  va_start(args, format);
  (void)vsnprintf(report->reason + used, size - used, format, args);
  va_end(args);
}

void hone_reason_not_finite(hone_report *report, const char *name, int64_t row,
                            int64_t col, double re, double im) {
  const bool real = !isfinite(re);
  const double bad = real ? re : im;
  const char *value = isnan(bad) ? "NaN" : bad > 0.0 ? "Inf" : "-Inf";
  if (isfinite(bad))
    hone_reason_add(report, "the modulus of %s(%lld, %lld) is beyond double",
                    name, (long long)row, (long long)col);
  else
    hone_reason_add(report, "%s(%lld, %lld) is %s%s", name, (long long)row,
                    (long long)col, value,
                    real ? "" : " in its imaginary part");
}

static void add_stop(hone_report *report, const hone_watch *watch) {
  if (watch->stopped_in == NULL)
    return;
  hone_reason_add(report,
                  watch->late
                      ? "options.deadline_s had passed in the phase \"%s\""
                      : "options.progress asked to stop in the phase \"%s\"",
                  watch->stopped_in);
}

static void add_memory(hone_report *report, const hone_mem *mem) {
  const long long bytes = mem->refused_bytes;
  if (bytes > 0 && mem->refused_by_limit)
    hone_reason_add(report,
                    "%lld bytes would exceed options.memory_limit_bytes, "
                    "which is %lld",
                    bytes, (long long)mem->limit);
  else if (bytes > 0)
    hone_reason_add(report, "no memory for %lld bytes", bytes);
}

void hone_reason_complete(hone_report *report, const hone_watch *watch,
                          const hone_mem *mem, const char *why_no_device) {
  const int status = report->status;
  if (status == HONE_CANCELLED || status == HONE_INTERRUPTED)
    add_stop(report, watch);
  if (status == HONE_NO_MEMORY)
    add_memory(report, mem);
  if (status >= 0 || report->reason[0] != '\0')
    return;
  if (status == HONE_NO_DEVICE && why_no_device[0] != '\0')
    hone_reason_add(report, "options.device: %s", why_no_device);
  if (report->reason[0] == '\0')
    hone_reason_add(report, "%s", hone_status_text(status));
}

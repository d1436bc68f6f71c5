/* SPDX-License-Identifier: BSD-3-Clause */
/* Status texts, the version, and the report: its size, as JSON, as text. */
#include "api/guest.h"
#include "api/options.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LISTED = 8 }; /* entries of a null vector that the report has */

#define VERSION_TEXT_(a, b, c) #a "." #b "." #c
#define VERSION_TEXT(a, b, c) VERSION_TEXT_(a, b, c)

const char *hone_version(void) {
  return VERSION_TEXT(HONE_VERSION_MAJOR, HONE_VERSION_MINOR,
                      HONE_VERSION_PATCH);
}

/* Reports of callers -------------------------------------------------- */

/* The first version had the fields before this one; every version has them. */
enum { LEAST_REPORT = offsetof(hone_report, bad_row) };

void hone_report_init(hone_report *report, size_t struct_size) {
  if (report != NULL && struct_size >= sizeof report->struct_size) {
    memset(report, 0, struct_size);
    report->struct_size = struct_size;
  }
}

bool hone_report_is_sized(const hone_report *report) {
  return report == NULL || (report->struct_size >= LEAST_REPORT &&
                            report->struct_size <= sizeof *report);
}

void hone_report_give(const hone_report *made, hone_report *out) {
  if (out != NULL) {
    const size_t size = out->struct_size;
    memcpy(out, made, size);
    out->struct_size = size;
  }
}

/* The caller's report as this version has it; missing fields are 0, or
   -1 for places. False: it has no valid size. */
static bool read_report(const hone_report *from, hone_report *to) {
  const bool readable = from != NULL && hone_report_is_sized(from);
  memset(to, 0, sizeof *to);
  to->bad_row = to->bad_col = to->min_pivot_row = to->min_pivot_col = -1;
  if (readable)
    memcpy(to, from, from->struct_size);
  return readable;
}

/* Text ------------------------------------------------------------------ */

/* Text that grows into a fixed buffer and counts what did not fit. */
typedef struct writer {
  char *buffer;
  size_t size, length;
} writer;

static void put(writer *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  bool room = w->length < w->size;
  int length = vsnprintf(room ? w->buffer + w->length : NULL,
                         room ? w->size - w->length : 0, format, args);
  va_end(args);
  w->length += length > 0 ? (size_t)length : 0;
}

/* Bytes of the UTF-8 character at text, of which size bytes may be read; 0: it
   is not valid (Unicode 15, table 3-7). */
static size_t utf8_length(const char *text, size_t size) {
  const unsigned char *c = (const unsigned char *)text;
  const size_t length = c[0] < 0x80                    ? 1
                        : c[0] >= 0xc2 && c[0] <= 0xdf ? 2
                        : c[0] >= 0xe0 && c[0] <= 0xef ? 3
                        : c[0] >= 0xf0 && c[0] <= 0xf4 ? 4
                                                       : 0;
  if (length < 2)
    return length;
  for (size_t i = 1; i < length; i++)
    if (i >= size || (c[i] & 0xc0) != 0x80)
      return 0;
  const bool overlong =
      (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
  const bool surrogate = c[0] == 0xed && c[1] >= 0xa0;
  const bool too_large = c[0] == 0xf4 && c[1] >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

/* A string that ends at a zero or after size bytes. Bytes that are not UTF-8
   become the replacement character. */
static void put_string(writer *w, const char *name, const char *text,
                       size_t size) {
  put(w, "\"%s\": \"", name);
  while (size > 0 && *text != '\0') {
    const unsigned char c = (unsigned char)*text;
    const size_t valid = utf8_length(text, size);
    const size_t length = valid > 0 ? valid : 1;
    if (valid == 0)
      put(w, "\\ufffd");
    else if (c == '"' || c == '\\')
      put(w, "\\%c", c);
    else if (c < 0x20)
      put(w, "\\u%04x", c);
    else
      put(w, "%.*s", (int)length, text);
    text += length;
    size -= length;
  }
  put(w, "\"");
}

/* JSON has no NaN and no infinity: those become null. Its decimal point does
   not depend on the locale. */
static void put_value(writer *w, double value) {
  char text[64], plain[64];
  size_t length = 0;
  snprintf(text, sizeof text, "%.17g", value);
  for (const char *c = text; *c != '\0'; c++) {
    bool known = strchr("0123456789+-e", *c) != NULL;
    if (known)
      plain[length++] = *c;
    else if (length > 0 && plain[length - 1] != '.')
      plain[length++] = '.';
  }
  plain[length] = '\0';
  put(w, "%s", isfinite(value) ? plain : "null");
}

static void put_number(writer *w, const char *name, double value) {
  put(w, ", \"%s\": ", name);
  put_value(w, value);
}

static void put_integer(writer *w, const char *name, int64_t value) {
  put(w, ", \"%s\": %lld", name, (long long)value);
}

static void put_vector(writer *w, const char *of, int64_t count,
                       const int64_t *index, const double *weight) {
  put(w, ", \"%s_count\": %lld, \"%s_index\": [", of, (long long)count, of);
  for (int64_t k = 0; k < count && k < LISTED; k++)
    put(w, "%s%lld", k > 0 ? ", " : "", (long long)index[k]);
  put(w, "], \"%s_weight\": [", of);
  for (int64_t k = 0; k < count && k < LISTED; k++) {
    put(w, "%s", k > 0 ? ", " : "");
    put_value(w, weight[k]);
  }
  put(w, "]");
}

static void put_phases(writer *w, const hone_report *r) {
  put_number(w, "inspect_ms", r->inspect_ms);
  put_number(w, "factor_ms", r->factor_ms);
  put_number(w, "certify_ms", r->certify_ms);
  put_number(w, "refine_ms", r->refine_ms);
  put_number(w, "fallback_ms", r->fallback_ms);
  put_number(w, "total_ms", r->total_ms);
  put_integer(w, "host_passes", r->host_passes);
  put_integer(w, "device_passes", r->device_passes);
  put_integer(w, "host_bytes", r->host_bytes);
  put_integer(w, "device_bytes", r->device_bytes);
  put_integer(w, "to_device_bytes", r->to_device_bytes);
  put_integer(w, "from_device_bytes", r->from_device_bytes);
  put_number(w, "diagonal_ms", r->diagonal_ms);
  put_number(w, "diagonal_wait_ms", r->diagonal_wait_ms);
  put_integer(w, "block_rows", r->block_rows);
  put_integer(w, "block_row_sweeps", r->block_row_sweeps);
  put_integer(w, "block_row_sweeps_max", r->block_row_sweeps_max);
  put_integer(w, "block_row_fallbacks", r->block_row_fallbacks);
  put_integer(w, "gmres_steps", r->gmres_steps);
  put_integer(w, "certificate_steps", r->certificate_steps);
  put_number(w, "bound_failure", r->bound_failure);
  put_integer(w, "sparse_columns", r->sparse_columns);
}

static void put_matrix_json(writer *w, const hone_report *r) {
  put_number(w, "rcond", r->rcond);
  put_number(w, "norm1", r->norm1);
  put_number(w, "growth", r->growth);
  put_number(w, "max_abs", r->max_abs);
  put_number(w, "min_abs", r->min_abs);
  put_integer(w, "scale_exponent_min", r->scale_exponent_min);
  put_integer(w, "scale_exponent_max", r->scale_exponent_max);
  put_integer(w, "underflows", r->underflows);
  put_integer(w, "bad_row", r->bad_row);
  put_integer(w, "bad_col", r->bad_col);
  put_integer(w, "structure", r->structure);
  put_integer(w, "min_pivot_row", r->min_pivot_row);
  put_integer(w, "min_pivot_col", r->min_pivot_col);
  put_vector(w, "null", r->null_count, r->null_index, r->null_weight);
  put_vector(w, "dependent", r->dependent_count, r->dependent_index,
             r->dependent_weight);
}

static size_t write_json(const hone_report *report, char *buffer, size_t size) {
  writer w = {buffer, buffer != NULL ? size : 0, 0};
  hone_report all, *r = &all;
  put(&w, "%s", "");
  if (!read_report(report, r))
    return 0;
  put(&w, "{\"status\": %d, ", r->status);
  put_string(&w, "status_text", hone_status_text(r->status), SIZE_MAX);
  put_integer(&w, "n", r->n);
  put_integer(&w, "nrhs", r->nrhs);
  put_integer(&w, "accepted", r->accepted);
  put_number(&w, "backward_error", r->backward_error);
  put_number(&w, "normwise_error", r->normwise_error);
  put_number(&w, "residual_error", r->residual_error);
  put_number(&w, "forward_error", r->forward_error);
  put_integer(&w, "digits", r->digits);
  put_number(&w, "tolerance", r->tolerance);
  put_integer(&w, "iterations", r->iterations);
  put_matrix_json(&w, r);
  put_integer(&w, "precision", r->precision);
  put_integer(&w, "fallback_columns", r->fallback_columns);
  put_integer(&w, "threads", r->threads);
  put(&w, ", ");
  put_string(&w, "device", r->device, sizeof r->device);
  put(&w, ", ");
  put_string(&w, "path", r->path, sizeof r->path);
  put(&w, ", ");
  put_string(&w, "reason", r->reason, sizeof r->reason);
  put_phases(&w, r);
  put(&w, "}");
  return w.length;
}

static void put_matrix(writer *w, const hone_report *r) {
  put(w, "matrix          1-norm %.3g, rcond %.2g, pivot growth %.3g\n",
      r->norm1, r->rcond, r->growth);
  if (r->scale_exponent_min != 0 || r->scale_exponent_max != 0)
    put(w, "scaling         rows and columns by 2^%d to 2^%d\n",
        r->scale_exponent_min, r->scale_exponent_max);
}

/* The times and counts of the choices of hone_tuning.h. */
static void put_tuning(writer *w, const hone_report *r) {
  if (!(r->diagonal_ms > 0.0) && r->block_rows == 0)
    return;
  put(w,
      "tuning          diagonal blocks %.3f ms, the GPU waited %.3f ms; %d "
      "block rows, %d sweeps, at most %d, %d solved directly\n",
      r->diagonal_ms, r->diagonal_wait_ms, r->block_rows, r->block_row_sweeps,
      r->block_row_sweeps_max, r->block_row_fallbacks);
}

static void put_forward_error(writer *w, const hone_report *r) {
  put(w, "forward error   at most %.1e: ", r->forward_error);
  if (r->digits > 0)
    put(w, "%d digit%s certain", r->digits, r->digits == 1 ? "" : "s");
  else
    put(w, "no digit certain");
  if (r->digits > 0 && r->bound_failure > 0.0)
    put(w, " but for a probability of %.0e", r->bound_failure);
  put(w, "\n");
}

static void put_place(writer *w, const hone_report *r) {
  put(w, "place          ");
  if (r->bad_row >= 0)
    put(w, " row %lld", (long long)r->bad_row);
  if (r->bad_col >= 0)
    put(w, "%s column %lld", r->bad_row >= 0 ? "," : "", (long long)r->bad_col);
  put(w, " (counted from 0)\n");
}

/* "unknowns 12 and 47 move together (weights 0.71, -0.71)", or "90 unknowns
   move together, most of all 3, 4 and 5 (...)". */
static void put_together(writer *w, const char *who, const char *what,
                         int64_t count, const int64_t *index,
                         const double *weight) {
  const int64_t listed = count < LISTED ? count : LISTED;
  put(w, "singular        ");
  if (count > listed)
    put(w, "%lld %s %s, most of all ", (long long)count, who, what);
  else
    put(w, "%s ", who);
  for (int64_t k = 0; k < listed; k++)
    put(w, "%s%lld", k == 0 ? "" : (k == listed - 1 ? " and " : ", "),
        (long long)index[k]);
  if (count <= listed)
    put(w, " %s", what);
  for (int64_t k = 0; k < listed; k++)
    put(w, "%s%.2g", k == 0 ? " (weights " : ", ", weight[k]);
  put(w, ")\n");
}

/* Names the unknowns and equations that make the matrix singular. */
static void put_singular(writer *w, const hone_report *r) {
  if (r->status != HONE_SINGULAR && r->status != HONE_ILL_CONDITIONED)
    return;
  if (r->null_count == 1)
    put(w, "singular        unknown %lld is not determined\n",
        (long long)r->null_index[0]);
  else if (r->null_count > 1)
    put_together(w, "unknowns", "move together", r->null_count, r->null_index,
                 r->null_weight);
  if (r->dependent_count == 1)
    put(w, "singular        equation %lld says nothing\n",
        (long long)r->dependent_index[0]);
  else if (r->dependent_count > 1)
    put_together(w, "equations", "depend on one another", r->dependent_count,
                 r->dependent_index, r->dependent_weight);
  if (r->min_pivot_row >= 0 && r->min_pivot_col >= 0)
    put(w, "singular        the smallest pivot is in row %lld, column %lld\n",
        (long long)r->min_pivot_row, (long long)r->min_pivot_col);
}

/* A text that ends at a zero or after size bytes; an empty one has no line. */
static void put_line(writer *w, const char *name, const char *text, int size) {
  if (text[0] != '\0')
    put(w, "%-15s %.*s\n", name, size, text);
}

static size_t write_text(const hone_report *report, char *buffer, size_t size) {
  writer w = {buffer, buffer != NULL ? size : 0, 0};
  hone_report all, *r = &all;
  put(&w, "%s", "");
  if (!read_report(report, r))
    return 0;
  put(&w, "status          %d, %s\n", r->status, hone_status_text(r->status));
  put(&w, "system          n %lld, %lld right-hand side%s, %lld accepted\n",
      (long long)r->n, (long long)r->nrhs, r->nrhs == 1 ? "" : "s",
      (long long)r->accepted);
  if (r->status >= 0 && r->nrhs > 0 && r->n > 0) {
    put(&w, "backward error  %.2e componentwise, %.2e normwise (limit %.2e)\n",
        r->backward_error, r->normwise_error, r->tolerance);
    put_forward_error(&w, r);
  }
  if (r->norm1 > 0.0)
    put_matrix(&w, r);
  if (r->bad_row >= 0 || r->bad_col >= 0)
    put_place(&w, r);
  put_singular(&w, r);
  put_line(&w, "path", r->path, sizeof r->path);
  put_line(&w, "reason", r->reason, sizeof r->reason);
  put_line(&w, "device", r->device, sizeof r->device);
  put(&w,
      "time            %.3f ms: inspect %.3f, factor %.3f, certify %.3f, "
      "refine %.3f, fallback %.3f\n",
      r->total_ms, r->inspect_ms, r->factor_ms, r->certify_ms, r->refine_ms,
      r->fallback_ms);
  put_tuning(&w, r);
  put(&w, "memory          %.1f MB on the host, %d passes over A\n",
      1e-6 * (double)r->host_bytes, r->host_passes);
  return w.length;
}

size_t hone_report_json(const hone_report *report, char *buffer, size_t size) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const size_t length = write_json(report, buffer, size);
  hone_guest_leave(&guest);
  return length;
}

size_t hone_report_text(const hone_report *report, char *buffer, size_t size) {
  hone_guest guest;
  hone_guest_enter(&guest);
  const size_t length = write_text(report, buffer, size);
  hone_guest_leave(&guest);
  return length;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of the statuses, from the list in hone.h. They are here because
   every floor above puts them into reasons. */
#include "api/hone.h"

const char *hone_status_text(int status) {
  switch (status) {
#define STATUS_CASE(name, number, text)                                        \
  case number:                                                                 \
    return text;
    HONE_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
  default:
    return "not a status of this library";
  }
}

# SPDX-License-Identifier: BSD-3-Clause
# Shows doxygen the plain comments on fields and constants of hone.h: one that
# follows a declaration belongs to it, one alone in an enumeration to the next.
# The list of statuses becomes the enumeration that the compiler sees, and an
# indented piece of a comment code.
code && !/^ \*     / { code = 0 ; print " * @endcode" }
/^ \*     / && blank && !code { code = 1 ; print " * @code" }
{ blank = /^ \*$/ || code }
/^#define HONE_STATUS_LIST/ { listing = 1 ; next }
listing {
  list = list $0
  listing = $0 ~ /\\$/
  next
}
/^typedef enum hone_status/ {
  print
  gsub(/\\/, "", list)
  n = split(list, entry, /X\(/)
  for (i = 2; i <= n; i++) {
    split(entry[i], part, /, */)
    text = entry[i]
    sub(/^[^"]*"/, "", text)
    sub(/"\) *$/, "", text)
    gsub(/" *"/, "", text)
    printf "  %s = %s, /**< %s */\n", part[1], part[2], text
  }
  skipping = 1
  next
}
skipping && !/^}/ { next }
/^(typedef )?(struct|enum)[^;]*\{/ { inside = 1; enumeration = /enum/ }
inside && /[,;a-z0-9A-Z] *\/\* / { sub(/\/\* /, "/**< ") }
inside && enumeration && /^ *\/\* / { sub(/\/\* /, "/** ") }
/^}/ { inside = skipping = 0 }
{ print }

# SPDX-License-Identifier: BSD-3-Clause
# A man page from one of our own Markdown texts: headings, paragraphs, lists,
# tables and code as they stand, `code`, **bold** and [links](to).
#
#   awk -v page=NAME -v section=7 -v version=0.1.0 -v name='what it is' \
#     -f markdown.awk TEXT.md

BEGIN {
  printf ".\\\" SPDX-License-Identifier: BSD-3-Clause\n"
  printf ".TH %s %s \"\" \"Hone %s\" Hone\n", toupper(page), section, version
  printf ".SH NAME\n%s \\- %s\n.SH DESCRIPTION\n", page, escape(name)
  tick = sprintf("%c", 96)
}

function escape(text) {
  gsub(/\\/, "\\(rs", text)
  gsub(/-/, "\\-", text)
  gsub(/\^/, "\\(ha", text)
  gsub(/~/, "\\(ti", text)
  gsub(/'/, "\\(aq", text)
  if (text ~ /^[.]/) text = "\\&" text
  return text
}

# between TEXT MARK: what stands between two marks in bold
function between(text, mark, out, at, rest) {
  while (at = index(text, mark)) {
    rest = substr(text, at + length(mark))
    if (!index(rest, mark)) break
    out = out substr(text, 1, at - 1) "\\fB" \
      substr(rest, 1, index(rest, mark) - 1) "\\fR"
    text = substr(rest, index(rest, mark) + length(mark))
  }
  return out text
}
function inline(text, at, to) {
  while (match(text, /\[[^]]+\]\([^)]*\)/)) {
    at = RSTART
    to = RSTART + RLENGTH
    match(substr(text, at), /\]/)
    text = substr(text, 1, at - 1) substr(text, at + 1, RSTART - 2) \
      substr(text, to)
  }
  return between(between(escape(text), tick), "**")
}
function code(on) {
  if (on == coding) return
  print on ? ".PP\n.EX" : ".EE"
  coding = on
}
# A paragraph is one text: what is marked may go over the end of a line.
function flush() {
  if (paragraph != "") print inline(paragraph)
  paragraph = ""
}

/^```/ {
  flush()
  fence = !fence
  code(fence)
  next
}
fence || /^    / && blank || /^    / && coding || /^\|/ {
  flush()
  code(1)
  if (!fence) sub(/^    /, "")
  print escape($0)
  next
}
{ code(0) }
/^ *$/ { flush() ; blank = 1 ; next }
/^# / { next }
/^## / { flush() ; print ".SH " toupper(inline(substr($0, 4))) ; next }
/^###+ / { flush() ; sub(/^#+ /, "") ; print ".SS " inline($0) ; next }
/^ *([-*]|[0-9]+\.) / {
  flush()
  mark = $1
  sub(/^ *[^ ]+ +/, "")
  print ".IP " (mark ~ /[0-9]/ ? mark " 4" : "\\(bu 2")
  item = 1
  blank = 0
}
blank && !/^ / { print ".PP" ; item = 0 }
{
  sub(/^ +/, "")
  paragraph = paragraph (paragraph == "" ? "" : " ") $0
  blank = 0
}
END { flush() ; code(0) }

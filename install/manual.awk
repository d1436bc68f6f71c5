# SPDX-License-Identifier: BSD-3-Clause
# Makes a man page from a template and the sources, so that what the page says
# of names, fields, values and texts is what the sources say.
#
#   awk -v version=0.1.0 -f manual.awk HEADERS solve_options.c TEMPLATE
#
# A template is a man page with lines of its own:
#   @synopsis NAME...  the declarations of functions or types
#   @doc NAME          the comment of a function, a struct or a header
#   @fields STRUCT     its fields, with their comments
#   @values OWNER      the constants of every field "OWNER.field", as sections
#   @status            the statuses with their texts
#   @usage             the options of the tool, from its usage text

FNR == 1 { part++ }
part < 3 { sub(/\r$/, "") }
part == 1 { header() ; next }
part == 2 { tool() ; next }
/^@/ { directive() ; next }
{ gsub(/@version@/, version) ; print }

# ---- Text into roff

function escape(text) {
  gsub(/\\/, "\\(rs", text)
  gsub(/-/, "\\-", text)
  gsub(/\^/, "\\(ha", text)
  gsub(/~/, "\\(ti", text)
  gsub(/'/, "\\(aq", text)
  gsub(/`/, "\\(ga", text)
  if (text ~ /^[.]/) text = "\\&" text
  return text
}
function bold(text) { return "\\fB" escape(text) "\\fR" }
function trim(text) {
  sub(/^[ \t]+/, "", text)
  sub(/[ \t]+$/, "", text)
  return text
}
function item(head, body) {
  return ".TP\n" bold(head) "\n" (body == "" ? "\\&" : escape(body)) "\n"
}

# ---- The header: comments, structs, enumerations, functions, statuses

function header() {
  if (comment) { comment_line($0) ; return }
  if ($0 ~ /^\/\*\*/) {
    doc = ""
    comment = 1
    comment_line(substr($0, 4))
    return
  }
  if ($0 ~ /^#define HONE_STATUS_LIST/) { statuses = 1 ; return }
  if (statuses) {
    status_text = status_text $0
    if ($0 !~ /\\$/) { statuses = 0 ; read_statuses() }
    return
  }
  if ($0 ~ /^typedef struct hone_[a-z_]+ \{/) begin($3, "struct")
  else if ($0 ~ /^enum \{/) begin(owner_of(doc), "enum")
  else if ($0 ~ /^(HONE_API|typedef) / && $0 !~ /enum/) declaration = 1
  if (declaration) {
    declared = declared (declared == "" ? "" : "\n") $0
    if ($0 ~ /;/) end_declaration()
    return
  }
  if (block != "") body_line($0)
}

# A line of a comment, without its decoration, behind the others.
function comment_line(text) {
  if (text ~ /\*\//) {
    comment = 0
    sub(/ *\*\/.*/, "", text)
  }
  if (!sub(/^ ?\* ?/, "", text)) text = trim(text)
  if (sub(/^@file +/, "", text)) { file_doc = text ; return }
  if (doc != "" || text !~ /^ *$/) doc = doc text "\n"
  if (!comment) {
    sub(/\n+$/, "\n", doc)
    if (file_doc != "") { docs[file_doc] = doc ; file_doc = "" }
  }
}

# options.layout, of a comment that has it at the start of a line
function owner_of(text, lines, n, i) {
  n = split(text, lines, "\n")
  for (i = 1; i <= n; i++)
    if (match(lines[i], /^ *(options|report|tuning)\.[a-z_]+/))
      return trim(substr(lines[i], 1, RLENGTH))
  return "nobody"
}

function begin(name, kind) {
  block = name
  block_kind = kind
  docs[name] = doc
  doc = ""
  if (kind == "enum") owners[++owner_count] = name
}

# One line of a struct or an enumeration.
function body_line(text) {
  if (text ~ /^(typedef )?(struct|enum)[^{]*\{/) sub(/^[^{]*\{/, "", text)
  if (text ~ /^\}/) { flush_member() ; block = "" ; return }
  last = text ~ /\};/
  sub(/\};.*/, "", text)
  text = trim(text)
  if (remark_open) { remark_line(text) ; return }
  if (text ~ /^\/\*/) flush_member() # alone: of what follows
  while (text != "") {
    if (text ~ /^\/\*/) {
      remark_line(trim(substr(text, 3)))
      break
    }
    flush_member()
    cut = index(text " /*", " /*")
    if (match(text, block_kind == "enum" ? "," : ";") && RSTART < cut)
      cut = RSTART
    member = trim(substr(text, 1, cut))
    sub(/[,;]$/, "", member)
    text = trim(substr(text, cut + 1))
  }
  if (last) { flush_member() ; block = "" }
}
function remark_line(text) {
  remark_open = text !~ /\*\//
  sub(/ *\*\/.*/, "", text)
  remark = remark (remark == "" ? "" : " ") trim(text)
  # Alone before a member of a struct, it speaks of several.
  if (!remark_open && member == "" && block_kind == "struct") {
    bodies[block] = bodies[block] ".PP\n" escape(remark) "\n"
    remark = ""
  }
}
function flush_member() {
  if (member == "") return
  bodies[block] = bodies[block] item(member, remark)
  member = remark = ""
}

function end_declaration(name) {
  declaration = 0
  if (declared ~ /^HONE_API/) {
    sub(/^HONE_API /, "", declared)
    gsub(/\n         /, "\n", declared)
  }
  if (match(declared, /hone_[a-z0-9_]+\)?\(/))
    name = substr(declared, RSTART, RLENGTH)
  else if (match(declared, /hone_[a-z_]+;/))
    name = substr(declared, RSTART, RLENGTH)
  gsub(/[();]/, "", name)
  declarations[name] = declared
  docs[name] = doc != "" ? doc : docs[last_declared]
  last_declared = name
  declared = doc = ""
}

function read_statuses(list, n, i, text, parts) {
  gsub(/\\/, "", status_text)
  n = split(status_text, list, /X\(/)
  for (i = 2; i <= n; i++) {
    split(list[i], parts, /, */)
    text = list[i]
    sub(/^[^"]*"/, "", text)
    sub(/"\) *$/, "", text)
    gsub(/" *"/, "", text)
    status_items = status_items item(trim(parts[1]) " (" parts[2] ")", text)
  }
}

# ---- The tool: its usage text

function tool() {
  if ($0 ~ /^static const char usage\[\]/) usage = 1
  else if (usage && match($0, /^ *".*"/)) {
    text = $0
    sub(/^ *"/, "", text)
    sub(/(\\n)?";?$/, "", text)
    usage_line(text)
  }
  if (usage && $0 ~ /;$/) usage = 0
}
function usage_line(text, cut, option) {
  if (text ~ /^  --/) {
    flush_usage()
    text = trim(text)
    cut = match(text, /  +/)
    usage_option = cut ? substr(text, 1, cut - 1) : text
    usage_text = cut ? trim(substr(text, cut)) : ""
  } else if (usage_option != "" && text ~ /^   /)
    usage_text = usage_text " " trim(text)
  else
    flush_usage()
}
function flush_usage() {
  if (usage_option != "") usages = usages item(usage_option, usage_text)
  usage_option = usage_text = ""
}

# ---- The template's own lines

function missing(what) {
  printf "manual.awk: %s: no %s\n", FILENAME, what >"/dev/stderr"
  failed = 1
  exit 1
}
function directive(i, n, count, text) {
  if ($1 == "@synopsis") {
    for (i = 2; i <= NF; i++) {
      if (!($i in declarations)) missing($i)
      print_code(declarations[$i])
    }
  } else if ($1 == "@doc") {
    if (!($2 in docs)) missing("comment of " $2)
    print_doc(docs[$2])
  } else if ($1 == "@fields") {
    if (!($2 in bodies)) missing($2)
    printf "%s", bodies[$2]
  } else if ($1 == "@values") {
    for (i = 1; i <= owner_count; i++)
      if (index(owners[i], $2 ".") == 1) {
        printf ".SS %s\n", owners[i]
        text = docs[owners[i]]
        gsub(owners[i] "(: |\n)", "", text)
        print_doc(text)
        printf "%s", bodies[owners[i]]
        count++
      }
    if (!count) missing("values of " $2)
  } else if ($1 == "@status") {
    if (status_items == "") missing("statuses")
    printf "%s", status_items
  } else if ($1 == "@usage") {
    if (usages == "") missing("usage text")
    printf "%s", usages
  } else
    missing("meaning of " $1)
}

function print_code(text, lines, n, i) {
  n = split(text, lines, "\n")
  print ".nf"
  for (i = 1; i <= n; i++) print bold(lines[i])
  print ".fi\n.sp"
}

# A comment: paragraphs; @param and @return; indented lines as they stand.
function print_doc(text, lines, n, i, line, within, words) {
  n = split(text, lines, "\n")
  print ".PP"
  for (i = 1; i < n; i++) {
    line = lines[i]
    if (line ~ /^@param/) {
      split(line, words, / +/)
      sub(/^@param +[a-z0-9_]+ */, "", line)
      printf ".TP\n\\fI%s\\fR\n%s\n", words[2], escape(line)
      within = "item"
    } else if (line ~ /^@return/) {
      sub(/^@return/, "Returns", line)
      print ".PP\n" escape(line) (lines[i + 1] ~ /^ *[a-z]/ ? "" : ".")
      within = "item"
    } else if (line ~ /^ *$/) {
      if (within == "code") print ".EE"
      print ".PP"
      within = ""
    } else if (line ~ /^ ( |   )/ && within != "item") {
      if (within != "code") print ".EX"
      within = "code"
      print escape(line)
    } else {
      if (within == "code") { print ".EE" ; within = "" }
      print escape(trim(line))
    }
  }
  if (within == "code") print ".EE"
}

# SPDX-License-Identifier: BSD-3-Clause
# Writes Ninja statements from the file sources, which explains its format.
#
# usage: awk -v edition=native|fuzz|emulated|complex -v found='WORD...' \
#            [-v groups='NAME...'] -f sources.awk sources
#
# found is what ./configure found. All programs of the edition are written
# that this allows, with all that they link, and the groups that are named;
# a program that cannot be built becomes a statement that says what it needs.

function fail(why) {
  printf "sources:%d: %s\n", FNR, why | "cat >&2"
  broken = 1
  exit 1
}

# Takes the conditions in brackets out of line and returns the first that
# does not hold, or nothing.
function conditions(    word, lacking) {
  while (match(line, /\[[^]]*\]/)) {
    word = substr(line, RSTART + 1, RLENGTH - 2)
    line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
    if (word == "c++" || word == "gtest" || word == "nvcc") is_cxx[here] = 1
    if (word == "lapack") takes_lapack[here] = 1
    if (word == "apart") is_apart = 1
    else if (word == "host") is_host = 1
    else if (sub(/^no /, "", word) ? has[word] : !has[word])
      if (lacking == "") lacking = word
  }
  return lacking
}

BEGIN {
  n = split(found, word, " ")
  for (i = 1; i <= n; i++) has[word[i]] = 1
  tool["c++"] = "a C++ compiler (Debian: g++)"
  tool["gtest"] = "a C++ compiler and GoogleTest (Debian: g++, libgtest-dev)"
  tool["lapack"] = "a LAPACK (Debian: libopenblas-dev)"
  tool["gmp"] = "GMP (Debian: libgmp-dev)"
  tool["nvcc"] = "the CUDA toolkit and a C++ compiler"
  tool["libfuzzer"] = "clang with libFuzzer (Debian 12: clang and" \
    " libclang-rt-14-dev)"
  print "# Written by ./configure from the file sources."
}

/^[ \t]*(#|$)/ { next }

# A line that ends in $ goes on in the next.
{
  while (sub(/ \$$/, "")) {
    whole = $0
    if ((getline) <= 0) fail("the last line goes on")
    sub(/^[ \t]+/, "")
    $0 = whole " " $0
  }
}

# ---- A section begins

/^[a-z]/ {
  line = $0
  is_apart = 0
  here = $2
  sub(/:$/, "", here)
  lacking = conditions()
  colon = index(line, ":")
  after = colon ? substr(line, colon + 1) : ""
  n = split(colon ? substr(line, 1, colon - 1) : line, word, " ")
  if (word[1] !~ /^(archive|objects|merged|program)$/ || n < 2)
    fail("what is " $0 "?")
  if (here in kind) fail(here " is there twice")
  kind[here] = word[1]
  uses[here] = after
  lacks[here] = lacking
  apart[here] = is_apart
  belongs[here] = n == 4 && word[3] == "in" ? word[4] : "native"
  names[++sections] = here
  next
}

# ---- A line of a section

/^[ \t]+[a-z]+ =/ {
  line = $0
  sub(/^[ \t]+/, "", line)
  value = line
  sub(/^[a-z]+ = */, "", value)
  if (line ~ /^flags =/) flags[here] = value " "
  else if (line ~ /^needs =/) needs[here] = value
  else bindings[here] = bindings[here] "  " line "\n"
  next
}

{
  line = $0
  is_host = 0
  if (conditions() != "" || lacks[here] != "") next
  n = split(line, word, " ")
  if (word[1] ~ /\.cu$/ && !has["cuda"]) next
  object = word[1]
  sub(/\.[a-z]+$/, "", object)
  first = 2
  if (word[2] == "->") {
    sub(/[^\/]*$/, word[3], object)
    first = 4
  }
  if (object in listed) fail(object ": two sources of this name")
  listed[object] = 1
  k = ++count[here]
  source[here, k] = word[1]
  object_of[here, k] = object
  extra[here, k] = word[1] ~ /\.cu$/ ? "" : flags[here]
  for (i = first; i <= n; i++) extra[here, k] = extra[here, k] word[i] " "
  host[here, k] = is_host && has["cuda_headers"]
  if (word[1] ~ /\.cu$/) has_cuda_source[here] = 1
}

# ---- What Ninja reads

# Is it built here? Of the emulated edition, what has no .cu file in it is the
# ordinary build's.
function own(name,    n, i, part) {
  if (foreign(name)) return 0
  if (edition != "emulated" || has_cuda_source[name]) return 1
  if (kind[name] != "merged") return 0
  n = split(uses[name], part, " ")
  for (i = 1; i <= n; i++) if (own(part[i])) return 1
  return 0
}

function object_path(name, k) {
  return (edition != "emulated" || source[name, k] ~ /\.cu$/ ? "$o/" : "$b/") \
    object_of[name, k] ".o"
}

function objects(name,    k, text) {
  for (k = 1; k <= count[name]; k++)
    text = text " $\n    " object_path(name, k)
  return text
}

# An archive of another edition, which that one makes.
function foreign(name) { return name ~ /^complex\// }

function reference(name) {
  if (foreign(name)) return " $\n    $b/" name ".a"
  if (kind[name] == "objects") return objects(name)
  if (kind[name] == "archive" && !count[name]) return ""
  return " $\n    " (own(name) ? "$o/" : "$b/") name ".a"
}

function compile(name,    k, rule, file) {
  for (k = 1; k <= count[name]; k++) {
    file = source[name, k]
    if (edition == "emulated" && file !~ /\.cu$/) continue
    rule = file ~ /\.c$/ ? "cc" : file ~ /\.cc$/ ? "cxx" : \
      edition == "emulated" ? "emulate" : host[name, k] ? "cuda_host" : "nvcc"
    printf "build %s: %s %s\n", object_path(name, k), rule, file
    if (extra[name, k] != "")
      printf "  extra = %s%s\n", extra[name, k], \
        extra[name, k] ~ /_ISA=/ ? "$unchecked" : ""
  }
}

function write(name,    n, i, part, text) {
  if (written[name]++ || foreign(name)) return
  if (!(name in kind)) fail("no section is called " name)
  n = split(uses[name], part, " ")
  for (i = 1; i <= n; i++) {
    write(part[i])
    text = text reference(part[i])
  }
  compile(name)
  if (kind[name] == "archive" && count[name] && own(name))
    printf "build $o/%s.a: ar%s\n", name, objects(name)
  if (kind[name] == "merged" && own(name))
    printf "build $o/%s.a: merge%s\n", name, text
  if (kind[name] == "program") {
    printf "build $b/%s: link%s%s%s\n%s", name, objects(name), text, \
      needs[name] != "" ? " | " needs[name] : "", bindings[name]
    if (is_cxx[name]) print "  cc = $cxx"
    if (takes_lapack[name] && bindings[name] !~ /(^|\n)  libs =/)
      print "  libs = $blas_libs $libs"
  }
}

END {
  if (broken) exit 1
  for (s = 1; s <= sections; s++) {
    name = names[s]
    if (kind[name] != "program" || belongs[name] != edition) continue
    if (lacks[name] != "") {
      printf "build $b/%s: missing\n  tool = %s\n", name, tool[lacks[name]]
      continue
    }
    write(name)
    if (!apart[name]) all = all " $\n    $b/" name
  }
  n = split(groups, word, " ")
  for (i = 1; i <= n; i++) {
    write(word[i])
    all = all reference(word[i])
  }
  if (all != "") printf "build $b/%s-built: phony%s\n", edition, all
}

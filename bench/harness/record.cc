/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics, tables and the record; see record.h. */
#include "bench/harness/record.h"

#include "bench/harness/systems.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>

std::string text(const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

/* ---- statistics ---- */

Spread spread(const std::vector<double> &values) {
  std::vector<double> ran;
  for (double v : values)
    if (!std::isnan(v))
      ran.push_back(v);
  if (ran.empty())
    return {NAN, NAN, NAN, 0};
  int count = static_cast<int>(ran.size());
  double middle = median(ran.data(), count);
  return {ran.front(), middle, ran.back(), count};
}

Spread ratio(const Method &a, const Method &b) {
  std::vector<double> ratios;
  for (size_t k = 0; k < a.ms.size() && k < b.ms.size(); k++)
    ratios.push_back(a.ms[k] / b.ms[k]);
  return spread(ratios);
}

const Method *fastest(const std::vector<Method> &methods, Group group) {
  const Method *best = nullptr;
  for (const Method &m : methods)
    if (m.group == group && spread(m.ms).count > 0 && m.error <= 1e-9 &&
        (best == nullptr || spread(m.ms).median < spread(best->ms).median))
      best = &m;
  return best;
}

/* ---- tables ---- */

std::string figure(double value, const char *format) {
  char buffer[64];
  snprintf(buffer, sizeof buffer, format, value);
  return std::isfinite(value) ? buffer : "-";
}

std::string text_of(const Spread &s, const char *format) {
  if (s.count == 0)
    return "-";
  char part[3][32];
  const double values[3] = {s.median, s.low, s.high};
  for (int k = 0; k < 3; k++)
    snprintf(part[k], sizeof part[k], format, values[k]);
  return std::string(part[0]) + " (" + part[1] + " .. " + part[2] + ")";
}

namespace {

/* Replaces characters that would end a cell of the table. */
std::string cell(const std::string &value) {
  std::string safe = value;
  for (char &letter : safe)
    if (letter == '|' || letter == '\n')
      letter = '/';
  return safe;
}

std::string remarks(const Method &m) {
  std::string all = m.note;
  if (!m.skipped.empty())
    all += (all.empty() ? "skipped: " : "; skipped: ") + m.skipped;
  if (!m.failed.empty())
    all += (all.empty() ? "failed: " : "; failed: ") + m.failed;
  return cell(all);
}

} // namespace

void print_table(const std::string &title, const std::vector<Method> &methods,
                 size_t reference, const char *error_name) {
  printf("\n### %s\n\n", title.c_str());
  printf("| %-28s | ms: median (min .. max)   | time / %s's (min .. max) | "
         "rounds | "
         "%s | accepted | |\n",
         "method", methods[reference].name.c_str(), error_name);
  printf("|---|---|---|---|---|---|---|\n");
  for (const Method &m : methods) {
    bool checked = m.checked > 0;
    printf("| %-28s | %-25s | %-21s | %2d | %-7s | %-3s | %s |\n",
           m.name.c_str(), text_of(spread(m.ms), "%.4g").c_str(),
           text_of(ratio(m, methods[reference]), "%.2f").c_str(),
           spread(m.ms).count, checked ? text("%.1e", m.error).c_str() : "-",
           !checked     ? "-"
           : m.accepted ? "yes"
                        : "NO",
           remarks(m).c_str());
  }
  fflush(stdout);
}

void print_summary(const Summary &summary) {
  if (summary.rows.empty())
    return;
  std::string rule;
  for (char letter : summary.header)
    rule += letter == '|' ? "|---" : "";
  rule.resize(rule.size() - 3); /* none after the last bar */
  printf("\n## %s\n\n%s\n%s\n", summary.title.c_str(), summary.header.c_str(),
         rule.c_str());
  for (const std::string &row : summary.rows)
    printf("%s\n", row.c_str());
  fflush(stdout);
}

/* ---- JSON ---- */

std::string json_string(const std::string &text) {
  std::string out = "\"";
  for (char letter : text) {
    if (letter == '"' || letter == '\\')
      out += '\\';
    if (static_cast<unsigned char>(letter) >= 0x20)
      out += letter;
  }
  return out + '"';
}

std::string json_number(double value) {
  return std::isfinite(value) ? text("%.6g", value) : "null";
}

namespace {

std::string json_method(const Method &m, const Method &reference) {
  std::string out =
      "{\"name\": " + json_string(m.name) +
      ", \"batch\": " + std::to_string(m.batch) +
      ", \"median_ms\": " + json_number(spread(m.ms).median) +
      ", \"median_ratio\": " + json_number(ratio(m, reference).median) +
      ", \"checked\": " + std::to_string(m.checked) +
      ", \"error\": " + (m.checked > 0 ? json_number(m.error) : "null") +
      ", \"accepted\": " + (m.checked > 0 && m.accepted ? "true" : "false");
  const std::pair<const char *, const std::string *> texts[] = {
      {"note", &m.note}, {"skipped", &m.skipped}, {"failed", &m.failed}};
  for (const auto &t : texts)
    if (!t.second->empty())
      out += std::string(", \"") + t.first + "\": " + json_string(*t.second);
  out += ",\n    \"ms\": [";
  for (size_t k = 0; k < m.ms.size(); k++)
    out += (k > 0 ? ", " : "") + json_number(m.ms[k]);
  out += "]";
  std::string report = m.report ? m.report() : "";
  return out + (report.empty() ? "" : ",\n    " + report) + "}";
}

} // namespace

/* bench/report/records.py reads this layout. Whoever changes the layout changes
   the name of the format in both. */
Record::Record(std::string file) : file_(std::move(file)) {
  set("format", json_string("hone-bench/1"));
}

void Record::set(const std::string &key, const std::string &value) {
  for (auto &entry : head_)
    if (entry.first == key) {
      entry.second = value;
      return;
    }
  head_.emplace_back(key, value);
}

void Record::add(const std::string &fields, const std::vector<Method> &methods,
                 size_t reference) {
  std::string row = "  {" + fields + ",\n   \"methods\": [";
  const char *between = "";
  for (const Method &m : methods) {
    row += between + json_method(m, methods[reference]);
    between = ",\n   ";
  }
  add_row(row + "]}");
}

void Record::add_row(const std::string &json) {
  rows_.push_back(json);
  if (!save())
    perror(file_.c_str());
}

bool Record::save() const {
  if (file_.empty())
    return true;
  std::string fresh = file_ + ".new";
  FILE *f = fopen(fresh.c_str(), "w");
  if (f == nullptr)
    return false;
  const char *between = "{";
  for (const auto &entry : head_) {
    fprintf(f, "%s%s: %s", between, json_string(entry.first).c_str(),
            entry.second.c_str());
    between = ",\n ";
  }
  fprintf(f, "%s\"rows\": [", between);
  between = "\n";
  for (const std::string &row : rows_) {
    fprintf(f, "%s%s", between, row.c_str());
    between = ",\n";
  }
  fprintf(f, "]}\n");
  bool written = ferror(f) == 0;
  written = fclose(f) == 0 && written;
  return written && rename(fresh.c_str(), file_.c_str()) == 0;
}

/* ---- time left ---- */

Budget::Budget(double seconds)
    : end_s_(seconds > 0.0 ? now_s() + seconds
                           : std::numeric_limits<double>::infinity()) {}

bool Budget::affords(const std::string &name, int64_t n) const {
  double expected = 0.0;
  auto last = last_.find(name);
  if (last != last_.end())
    expected =
        last->second.second *
        pow(static_cast<double>(n) / static_cast<double>(last->second.first),
            2.5);
  return now_s() + expected <= end_s_;
}

void Budget::took(const std::string &name, int64_t n, double seconds) {
  last_[name] = {n, seconds};
}

std::string first_line(const char *command) {
  char line[256] = "";
  FILE *f = popen(command, "r");
  std::string found = "unknown";
  if (f != nullptr && fgets(line, sizeof line, f) != nullptr)
    found = line;
  if (f != nullptr)
    pclose(f);
  return found.substr(0, found.find('\n'));
}

std::string command_of(int argc, char **argv) {
  const auto bare = [](const std::string &path) {
    return path.substr(path.rfind('/') + 1);
  };
  std::string command = bare(argv[0]);
  for (int i = 1; i < argc; i++) {
    const bool record = std::string(argv[i - 1]) == "--json";
    command += " " + (record ? bare(argv[i]) : std::string(argv[i]));
  }
  return command;
}

std::string commit_of(const std::string &given) {
  const char *const told = getenv("HONE_COMMIT");
  if (!given.empty())
    return given;
  if (told != nullptr && told[0] != 0)
    return told;
  return first_line(
      "exec 2>/dev/null; c=$(git rev-parse --verify -q HEAD) && { git diff "
      "--quiet HEAD && printf %s \"$c\" || printf 'unknown (%s, modified)' "
      "\"$c\"; }");
}

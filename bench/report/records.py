# SPDX-License-Identifier: BSD-3-Clause
"""Reads and checks records, the files of results, and computes medians, ratios
and the like.

A file that cannot be used raises RecordError, whose text names the file and
says why. Nothing here draws or prints. Read next: guard, pictures.py.
"""

import json
import math
import re

BENCH = 'hone-bench/1'
CAMPAIGN = 'hone-campaign/1'

# An answer is accepted up to a backward error of 4 eps, eps = 2^-53.
LIMIT = 4.0 * 2.0 ** -53


class RecordError(Exception):
    """The file is not a record, or not one that this program reads."""


def _no_constant(name):
    raise ValueError(f'{name} is not JSON')


def _read(path):
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f'{path}: cannot be read: {error}') from None
    if not text.strip():
        raise RecordError(f'{path}: is empty')
    try:
        return json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        end = text.rstrip()  # a record is one object
        cut = end[0] == '{' and (end[-1] != '}' or error.pos >= len(end))
        what = 'is cut off' if cut else 'is not JSON'
        raise RecordError(f'{path}: {what}: {error.msg}, line {error.lineno}'
                          f' column {error.colno}') from None
    except (ValueError, RecursionError) as error:
        raise RecordError(f'{path}: is not JSON: {error}') from None


def _is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))


def _check_method(where, method):
    if not isinstance(method, dict) or not isinstance(method.get('name'), str):
        raise RecordError(f'{where}: there is a method without a name')
    where += f', {method["name"]}'
    times = method.get('ms', [])
    if not isinstance(times, list) or not all(
            t is None or (_is_number(t) and t >= 0.0) for t in times):
        raise RecordError(f'{where}: "ms" is not a list of times')
    if not isinstance(method.get('accepted', False), bool):
        raise RecordError(f'{where}: "accepted" is neither true nor false')
    error = method.get('error')
    if error is not None and not _is_number(error):
        raise RecordError(f'{where}: "error" is not a number')
    for key in ('factor_ms', 'refine_ms'):
        parts = method.get(key, [])
        if not isinstance(parts, list) or not all(
                t is None or _is_number(t) for t in parts):
            raise RecordError(f'{where}: "{key}" is not a list of times')
    for key in ('paper_ms', 'paper_refine_ms', 'paper_iterations',
                'iterations', 'diagonals', 'diagonal_sweeps', 'pairs',
                'pair_sweeps'):
        if method.get(key) is not None and not _is_number(method[key]):
            raise RecordError(f'{where}: "{key}" is not a number')
    steps = method.get('history', [])
    if not isinstance(steps, list) or not all(
            isinstance(s, dict) and _is_number(s.get('iteration'))
            and (s.get('backward_error') is None
                 or _is_number(s['backward_error'])) for s in steps):
        raise RecordError(f'{where}: "history" is not a list of corrections')


def _check_gallery(where, row):
    answers = row.get('answers')
    lists = answers.values() if isinstance(answers, dict) else []
    if not lists or not all(isinstance(v, list) for v in lists) \
            or len({len(v) for v in lists}) != 1:
        raise RecordError(f'{where}: "answers" is not a table')
    for name in ('n', 'status', 'hone'):
        if name not in answers:
            raise RecordError(f'{where}: "answers" has no "{name}"')
    for name in ('n', 'status', 'hone', 'dgesv', 'dsgesv'):
        if not all(v is None or _is_number(v) for v in answers.get(name, [])):
            raise RecordError(f'{where}: "{name}" is not a list of numbers')


def _check_rows(path, rows):
    if not isinstance(rows, list):
        raise RecordError(f'{path}: "rows" is missing; was the file cut off?')
    for number, row in enumerate(rows, 1):
        where = f'{path}: row {number}'
        if not isinstance(row, dict) or not isinstance(
                row.get('section'), str):
            raise RecordError(f'{where}: names no section')
        if 'answers' in row:
            _check_gallery(where, row)
            continue
        if not isinstance(row.get('methods'), list):
            raise RecordError(f'{where}: has no methods')
        for key in ('n', 'nrhs', 'threads', 'floor_ms', 'b', 'precision'):
            if row.get(key) is not None and not _is_number(row[key]):
                raise RecordError(f'{where}: "{key}" is not a number')
        parts = row.get('parts', {})
        if not isinstance(parts, dict) or not all(
                map(_is_number, [*parts.values(), row.get('parts_of_ms', 0)])):
            raise RecordError(f'{where}: "parts" is not a table of times')
        for method in row['methods']:
            _check_method(where, method)


def _check_fits(path, fits):
    if not isinstance(fits, list) or not all(
            isinstance(f, dict) and all(
                _is_number(f.get(k, 0)) for k in (
                    'n', 'from', 'to', 'points', 'accepted', 'exponent',
                    'standard_error')) for f in fits):
        raise RecordError(f'{path}: "fits" is not a list of exponents')


def load(path):
    """Returns the record in a file, with the file's name under 'file'."""
    record = _read(path)
    if not isinstance(record, dict):
        raise RecordError(f'{path}: is JSON, but no record')
    form = record.get('format')
    if form is None:
        raise RecordError(f'{path}: has no "format"; it is not a record of the '
                          'benchmarks or the campaign, or is older than format '
                          '1; measure again')
    if form not in (BENCH, CAMPAIGN):
        raise RecordError(f'{path}: is in format {json.dumps(form)}; this '
                          f'program reads {BENCH} and {CAMPAIGN}')
    if form == BENCH:
        _check_rows(path, record.get('rows'))
        _check_fits(path, record.get('fits', []))
    elif not isinstance(record.get('families'), list) or not all(
            isinstance(f, dict) and isinstance(f.get('family'), str)
            for f in record['families']):
        raise RecordError(f'{path}: "families" is missing; was the file cut '
                          'off?')
    record['file'] = path
    if 'program' in record:  # the folders of another machine say nothing
        record['program'] = re.sub(r'(--json )\S*/', r'\1',
                                   str(record['program']))
    return record


# ---- Series of times


def place(row):
    """Returns what identifies a row in its table. In sections with several rows
    of one order, each for one method, the method's name is a part of it."""
    names = [m.get('name') for m in row.get('methods', [])]
    several = row['section'] in ('forms', 'phases')
    return (row['section'], str(row.get('kind')), *(
        row.get(k) for k in ('n', 'nrhs', 'threads', 'busy', 'cpus', 'b',
                             'precision')),
        *(names[:1] if several else []))


def _ran(row):
    return 'answers' in row or any(times(m) for m in row.get('methods', []))


def joined(paths, any_commit=False):
    """Returns one record of several of the same machine and, unless any_commit
    is true, of the same commit. If two have the same row, the later one is
    taken, if it has times."""
    whole = load(paths[0])
    keys = ['format', 'device', 'host'] + ([] if any_commit else ['commit'])
    for path in paths[1:]:
        more = load(path)
        for key in keys:
            if more.get(key) != whole.get(key):
                raise RecordError(f'{path}: not of the same {key} as '
                                  f'{paths[0]}')
        if 'rows' not in whole:
            raise RecordError(f'{path}: only records of times can be joined')
        told = {k: str(more.get(k, 'unknown'))
                for k in ('program', 'date', 'commit')}
        fresh = [{**told, **r} for r in more['rows']]
        ran = {place(r) for r in fresh if _ran(r)}
        there = {place(r) for r in whole['rows'] if place(r) not in ran}
        whole['rows'] = [r for r in whole['rows'] if place(r) in there] + [
            r for r in fresh if place(r) not in there]
        # These were fitted to the rows of one run.
        for key in ('fits', 'crossovers'):
            whole.pop(key, None)
        if whole.get('commit') != more.get('commit'):
            own = str(whole.get('commit', 'unknown'))
            whole['rows'] = [{'commit': own, **r} for r in whole['rows']]
            whole['commit'] = 'unknown: several, each row has its own'
    return whole


def times(method):
    """Returns the times of the rounds that ran."""
    return [t for t in method.get('ms', []) if t is not None]


def middle(values):
    """Returns the median, or None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return 0.5 * (ordered[half - 1] + ordered[half])


def interval(values):
    """Returns a 95 % confidence interval of the median for any distribution:
    from the k-th smallest to the k-th largest value, where k is the largest
    number with P(binomial(count, 1/2) < k) <= 2.5 %. With few values it is from
    the smallest to the largest (5 values: 94 %)."""
    ordered = sorted(values)
    count = len(ordered)
    below, k = 0.0, 0
    while k < count // 2:
        below += math.comb(count, k) / 2.0 ** count
        if not below <= 0.025:
            break
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[count - k]


def ratio(method, reference):
    """Returns the median ratio of the method's times to the reference's, over
    the rounds where both ran."""
    return middle([a / b for a, b in zip(method.get('ms', []),
                                         reference.get('ms', []))
                   if a is not None and b is not None and b > 0.0])


def rows(record, section, kind=None):
    """Returns the rows of a section that have times, in order of n."""
    found = [r for r in record.get('rows', [])
             if r['section'] == section and kind in (None, r.get('kind'))
             and any(times(m) for m in r.get('methods', []))]
    return sorted(found, key=lambda r: (r.get('n') or 0, r.get('nrhs') or 0,
                                        r.get('threads') or 0))


def find(row, name):
    """Returns the method of that name if it has times, else None."""
    for method in row['methods']:
        if method['name'] == name and times(method):
            return method
    return None


def is_ours(method):
    """Tells whether the method is this library's."""
    return method['name'].startswith('Hone')


def is_pinned(method):
    """Tells whether A was in page-locked memory."""
    return method['name'].startswith('pinned: ')


def best(methods, counted):
    """Returns the fastest method; if counted is true, of those with accepted
    answers. None if there is none."""
    able = [m for m in methods if times(m) and
            (m.get('accepted') or not counted)]
    return min(able, key=lambda m: middle(times(m)), default=None)


# ---- How cost grows


def exponent(points):
    """Returns p of t = c x^p, fitted by least squares of the logarithms; None
    with fewer than two different x."""
    logs = [(math.log(x), math.log(t)) for x, t in points if x > 0 and t > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mx = sum(x for x, _ in logs) / len(logs)
    mt = sum(t for _, t in logs) / len(logs)
    return (sum((x - mx) * (t - mt) for x, t in logs)
            / sum((x - mx) ** 2 for x, _ in logs))


def crossover(points):
    """Returns (n0, n1, n) where a ratio that falls with n passes 1 for the last
    time: it is above 1 at n0, not at n1, and n is interpolated linearly in
    logarithms. points are (n, ratio) in order of n. None if it does not."""
    for (n0, r0), (n1, r1) in reversed(list(zip(points, points[1:]))):
        if not r1 <= 1.0:
            return None
        if r0 > 1.0:
            part = math.log(r0) / (math.log(r0) - math.log(r1))
            return n0, n1, n0 * (n1 / n0) ** part
    return None

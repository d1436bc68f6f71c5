# SPDX-License-Identifier: BSD-3-Clause
"""Pictures with stacked bars of where the time goes; see pictures.py."""

import axes
import chart
import records

PHASES = (('inspect_ms', 'inspect, scale', 's5'),
          ('factor_ms', 'factor', 's1'),
          ('fallback_ms', 'factor again', 's4'),
          ('certify_ms', 'certify', 's3'),
          ('refine_ms', 'refine', 's2'),
          ('rest', 'rest', 'soft'))


def phase_times(method):
    """Returns the milliseconds of each phase of a method's solve, or None."""
    reports = [method[k] for k in ('factor', 'solve') if k in method]
    total = sum(r.get('total_ms') or 0.0 for r in reports)
    if not total > 0.0:
        return None
    times = {key: sum(r.get(key) or 0.0 for r in reports)
             for key, _, _ in PHASES}
    times['rest'] = max(0.0, total - sum(times.values()))
    return times


def _phase_rows(record):
    found = []
    for section in ('solve', 'small'):
        for row in records.rows(record, section, axes.kind(record, section)):
            method = (records.find(row, 'Hone kept')
                      or records.find(row, 'Hone CUDA kept')
                      or records.find(row, 'Hone once'))
            times = method and phase_times(method)
            if times and row['n'] >= 64 and row['n'] not in [
                    n for n, _ in found]:
                found.append((row['n'], times))
    return sorted(found)[-9:]


def _bars(rows, colours, narrow, title):
    """Draws a stacked bar of shares for each (label, {part: ms}, note)."""
    height = 92 + 30 * len(rows)
    ticks = [(k + 0.5, label) for k, (label, _, _) in enumerate(rows)]
    left = max([52] + [chart.width(label) + 12 for label, _, _ in rows])
    picture = axes.base(narrow, chart.Axis(0.0, 100.0, 0, [
        (v, f'{v} %') for v in range(0, 101, 25)], 'share of the time'),
        chart.Axis(0.0, len(rows) + 0.75, 0, ticks, title), height=height,
        right=76, top=22, left=left)
    at = [0.0] * len(rows)
    seen = {}
    for part, colour in colours:
        boxes = []
        for k, (_, times, _) in enumerate(rows):
            share = 100.0 * times.get(part, 0.0) / sum(times.values())
            boxes.append((at[k], at[k] + share, k + 0.12, k + 0.88))
            if k == len(rows) - 1 and share > 0.5:
                seen[part] = (at[k] + 0.5 * share, share, colour)
            at[k] += share
        picture.boxes(boxes, colour, part)
    _name_bars(picture, seen, len(rows) + 0.3)
    for k, (_, _, note) in enumerate(rows):
        picture.text(101.5, k + 0.5, note)
    return picture


def _name_bars(picture, seen, y):
    """Writes the names over the topmost bar's parts, moved apart. If there is
    no room for all, the names of the smallest parts are left out; hovering
    shows them."""
    wide = picture.width - picture.left - picture.right
    low = -100.0 * (picture.left - 12) / wide
    high = 100.0 + 100.0 * (picture.right - 8) / wide
    gap = 100.0 * 9 / wide

    def half(name):
        return 50.0 * chart.width(name) / wide
    names = sorted(seen, key=lambda n: seen[n][0])
    while sum(2 * half(n) + gap for n in names) > high - low:
        names.remove(min(names, key=lambda n: seen[n][1]))
    at = {}
    for name in names:  # from the left, then back from the right
        at[name] = max(seen[name][0], low + half(name))
        low = at[name] + half(name) + gap
    for name in reversed(names):
        at[name] = min(at[name], high - half(name))
        high = at[name] - half(name) - gap
        picture.text(at[name], y, name, seen[name][2], 'center')


def phases(record, narrow=False):
    """Draws the shares of the phases of one solve, a bar for each n."""
    rows = _phase_rows(record)
    if not rows:
        return None
    named = {key: label for key, label, _ in PHASES}
    picture = _bars(
        [(axes.short(n), {named[k]: v for k, v in times.items()},
          axes.figure(sum(times.values()))) for n, times in rows],
        [(label, colour) for _, label, colour in PHASES], narrow, 'n')
    return picture, (
        'Where the time of one solve goes, by n, as the library reports it for '
        'the last round; the whole time is at the right. On a GPU, factor '
        'includes copying A to the device.')


def inside(record, narrow=False):
    """Draws the shares of the parts of the factorization, if measured."""
    rows = []
    for row in records.rows(record, 'phases'):
        parts = row.get('parts')
        name = row['methods'][0]['name']
        if isinstance(parts, dict) and sum(parts.values()) > 0.0:
            label = axes.short(row['n']) + (
                '' if name == 'Hone kept' else ', CPU')
            rows.append((label, parts, axes.figure(row['parts_of_ms'])))
    if not rows:
        return None
    total = {}
    for _, parts, _ in rows:
        for part, ms in parts.items():
            share = ms / sum(parts.values())
            total[part] = total.get(part, 0.0) + share
    order = sorted(total, key=total.get, reverse=True)
    cycle = ('s1', 's2', 's3', 's4', 's5', 's6')
    colours = [(part, cycle[k] if k < len(cycle) else 'soft')
               for k, part in enumerate(order)]
    gpu = record.get('device', 'CPU') != 'CPU'
    return _bars(rows, colours, narrow, 'n'), (
        'The parts of the factorization, by n; its time is at the right. '
        + ('The shares are of the time of all kernels and copies, which '
           'overlap, as measured by CUPTI. "CPU": the CPU factors the diagonal '
           'blocks.' if gpu
           else 'OpenBLAS factors the block columns, so that pivoting is not '
           'timed separately.'))

# SPDX-License-Identifier: BSD-3-Clause
"""The pictures. Each is a function of a record that returns (chart, caption),
or None if the record has nothing to draw. narrow pictures are for telephones.
This file has the pictures of times; phases.py and answers.py have the others.
"""

import answers
import axes
import chart
import phases
import records


def rate(n, ms):
    """Returns the GFLOP/s of a solve, (2/3 n^3 + 2 n^2) operations."""
    return 1e-6 * (2.0 / 3.0 * n ** 3 + 2.0 * n ** 2) / ms


def _start(rows):
    """Leaves out small orders, whose time is overhead."""
    kept = [r for r in rows if r['n'] >= 64]
    return kept if len(kept) >= 3 else rows


def _lines(rows, value):
    """Yields for each method how it is drawn, its points, and whether they
    were accepted."""
    for name, label, colour, width, dash in axes.WAYS:
        points, full = [], []
        for row in rows:
            method = records.find(row, name)
            y = method and value(row, method)
            if y:
                points.append((row['n'], y))
                full.append(bool(method.get('accepted')))
        if points:
            yield label, colour, width, dash, points, full


def speed(record, narrow=False):
    """Draws rates of whole solves against n, with the limit of the hardware."""
    kind = axes.kind(record)
    rows = _start(records.rows(record, 'solve', kind))
    if len(rows) < 2:
        return None
    lines = list(_lines(rows, lambda r, m: rate(
        r['n'], records.middle(records.times(m)))))
    limit = [(r['n'], rate(r['n'], r['floor_ms'])) for r in rows
             if r.get('floor_ms')]
    every = [p[1] for line in lines for p in line[4]] + [p[1] for p in limit]
    tera = max(every) > 2000.0
    unit = 1e-3 if tera else 1.0
    picture = axes.base(narrow, axes.n_axis([r['n'] for r in rows], narrow),
                   axes.log_axis([unit * v for v in every],
                             ('TFLOP/s' if tera else 'GFLOP/s')
                             + ' of a whole solve', narrow))
    if limit:
        picture.series([(n, unit * v) for n, v in limit], 'soft',
                       'limit of the hardware', 'hardware limit', 1.4,
                       '(2,3)')
    for label, colour, width, dash, points, full in reversed(lines):
        picture.series([(n, unit * v) for n, v in points], colour, label,
                       label, width, dash, full)
    return picture, (
        f'Speed of whole solves, one right-hand side, {kind} random matrices, '
        'from host memory to host memory: (2/3 n³ + 2 n²) operations divided '
        f'by the median time; higher is better. {axes.HOLLOW} The dotted line '
        'is the rate if only copies, arithmetic and one pass over A took time, '
        'at the measured rates.')


def ratio(record, narrow=False):
    """Draws ratios of times to those of the reference, against n."""
    kind = axes.kind(record)
    rows = {r['n']: r for r in records.rows(record, 'small', kind)}
    rows.update({r['n']: r for r in records.rows(record, 'solve', kind)})
    rows = [rows[n] for n in sorted(rows)]
    ours = next((w for w in ('Hone kept', 'Hone AUTO kept', 'Hone once')
                 if any(records.find(r, w) for r in rows)), None)
    if len(rows) < 2 or ours is None:
        return None

    def value(row, method):
        own = records.find(row, ours) or records.find(row, 'Hone AUTO kept')
        return own and records.ratio(method, own)
    own = 'Hone, one call' if ours == 'Hone once' else 'Hone'
    lines = [line for line in _lines(rows, value) if line[0] != own]
    every = [p[1] for line in lines for p in line[4]]
    if not every:
        return None
    limit = [(r['n'], r['floor_ms']
              / records.middle(records.times(records.find(r, ours))))
             for r in rows if r.get('floor_ms') and records.find(r, ours)]
    low = min(every + [0.5] + [max(p[1], 0.1) for p in limit])
    high = max(every + [2.0])
    ticks = [(v, f'{v:g}') for v in (0.01, 0.03, 0.1, 0.2, 0.5, 1, 2, 5, 10,
                                     30, 100, 1000) if low <= v <= high]
    picture = axes.base(narrow, axes.n_axis([r['n'] for r in rows], narrow),
                   chart.Axis(low / 1.2, high * 1.2, 10, ticks,
                              f'time over that of {ours}'))
    picture.series([(r['n'], 1.0) for r in rows], 's1', ours, own, 2.6)
    picture.series([p for p in limit if p[1] >= low / 1.2], 'soft',
                   'limit of the hardware', 'hardware limit', 1.4, '(2,3)')
    for label, colour, width, dash, points, full in reversed(lines):
        picture.series(points, colour, label, label, width, dash, full)
    return picture, (
        f'Time of each method divided by that of {ours} in the same round; '
        f'medians, one right-hand side, {kind} random matrices. A method above '
        f'1 is slower than Hone, below 1 faster. {axes.HOLLOW}')


# ---- How cost grows


def cost(record, narrow=False):
    """Draws time against n on logarithmic axes, with exponents."""
    kind = axes.kind(record)
    rows = records.rows(record, 'solve', kind)
    if len(rows) < 3:
        return None
    lines = list(_lines(rows, lambda r, m: records.middle(
        records.times(m))))
    every = [p[1] for line in lines for p in line[4]]
    picture = axes.base(narrow, axes.n_axis([r['n'] for r in rows], narrow),
                   axes.log_axis(every, 'ms', narrow), right=132 if not narrow
                   else 120)
    for label, colour, width, dash, points, full in reversed(lines):
        p = records.exponent([q for q in points if q[0] >= 512])
        many = len([q for q in points if q[0] >= 512]) >= 3
        end = f'{label} {p:.1f}' if many else label
        picture.series(points, colour, label, end, width, dash, full)
    return picture, (
        'Median time of a whole solve against n; the numbers are exponents p '
        f'of t = c nᵖ, fitted from n = 512 on. {axes.HOLLOW}')


def columns(record, narrow=False):
    """Draws time against the number of right-hand sides."""
    return _against(record, narrow, 'columns', 'nrhs', 'right-hand sides',
                    'Median time of factoring and solving against the number '
                    'of right-hand sides, all at once.')


def threads(record, narrow=False):
    """Draws time against the number of threads."""
    return _against(record, narrow, 'threads', 'threads', 'threads',
                    'Median time of a whole solve against the number of '
                    'threads.')


def _against(record, narrow, section, key, title, caption):
    rows = records.rows(record, section)
    values = sorted({r.get(key, 1) for r in rows})
    if len(values) < 2:
        return None
    lines = []
    for n in sorted({r['n'] for r in rows}):
        for name, label, colour, width, _ in axes.WAYS:
            points = [(r.get(key, 1), records.find(r, name)) for r in rows
                      if r['n'] == n]
            points = [(x, m) for x, m in points if m]
            if len(points) > 1:
                lines.append((n, label, colour, width, points))
    if not lines:
        return None
    orders = sorted({line[0] for line in lines})
    picture = axes.base(
        narrow, chart.Axis(values[0] / 1.15, values[-1] * 1.1, 10,
                           [(v, f'{v:g}') for v in values], title),
        axes.log_axis([records.middle(records.times(m)) for line in lines
                   for _, m in line[4]], 'ms', narrow),
        right=150 if not narrow else 128)
    for n, label, colour, width, points in lines:
        picture.series(
            [(x, records.middle(records.times(m))) for x, m in points],
            colour, f'{label}, n = {n}', f'{label}, {axes.short(n)}', width,
            None if n == orders[-1] else '(5,3)',
            [bool(m.get('accepted')) for _, m in points])
    return picture, (f'{caption} The lines are labelled with method and n. '
                     f'{axes.HOLLOW}')


ALL = (('speed', speed), ('ratio', ratio), ('phases', phases.phases),
       ('inside', phases.inside), ('cost', cost), ('columns', columns),
       ('threads', threads), ('history', answers.history),
       ('gallery', answers.gallery))

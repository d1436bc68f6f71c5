# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of the quality of answers: how refinement converges, and the
backward error of every answer in the gallery. See pictures.py."""

import math

import axes
import chart
import records

def histories(record):
    """Yields (title, n, steps) of the systems whose convergence was recorded.
    """
    for row in record.get('rows', []):
        for method in row.get('methods', []):
            steps = [s for s in method.get('history', [])
                     if s.get('backward_error') is not None]
            if steps:
                yield row.get('kind', ''), row.get('n'), steps


def _corrections(steps):
    """Returns [(corrections so far, error)]. A method that begins with the last
    x adds no correction; one that begins with another x adds one."""
    points, at = [], -1
    for step in steps:
        error = max(step['backward_error'], 1e-18)
        if not (points and step['iteration'] == 0 and error == points[-1][1]):
            at += 1
        points.append((at, error))
    return points


WAY_COLOURS = {'refinement': 's1', 'GMRES': 's2', 'factors in double': 's3'}


def _way(step):
    if step.get('precision') == 64:
        return 'factors in double'
    return 'GMRES' if step.get('gmres') else 'refinement'


class _Panels:
    """The positions of the panels of a grid in the picture's own coordinates:
    x counts corrections, y decades."""

    def __init__(self, count, narrow, longest, top):
        self.across = 2 if narrow else 3
        self.down = math.ceil(count / self.across)
        self.most, self.top = max(longest - 1, 4), top
        self.wide = self.most + (2.2 if narrow else 1.6)
        self.high = top + 18.0 + 4.2

    def at(self, k, x, error):
        """Returns (x, y) of a correction in panel k."""
        row = self.down - 1 - k // self.across
        return (k % self.across * self.wide + x,
                row * self.high + math.log10(error) + 18.0)

    def axes(self):
        """Returns both axes, with ticks for every panel."""
        step = 1 if self.most < 6 else 2 if self.most < 12 else 5
        x = [(c * self.wide + v, str(v)) for c in range(self.across)
             for v in range(0, self.most + 1, step)]
        y = [(r * self.high + 18.0 + k, axes.power(k)) for r in range(self.down)
             for k in range(-16, int(self.top) + 1, 4)]
        return (chart.Axis(-0.4, self.across * self.wide - 1.0, 0, x,
                           'corrections'),
                chart.Axis(0.0, self.down * self.high - 1.6, 0, y,
                           'backward error'))


def history(record, narrow=False):
    """Draws omega after each correction, a panel for each system."""
    found = list(histories(record))
    if not found:
        return None
    longest = 1 + max(_corrections(s)[-1][0] for _, _, s in found)
    top = math.ceil(max(math.log10(e) for _, _, s in found
                        for _, e in _corrections(s)))
    panels = _Panels(len(found), narrow, longest, top)
    x, y = panels.axes()
    picture = axes.base(narrow, x, y, height=86 + 118 * panels.down, right=10,
                   top=44)
    ways = {}
    for k, (title, _, steps) in enumerate(found):
        picture.series([panels.at(k, v, records.LIMIT)
                        for v in (-0.2, panels.most + 0.2)], 'soft',
                       'limit', None, 1.2, chart.LIMIT_DASH)
        picture.text(*panels.at(k, -0.1, 10.0 ** (top + 1.6)),
                     title.replace('condition ', 'κ '), 'ink')
        points = [panels.at(k, *p) for p in _corrections(steps)]
        picture.series(points, 'soft', title, None, 1.1)
        for point, step in zip(points, steps):
            ways.setdefault(_way(step), []).append(point)
    for way, points in ways.items():
        picture.dots(points, WAY_COLOURS[way], way, size=0.62)
    names = [(f'● {w}', WAY_COLOURS[w]) for w in WAY_COLOURS if w in ways]
    if narrow:
        names = [(n.replace('factors ', ''), c) for n, c in names]
    axes.key(picture, names + [('- - limit' if narrow else
                                '- - accepted below', 'soft')], 28, narrow)
    return picture, (
        'Convergence: the componentwise backward error after each correction '
        'of one solve, which begins with single-precision factors. If '
        'refinement is too slow, GMRES follows with the same factors, and then '
        'factors in double. κ is the condition number. '
        + _orders([n for _, n, _ in found if n]))


def _orders(orders):
    low, high = min(orders, default=0), max(orders, default=0)
    return f'n = {low} to {high}.' if low < high else f'n = {low}.'


# ---- Answers of the gallery


def gallery(record, narrow=False):
    """Draws omega of every answer, a row for each family."""
    rows = [r for r in record.get('rows', []) if 'answers' in r]
    if not rows:
        return None
    count = len(rows)
    ticks = [(count - k, r.get('kind', '?')) for k, r in enumerate(rows)]
    least, most = 1e-18, 2.0
    picture = axes.base(narrow, chart.Axis(least / 2, most, 10, [
        (10.0 ** k, axes.power(k)) for k in range(-18, 1, 6 if narrow else 3)],
        'backward error of the answer'), chart.Axis(
            0.0, count + 1.0, 0, ticks), height=90 + 13 * count,
        left=156, right=16, top=34)
    for name, colour, kind, size in (('dsgesv', 's5', 'hollow', 0.4),
                                     ('dgesv', 's4', 'hollow', 0.4)):
        picture.dots(_omegas(rows, name, lambda s: True, least), colour, name,
                     kind, size)
    picture.dots(_omegas(rows, 'hone', lambda s: s > 0, least), 's2',
                 'Hone, best effort', 'full', 0.45)
    picture.dots(_omegas(rows, 'hone', lambda s: s == 0, least), 's1',
                 'Hone, accepted', 'full', 0.45)
    rgb = chart.COLOURS['soft'][0]
    picture.lines.append(
        f'set arrow from {records.LIMIT:.8g}, graph 0 to {records.LIMIT:.8g}, '
        f'graph 1 nohead dt {chart.LIMIT_DASH} lw 1.2 lc rgb "{rgb}"')
    axes.key(picture, (('● accepted' if narrow else '● Hone, accepted', 's1'),
                       ('● best effort', 's2'), ('○ dgesv', 's4'),
                       ('○ dsgesv', 's5')), 12, narrow)
    return picture, (
        'The gallery: the componentwise backward error of every answer to six '
        'systems of each family (orders 10 to 300). Hone accepts answers left '
        'of the dashed line, 4 units of rounding, and no others. A system that '
        'it refuses has no point, and 0 is drawn as 1e-18. Hollow points are '
        'dgesv and dsgesv on the same systems.')


def _omegas(rows, name, wanted, least):
    points = []
    for k, row in enumerate(rows):
        answers = row['answers']
        for status, omega in zip(answers['status'],
                                 answers.get(name, [])):
            if omega is not None and wanted(status):
                points.append((min(max(omega, least), 1.0), len(rows) - k))
    return points

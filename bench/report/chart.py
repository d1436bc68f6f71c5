# SPDX-License-Identifier: BSD-3-Clause
"""Charts by gnuplot, as SVG whose colours are CSS variables.

A Chart holds series and labels in data coordinates. draw() runs gnuplot and
adapts its SVG to a page: colours follow the reader's light or dark scheme,
identifiers are unique, and every series has a title that is shown by hovering.
Labels stand at the lines' ends and are moved apart if they would overlap.
"""

import math
import re
import shutil
import subprocess

# Name: (light, dark). This is Okabe & Ito's palette, shaded for contrast on
# either background; colour-blind readers can distinguish the colours.
COLOURS = {
    'ink': ('#1f2328', '#e2e6ea'),
    'soft': ('#59636e', '#9aa4ae'),
    'grid': ('#dfe3e8', '#343a41'),
    'paper': ('#ffffff', '#14181d'),
    's1': ('#0067a5', '#5ab4f0'),
    's2': ('#c44601', '#ff9147'),
    's3': ('#00794f', '#3ccb95'),
    's4': ('#98427f', '#e39acd'),
    's5': ('#8a6100', '#e6b32e'),
    's6': ('#5b5fc7', '#a9aefc'),
}

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif'
LINE = 14  # the least pixels from one label to the next
LIMIT_DASH = '(6,4)'
POINTS = {'full': 7, 'hollow': 6}


class ChartError(Exception):
    """gnuplot is missing or has failed."""


def style():
    """Returns the colours as CSS variables, light and dark."""
    def scheme(k):
        return ''.join(f'--{n}:{v[k]};' for n, v in COLOURS.items())
    return (f':root{{color-scheme:light dark;{scheme(0)}}}\n'
            f'@media (prefers-color-scheme:dark){{:root{{{scheme(1)}}}}}\n'
            '.chart text{font-family:' + FONT + ';stroke:var(--paper);'
            'stroke-width:3px;stroke-linejoin:round;paint-order:stroke}\n')


class Axis:
    """An axis from low to high. base is that of its logarithm, 0 for a linear
    axis. ticks are (value, text), or None for gnuplot's own in this format."""

    def __init__(self, low, high, base=0, ticks=None, title='', form='%g'):
        self.low, self.high, self.base = low, high, base
        self.ticks, self.title, self.form = ticks, title, form

    def place(self, value):
        """Returns the position of a value, from 0 at low to 1 at high."""
        if not self.base:
            return (value - self.low) / (self.high - self.low)
        low, high = math.log(self.low), math.log(self.high)
        return (math.log(value) - low) / (high - low)


class Chart:
    """A picture of width x height pixels."""

    def __init__(self, width, height, x, y, right=110, left=52, top=26,
                 bottom=40):
        self.width, self.height, self.x, self.y = width, height, x, y
        self.right, self.left = right, left
        self.top, self.bottom = top, bottom
        self.plots, self.titles, self.data = [], [], []
        self.ends, self.lines = [], []

    # ---- series and labels

    def _add(self, points, how, title):
        if points:
            self.data.append('\n'.join(' '.join(f'{v:.8g}' for v in p)
                                       for p in points))
            self.plots.append(f'$d{len(self.data) - 1} {how}')
            self.titles.append(title)

    def series(self, points, colour, title, label=None, width=1.6, dash=None,
               full=None, size=0.55):
        """Adds a line through (x, y) points. full says for each point whether
        it is filled; None draws no points."""
        if not points:
            return
        dashed = f' dt {dash}' if dash else ''
        rgb = COLOURS[colour][0]
        self._add(points, f'with lines lc rgb "{rgb}" lw {width}{dashed}',
                  title)
        if full is not None:
            self.dots([p for p, f in zip(points, full) if f], colour, title,
                      size=size)
            self.dots([p for p, f in zip(points, full) if not f], colour,
                      title, kind='hollow', size=size)
        if label:
            self.ends.append([points[-1], colour, label])

    def dots(self, points, colour, title, kind='full', size=0.55):
        """Adds points without a line."""
        rgb = COLOURS[colour][0]
        wide = ''
        if kind == 'hollow':  # hides the line behind the point
            self._add(points, f'with points pt {POINTS["full"]} ps {size} '
                      f'lc rgb "{COLOURS["paper"][0]}"', title)
            wide = 'lw 1.4 '
        self._add(points, f'with points pt {POINTS[kind]} ps {size} {wide}'
                  f'lc rgb "{rgb}"', title)

    def boxes(self, boxes, colour, title):
        """Adds filled boxes (x0, x1, y0, y1)."""
        rgb = COLOURS[colour][0]
        self._add([(0.5 * (a + b), 0.5 * (c + d), a, b, c, d)
                   for a, b, c, d in boxes if b > a],
                  f'with boxxyerror fs solid 1 noborder lc rgb "{rgb}"',
                  title)

    def text(self, x, y, text, colour='soft', align='left', screen=False):
        """Adds text at a point, in coordinates of the axes or of the whole
        picture (0 .. 1)."""
        where = 'screen ' if screen else ''
        self.lines.append(
            f'set label {_quoted(text)} at {where}{x:.8g},{where}{y:.8g} '
            f'{align} front textcolor rgb "{COLOURS[colour][0]}"')

    def level(self, y, text, colour='soft'):
        """Adds a horizontal dashed line with text above its left end."""
        rgb = COLOURS[colour][0]
        self.lines.append(
            f'set arrow from graph 0, first {y:.8g} to graph 1, first '
            f'{y:.8g} nohead dt {LIMIT_DASH} lw 1.2 lc rgb "{rgb}"')
        self.lines.append(
            f'set label {_quoted(text)} at graph 0.01, first {y:.8g} offset '
            f'0,0.45 left front textcolor rgb "{rgb}"')

    # ---- labels at the ends of lines

    def _pixel(self, point):
        wide = self.width - self.left - self.right
        high = self.height - self.top - self.bottom
        return (self.left + wide * self.x.place(point[0]),
                self.bottom + high * self.y.place(point[1]))

    def _place_labels(self):
        placed = []
        for point, colour, text in self.ends:
            px, py = self._pixel(point)
            placed.append([px + 7, py, colour, text])
        for group in _side_by_side(placed):  # these may overlap
            group.sort(key=lambda l: l[1])
            _spread(group, 8, self.height - 8)
        for px, py, colour, text in placed:
            self.text(px / self.width, py / self.height, text, colour,
                      screen=True)

    # ---- gnuplot

    def script(self):
        """Returns the commands for gnuplot."""
        self._place_labels()
        w, h = self.width, self.height
        ink, grid = COLOURS['soft'][0], COLOURS['grid'][0]
        lines = [
            f'set terminal svg size {w},{h} fixed noenhanced font '
            '"sans-serif,12"',
            'set encoding utf8',
            f'set lmargin at screen {self.left / w:.6f}',
            f'set rmargin at screen {1 - self.right / w:.6f}',
            f'set tmargin at screen {1 - self.top / h:.6f}',
            f'set bmargin at screen {self.bottom / h:.6f}',
            f'set border 1 lw 1 lc rgb "{ink}"',
            f'set grid x y back lt 1 dt 1 lw 1 lc rgb "{grid}"',
            f'set tics scale 0 textcolor rgb "{ink}"', 'unset key']
        for name, axis in (('x', self.x), ('y', self.y)):
            if axis.base:
                lines.append(f'set logscale {name} {axis.base}')
            lines.append(f'set {name}range [{axis.low:.8g}:{axis.high:.8g}]')
            if axis.ticks is not None:
                ticks = ', '.join(_quoted(t.replace('%', '%%')) + f' {v:.8g}'
                                  for v, t in axis.ticks)
                lines.append(f'set {name}tics ({ticks})')
            else:
                lines.append(f'set format {name} {_quoted(axis.form)}')
            lines.append(f'unset m{name}tics')
        if self.x.title:
            lines.append(f'set label {_quoted(self.x.title)} at screen '
                         f'{self._mid():.6f},{9 / h:.6f} center textcolor '
                         f'rgb "{ink}"')
        if self.y.title:
            lines.append(f'set label {_quoted(self.y.title)} at screen '
                         f'{4 / w:.6f},{1 - 9 / h:.6f} left textcolor rgb '
                         f'"{ink}"')
        lines += self.lines
        lines += [f'$d{k} << EOD\n{d}\nEOD' for k, d in enumerate(self.data)]
        lines.append('plot ' + ', '.join(f'{p} notitle' for p in self.plots))
        return '\n'.join(lines) + '\n'

    def _mid(self):
        return 0.5 * (self.left + self.width - self.right) / self.width

    def draw(self, name):
        """Returns the SVG element; name makes its identifiers unique."""
        return _adapt(_gnuplot(self.script()), name, self.width, self.height,
                      self.titles)


def _side_by_side(placed):
    """Returns labels (x, y, colour, text) in groups that share columns of
    pixels, directly or through others."""
    groups, end = [], None
    for label in sorted(placed, key=lambda l: l[0]):
        if end is None or label[0] >= end:
            groups.append([])
            end = 0.0
        groups[-1].append(label)
        end = max(end, label[0] + width(label[3]))
    return groups


def _spread(group, low, high):
    """Moves labels, sorted by height, apart, by the least sum of squares, and
    then into low .. high."""
    pools = []  # (mean of height less LINE for each label below, count)
    for k, label in enumerate(group):
        pools.append((label[1] - k * LINE, 1))
        while len(pools) > 1 and pools[-1][0] < pools[-2][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n)]
    means = [mean for mean, count in pools for _ in range(count)]
    for k, label in enumerate(group):
        label[1] = means[k] + k * LINE
    for k, label in enumerate(group):
        floor = group[k - 1][1] + LINE if k else low
        label[1] = max(label[1], floor)
    for k in range(len(group) - 1, -1, -1):
        ceiling = group[k + 1][1] - LINE if k + 1 < len(group) else high
        group[k][1] = min(group[k][1], ceiling)


def width(text):
    """Returns the approximate width in pixels."""
    return sum(9.0 if c.isupper() or c in '●○' else 6.5 for c in text)


def _quoted(text):
    """Returns text as a string for gnuplot, safely for any name in a record."""
    plain = ''.join(c if c.isprintable() else ' ' for c in text)
    return "'" + plain.replace("'", '’') + "'"


def available():
    """Returns the path of gnuplot, or '' if it is not installed."""
    return shutil.which('gnuplot') or ''


def _gnuplot(script):
    program = available()
    if not program:
        raise ChartError('gnuplot is not installed (Debian: apt-get install '
                         'gnuplot-nox)')
    done = subprocess.run([program, '-'], input=script, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0 or '</svg>' not in done.stdout:
        raise ChartError(f'gnuplot failed: {done.stderr.strip()[:500]}')
    return done.stdout


_NAMES = {tuple(int(light[k:k + 2], 16) for k in (1, 3, 5)): name
          for name, (light, _) in COLOURS.items()}


def _colour(match):
    rgb = tuple(int(match.group(k)) for k in (1, 2, 3))
    name = _NAMES.get(rgb)
    return f'var(--{name})' if name else 'currentColor'


def _adapt(svg, name, width, height, titles):
    """Returns gnuplot's SVG without its head and with variable colours."""
    body = svg[svg.index('<g id="gnuplot_canvas">'):svg.rindex('</svg>')]
    body = re.sub(r'<filter.*?</filter>', '', body, flags=re.S)
    body = re.sub(r'rgb\(\s*(\d+),\s*(\d+),\s*(\d+)\)', _colour, body)
    body = re.sub(r'\s(?:color|fill|stroke)="(?:black|gray|#FFFFFF)"', '',
                  body)
    body = body.replace('font-family="sans-serif"', '')
    used = set(re.findall(r"xlink:href='#(\w+)' transform", body))
    used |= {m for u in used for m in re.findall(
        rf"<use xlink:href='#(\w+)' id='{u}'", body)}
    body = re.sub(r"\s*<(?:path|rect|circle|use)[^>]*\bid='(\w+)'[^>]*/>",
                  lambda m: m.group(0) if m.group(1) in used else '', body)
    body = re.sub(r"(id=['\"]|#)(gp|gnuplot_)", rf'\1{name}-\2', body)
    body = body.replace('xlink:href', 'href')
    for _ in range(3):
        body = re.sub(r'<g [^>]*>\s*</g>', '', body)
    for k, title in enumerate(titles, 1):
        body = body.replace(f'<title>gnuplot_plot_{k}</title>',
                            f'<title>{_escaped(title)}</title>')
    body = re.sub(r'stroke-width="[\d.]+" stroke-linecap="butt" '
                  'stroke-linejoin="miter"', _joined, body)
    body = re.sub(r'\n\s*\n+', '\n', body)
    return (f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" color="var(--ink)" '
            f'fill="none">\n{body}</svg>')


def _joined(match):
    return match.group(0).replace('miter', 'round')


def _escaped(text):
    return (text.replace('&', '&amp;').replace('<', '&lt;')
            .replace('>', '&gt;'))


def alone(svg):
    """Returns the SVG for a file of its own, with background and colours."""
    box = re.search(r'viewBox="0 0 (\d+) (\d+)"', svg)
    head, rest = svg.split('>', 1)
    return (f'{head}>\n<style>{style()}</style>\n'
            f'<rect width="{box.group(1)}" height="{box.group(2)}" rx="6" '
            f'fill="var(--paper)"/>{rest}\n')

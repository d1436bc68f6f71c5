# SPDX-License-Identifier: BSD-3-Clause
"""Functions and constants that the pictures share: sizes, axes, the names of
methods, and how each is drawn."""

import math

import chart
import records

WIDE, NARROW = (580, 370), (370, 350)

# Methods in order of importance: name, short name, colour, width, dash.
WAYS = (
    ('Hone kept', 'Hone', 's1', 2.6, None),
    ('Hone kept, A pinned', 'Hone, A pinned', 's1', 1.4, '(2,2)'),
    ('Hone once', 'Hone, one call', 's1', 1.6, '(5,3)'),
    ('Hone CPU kept', 'Hone, CPU', 's6', 1.6, None),
    ('Hone double', 'Hone in double', 's6', 1.4, '(5,3)'),
    ('copy + getrf FP64 + getrs', 'cuSOLVER FP64', 's2', 1.6, None),
    ('copy + IRS R_32F', 'cuSOLVER IRS', 's3', 1.6, None),
    ('copy + potrf FP64 + potrs', 'cuSOLVER FP64', 's2', 1.6, None),
    ('pinned: copy + getrf FP64 + getrs', 'FP64, A pinned', 's2', 1.4,
     '(5,3)'),
    ('pinned: copy + IRS R_32F', 'IRS, A pinned', 's3', 1.4, '(5,3)'),
    ('pinned: copy + potrf FP64 + potrs', 'FP64, A pinned', 's2', 1.4,
     '(5,3)'),
    ('dgesv', 'dgesv', 's4', 1.6, None),
    ('dsgesv', 'dsgesv', 's5', 1.6, None),
    ('dposv', 'dposv', 's4', 1.6, None),
    ('dsposv', 'dsposv', 's5', 1.6, None),
)

HOLLOW = ('Hollow points are times of answers that are not accepted, which do '
          'not count.')


def base(narrow, x, y, height=None, **margins):
    """Returns a chart of the usual size."""
    width, usual = NARROW if narrow else WIDE
    if narrow and 'right' not in margins:
        margins['right'] = 102
    return chart.Chart(width, height or usual, x, y, **margins)


def short(n):
    """Returns '1024' for 1024, and '32k' for 32768."""
    return f'{n // 1024}k' if n >= 8192 and n % 1024 == 0 else f'{n:g}'


def n_axis(values, narrow):
    """Returns a logarithmic axis of orders; ticks are at least a power of two
    apart."""
    low, high = min(values), max(values)
    step = 2.0 ** math.ceil(math.log2(max(high / low, 2))
                            / (5 if narrow else 9))
    ticks = []
    for n in sorted(set(values), reverse=True):  # orders that were measured
        if not ticks or n <= 1.05 * ticks[-1][0] / step:
            ticks.append((n, short(n)))
    return chart.Axis(low / 1.12, high * 1.06, 2, ticks,
                      'n, the order of A')


def _decades(low, high):
    first = math.floor(math.log10(low))
    last = math.ceil(math.log10(high))
    return first, last


def power(k):
    """Returns 10^k as people write it."""
    if -2 <= k <= 3:
        return f'{10.0 ** k:g}'
    digits = str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹')
    return '10' + str(k).translate(digits)


def log_axis(values, title, narrow, most=6):
    """Returns a logarithmic axis of positive values, with about most ticks at
    most."""
    first, last = _decades(min(values), max(values))
    step = max(1, math.ceil((last - first) / (most - narrow)))
    ticks = [(10.0 ** k, power(k)) for k in range(first, last + 1, step)]
    if max(values) < 300.0 * min(values):  # ticks at 1, 2, 5, 10
        ticks = [(d * 10.0 ** k, f'{d * 10.0 ** k:g}')
                 for k in range(first - 1, last + 1) for d in (1, 2, 5)]
        ticks = [t for t in ticks if min(values) / 1.3 <= t[0]
                 <= max(values) * 1.3]
    return chart.Axis(min(values) / 1.3, max(values) * 1.3, 10, ticks, title)


def kind(record, section='solve'):
    """Returns the kind of matrices shown if a section has several."""
    kinds = [r.get('kind') for r in records.rows(record, section)]
    return 'uniform' if 'uniform' in kinds else (kinds or [None])[0]


def where(record):
    """Returns the machine: 'AMD EPYC, 2 threads', or 'NVIDIA H200 (...)'."""
    device = record.get('device', 'CPU')
    host = record.get('host', 'a CPU')
    threads = (record.get('openblas_threads') or record.get('threads')
               or record.get('host_threads'))
    name = f'{host}, {threads} threads' if threads else host
    return name if device == 'CPU' else f'{device} ({name})'


def figure(ms):
    """Returns '12.3 ms' or '2320 ms', without powers of ten below a million."""
    text = f'{ms:.3g}'
    return f'{ms:.0f} ms' if 'e+' in text and ms < 1e6 else f'{text} ms'


def key(picture, names, below, narrow, left=None):
    """Writes names beside one another, so many pixels below the top."""
    at = 4.0 if narrow else left or picture.left
    for name, colour in names:
        picture.text(at / picture.width, 1.0 - below / picture.height, name,
                     colour, screen=True)
        at += chart.width(name) + (10 if narrow else 18)

# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/performance.md and docs/several.md. Each is a function of
a record that returns (header, rows) of plain cells, or None if the record has
no rows for it. trace writes them into the documents."""

import axes
import certifytables
import papertables
import phases
import records
import severaltables
from cells import g, goal, missed, span

# The goal for hard matrices: Hone's time / that in double from the start.
WANTED = 1.25


def median(row, name):
    """Returns the median of a method in a row, None without times."""
    method = row and records.find(row, name)
    return records.middle(records.times(method)) if method else None


def fastest(row, prefix):
    """Returns the vendor's fastest method whose name begins like this and whose
    error is at most 1e-9."""
    able = [m for m in row['methods'] if m['name'].startswith(prefix)
            and (m.get('error') or 0.0) <= 1e-9]
    return records.best(able, False)


def one_call(row):
    """Returns the method of one call of hone_solve, or of a kept solver where
    that was not run."""
    return records.find(row, 'Hone once') or records.find(row, 'Hone kept')


# The goals for whole solves, by n.
WHOLE = {2048: 2.5, 4096: 3.3, 8192: 4.5, 16384: 5, 32768: 5.5}
DEFINITE = {2048: 1.5, 4096: 2.5, 8192: 5, 16384: 5, 32768: 5}
PINNED = {4096: 1.7, 8192: 2.2, 16384: 2.2, 32768: 2.2}


def _solve_rows(record):
    for kind in ('uniform', 'normal'):
        for row in records.rows(record, 'solve', kind):
            yield kind, row, WHOLE.get(row['n'])
    for row in records.rows(record, 'spd'):
        yield 'SPD, against potrf', row, DEFINITE.get(row['n'])


def solve(record):
    """Makes the table of whole solves, compared with cuSOLVER, by n."""
    body = []
    for kind, row, wanted in sorted(_solve_rows(record), key=lambda t: (
            t[0].startswith('SPD'), t[1]['n'], t[0] == 'normal')):
        ours = one_call(row)
        peer, pinned = fastest(row, 'copy + '), fastest(row, 'pinned: ')
        if not (ours and peer):
            continue
        ratio = records.ratio(peer, ours)
        again = records.ratio(pinned, ours) if pinned else None
        also = PINNED.get(row['n']) if row['section'] == 'solve' else None
        floor = row.get('floor_ms')
        own = records.middle(records.times(ours))
        body.append([
            kind, str(row['n']), g(median(row, 'Hone once')),
            g(median(row, 'Hone kept')),
            missed(g(ratio, '.2f'), ratio, wanted), goal(wanted),
            missed(g(again, '.2f'), again, also), goal(also),
            g(own / floor if floor else None, '.1f')])
    return (['whole solve, pageable A, b to x', 'n', '`hone_solve`, ms',
             'kept, ms', 'best peer / Hone', 'wanted', 'peer given pinned A',
             'wanted', 'Hone / floor'], body) if body else None


def factor(record):
    """Makes the table of factorizations, compared with getrf in single
    precision."""
    body = []
    for row in records.rows(record, 'factor', 'uniform'):
        ours, peer = (records.find(row, n) for n in (
            'Hone fp16x3', 'Xgetrf FP32, pivoting'))
        if not (ours and peer):
            continue
        n, ms = row['n'], median(row, ours['name'])
        ratio = records.ratio(peer, ours)
        wanted = 2.5 if n >= 8192 else None
        body.append([str(n), g(ms), g(1e-9 * 2 / 3 * n ** 3 / ms, '.1f'),
                     missed(g(ratio, '.2f'), ratio, wanted),
                     goal(wanted),
                     g(ours['error'] / peer['error'], '.2f') if ours.get(
                         'error') and peer.get('error') else '-'])
    return (['n', 'Hone, ms', 'TFLOP/s', 'getrf FP32 / Hone', 'wanted',
             "error / getrf's"], body) if body else None


def small(record):
    """Makes the table of small orders: the time of AUTO divided by that of the
    faster of Hone's CPU path and cuSOLVER."""
    body = []
    for row in records.rows(record, 'small'):
        ways = [records.find(row, n) for n in (
            'Hone AUTO kept', 'Hone CPU kept', 'copy + getrf FP64 + getrs')]
        if not all(ways):
            continue
        ratio = records.middle([a / min(b, c) for a, b, c in zip(
            *(w['ms'] for w in ways)) if None not in (a, b, c)])
        text = g(ratio, '.2f')
        body.append([str(row['n']), *(g(median(row, w['name'])) for w in ways),
                     f'**{text}**' if ratio > 1.1 else text])
    return (['n', 'Hone AUTO kept, ms', 'its CPU path', 'cuSOLVER FP64',
             'AUTO / the faster of these (at most 1.10)'], body) if body \
        else None


def hard(record):
    """Makes the table of matrices with condition number 1e12, compared with
    double precision from the start."""
    body = []
    for row in records.rows(record, 'hard'):
        ours, double = (records.find(row, n) for n in (
            'Hone kept', 'Hone kept, double from the start'))
        if not (ours and double):
            continue
        ratio = records.ratio(ours, double)
        text = g(ratio, '.2f')
        body.append([row['kind'], str(row['n']), g(median(row, ours['name'])),
                     g(median(row, double['name'])),
                     f'**{text}**' if ratio > WANTED else text,
                     g(median(row, 'copy + getrf FP64 + getrs')),
                     str(ours.get('note', '')).split(': ', 1)[-1]])
    return (['spectrum', 'n', 'Hone, ms', 'in double from the start',
             'ratio (at most 1.25)', 'cuSOLVER FP64', 'way'], body) \
        if body else None


def parts(record):
    """Makes the table of the phases of a whole solve."""
    body = []
    for row in records.rows(record, 'solve', axes.kind(record)):
        ours = records.find(row, 'Hone kept')
        times = ours and phases.phase_times(ours)
        if not times:
            continue
        alone = [r for r in records.rows(record, 'factor', row['kind'])
                 if r['n'] == row['n']]
        steps = ours.get('solve', {}).get('iterations')
        body.append([str(row['n']), g(times['factor_ms']),
                     g(median(alone[0], 'Hone fp16x3') if alone else None),
                     g(times['certify_ms']),
                     f'{g(times["refine_ms"])} ({g(steps, "d")})'])
    return (['n', 'factor, A on its way', 'factorization alone', 'certify',
             'refine (corrections)'], body) if body else None


def forms(record):
    """Makes the table of whole solves with other forms of the factorization.
    """
    rows = records.rows(record, 'forms')
    orders = sorted({r['n'] for r in rows})
    names = []
    for row in rows:
        names += [m['name'] for m in row['methods'] if m['name'] not in names]
    body = []
    for name in names:
        line = [name.removeprefix('Hone ')]
        for n in orders:
            found = [m for r in rows if r['n'] == n for m in r['methods']
                     if m['name'] == name and records.times(m)]
            value = g(records.middle(records.times(found[0]))) if found else '-'
            line.append(value if not found or found[0].get('accepted')
                        else f'[{value}]')
        body.append(line)
    return (['form'] + [f'{n}, ms' for n in orders], body) if body else None


def cpu(record):
    """Makes the table of whole solves on the CPU, compared with dgesv and
    dsgesv."""
    return _beside_lapack(records.rows(record, 'solve', 'uniform'),
                          'Hone once')


def cpu_hard(record):
    """Makes the table of condition number 1e12 on the CPU."""
    body = []
    for row in records.rows(record, 'hard'):
        ours, double, peer = (records.find(row, n) for n in (
            'Hone once', 'Hone double', 'dgesv'))
        if not (ours and double and peer):
            continue
        ratio = records.ratio(ours, double)
        text = g(ratio, '.2f')
        body.append([row['kind'], str(row['n']), span(ours),
                     g(median(row, 'dgesv'), '.4g'),
                     g(records.ratio(peer, ours), '.2f'),
                     f'**{text}**' if ratio > WANTED else text,
                     str(ours.get('note', '')).split(': ', 1)[-1]])
    return (['spectrum', 'n', 'hone, ms', 'dgesv', 'dgesv / hone',
             'hone / double from the start', 'way'], body) if body else None


def cpu_spd(record):
    """Makes the table of positive definite matrices on the CPU."""
    body = []
    for row in records.rows(record, 'spd'):
        ours, peer = (records.find(row, n) for n in ('Hone once', 'dposv'))
        if ours and peer:
            body.append([str(row['n']), span(ours),
                         g(median(row, 'dposv'), '.4g'),
                         g(records.ratio(peer, ours), '.2f')])
    return (['n', 'hone, ms', 'dposv', 'dposv / hone'], body) \
        if body else None


def cpu_complex(record):
    """Makes the table of complex systems on the CPU. From n = 2000 on 1.6 times
    zgesv's speed is wanted."""
    body = []
    for row in records.rows(record, 'complex'):
        ours = records.find(row, 'Hone once')
        peers = [records.find(row, n) for n in ('zgesv', 'zcgesv')]
        if not ours or None in peers:
            continue
        ratios = [records.ratio(p, ours) for p in peers]
        first = g(ratios[0], '.2f')
        short = row['n'] >= 2000 and not ratios[0] >= 1.6
        body.append([str(row['n']), span(ours),
                     g(median(row, 'Hone kept'), '.4g'),
                     g(median(row, 'zgesv'), '.4g'),
                     g(median(row, 'zcgesv'), '.4g'),
                     f'**{first}**' if short else first,
                     g(ratios[1], '.2f')])
    return (['n', 'hone, ms', 'kept', 'zgesv', 'zcgesv', 'zgesv / hone',
             'zcgesv / hone'], body) if body else None


# The goals of solves that share the machine or have few CPUs: their time / that
# of a solve that has the machine for itself.
SHARED = {(1, 0): 1.15, (4, 0): 1.15, (8, 0): 1.3, (15, 0): 2.0, (0, 4): 1.7,
          (0, 1): 3.0}


def callers(record):
    """Makes the table of processes that are not alone on the machine."""
    rows = {(r['busy'], r['cpus']): r for r in records.rows(record, 'callers')}
    quiet = median(rows.get((0, 0)), 'Hone kept')
    body = []
    for at, row in rows.items():
        busy, cpus = at
        ours = records.find(row, 'Hone kept')
        peer = records.find(row, 'copy + getrf FP64 + getrs')
        if not (quiet and ours and peer):
            continue
        name = f'bound to {cpus} CPU{"s" * (cpus > 1)}' if cpus else 'alone'
        if busy:
            name = f'beside {busy} busy process{"es" * (busy > 1)}'
        times = median(row, 'Hone kept') / quiet
        wanted = SHARED.get(at)
        text = g(times, '.2f')
        body.append([
            name, span(ours), g(median(row, 'Hone once')),
            f'**{text}**' if wanted and times > wanted else text,
            goal(wanted), span(peer), g(records.ratio(peer, ours), '.2f')])
    return (['n = 8192, pageable A', 'Hone kept, ms', 'hone_solve',
             'kept / alone', 'at most', 'cudaMemcpy + cuSOLVER FP64',
             'cuSOLVER / Hone kept'], body) if body else None


def cpu_callers(record):
    """Makes the table of the CPU path beside busy processes. A ratio that is
    15 % below that of the quiet machine misses what is wanted."""
    quiet, body = {}, []
    for row in records.rows(record, 'callers'):
        ours, busy = records.find(row, 'Hone once'), row['busy']
        cells = []
        for name in 'dgesv', 'dsgesv':
            peer = records.find(row, name)
            ratio = records.ratio(peer, ours) if peer and ours else None
            if not busy:
                quiet[row['n'], name] = ratio
            alone = quiet.get((row['n'], name))
            text = g(ratio, '.2f')
            missed = ratio and alone and ratio < 0.85 * alone
            cells.append(f'**{text}**' if missed else text)
        if ours:
            body.append([row['n'], busy or 'none', span(ours),
                         g(median(row, 'Hone kept')),
                         g(median(row, 'dgesv')), g(median(row, 'dsgesv')),
                         *cells])
    return (['n', 'busy processes beside', 'hone_solve, ms', 'kept', 'dgesv',
             'dsgesv', 'dgesv / hone', 'dsgesv / hone'],
            body) if body else None


def device(record):
    """Makes the table of systems that lie in device memory."""
    body = []
    for row in records.rows(record, 'device'):
        ours = records.find(row, 'Hone kept')
        peer = records.find(row, 'getrf FP64 + getrs')
        if not (ours and peer):
            continue
        ratio = records.ratio(peer, ours)
        body.append([
            str(row['n']), span(ours), 'yes' if ours.get('accepted') else 'no',
            span(peer), missed(g(ratio, '.2f'), ratio, row.get('wanted')),
            goal(row.get('wanted'))])
    return (['n', 'Hone kept, ms', 'accepted', 'getrf FP64 + getrs, ms',
             'getrf + getrs / Hone', 'wanted'], body) if body else None


def complex_solve(record):
    """Makes the table of whole solves of complex systems."""
    body = []
    for row in sorted((row for kind in ('uniform', 'normal')
                       for row in records.rows(record, 'complex', kind)),
                      key=lambda r: (r['n'], r['kind'] == 'normal')):
        ours, peer = one_call(row), fastest(row, 'copy + ')
        if not (ours and peer):
            continue
        ratio, floor = records.ratio(peer, ours), row.get('floor_ms')
        body.append([
            row['kind'], str(row['n']), span(ours),
            g(median(row, 'Hone kept')),
            'yes' if ours.get('accepted') else 'no', span(peer),
            missed(g(ratio, '.2f'), ratio, row.get('wanted')),
            goal(row.get('wanted')),
            g(records.middle(records.times(ours)) / floor if floor else None,
              '.1f')])
    return (['complex, pageable A, b to x', 'n', '`hone_z_solve`, ms',
             'kept, ms', 'accepted', 'best peer, ms', 'peer / Hone', 'wanted',
             'Hone / floor'], body) if body else None


def complex_factor(record):
    """Makes the table of complex factorizations beside getrf in single
    precision."""
    body = []
    for row in records.rows(record, 'complex factor', 'uniform'):
        ours, peer = (records.find(row, n) for n in (
            'Hone fp16x3', 'Xgetrf C32F, pivoting'))
        if not (ours and peer):
            continue
        work = 8e-9 / 3 * row['n'] ** 3
        ms, theirs = median(row, ours['name']), median(row, peer['name'])
        body.append([str(row['n']), span(ours),
                     g(work / ms if ms else None, '.1f'), span(peer),
                     g(work / theirs if theirs else None, '.1f'),
                     g(records.ratio(peer, ours), '.2f')])
    return (['n', 'Hone, ms', 'TFLOP/s', 'getrf C32F, ms', 'TFLOP/s',
             'getrf / Hone'], body) if body else None


def cpu_columns(record):
    """Makes the table of many right-hand sides on the CPU."""
    body = []
    for row in records.rows(record, 'columns'):
        ours, peer = (records.find(row, n) for n in ('Hone kept', 'dgesv'))
        if ours and peer:
            body.append([str(row['n']), str(row['nrhs']), span(ours),
                         g(median(row, 'dgesv'), '.4g'),
                         g(records.ratio(peer, ours), '.2f')])
    return (['n', 'right-hand sides', 'hone, ms', 'dgesv', 'dgesv / hone'],
            body) if body else None


def columns(record):
    """Makes the table of many right-hand sides beside one, on a GPU."""
    body, one = [], {}
    for row in records.rows(record, 'columns'):
        ours = records.find(row, 'Hone kept')
        if not ours:
            continue
        ms = median(row, 'Hone kept')
        if row['nrhs'] == 1:
            one[row['n']] = ms
        alone = one.get(row['n'])
        body.append([str(row['n']), str(row['nrhs']), span(ours),
                     g(ms / alone if ms and alone else None, '.2f')])
    return (['n', 'right-hand sides', 'Hone kept, ms', 'times one'],
            body) if body else None


def host(record):
    """Makes the table of whole solves on the CPU of a machine with a GPU."""
    rows = records.rows(record, 'small', 'uniform')
    last = max((r['n'] for r in rows), default=0)
    return _beside_lapack(
        rows + [r for r in records.rows(record, 'solve', 'uniform')
                if r['n'] > last], 'Hone CPU kept')


def _beside_lapack(rows, ours):
    body = []
    for row in rows:
        ways = [records.find(row, n) for n in (ours, 'dgesv', 'dsgesv')]
        if not all(ways) or row['n'] < 4:
            continue
        body.append([
            str(row['n']), span(ways[0]),
            *(g(median(row, w['name']), '.4g') for w in ways[1:]),
            *(g(records.ratio(w, ways[0]), '.2f') for w in ways[1:]),
            ', '.join('yes' if w.get('accepted') else 'no' for w in ways)])
    return (['n', 'hone, ms', 'dgesv', 'dsgesv', 'dgesv / hone',
             'dsgesv / hone', 'accepted: hone, dgesv, dsgesv'], body) \
        if body else None


def batch(record):
    """Makes the table of batches of small systems, beside a loop over gesv."""
    wanted, body = 1.5, []
    kinds = [{row['n']: row for row in records.rows(record, 'batch', kind)}
             for kind in ('real', 'complex')]
    for n in sorted(kinds[0]):
        cells = [str(n)]
        for rows in kinds:
            row = rows.get(n)
            ours = records.find(row, 'Hone batch') if row else None
            peer = records.find(row, 'loop over gesv') if row else None
            floor = records.find(row, 'one reading of A') if row else None
            if not (ours and peer and floor):
                cells += ['-', '-', '-']
                continue
            ratio = records.ratio(peer, ours)
            us = 1e3 * records.middle(records.times(ours))
            cells += [g(us), missed(g(ratio, '.2f'), ratio, wanted),
                      g(records.ratio(ours, floor), '.0f')]
        body.append(cells)
    if not body:
        return None
    return (['n', 'real, us', '`dgesv` / Hone', 'Hone / reading',
             'complex, us', '`zgesv` / Hone', 'Hone / reading'], body)


def device_batch(record):
    """Makes the table of batches on a device, beside the vendor's. The ratio
    is that with results on the device, where this was measured."""
    body = []
    for row in records.rows(record, 'batch'):
        there = records.find(row, 'Hone batch, results on the device')
        there = there if there and records.times(there) else None
        ours, floor = (records.find(row, name) for name in
                       ('Hone batch', 'A to the device'
                        if row['kind'] == 'from the host'
                        else 'one reading of A'))
        peer = next((m for m in row['methods']
                     if m['name'].endswith('trsBatched')), None)
        if not (ours and peer and floor):
            continue
        ms = records.middle(records.times(ours))
        wanted = row.get('wanted')
        body.append([
            f"{row['count']:,}", str(row['n']), row['kind'],
            missed(g(ms), wanted, ms) if ms and wanted else g(ms),
            g(records.middle(records.times(there))) if there else '-',
            'yes' if ours.get('accepted') else 'no',
            g(records.middle(records.times(peer))),
            g(records.ratio(peer, there or ours), '.2f'), g(wanted),
            g(records.middle(records.times(floor)))])
    return (['systems', 'n', '', 'Hone, ms', 'results there, ms', 'accepted',
             'vendor, ms', 'vendor / Hone', 'wanted, ms', 'floor, ms'], body) \
        if body else None


ALL = {'solve': solve, 'factor': factor, 'small': small, 'hard': hard,
       'parts': parts, 'forms': forms, 'cpu': cpu, 'host': host,
       'cpu hard': cpu_hard, 'cpu spd': cpu_spd, 'cpu columns': cpu_columns,
       'cpu complex': cpu_complex,
       'callers': callers, 'columns': columns,
       'cpu callers': cpu_callers, 'device': device,
       'complex': complex_solve, 'complex factor': complex_factor,
       'batch': batch, 'device batch': device_batch,
       **papertables.ALL, **severaltables.ALL, **certifytables.ALL}


def markdown(header, rows):
    """Returns a table of Markdown."""
    def line(cells):
        return '| ' + ' | '.join(str(c).replace('|', '\\|')
                                 for c in cells) + ' |'
    return '\n'.join([line(header), '|' + '---|' * len(header)]
                     + [line(r) for r in rows])

# SPDX-License-Identifier: BSD-3-Clause
"""The tables of two publications, with their figures and those of a record of
bench_papers. The functions are like those of doctables.py, whose ALL has them,
too."""

import records
from cells import g

NAMES = {'spd': 'Cholesky', 'uniform': 'LU'}


def middle(values):
    """Returns the median of the values that are not None."""
    return records.middle([v for v in values or [] if v is not None])


def named(row, name):
    """Returns a method, with times or without."""
    return next((m for m in row['methods'] if m['name'] == name), {})


def time(method):
    """Returns '12.3', or '[12.3]' if its answer was not accepted, or '-'."""
    value = middle(method.get('ms'))
    if value is None:
        return '-'
    return g(value) if method.get('accepted') else f'[{g(value)}]'


def beside(ours, theirs):
    """Returns '12.3 / 45', or '12.3' if nothing was published."""
    return ours if theirs is None else f'{ours} / {g(theirs, ".4g")}'


def _total(methods, key):
    values = [middle(m.get('ms')) if key == 'ms' else m.get(key)
              for m in methods]
    return None if None in values else sum(values)


def diagonal(record):
    """Makes Igual's table 4.1."""
    body = []
    for row in sorted(_section(record, 'igual 4.1', 'b'), key=lambda r: r['b']):
        steps = [named(row, n) for n in ('GPU to host', 'potrf, CPU',
                                         'host to GPU')]
        scalar = named(row, 'by scalars, GPU')
        body.append([
            str(row['b']),
            beside(g(_total(steps, 'ms')), _total(steps, 'paper_ms')),
            beside(time(steps[1]), steps[1].get('paper_ms')),
            beside(time(scalar), scalar.get('paper_ms')),
            time(named(row, 'cuSOLVER potrf FP32')),
            time(named(row, "Hone's potrf FP32"))])
    return (['b', 'to the host, OpenBLAS, back: here / there',
             'of these OpenBLAS', 'by scalars on the GPU: here / there',
             'cuSOLVER FP32', "Hone's own"], body) if body else None


def _section(record, section, *keys):
    """Returns the rows of a section that have these keys, measured or not."""
    return [r for r in record.get('rows', [])
            if r['section'] == section and 'methods' in r
            and all(r.get(k) is not None for k in ('kind', *keys))]


def _stages(method):
    """Returns '66 + 6 (6)': the ms of factor and refine, and iterations."""
    factor, refine = (middle(method.get(k)) for k in ('factor_ms',
                                                      'refine_ms'))
    if factor is None or refine is None:
        return '-'
    return f'{g(factor)} + {g(refine)} ({method.get("iterations")})'


def refinement(record):
    """Makes Igual's table 4.2."""
    body = []
    for row in sorted(_section(record, 'igual 4.2', 'n'),
                      key=lambda r: (r['kind'], r['n'])):
        his, spd = named(row, "Igual's way, GPU"), row['kind'] == 'spd'
        theirs = '-'
        if his.get('paper_ms') is not None:
            theirs = (f'{g(his["paper_ms"], ".4g")} + '
                      f'{g(his.get("paper_refine_ms"), ".4g")} '
                      f'({g(his.get("paper_iterations"), "g")})')
        vendor = 'cuSOLVER potrf FP64' if spd else 'cuSOLVER getrf FP64'
        host = 'OpenBLAS dposv' if spd else 'OpenBLAS dgesv'
        body.append([
            NAMES.get(row['kind'], row['kind']), str(row['n']), theirs,
            _stages(his), time(his), _stages(named(row, 'Hone, GPU')),
            time(named(row, 'Hone, GPU')), time(named(row, vendor)),
            '' if spd else time(named(row, 'cuSOLVER IRS FP32')),
            time(named(row, "Igual's way, CPU")),
            time(named(row, 'Hone, CPU')), time(named(row, host))])
    return (['', 'n', 'there: factor + refine (iterations), ms',
             'his way here', 'whole', 'Hone: factor + refine (corrections)',
             'whole', 'cuSOLVER FP64', 'cuSOLVER IRS', 'his way on the CPU',
             'Hone, CPU', 'OpenBLAS dposv, dgesv'], body) if body else None


def _work(row):
    return row['n'] ** 3 * (1 if row['kind'] == 'spd' else 2) / 3


def padding(record):
    """Makes a table of the slowest order's rate divided by the fastest's."""
    rows = _section(record, 'igual padding', 'n')
    body = []
    for kind in ('spd', 'uniform'):
        for way in ("Igual's, GPU", 'cuSOLVER', 'Hone', 'OpenBLAS'):
            line = [NAMES[kind], way]
            for suffix in ('', ', to 32', ', to 64'):
                rates = [_work(r) / middle(named(r, way + suffix).get('ms'))
                         for r in rows if r['kind'] == kind
                         and middle(named(r, way + suffix).get('ms'))]
                line.append(g(min(rates) / max(rates), '.2f') if rates
                            else '-')
            body.append(line)
    orders = ', '.join(str(n) for n in sorted({
        r['n'] for r in rows if any(records.times(m) for m in r['methods'])}))
    return (['', f'n = {orders}: slowest rate / fastest', 'as it is',
             'padded to 32', 'padded to 64'], body) if rows else None


def blocks(record):
    """Makes a table of the GFLOP/s of every method by the block size."""
    rows = _section(record, 'igual blocks', 'n')
    sizes = sorted({r['b'] for r in rows if r.get('b')})
    body = []
    for kind, n in sorted({(r['kind'], r['n']) for r in rows}):
        those = [r for r in rows if (r['kind'], r['n']) == (kind, n)]
        names = []
        for row in those:
            names += [m['name'] for m in row['methods'] if m['name'] not in
                      names and m['name'] != 'all']
        for name in names:
            rates = {r.get('b', 0): 1e-6 * _work(r) / middle(named(
                r, name)['ms']) for r in those if middle(named(
                    r, name).get('ms'))}
            if rates:
                body.append([NAMES.get(kind, kind), str(n), name, *(
                    g(rates.get(b)) for b in sizes), g(rates.get(0))])
    return (['', 'n', 'way, GFLOP/s by the size of a block'] + [
        str(b) for b in sizes] + ['whole'], body) if body else None


def sections(record):
    """Makes a table of the ms of the iterative Crout method by the columns of
    a section."""
    rows = _section(record, 'cejka sections', 'n', 'precision')
    names = []
    for row in rows:
        names += [m['name'] for m in row['methods'] if m['name'] not in names]
    body = [[str(r['n']), 'single' if r['precision'] == 32 else 'double']
            + [time(named(r, n)) for n in names] for r in rows]
    return (['n', 'precision'] + [n.replace('ICM16, sections of ', '')
                                  for n in names], body) if body else None


CROUT = ('CPU, one thread', 'ICM8', 'ICM16', 'ICM32', 'ICM32, as published',
         'cuSOLVER getrf', 'cuSOLVER getrf, no pivoting')


def _sweeps(method):
    mean = [method.get(a) and method[a] / method[b] for a, b in (
        ('diagonal_sweeps', 'diagonals'), ('pair_sweeps', 'pairs'))
        if method.get(b)]
    return ', '.join(g(m) for m in mean) or '-'


def crout(record):
    """Makes Cejka's tables 3.4 and 3.5."""
    body = []
    rows = _section(record, 'cejka', 'n', 'precision')
    for row in sorted(rows, key=lambda r: (
            str(r['kind']).startswith('Cejka'), r['n'], r['precision'])):
        precision = 'single' if row['precision'] == 32 else 'double'
        ways = [named(row, f'{name}, {precision}') for name in CROUT]
        body.append(
            [row['kind'], str(row['n']), precision]
            + [beside(time(w), w.get('paper_ms')) for w in ways]
            + [_sweeps(ways[3])] + [ways[k].get('error_text', '-')
                                    for k in (0, 3, 5)])
    return (['matrix', 'n', 'precision'] + [f'{n}: here / there' for n in
                                            CROUT[:5]] + list(CROUT[5:])
            + ['sweeps of ICM32: diagonal section, pair',
               'max abs(A - L U): CPU', 'ICM32', 'getrf'],
            body) if body else None


def left_out(record):
    """Makes a table of what was not measured, with a line for each section and
    reason."""
    found = {}
    for row in record.get('rows', []):
        for method in row.get('methods', []):
            why = method.get('skipped') or method.get('failed')
            if records.times(method) or not why:
                continue
            which = f'{row.get("kind", "")} {row.get("n") or row.get("b")}'
            found.setdefault((row['section'], why), {}).setdefault(
                method['name'], []).append(which.strip())
    body = [[section, '; '.join(
        f'{name} ({", ".join(dict.fromkeys(which))})'
        for name, which in ways.items()), why]
            for (section, why), ways in found.items()]
    return (['table', 'not measured', 'why'], body) if body else None


ALL = {'igual 4.1': diagonal, 'igual 4.2': refinement,
       'igual padding': padding, 'igual blocks': blocks,
       'cejka sections': sections, 'cejka': crout, 'left out': left_out}

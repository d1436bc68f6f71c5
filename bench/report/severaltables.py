# SPDX-License-Identifier: BSD-3-Clause
"""The tables of docs/several.md: one GPU beside all. The functions are like
those of doctables.py, whose ALL has them, too."""

import records
from cells import g, goal, missed, span


def _pairs(record, kind, one, both):
    """Yields (row, the method on one GPU, the method on all, one / all) for
    every row that has times of both."""
    for row in records.rows(record, 'several', kind):
        ways = [records.find(row, name) for name in (one, both)]
        if all(ways):
            yield row, *ways, records.ratio(*ways)


def _accepted(*methods):
    return 'yes' if all(m.get('accepted') for m in methods) else 'no'


def solve(record):
    """Makes the table of whole solves of one matrix."""
    body = []
    for kind, name in (('uniform', 'real'),
                       ('heavy', 'real, heavy diagonal'),
                       ('complex', 'complex'),
                       ('columns', 'real'), ('spd', 'definite'),
                       ('spd columns', 'definite')):
        for row, one, both, ratio in _pairs(
                record, kind, 'Hone kept, one GPU', 'Hone kept, all GPUs'):
            body.append([name, str(row['n']), str(row['nrhs']),
                         str(row['devices']), span(one), span(both),
                         g(ratio, '.2f'), _accepted(one, both)])
    return (['whole solve, pageable A, b to x', 'n', 'right-hand sides',
             'GPUs', 'on one, ms', 'on all, ms', 'one / all', 'accepted'],
            body) if body else None


def factor(record):
    """Makes the table of the factorization alone, with that of cuSolverMG. Its
    ratio is to ours in its own row of the record, where both took turns."""
    names = 'factorization, one GPU', 'factorization, all GPUs'
    peer = 'cuSolverMG getrf FP64, all GPUs'
    beside = {row['n']: (row, mg, ratio) for row, mg, _, ratio in _pairs(
        record, 'beside cuSolverMG', peer, names[1])}
    body = []
    for kind, name in (('factorization', 'real'),
                       ('complex factorization', 'complex'),
                       ('spd factorization', 'definite')):
        for row, one, both, ratio in _pairs(record, kind, *names):
            wanted = row.get('wanted')
            line = [name, str(row['n']), str(row['devices']), span(one),
                    span(both), missed(g(ratio, '.2f'), ratio, wanted),
                    goal(wanted)]
            if name == 'real' and row['n'] in beside:
                other, mg, ratio = beside[row['n']]
                wanted = other.get('wanted')
                line += [span(mg), missed(g(ratio, '.2f'), ratio, wanted),
                         goal(wanted)]
            else:
                line += ['-', '-', '']
            body.append(line)
    return (['A on the devices', 'n', 'GPUs', 'on one, ms', 'on all, ms',
             'one / all', 'wanted', 'cuSolverMG FP64 on all, ms',
             'cuSolverMG / Hone', 'wanted'], body) if body else None


def batch(record):
    """Makes the table of batches in host memory, beside the copies of A."""
    body = []
    for row, one, both, ratio in _pairs(
            record, 'batch', 'Hone batch, one GPU', 'Hone batch, all GPUs'):
        copies = [records.find(row, name) for name in (
            'A to one GPU', 'A to all GPUs')]
        medians = [g(records.middle(records.times(c))) if c else '-'
                   for c in copies]
        body.append([
            f"{row['count']:,}", str(row['n']), str(row['devices']), span(one),
            span(both), g(ratio, '.2f'), _accepted(one, both), *medians,
            g(records.ratio(both, copies[1]), '.2f') if copies[1] else '-'])
    return (['systems in pageable memory', 'n', 'GPUs', 'on one, ms',
             'on all, ms', 'one / all', 'accepted', 'A to one, ms',
             'A to all, ms', 'on all / A to all'], body) if body else None


ALL = {'several solve': solve, 'several factor': factor,
       'several batch': batch}

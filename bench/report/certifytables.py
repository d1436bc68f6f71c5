# SPDX-License-Identifier: BSD-3-Clause
"""The table of what certificates cost on a GPU: like those of doctables.py,
whose ALL has it, too."""

import phases
import records
from cells import g, missed

# The goal, in percent of a whole solve, and the order from which on it holds.
WANTED, SINCE = 8.0, 4096

MATRICES = (('uniform', 'solve', 'uniform'), ('normal', 'solve', 'normal'),
            ('SPD', 'spd', None), ('complex uniform', 'complex', 'uniform'),
            ('complex normal', 'complex', 'normal'))


def _percent(ms, method):
    """Returns a share of the median of a method's whole solves, in percent."""
    whole = records.middle(records.times(method))
    return 100.0 * ms / whole if whole else None


def _kept(kept):
    """Returns the share of a kept solver: of its factors, and of the solve."""
    times = phases.phase_times(kept)
    return _percent(times['certify_ms'], kept) if times else None


def _added(once, kept):
    """Returns what certificates add to one call. It solves for b beside its
    probes; a kept solver refines with nothing beside it."""
    one, solve = (m.get('solve') for m in (once, kept))
    if not (one and solve):
        return None
    return _percent(one['certify_ms'] + one['refine_ms'] - solve['refine_ms'],
                    once)


def _cell(row):
    """Returns both shares, bold where they miss the goal."""
    kept = row and records.find(row, 'Hone kept')
    if not kept:
        return ''
    shares = [_kept(kept)]
    once = records.find(row, 'Hone once')
    if once:
        shares.append(_added(once, kept))
    shares = [s for s in shares if s is not None]
    if row['n'] < SINCE:
        return ', '.join(g(s, '.1f') for s in shares)
    return ', '.join(missed(g(s, '.1f'), WANTED, s) for s in shares)


def certify(record):
    """Makes the table of the shares, orders by kinds of matrices."""
    found = {name: {row['n']: row
                    for row in records.rows(record, section, kind)}
             for name, section, kind in MATRICES}
    orders = sorted({n for rows in found.values() for n in rows if n >= 2048})
    body = [[str(n)] + [_cell(rows.get(n)) for rows in found.values()]
            for n in orders]
    return (['n'] + [name for name, _, _ in MATRICES], body) if body else None


ALL = {'certify': certify}

# SPDX-License-Identifier: BSD-3-Clause
"""Tables with a line for each method, for sections whose rows have different
methods, and for those of bench_papers, with the published figures."""

import records

COLUMNS = (  # key, header, how it is shown
    ('factor_ms', 'factor, ms', 'median'),
    ('refine_ms', 'refine, ms', 'median'),
    ('iterations', 'iterations', 'number'),
    ('paper_ms', 'published, ms', 'number'),
    ('paper_refine_ms', 'published refine, ms', 'number'),
    ('paper_iterations', 'published iterations', 'number'),
    ('error_text', 'error', 'text'))


def wanted(section, rows):
    """Tells whether a section needs such a table."""
    return section == 'forms' or any(
        'error_text' in m or 'paper_ms' in m
        for row in rows for m in row['methods'])


def _shown(page, method, key, how):
    value = method.get(key)
    if how == 'median' and isinstance(value, list):
        value = records.middle([v for v in value if v is not None])
    if how == 'text':
        return page.esc(value if value is not None else '–')
    if isinstance(value, (int, float)):
        return page.number(value)
    return '–'


def _which(row):
    """Returns the fields that identify a row."""
    told = [f'{row.get("kind", "")}'] + [
        f'{k} {v:g}' for k, v in row.items()
        if isinstance(v, (int, float)) and not isinstance(v, bool)
        and k in ('n', 'b', 'nrhs', 'threads', 'precision', 'block')]
    return ', '.join(t for t in told if t)


def table(page, rows):
    """Returns the table as HTML; page is the module that makes its cells."""
    methods = [m for row in rows for m in row['methods']]
    columns = [c for c in COLUMNS if any(
        m.get(c[0]) is not None for m in methods)]
    plain = not any('error_text' in m for m in methods)
    header = ['system', 'method', 'ms'] + [h for _, h, _ in columns]
    header += ['error'] if plain else []
    body = []
    for row in rows:
        for m in row['methods']:
            remark = '; '.join(str(m[k]) for k in ('skipped', 'failed')
                               if m.get(k))
            body.append(
                [page.esc(_which(row)), page.esc(m['name']), page.timing(m)]
                + [_shown(page, m, key, how) for key, _, how in columns]
                + ([page.number(m.get('error'), '.1e')] if plain else [])
                + [page.esc(remark)])
    return page.table(header + [''], body, (1, len(header)))

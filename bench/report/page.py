# SPDX-License-Identifier: BSD-3-Clause
"""Makes the page, one HTML file from any set of records, which loads nothing
else. All its numbers come from the records. See make, which calls this."""

import html
import os
import sys

import axes
import chart
import doctables
import longform
import papertables
import phases
import pictures
import records
from titles import PUBLISHED, SHORT, TITLES

CSS = '''
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 ''' + chart.FONT + ''';-webkit-text-size-adjust:100%}
main{max-width:1120px;margin:0 auto;padding:20px 16px 64px}
h1{font-size:1.7rem;line-height:1.2;margin:.6em 0 .2em}
h2{font-size:1.3rem;margin:2.4em 0 .2em;padding-top:.8em;
border-top:1px solid var(--grid)}
h3{font-size:1.02rem;margin:1.8em 0 .3em}
p,li{max-width:74ch}
.lead{font-size:1.12rem}.soft,figcaption{color:var(--soft);font-size:.86rem}
a{color:var(--s1)}code{font-size:.88em;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(480px,
100%),1fr));gap:26px 32px;align-items:start}
figure{margin:1em 0;min-width:0}figcaption{max-width:80ch;margin-top:.3em}
figure svg{display:block;width:100%;height:auto}
.wide svg{max-width:660px}.narrow{display:none}
@media (max-width:620px){.wide{display:none}.narrow{display:block}}
.table{overflow-x:auto;margin:.6em 0}
table{border-collapse:collapse;font-size:.86rem;
font-variant-numeric:tabular-nums}
th,td{padding:.22em .7em;text-align:right;white-space:nowrap;
border-bottom:1px solid var(--grid)}
th{font-weight:600;color:var(--soft);white-space:normal;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;padding-left:0}
td.text{text-align:left;white-space:normal;min-width:30ch}
.no{color:var(--soft)}.best{font-weight:650}
dl{display:grid;grid-template-columns:auto 1fr;gap:0 1em;font-size:.86rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
details{margin:.8em 0}summary{cursor:pointer;color:var(--soft)}
details th{white-space:nowrap}
.missing{border-left:3px solid var(--s2);padding-left:.8em}
'''


def esc(text):
    """Returns text with characters replaced that HTML would interpret."""
    return html.escape(str(text))


def number(value, form='.3g'):
    """Returns '12.3', or a dash for None; below a million without powers of
    ten."""
    if value is None:
        return '–'
    text = format(value, form)
    return f'{value:.0f}' if 'e' in text and 1.0 <= abs(value) < 1e6 else text


def table(header, rows, text_columns=()):
    """Returns a table. Cells are HTML, or (class, HTML)."""
    out = ['<div class="table"><table><tr>']
    out += [f'<th>{h}</th>' for h in header]
    out.append('</tr>')
    for row in rows:
        out.append('<tr>')
        for k, cell in enumerate(row):
            name, content = cell if isinstance(cell, tuple) else ('', cell)
            if k in text_columns:
                name = f'{name} text'.strip()
            out.append(f'<td class="{name}">{content}</td>' if name
                       else f'<td>{content}</td>')
        out.append('</tr>')
    return ''.join(out) + '</table></div>'


def timing(method):
    """Returns a cell with the median and its interval, in brackets if the
    answers are not accepted."""
    if method is None or not records.times(method):
        return ('no', '–')
    values = records.times(method)
    low, high = records.interval(values)
    cell = (f'<span title="{len(values)} rounds, {min(values):.4g} .. '
            f'{max(values):.4g} ms; error {number(method.get("error"))}">'
            f'{number(records.middle(values))}</span> '
            f'<span class="soft">({number(low)}–{number(high)})</span>')
    if not method.get('accepted'):
        return ('no', f'[{cell}]')
    return cell


def plain_table(header, body, text_columns=()):
    """Returns a table of cells that are plain text."""
    def cell(text):
        plain = esc('–' if text == '-' else text)
        if text.startswith('**'):
            return f'<b>{plain.strip("*")}</b>'
        return ('no', plain) if text.startswith('[') else plain
    wide = [k for k in range(len(header))
            if max(len(row[k]) for row in body) > 32]
    return table([esc(h) for h in header], [[cell(c) for c in row]
                                            for row in body],
                 (*text_columns, *wide))


# ---- Headlines


def headline(record):
    """Returns a sentence or two on the largest order; '' without times."""
    kind = axes.kind(record)
    told = []
    for row in records.rows(record, 'solve', kind):
        ours = (records.find(row, 'Hone kept')
                or records.find(row, 'Hone once'))
        if ours is None or row['n'] < 1000:
            continue
        peers = [m for m in row['methods'] if not records.is_ours(m)
                 and not records.is_pinned(m)]
        fast = records.best(peers, False)
        if fast:
            told.append((row['n'], ours, fast, records.best(peers, True)))
    if not told:
        return ''
    n, ours, fast, accepted = max(told, key=lambda t: t[0])
    text = (f'At n = {n}: <b>{number(records.middle(records.times(ours)))} ms'
            f'</b>, <b>{number(records.ratio(fast, ours), ".2f")} times</b> as '
            f'fast as the fastest other method ({esc(fast["name"])}')
    if not fast.get('accepted'):
        text += (', whose answer is not accepted, its backward error being '
                 f'{number(fast.get("error"), ".1e")}')
        text += (f'; the fastest that is accepted, {esc(accepted["name"])}: '
                 f'{number(records.ratio(accepted, ours), ".2f")} times'
                 if accepted and accepted is not fast else
                 '; none of the others is accepted')
    text += '). '
    losses = [t for t in told if records.ratio(t[2], t[1]) < 1.0]
    if losses:
        text += 'Slower than another method, accepted or not, at n = '
        text += ', '.join(
            f'{t[0]} ({number(records.ratio(t[2], t[1]), ".2f")})'
            for t in losses) + '. '
    return text


def crossover_text(record):
    """Returns the orders from which on a method is faster than another."""
    lines = []
    for section in ('solve', 'small'):
        rows = records.rows(record, section, axes.kind(record, section))
        for ours, other, what in (
                ('Hone kept', 'dgesv', 'Hone (kept) than dgesv'),
                ('Hone once', 'dgesv', 'Hone (one call) than dgesv'),
                ('Hone kept', 'dsgesv', 'Hone (kept) than dsgesv'),
                ('Hone CUDA kept', 'Hone CPU kept', 'the GPU than the CPU'),
                ('Hone CUDA kept', 'copy + getrf FP64 + getrs',
                 'the GPU than cuSOLVER FP64')):
            points = [(r['n'], records.ratio(records.find(r, ours),
                                             records.find(r, other)))
                      for r in rows if records.find(r, ours)
                      and records.find(r, other)]
            found = records.crossover([p for p in points if p[1]])
            if found:
                lines.append(f'<li>{what}: faster from n = {found[2]:.0f} on '
                             f'(measured: slower at {found[0]:g}, faster at '
                             f'{found[1]:g}; interpolated linearly in '
                             'logarithms)</li>')
    return f'<h3>Crossovers</h3><ul>{"".join(lines)}</ul>' if lines else ''


def exponents(record):
    """Returns a table of the fits that the program recorded."""
    fits = [f for f in record.get('fits', []) if isinstance(f, dict)]
    if not fits:
        return ''
    return ('<details><summary>Exponents p of t = c xᵖ, least squares of the '
            'logarithms</summary>' + table(
                ['x', 'method', 'n', 'from', 'to', 'p', 'standard error',
                 'accepted'],
                [[esc(f.get('against')),
                  esc(f'{f.get("method")}, {f.get("kind")}'),
                  number(f.get('n')), number(f.get('from'), 'g'),
                  number(f.get('to'), 'g'), number(f.get('exponent'), '.2f'),
                  number(f.get('standard_error'), '.2f'),
                  f'{number(f.get("accepted"), "d")} of '
                  f'{number(f.get("points"), "d")}'] for f in fits], (1,))
            + '</details>')


# ---- Tables


# Fields of rows that make a column of their table where they differ.
COLUMNS = {'nrhs': 'right-hand sides', 'threads': 'threads',
           'busy': 'busy processes beside', 'cpus': 'CPUs (0: all)'}


def solve_table(record, section):
    """Returns a table of a section's times and ratios; '' without times."""
    rows = records.rows(record, section)
    if not rows:
        return ''
    if longform.wanted(section, rows):
        return longform.table(sys.modules[__name__], rows)
    names = []
    for row in rows:
        names += [m['name'] for m in row['methods'] if records.times(m)
                  and m['name'] not in names]
    reference = names[0]
    header = ['matrix', 'n']
    extra = [k for k in COLUMNS if len({r.get(k, 1) for r in rows}) > 1]
    header += [COLUMNS[k] for k in extra]
    body = []
    floors = any(r.get('floor_ms') for r in rows)
    header += [f'{esc(n)}, ms' for n in names]
    header += [f'{esc(n)} / {esc(reference)}' for n in names[1:]]
    header += ['floor, ms', 'time / floor'] if floors else []
    for row in rows:
        found = {n: records.find(row, n) for n in names}
        own = found[reference]
        line = [esc(row.get('kind', '')), number(row.get('n'))]
        line += [number(row.get(k, 1)) for k in extra]
        line += [timing(found[n]) for n in names]
        for n in names[1:]:
            r = own and found[n] and records.ratio(found[n], own)
            text = number(r, '.2f') if r else '–'
            counted = found[n] and found[n].get('accepted')
            line.append(text if counted else ('no', f'[{text}]'))
        if floors:
            floor = row.get('floor_ms')
            line += [number(floor), number(
                records.middle(records.times(own)) / floor, '.2f')
                if own and floor else '–']
        body.append(line)
    return table(header, body)


def phases_table(record):
    """Returns a table of milliseconds by phase, as the library reports them."""
    rows = []
    for section in ('small', 'solve', 'spd', 'hard', 'forms', 'phases'):
        for row in records.rows(record, section):
            for m in row['methods']:
                times = records.is_ours(m) and phases.phase_times(m)
                if not times or (section in ('small', 'solve') and m[
                        'name'] not in ('Hone kept', 'Hone once')):
                    continue
                factor, solve = m.get('factor', {}), m.get('solve', {})
                both = (factor, solve)
                exposed = number(factor.get('exposed_ms') or 0.0)
                rows.append([
                    f'{section} {esc(row.get("kind", ""))}',
                    number(row['n']), esc(m['name'])]
                    + [number(times[k]) for k, _, _ in phases.PHASES]
                    + [number(sum(times.values())),
                       f'{number(factor.get("diagonal_ms") or 0.0)} ({exposed}'
                       ')', number(solve.get('iterations'), 'd'),
                       number(sum(r.get('passes') or 0 for r in both), 'd'),
                       number(sum(r.get('device_passes') or 0
                                  for r in both), 'd')])
    if not rows:
        return ''
    return ('<details><summary>Phases, ms of one solve</summary>' + table(
        ['section', 'n', 'method'] + [label for _, label, _ in phases.PHASES]
        + ['all', 'diagonal blocks on the CPU (exposed)', 'corrections',
           'passes over A, host', 'device'], rows, (2,)) + '</details>')


def tables(record):
    """Returns the tables of all sections with times, also unknown ones. Only
    that of whole solves is open."""
    order = list(TITLES)
    sections = sorted({r['section'] for r in record['rows']
                       if 'methods' in r and r['section'] != 'history'},
                      key=lambda s: (order.index(s) if s in order
                                     else len(order), s))
    out = []
    for section in sections:
        content = solve_table(record, section)
        if content:
            out.append(f'<details{" open" if section == "solve" else ""}>'
                       f'<summary>{esc(TITLES.get(section, section))}'
                       f'</summary>{content}</details>')
    if out:
        out.insert(0, '<h3>Tables</h3><p class="soft">Times are medians in '
                   'milliseconds, with 95 % confidence intervals in round '
                   'brackets. Ratios are medians of those within a round. '
                   '[In square brackets]: the answer is not accepted, and its '
                   'time does not count.</p>')
    return ''.join(out)


def skipped(record):
    """Returns a table of what was not measured, and why."""
    made = papertables.left_out(record)
    if not made:
        return ''
    header, body = made
    count = sum(not records.times(m) for row in record['rows']
                for m in row.get('methods', [])
                if m.get('failed') or m.get('skipped'))
    return (f'<details><summary>Not measured, and why: {count}</summary>'
            + plain_table(header, body, (1, 2)) + '</details>')


def in_short(record):
    """Returns the tables of docs/performance.md for the record of a GPU."""
    if record.get('device', 'CPU') == 'CPU':
        return ''
    out = []
    for name, title in SHORT.items():
        made = doctables.ALL[name](record)
        if made:
            out.append(f'<h3>{esc(title)}</h3>' + plain_table(*made))
    if out:
        out.append('<p class="soft">Bold: the ratio misses its goal.</p>')
    return ''.join(out)


def publications(record):
    """Returns the publications' tables with their figures and ours; '' if the
    record has none."""
    out = []
    for name, title in PUBLISHED.items():
        made = papertables.ALL[name](record)
        if made:
            out.append(f'<h3>{esc(title)}</h3>' + plain_table(*made))
    if not out:
        return ''
    return ('<p class="soft">"Here" was measured on this machine; "there" is '
            'published by F. D. Igual 2011 (Tesla C1060 and two Xeon E5520) or '
            'L. Cejka 2022 (A100 and EPYC 7543). Times are medians in '
            'milliseconds. [In brackets]: not accepted, or not checked. –: not '
            'measured; the reasons are below.</p>' + ''.join(out))


def gallery_text(record):
    """Returns a sentence that counts the gallery's answers."""
    rows = [r for r in record['rows'] if 'answers' in r]
    if not rows:
        return ''
    status = [s for r in rows for s in r['answers']['status']]
    wrong = sum(1 for r in rows for s, w in zip(r['answers']['status'],
                                                r['answers']['hone'])
                if s == 0 and not (w is not None and w <= 1.01
                                   * records.LIMIT))
    return (f'<p>{len(status)} systems of {len(rows)} families: '
            f'{status.count(0)} accepted, '
            f'{sum(s > 0 for s in status)} best effort, '
            f'{sum(s < 0 for s in status)} refused. Accepted although the '
            'independent check finds a backward error above the limit: '
            f'{wrong}.</p>')


def machine(record):
    """Returns a list of what the record says about the machine."""
    left = [(k, v) for k, v in record.items()
            if isinstance(v, (str, int, float)) and k not in
            ('file', 'format', 'pinned_bytes_s', 'gemm_flops_s',
             'sgemm_flops_s', 'copy_bytes_s')]
    return ('<details><summary>Machine, versions, clocks</summary>'
            '<dl>' + ''.join(f'<dt>{esc(k)}</dt><dd>{esc(v)}</dd>'
                             for k, v in left) + '</dl></details>')


def source(record):
    """Returns the record's name, commit and command, for a caption."""
    commit = str(record.get('commit', 'unknown'))
    short = commit if len(commit) < 12 else commit[:10] + (
        ' (modified)' if 'modified' in commit else '')
    if commit.startswith('unknown'):
        short = commit
    return (f'Record <code>{esc(os.path.basename(record["file"]))}</code>, '
            f'commit {esc(short)}, made by <code>'
            f'{esc(record.get("program", "?"))}</code>.')


# ---- The page


def stem(record):
    """Returns the record's name for identifiers and file names."""
    name = os.path.splitext(os.path.basename(record['file']))[0]
    return ''.join(c if c.isalnum() else '_' for c in name)


def figure(record, name, draw):
    """Returns (figure, the wide SVG), or None if the record has nothing to
    draw."""
    made = draw(record)
    if made is None:
        return None
    wide, caption = made
    key = f'{stem(record)}-{name}'
    svg = wide.draw(key)
    small = draw(record, True)[0].draw(key + '-n')
    return (f'<figure id="{key}"><div class="wide">{svg}</div>'
            f'<div class="narrow">{small}</div><figcaption>{esc(caption)} '
            f'{source(record)}</figcaption></figure>'), svg


def figures(record):
    """Returns [(name, figure, svg)] of all pictures that the record allows."""
    made = [(name, figure(record, name, draw))
            for name, draw in pictures.ALL]
    return [(name, *found) for name, found in made if found]


def bench_part(record, drawn):
    """Returns the record's part of the page."""
    big = [f for name, f, _ in drawn if name in ('history', 'gallery')]
    rest = [f for name, f, _ in drawn if name not in ('history', 'gallery')]
    published = publications(record)
    what = 'The tables of two publications: ' if published else ''
    return (f'<h2 id="{stem(record)}">{what}{esc(axes.where(record))} <span '
            f'class="soft">{esc(os.path.basename(record["file"]))}</span></h2>'
            f'<p class="lead">{headline(record)}</p>'
            f'<p class="soft">{source(record)}</p>{machine(record)}'
            f'<div class="grid">{"".join(rest)}</div>'
            f'{crossover_text(record)}{"".join(big)}{gallery_text(record)}'
            f'{published or in_short(record)}{tables(record)}'
            f'{exponents(record)}{phases_table(record)}'
            f'{skipped(record)}')


def campaign_part(record):
    """Returns the part of the page with a campaign's counts by family."""
    rows = []
    for f in record['families']:
        rows.append([esc(f['family'])] + [number(f.get(k), 'd') for k in (
            'systems', 'columns', 'accepted', 'best_effort', 'refused',
            'accepted_omega_above_rule', 'accepted_error_above_bound',
            'dgesv_success_though_singular')])
    whole = next((f for f in record['families'] if f['family'] == 'all'), {})
    return (f'<h2 id="{stem(record)}">Campaign: {number(record.get("systems"))}'
            f' random systems of the gallery</h2><p class="lead">'
            f'{number(whole.get("accepted"), "d")} of '
            f'{number(whole.get("columns"), "d")} right-hand sides accepted; '
            f'accepted with a backward error above the limit: '
            f'<b>{number(whole.get("accepted_omega_above_rule"), "d")}</b>; '
            f'with an error above its bound: '
            f'{number(whole.get("accepted_error_above_bound"), "d")}.</p>'
            f'<p class="soft">Record <code>'
            f'{esc(os.path.basename(record["file"]))}</code>, seed '
            f'{esc(record.get("seed"))}.</p><details><summary>By family'
            '</summary>' + table(
                ['family', 'systems', 'right-hand sides', 'accepted',
                 'best effort', 'refused',
                 'accepted, backward error above the limit',
                 'accepted, error above its bound',
                 'singular, but dgesv reports success'], rows) + '</details>')


def page(parts, notes):
    """Returns the whole page. parts are [(record, figures)]."""
    heads = ''.join(
        f'<li><a href="#{stem(r)}">{esc(axes.where(r))}</a>: '
        f'{headline(r)}<span class="soft">({esc(os.path.basename(r["file"]))})'
        '</span></li>' for r, _ in parts
        if r['format'] == records.BENCH and headline(r))
    body = ''.join(bench_part(r, drawn) if r['format'] == records.BENCH
                   else campaign_part(r) for r, drawn in parts)
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, '
            'initial-scale=1"><title>Hone, measured</title>'
            f'<style>{chart.style()}{CSS}</style></head><body><main>'
            '<h1>Hone, measured side by side</h1>'
            '<p class="lead">Solving dense A x = b to full double accuracy, '
            'compared with LAPACK, OpenBLAS and cuSOLVER. Every answer was '
            'checked in the same way: its componentwise backward error, max '
            '|b − A x| / (|A| |x| + |b|), was computed in extended precision. '
            'It is accepted up to 4 units of rounding, 4.4e-16. The time of an '
            'answer that is not accepted does not count; it is shown by a '
            'hollow point or in [brackets].</p>'
            f'<ul>{heads}</ul>' + ''.join(
                f'<p class="missing">{esc(n)}</p>' for n in notes)
            + body + '</main></body></html>\n')

# SPDX-License-Identifier: BSD-3-Clause
"""Compares the claims of documents, which claims.txt lists, with the records.
"""

import os
import re

import doctables
import records

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'claims.txt')
HOLE = re.compile(r'\{([^{}]+)\}')
NUMBER = r'([0-9][0-9.,]*(?:e[+-]?[0-9]+)?(?<![.,]))'


class Kept:
    """The records of a folder, each of which is read once."""

    def __init__(self, folder):
        self.folder, self.read = folder, {}

    def record(self, file):
        """Returns a record by its name, with or without .json."""
        name = file if file.endswith('.json') else file + '.json'
        if name not in self.read:
            self.read[name] = records.load(os.path.join(self.folder, name))
        return self.read[name]


def _row(record, place):
    """Returns the row 'solve/uniform/4096', or 'solve/uniform/4096/NRHS'."""
    section, kind, n, *nrhs = place.split('/')
    for row in records.rows(record, section, kind):
        if row['n'] == int(n) and (not nrhs
                                   or row.get('nrhs') == int(nrhs[0])):
            return row
    raise records.RecordError(f'{record["file"]}: has no row {place}')


def _method(record, place, name):
    found = records.find(_row(record, place), name)
    if found is None:
        raise records.RecordError(f'{record["file"]}: {place} has no times of '
                                  f'"{name}"')
    return found


def _ms(kept, words):
    """ms RECORD ROW METHOD: the median time in milliseconds"""
    return records.middle(records.times(_method(
        kept.record(words[0]), words[1], ' '.join(words[2:]))))


def _us(kept, words):
    """us RECORD ROW METHOD: the median time in microseconds"""
    return 1e3 * _ms(kept, words)


def _s(kept, words):
    """s RECORD ROW METHOD: the median time in seconds"""
    return 1e-3 * _ms(kept, words)


def _part(kept, words):
    """part RECORD ROW A / B: the time of A divided by that of B"""
    record = kept.record(words[0])
    one, other = ' '.join(words[2:]).split(' / ')
    return records.ratio(_method(record, words[1], one),
                         _method(record, words[1], other))


def _best(kept, words):
    """best RECORD ROW PREFIX: the time of the vendor's fastest method whose
    name begins like this, divided by that of one call of hone_solve, or of a
    kept solver where that was not run"""
    record = kept.record(words[0])
    row = _row(record, words[1])
    own = doctables.one_call(row)
    peer = doctables.fastest(row, ' '.join(words[2:]) + ' ')
    if peer is None:
        raise records.RecordError(f'{record["file"]}: {words[1]} has no peer')
    return records.ratio(peer, own)


def _campaign(kept, words):
    """campaign FIELD RECORD...: a count over all families and records, rounded
    down to thousands; systems and families are fields, too"""
    total = 0
    for name in words[1:]:
        record = kept.record(name)
        families = [f for f in record['families'] if f['family'] != 'all']
        whole = next(f for f in record['families'] if f['family'] == 'all')
        if words[0] == 'families':
            total = max(total, len(families))
        else:
            total += record['systems'] if words[0] == 'systems' else \
                whole[words[0]]
    return total if words[0] == 'families' else total // 1000 * 1000


def _scalars(kept, words):
    """scalars low|high RECORD: in Igual's table 4.1, the least or largest ratio
    of the time by scalars on the GPU to that by way of the CPU"""
    found = []
    for row in kept.record(words[1])['rows']:
        if row['section'] == 'igual 4.1':
            way = [doctables.median(row, n) for n in (
                'GPU to host', 'potrf, CPU', 'host to GPU')]
            scalars = doctables.median(row, 'by scalars, GPU')
            if scalars and None not in way:
                found.append(scalars / sum(way))
    return (min if words[0] == 'low' else max)(found)


ASKED = {'scalars': _scalars, 's': _s, 'ms': _ms, 'us': _us, 'part': _part,
         'best': _best, 'campaign': _campaign}


class Claim:
    """A sentence, or a part of one, with holes for numbers."""

    def __init__(self, document, text):
        self.document, self.text = document, text
        self.holes = HOLE.findall(text)
        plain = [r'\s+'.join(re.escape(w) for w in re.split(r'\s+', part))
                 for part in HOLE.split(text)[::2]]
        self.pattern = re.compile(NUMBER.join(plain))

    def found(self, text):
        """Returns the match in the document, which must have it once."""
        found = list(self.pattern.finditer(text))
        if len(found) != 1:
            raise records.RecordError(
                f'{self.document}: has {len(found)} times, not once: '
                f'{self.text}')
        return found[0]

    def values(self, kept):
        """Returns the numbers of the holes, formatted, from the records."""
        out = []
        for hole in self.holes:
            asked, _, form = hole.rpartition(':')
            word, *words = asked.split()
            if word not in ASKED:
                raise records.RecordError(f'claims.txt: {{{hole}}}: there are '
                                          + ', '.join(ASKED))
            try:
                out.append(format(ASKED[word](kept, words), form))
            except (ValueError, IndexError, KeyError) as error:
                raise records.RecordError(
                    f'claims.txt: {{{hole}}}: {error}') from None
        return out

    def put_in(self, text, kept, told):
        """Returns the text with the records' numbers, and adds those that
        differed to told."""
        match = self.found(text)
        out = text
        for k, value in reversed(list(enumerate(self.values(kept), 1))):
            if match.group(k) != value:
                told.append(f'{self.document}: says {match.group(k)}, the '
                            f'record {value}: {self.holes[k - 1]}')
            out = out[:match.start(k)] + value + out[match.end(k):]
        return out


def read(path=FILE):
    """Returns the claims. Each is a block with the document's name and,
    indented, the text."""
    with open(path, encoding='utf-8') as file:
        lines = [line for line in file.read().split('\n')
                 if not line.startswith('#')]
    found = []
    for block in re.split(r'\n\s*\n', '\n'.join(lines).strip()):
        name, _, text = block.partition('\n')
        found.append(Claim(name.strip(), ' '.join(text.split())))
    return found

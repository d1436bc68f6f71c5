# SPDX-License-Identifier: BSD-3-Clause
"""Tests that the documents' numbers are those of the records, and that trace
names numbers that are not."""

import contextlib
import io
import os
import re
import tempfile
import unittest

from made_up import TOP, method, program, record, row, save

import claims
import doctables
import papertables
import records

trace = program('bench/report/trace')
join = program('bench/report/join')

UNITS = (r'\d[\d.,]*(?:\s+to\s+\d[\d.,]*)?\s+(?:ms|us|ns|s|seconds|minutes|'
         r'microseconds|times|GB/s|TFLOP/s|GFLOP/s|%|accepted|systems)(?!\w)')


def quiet(run, *arguments):
    """Returns (exit status, output, errors)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(*arguments)
    return status, out.getvalue(), err.getvalue()


def document(name):
    """Returns a document's text."""
    with open(os.path.join(TOP, name), encoding='utf-8') as file:
        return file.read()


class Documents(unittest.TestCase):
    """README.md and docs."""

    def test_say_what_the_records_say(self):
        status, out, err = quiet(trace.main, [])
        self.assertEqual((status, err), (0, ''), out)

    def test_claim_every_measured_number_of_the_readme(self):
        text = document('README.md')
        plain = re.sub(r'^(```.*?^```|    [^\n]*)', lambda m: ' ' * len(
            m.group(0)), text, flags=re.S | re.M)
        covered = [c.found(text).span() for c in claims.read()
                   if c.document == 'README.md']
        for found in re.finditer(UNITS, plain):
            self.assertTrue(any(a <= found.start() and found.end() <= b
                                for a, b in covered),
                            f'README.md: {found.group(0)!r}: from which '
                            'record? (bench/report/claims.txt)')
        self.assertGreater(len(re.findall(UNITS, plain)), 5)

    def test_name_records_that_are_there(self):
        for name in trace.DOCUMENTS:
            for file in re.findall(r'bench/results/(\w+\.json)',
                                   document(name)):
                self.assertTrue(os.path.exists(os.path.join(
                    TOP, 'bench', 'results', file)), f'{name}: {file}')


class Claims(unittest.TestCase):
    """Claims of a document and records that are made up."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        made = record()
        made['rows'].append(row(4096, [
            method('Hone kept', [10.0, 11.0, 12.0]),
            method('copy + getrf FP64 + getrs', [44.0, 22.0, 36.0])]))
        save(self.folder, 'a.json', made)
        self.kept = claims.Kept(self.folder)

    def told(self, template, text):
        """Returns (the corrected text, the messages)."""
        said = []
        return claims.Claim('D.md', template).put_in(text, self.kept,
                                                     said), said

    def test_are_held_against_the_record(self):
        ask = '{ms a solve/uniform/4096 Hone kept:.0f} ms, {best a ' \
            'solve/uniform/4096 copy +:.1f} times'
        self.assertEqual(self.told(ask, 'takes 11\nms, 3.0 times as'),
                         ('takes 11\nms, 3.0 times as', []))
        text, said = self.told(ask, 'takes 9 ms, 12.5 times, in 7 ms')
        self.assertEqual(text, 'takes 11 ms, 3.0 times, in 7 ms')
        self.assertEqual([s.split(':')[1] for s in said], [
            ' says 12.5, the record 3.0', ' says 9, the record 11'])

    def test_that_are_not_there_or_twice_are_named(self):
        ask = 'in {ms a solve/uniform/4096 Hone kept:.0f} ms'
        for text, count in (('in no time', 0), ('in 1 ms and in 2 ms', 2)):
            with self.assertRaises(records.RecordError) as caught:
                self.told(ask, text)
            self.assertIn(f'D.md: has {count} times', str(caught.exception))

    def test_that_ask_nonsense_are_named(self):
        for ask, why in (('{sum a:.0f}', 'there are scalars'),
                         ('{ms b solve/uniform/4096 X:.0f}', 'b.json'),
                         ('{ms a solve/uniform/4096 X:.0f}', 'no times of'),
                         ('{ms a solve/uniform/77 X:.0f}', 'has no row'),
                         ('{ms a solve:.0f}', 'not enough values')):
            with self.assertRaises(records.RecordError) as caught:
                self.told(ask + ' ms', '1 ms')
            self.assertIn(why, str(caught.exception))

    def test_tables_are_put_between_their_marks(self):
        said = []
        marks = ('x\n<!-- table solve of a.json -->\n{}'
                 '<!-- end of table -->\ny\n')
        for old in ('', 'an old one\n'):
            text = trace.tables_put_in(marks.format(old), self.kept, said,
                                       'D.md')
            self.assertIn('| uniform | 4096 | - | 11.0 | **3.00** | 3.3 |',
                          text)
            self.assertNotIn('an old one', text)
            self.assertTrue(text.endswith('<!-- end of table -->\ny\n'))
        self.assertEqual(len(said), 2)
        again = trace.tables_put_in(text, self.kept, said, 'D.md')
        self.assertEqual((again, len(said)), (text, 2))
        text = trace.tables_put_in(
            marks.replace('solve', 'forms').format(''), self.kept, said, '')
        self.assertIn('Not in this record.', text)


class Published(unittest.TestCase):
    """The publications' tables of a record that is made up."""

    def test_stand_beside_ours(self):
        def way(name, ms, accepted=True, **more):
            return method(name, ms, accepted, error_text='1e-17', **more)
        made = {'rows': [
            {'section': 'igual 4.2', 'kind': 'uniform', 'n': 10240,
             'methods': [
                 way("Igual's way, GPU", [2000.0], factor_ms=[900.0],
                     refine_ms=[700.0], iterations=5, paper_ms=5118,
                     paper_refine_ms=858, paper_iterations=5),
                 way('Hone, GPU', [50.0, 60.0, 70.0]),
                 way('cuSOLVER getrf FP64', [200.0], False)]},
            {'section': 'cejka', 'kind': 'Cejka10793', 'n': 10793,
             'precision': 32, 'methods': [
                 {'name': 'CPU, one thread, single', 'ms': [],
                  'skipped': 'no time for it, about 1e+03 s',
                  'paper_ms': 643346, 'error_text': '-'},
                 way('ICM32, single', [4000.0], paper_ms=2210.7,
                     diagonal_sweeps=900, diagonals=3, pair_sweeps=512,
                     pairs=2)]}]}
        _, body = papertables.refinement(made)
        self.assertEqual(body[0][:6], ['LU', '10240', '5118 + 858 (5)',
                                       '900 + 700 (5)', '2000', '-'])
        self.assertEqual(body[0][6:8], ['60.0', '[200]'])
        _, body = papertables.crout(made)
        self.assertEqual(body[0][3], '- / 643346')
        self.assertEqual(body[0][6], '4000 / 2211')
        self.assertEqual(body[0][10], '300, 256')
        _, body = papertables.left_out(made)
        self.assertEqual(body, [['cejka', 'CPU, one thread, single '
                                 '(Cejka10793 10793)',
                                 'no time for it, about 1e+03 s']])
        self.assertIsNone(papertables.diagonal(made))

    def test_batches_on_a_device_stand_beside_their_goals(self):
        def systems(kind, wanted, floor, ours, there=None):
            names = ('Hone batch', 'getrfBatched + getrsBatched', floor)
            methods = [{'name': name, 'ms': ms, 'accepted': name == names[0]}
                       for name, ms in zip(names, (ours, [3.0, 5.0, 4.0],
                                                   [0.5, 0.5, 0.5]))]
            if there:
                methods.append({'name': 'Hone batch, results on the device',
                                'ms': there, 'accepted': True})
            return {'section': 'batch', 'kind': kind, 'n': 64, 'nrhs': 1,
                    'count': 10000, 'wanted': wanted, 'methods': methods}
        made = {'rows': [
            systems('real', 0.6, 'one reading of A', [2.0, 2.0, 1.0],
                    [1.6, 1.0, 1.7]),
            systems('complex', None, 'one reading of A', [2.0, 2.0, 2.0]),
            systems('from the host', 9.0, 'A to the device', [8.0] * 3),
            systems('from the host', 9.0, 'one reading of A', [8.0] * 3)]}
        _, body = doctables.device_batch(made)
        self.assertEqual(body[0], ['10,000', '64', 'real', '**2.00**', '1.60',
                                   'yes', '4.00', '2.35', '0.600', '0.500'])
        self.assertEqual([row[3] for row in body], ['**2.00**', '2.00', '8.00'])
        self.assertEqual([row[4] for row in body], ['1.60', '-', '-'])
        self.assertEqual([row[7] for row in body], ['2.35', '2.00', '0.50'])
        self.assertEqual([row[8] for row in body], ['0.600', '-', '9.00'])
        self.assertIsNone(doctables.device_batch({'rows': []}))

    def test_complex_tables_compare_with_the_fastest_peer(self):
        made = {'rows': [
            row(8192, [
                method('Hone kept', [40.0, 50.0, 60.0]),
                method('Hone once', [32.0, 40.0, 48.0]),
                method('copy + getrf C64F + getrs',
                               [200.0, 200.0, 240.0]),
                method('copy + IRS C_32F', [400.0, 400.0, 400.0])],
                'complex', floor_ms=25.0, wanted=4.5),
            row(1024, [
                method('Hone fp16x3', [2.0, 2.0, 2.0]),
                method('Xgetrf C32F, pivoting', [5.0, 5.0, 5.0])],
                'complex factor')]}
        self.assertEqual(
            doctables.ALL['complex'](made)[1],
            [['uniform', '8192', '40 (32 .. 48)', '50.0', 'yes',
              '200 (200 .. 240)', '5.00', '4.5', '1.6']])
        no_call = {'rows': [{**made['rows'][0], 'methods': [
            m for m in made['rows'][0]['methods']
            if m['name'] != 'Hone once']}]}
        self.assertEqual(
            doctables.ALL['complex'](no_call)[1],
            [['uniform', '8192', '50 (40 .. 60)', '50.0', 'yes',
              '200 (200 .. 240)', '**4.00**', '4.5', '2.0']])
        self.assertEqual(
            doctables.ALL['complex factor'](made)[1],
            [['1024', '2 (2 .. 2)', '1.4', '5 (5 .. 5)', '0.6', '2.50']])
        self.assertIsNone(doctables.ALL['complex']({'rows': []}))
        self.assertIsNone(doctables.ALL['complex factor']({'rows': []}))

    def test_tables_of_several_gpus_take_each_ratio_from_its_own_row(self):
        def pair(kind, n, one, both, what='Hone kept', more=(), **fields):
            return {**row(n, [method(f'{what}, one GPU', one),
                              method(f'{what}, all GPUs', both), *more],
                          'several', devices=2, **fields), 'kind': kind}
        mg = [method('factorization, all GPUs', [100.0, 110.0, 120.0]),
              method('cuSolverMG getrf FP64, all GPUs', [300.0, 330.0, None])]
        made = {'rows': [
            pair('columns', 512, [9.0] * 3, [6.0] * 3, nrhs=100),
            pair('complex', 512, [8.0] * 3, [4.0] * 3),
            pair('uniform', 1024, [10.0, 12.0, 11.0], [8.0, 8.0, 10.0]),
            pair('complex factorization', 512, [7.0] * 3, [5.0] * 3,
                 'factorization', wanted=None),
            pair('factorization', 1024, [150.0, 160.0, 170.0],
                 [100.0, 100.0, 100.0], 'factorization', wanted=1.8),
            pair('factorization', 2048, [150.0] * 3, [50.0] * 3,
                 'factorization', wanted=1.8),
            {**row(1024, mg, 'several', devices=2, wanted=3.5),
             'kind': 'beside cuSolverMG'},
            {**row(2048, [method(m['name'], []) for m in mg], 'several',
                   devices=2, wanted=3.5), 'kind': 'beside cuSolverMG'},
            pair('batch', 64, [6.0] * 3, [4.0] * 3, 'Hone batch', count=16384,
                 more=[method('A to one GPU', [5.0] * 3),
                       method('A to all GPUs', [2.5] * 3)])]}
        made['rows'][1]['methods'][1]['accepted'] = False
        self.assertEqual(doctables.ALL['several solve'](made)[1], [
            ['real', '1024', '1', '2', '11 (10 .. 12)', '8 (8 .. 10)', '1.25',
             'yes'],
            ['complex', '512', '1', '2', '8 (8 .. 8)', '4 (4 .. 4)', '2.00',
             'no'],
            ['real', '512', '100', '2', '9 (9 .. 9)', '6 (6 .. 6)', '1.50',
             'yes']])
        self.assertEqual(doctables.ALL['several factor'](made)[1], [
            ['real', '1024', '2', '160 (150 .. 170)', '100 (100 .. 100)',
             '**1.60**', '1.8', '315 (300 .. 330)', '**3.00**', '3.5'],
            ['real', '2048', '2', '150 (150 .. 150)', '50 (50 .. 50)', '3.00',
             '1.8', '-', '-', ''],
            ['complex', '512', '2', '7 (7 .. 7)', '5 (5 .. 5)', '1.40', '',
             '-', '-', '']])
        self.assertEqual(doctables.ALL['several batch'](made)[1], [
            ['16,384', '64', '2', '6 (6 .. 6)', '4 (4 .. 4)', '1.50', 'yes',
             '5.00', '2.50', '1.60']])
        for name in ('several solve', 'several factor', 'several batch'):
            header, body = doctables.ALL[name](made)
            self.assertEqual({len(line) for line in body}, {len(header)})
            self.assertIsNone(doctables.ALL[name]({'rows': []}))

    def test_ratios_beside_busy_processes_are_held_to_those_alone(self):
        def beside(busy, ours, dgesv, dsgesv):
            return row(2048, [method('Hone once', [ours] * 3),
                              method('Hone kept', [ours - 1.0] * 3),
                              method('dgesv', [dgesv] * 3),
                              method('dsgesv', [dsgesv] * 3)],
                       'callers', busy=busy, cpus=0)
        made = {'rows': [beside(0, 10.0, 20.0, 12.0),
                         beside(1, 20.0, 34.4, 20.2)]}
        self.assertEqual(
            doctables.ALL['cpu callers'](made)[1],
            [[2048, 'none', '10 (10 .. 10)', '9.00', '20.0', '12.0', '2.00',
              '1.20'],
             [2048, 1, '20 (20 .. 20)', '19.0', '34.4', '20.2', '1.72',
              '**1.01**']])
        self.assertIsNone(doctables.ALL['cpu callers']({'rows': []}))

    def test_cells_cannot_end_early(self):
        text = doctables.markdown(['a'], [['|b - A x|']])
        self.assertEqual(text.split('\n')[2], '| \\|b - A x\\| |')


class Join(unittest.TestCase):
    """The program that joins several records."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def joined(self, first, second):
        """Returns the record made of both."""
        paths = [save(self.folder, 'a.json', first),
                 save(self.folder, 'b.json', second)]
        status, out, err = quiet(join.main, paths)
        self.assertEqual((status, err), (0, ''))
        return records.load(save(self.folder, 'c.json', out))

    def test_keeps_where_each_row_is_from(self):
        second = {**record(2.0), 'commit': 'another', 'date': 'later'}
        second['rows'] = second['rows'][1:2]
        whole = self.joined({**record(), 'fits': []}, second)
        rows = records.rows(whole, 'solve')
        self.assertEqual([r.get('commit') for r in rows],
                         ['abc', 'another', 'abc'])
        self.assertEqual(rows[1]['date'], 'later')
        self.assertIn('unknown', whole['commit'])
        self.assertNotIn('fits', whole)
        self.assertEqual(len(whole['rows']), len(record()['rows']))

    def test_never_lets_a_row_without_times_win(self):
        second = record()
        for each in second['rows'][:3]:
            for way in each['methods']:
                way['ms'] = [None, None]
        whole = self.joined(record(), second)
        self.assertEqual(len(records.rows(whole, 'solve')), 3)

    def test_tells_rows_apart_by_all_they_have(self):
        def blocks(b, ms):
            return {**row(512, [method('a', [ms])], 'igual blocks'), 'b': b}

        def form(name, ms):
            return row(512, [method(name, [ms])], 'forms')
        first, second = record(), record()
        first['rows'] = [blocks(32, 1.0), blocks(64, 2.0), form('x', 3.0),
                         form('y', 4.0)]
        second['rows'] = [blocks(64, 5.0), form('y', 6.0)]
        whole = self.joined(first, second)
        self.assertEqual(sorted(r['methods'][0]['ms'][0]
                                for r in whole['rows']),
                         [1.0, 3.0, 5.0, 6.0])

    def test_refuses_other_machines_and_broken_files(self):
        paths = [save(self.folder, 'a.json', record()),
                 save(self.folder, 'b.json', {**record(), 'host': 'other'}),
                 save(self.folder, 'd.json', record(), 300)]
        for bad, why in ((paths[:2], 'not of the same host'),
                         ([paths[0], paths[2]], 'is cut off'),
                         (paths[:1], 'usage')):
            status, _, err = quiet(join.main, bad)
            self.assertEqual(status, 2)
            self.assertIn(why, err)


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""Tests which records are read, the messages for bad ones, and statistics."""

import os
import tempfile
import unittest

from made_up import TOP, changed, record, save

import records


class Files(unittest.TestCase):
    """Good and bad files of records."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def refused(self, value, why, cut=None):
        """Checks that the error names the file and says why."""
        path = save(self.folder.name, 'bad.json', value, cut)
        with self.assertRaises(records.RecordError) as caught:
            records.load(path)
        self.assertIn(path, str(caught.exception))
        self.assertIn(why, str(caught.exception))

    def test_reads_what_it_should(self):
        path = save(self.folder.name, 'good.json', record())
        self.assertEqual(records.load(path)['file'], path)

    def test_joins_records_of_one_machine_and_commit(self):
        first = save(self.folder.name, 'a.json', record())
        again = record(2.0)
        again['rows'] = again['rows'][2:3]
        second = save(self.folder.name, 'b.json', again)
        whole = records.joined([first, second])
        self.assertEqual([r['methods'][0]['ms'][2] for r in
                          records.rows(whole, 'solve')],
                         [5.12, 10.24, 2 * 20.48])
        self.assertEqual(len(whole['rows']), len(record()['rows']))
        again['commit'] = 'another'
        second = save(self.folder.name, 'b.json', again)
        with self.assertRaises(records.RecordError) as caught:
            records.joined([first, second])
        self.assertIn('commit', str(caught.exception))

    def test_reads_the_recorded_results(self):
        folder = os.path.join(TOP, 'bench', 'results')
        for name in os.listdir(folder):
            if name.endswith('.json'):
                records.load(os.path.join(folder, name))

    def test_refuses_truncated_files_wherever_they_are_cut(self):
        path = save(self.folder.name, 'whole.json', record())
        with open(path, encoding='utf-8') as file:
            text = file.read()
        ends = [k + 1 for k, c in enumerate(text[:-1]) if c == '}']
        for cut in list(range(1, len(text), 97)) + ends:
            self.refused(text, 'cut off', cut)
        self.refused('', 'is empty')

    def test_refuses_other_versions(self):
        self.refused(changed(lambda r: r.update(format='hone-bench/2')),
                     'hone-bench/2')
        self.refused(changed(lambda r: r.pop('format')), 'no "format"')
        self.refused(changed(lambda r: r.update(format=7)), 'format 7')

    def test_refuses_what_is_no_record(self):
        self.refused('[1, 2]', 'no record')
        self.refused('hello', 'is not JSON')
        with self.assertRaises(records.RecordError):
            records.load(self.folder.name)
        with self.assertRaises(records.RecordError):
            records.load(os.path.join(self.folder.name, 'none.json'))

    def test_refuses_nan_and_nonsense(self):
        self.refused('{"format": "hone-bench/1", "rows": [NaN]}', 'NaN')
        self.refused('{"format": "hone-bench/1", "n": Infinity}', 'Infinity')

        def broken(value, key='ms'):
            return changed(lambda r: r['rows'][0]['methods'][0].update(
                {key: value}))
        self.refused(broken([1.0, '2']), 'row 1, Hone once: "ms"')
        self.refused(broken([-1.0]), '"ms"')
        self.refused(broken(3.0), '"ms"')
        self.refused(broken('yes', 'accepted'), '"accepted"')
        self.refused(broken('1e-16', 'error'), '"error"')
        self.refused(broken([{'iteration': None}], 'history'), '"history"')
        self.refused(broken(None, 'name'), 'without a name')

    def test_refuses_missing_parts(self):
        self.refused(changed(lambda r: r.pop('rows')), '"rows" is missing')
        self.refused(changed(lambda r: r['rows'][1].pop('section')), 'row 2')
        self.refused(changed(lambda r: r['rows'][1].pop('methods')), 'row 2')
        self.refused(changed(lambda r: r['rows'][0].update(n='big')), '"n"')
        self.refused(changed(lambda r: r['rows'][-1]['answers'].pop('hone')),
                     'has no "hone"')
        self.refused(changed(lambda r: r['rows'][-1]['answers'].update(
            hone=[1.0])), 'not a table')
        self.refused(changed(lambda r: r['rows'][-2].update(
            parts={'update': 'much'})), '"parts"')
        self.refused(changed(lambda r: r.update(
            fits=[{'exponent': 'steep'}])), '"fits"')
        self.refused({'format': 'hone-campaign/1'}, '"families" is missing')


class Numbers(unittest.TestCase):
    """Medians, their intervals, ratios, exponents, crossovers."""

    def test_medians(self):
        self.assertIsNone(records.middle([]))
        self.assertEqual(records.middle([3, 1, 2]), 2)
        self.assertEqual(records.middle([4, 1, 2, 3]), 2.5)

    def test_intervals_hold_the_median_19_times_in_20(self):
        self.assertEqual(records.interval([5.0]), (5.0, 5.0))
        self.assertEqual(records.interval([1, 2, 3, 4, 5]), (1, 5))
        # the tables of order statistics: 2nd and 8th of 9, 2nd and 10th of
        # 11, 6th and 15th of 20
        self.assertEqual(records.interval(list(range(1, 10))), (2, 8))
        self.assertEqual(records.interval(list(range(1, 12))), (2, 10))
        self.assertEqual(records.interval(list(range(1, 21))), (6, 15))

    def test_ratios_are_taken_round_by_round(self):
        a, b = {'ms': [1, None, 9, 4]}, {'ms': [2, 3, 3, None]}
        self.assertEqual(records.ratio(a, b), 0.5 * (0.5 + 3.0))

    def test_the_fastest_counts_only_where_it_is_accepted(self):
        methods = record()['rows'][0]['methods']
        self.assertEqual(records.best(methods[1:], False)['name'], 'dgesv')
        self.assertEqual(records.best(methods[1:], True)['name'], 'dsgesv')

    def test_exponents(self):
        self.assertAlmostEqual(records.exponent(
            [(n, 7e-9 * n ** 2.5) for n in (512, 1024, 4096)]), 2.5)
        self.assertIsNone(records.exponent([(512, 1.0)]))

    def test_crossovers_are_for_good(self):
        low, high, n = records.crossover([(10, 4.0), (100, 0.5), (200, 2.0),
                                          (800, 0.5), (1000, 0.4)])
        self.assertEqual((low, high), (200, 800))
        self.assertAlmostEqual(n, 400.0)
        self.assertIsNone(records.crossover([(10, 0.5), (20, 0.4)]))
        self.assertIsNone(records.crossover([(10, 3.0), (20, 2.0)]))


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""Tests what the guard calls slower, and its messages for bad files."""

import contextlib
import io
import tempfile
import unittest

from made_up import changed, method, program, record, save

guard = program('bench/report/guard')


class Guard(unittest.TestCase):
    """The program as it is called."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_guard(self, old, new, *options, cut=None):
        """Returns (exit status, output, errors)."""
        files = [save(self.folder.name, 'old.json', old),
                 save(self.folder.name, 'new.json', new, cut)]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = guard.main([*options, *files])
        return status, out.getvalue(), err.getvalue()

    def test_finds_nothing_in_equal_files(self):
        status, out, _ = self.run_guard(record(), record())
        self.assertEqual(status, 0)
        self.assertIn('4 compared, 0 slower, 0 faster', out)

    def test_finds_what_is_slower_by_more_than_the_noise(self):
        status, out, _ = self.run_guard(record(), record(1.1))
        self.assertEqual(status, 1)
        self.assertIn('slower: solve uniform n 1024, Hone once: 1.10 times',
                      out)

    def test_lets_noise_pass(self):
        status, out, _ = self.run_guard(record(), record(1.03))
        self.assertEqual(status, 0)
        self.assertIn('0 slower', out)

    def test_tells_of_the_faster(self):
        status, out, _ = self.run_guard(record(), record(0.5))
        self.assertEqual(status, 0)
        self.assertIn('3 faster', out)

    def test_judges_peers_only_when_asked(self):
        def slow(r):
            r['rows'][0]['methods'][1]['ms'] = [1e3] * 7
        status, out, _ = self.run_guard(record(), changed(slow))
        self.assertEqual(status, 0)
        self.assertIn('the peers took', out)
        self.assertEqual(self.run_guard(record(), changed(slow),
                                        '--all')[0], 1)

    def test_counts_a_lost_acceptance_as_slower(self):
        def lost(r):
            r['rows'][0]['methods'][0]['accepted'] = False
        status, out, _ = self.run_guard(record(), changed(lost))
        self.assertEqual(status, 1)
        self.assertIn('no longer accepted', out)

    def test_lists_missing_entries(self):
        def gone(r):
            del r['rows'][0]
            r['rows'][0]['methods'][0].update(ms=[None] * 7,
                                              skipped='out of time')
        status, out, _ = self.run_guard(record(), changed(gone))
        self.assertEqual(status, 0)
        self.assertIn('missing: solve uniform n 512, Hone once', out)
        self.assertIn('out of time', out)

    def test_does_not_judge_by_one_round(self):
        def single(r):
            r['rows'] = [r['rows'][0]]
            r['rows'][0]['methods'] = [method('Hone once', [5.0])]
        status, out, err = self.run_guard(changed(single), changed(single))
        self.assertEqual(status, 2)
        self.assertIn('one round', out)
        self.assertIn('nothing in common', err)

    def test_refuses_files_with_nothing_in_common(self):
        def other(r):
            for row in r['rows']:
                row['kind'] = 'normal'
        self.assertEqual(self.run_guard(record(), changed(other))[0], 2)

    def test_tells_rows_apart_by_all_that_they_say(self):
        def rows(ms):
            return changed(lambda r: r.update(rows=[
                {'section': 'blocks', 'b': b, 'methods': [
                    method('Hone', [t * (b if ms else 1) for t in (1, 1.1)])]}
                for b in (32, 64)]))
        self.assertEqual(self.run_guard(rows(True), rows(True))[0], 0)
        status, out, _ = self.run_guard(rows(False), rows(True))
        self.assertEqual(status, 1)
        self.assertIn('blocks b 64, Hone: 64.00 times', out)
        self.assertIn('2 compared', out)

    def test_names_files_it_cannot_use(self):
        status, _, err = self.run_guard(record(), record(), cut=200)
        self.assertEqual(status, 2)
        self.assertIn('new.json: is cut off', err)
        status, _, err = self.run_guard(record(), changed(
            lambda r: r.update(format='hone-bench/9')))
        self.assertEqual(status, 2)
        self.assertIn('hone-bench/9', err)
        status, _, err = self.run_guard(record(), {
            'format': 'hone-campaign/1', 'families': []})
        self.assertEqual(status, 2)
        self.assertIn('holds no times', err)
        text = '{"format": "hone-bench/1", "rows": [{"n": NaN}]}'
        self.assertEqual(self.run_guard(record(), text)[0], 2)

    def test_refuses_other_arguments(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(guard.main([]), 2)
            self.assertEqual(guard.main(['a', 'b', 'c']), 2)
            self.assertEqual(guard.main(['--every', 'a']), 2)

    def test_tells_of_other_machines(self):
        _, out, _ = self.run_guard(record(), changed(
            lambda r: r.update(host='Another')))
        self.assertIn('note: host: A <CPU> & more -> Another', out)


if __name__ == '__main__':
    unittest.main()

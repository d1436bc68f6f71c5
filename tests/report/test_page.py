# SPDX-License-Identifier: BSD-3-Clause
"""Tests the page and the pictures; tests with gnuplot need it installed."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from xml.etree import ElementTree

from made_up import TOP, program, record, save

import answers
import axes
import chart
import page
import pictures

make = program('bench/report/make')


class Page(unittest.TestCase):
    """The program as it is called."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        """Returns the path of a file in the test's own folder."""
        return os.path.join(self.folder.name, name)

    def run_make(self, *arguments):
        """Returns (exit status, errors)."""
        err = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(err):
            status = make.main(list(arguments))
        return status, err.getvalue()

    def made(self, *files):
        """Returns the page's text."""
        status, err = self.run_make('--out', self.path('r.html'), *files)
        self.assertEqual((status, err), (0, ''))
        with open(self.path('r.html'), encoding='utf-8') as file:
            return file.read()

    def test_needs_nothing_from_elsewhere(self):
        text = self.made(save(self.folder.name, 'a.json', record()))
        self.assertNotRegex(text, r'<script|<link|src=|@import|url\(')
        self.assertEqual(set(re.findall(r'https?://[^"\']+', text)) - {
            'http://www.w3.org/2000/svg'}, set())
        self.assertIn('prefers-color-scheme:dark', text)

    @unittest.skipUnless(chart.available(), 'gnuplot is not installed')
    def test_repeats_no_identifier(self):
        files = [save(self.folder.name, name, record())
                 for name in ('a.json', 'b.json')]
        found = re.findall(r'\sid=["\']([^"\']+)', self.made(*files))
        self.assertEqual(sorted(found), sorted(set(found)))

    def test_escapes_what_the_record_says(self):
        text = self.made(save(self.folder.name, 'a.json', record()))
        self.assertNotIn('<CPU>', text)
        self.assertIn('A &lt;CPU&gt; &amp; more', text)

    def test_marks_what_is_not_accepted(self):
        made = record()
        cell = page.timing(made['rows'][0]['methods'][1])
        self.assertEqual(cell[0], 'no')
        self.assertIn('whose answer is not accepted', page.headline(made))
        self.assertIn('accepted, dsgesv: 3.00 times', page.headline(made))

    def test_tells_of_every_section(self):
        made = record()
        made['rows'].append({**made['rows'][0], 'section': 'new things'})
        made['fits'] = [{'against': 'nrhs', 'method': 'Hone', 'points': 3,
                         'accepted': 2, 'exponent': 0.625}]
        text = self.made(save(self.folder.name, 'a.json', made))
        self.assertIn('2 of 3', text)
        self.assertIn('new things', text)
        self.assertIn('1 accepted, 1 best effort, 1 refused', text)

    def test_shows_what_publications_have(self):
        made = record()
        made['rows'].append({
            'section': 'igual 4.1', 'kind': 'spd', 'b': 32, 'methods': [
                {'name': 'a way', 'ms': [1.0, 2.0, 4.0], 'accepted': True,
                 'error': 1e-17, 'paper_ms': 0.625, 'iterations': 3,
                 'factor_ms': [0.25, None, 0.75], 'error_text': '1e-17'},
                {'name': 'another', 'ms': [], 'failed': 'no <GPU>',
                 'error': None, 'error_text': 'NaN'}]})
        text = self.made(save(self.folder.name, 'a.json', made))
        for part in ('spd, b 32', 'published, ms', '0.625', '<td>0.5</td>',
                     'NaN', 'no &lt;GPU&gt;'):
            self.assertIn(part, text)

    def test_makes_the_page_of_the_recorded_results(self):
        self.assertIn('NVIDIA H200', self.made())

    def test_says_that_gnuplot_is_missing(self):
        found = chart.available
        chart.available = lambda: ''
        try:
            text = self.made(save(self.folder.name, 'a.json', record()))
            self.assertIn('gnuplot is not installed', text)
            self.assertIn('<table>', text)
            status, err = self.run_make(
                '--picture', self.path('a.json'), 'speed', self.path('a.svg'))
            self.assertEqual(status, 2)
            self.assertIn('gnuplot is not installed', err)
        finally:
            chart.available = found

    def test_names_bad_files_and_options(self):
        bad = save(self.folder.name, 'bad.json', record(), 100)
        status, err = self.run_make('--out', self.path('r.html'), bad)
        self.assertEqual(status, 2)
        self.assertIn('bad.json: is cut off', err)
        self.assertFalse(os.path.exists(self.path('r.html')))
        self.assertEqual(self.run_make('--what')[0], 2)
        self.assertEqual(self.run_make('--out')[0], 2)
        good = save(self.folder.name, 'a.json', record())
        self.assertEqual(self.run_make('--picture', good, 'nothing',
                                       self.path('a.svg'))[0], 2)

    def test_survives_records_with_little_in_them(self):
        for rows in ([], [record()['rows'][0]], [record()['rows'][-1]], [
                {'section': 'solve', 'n': 8, 'methods': [
                    {'name': 'all', 'skipped': 'out of time'}]}]):
            made = {'format': 'hone-bench/1', 'rows': rows}
            self.assertIn('</html>', self.made(
                save(self.folder.name, 'a.json', made)))


@unittest.skipUnless(chart.available(), 'gnuplot is not installed')
class Pictures(unittest.TestCase):
    """The pictures that gnuplot draws, adapted to a page."""

    def test_are_well_formed_and_adapt_to_the_scheme(self):
        made = {**record(), 'file': 'a.json'}
        names = []
        for name, draw in pictures.ALL:
            for narrow in (False, True):
                found = draw(made, narrow)
                if found is None:
                    continue
                names.append(name)
                svg = chart.alone(found[0].draw('x' + name))
                ElementTree.fromstring(svg)
                self.assertNotRegex(svg, r'rgb\(|"black"|>gnuplot_plot')
                self.assertIn('var(--s1)', svg)
                for used in re.findall(r"href='#([\w-]+)'", svg):
                    self.assertIn(f"id='{used}'", svg)
        self.assertEqual(sorted(set(names)), [
            'cost', 'gallery', 'history', 'inside', 'phases', 'ratio',
            'speed'])

    def test_give_hostile_names_no_way_into_gnuplot(self):
        made = {**record(), 'file': 'a.json'}
        made['rows'][-1]['kind'] = "'; system 'touch x'; set label '`ls`%d"
        svg = answers.gallery(made)[0].draw('y')
        self.assertIn('system', svg)
        self.assertFalse(os.path.exists(os.path.join(TOP, 'x')))

    def test_push_labels_apart(self):
        for high in (45, 300):
            group = [[0, y, 's1', 'a'] for y in (10, 11, 12)]
            chart._spread(group, 8, high)
            heights = [label[1] for label in group]
            self.assertTrue(all(b - a >= chart.LINE
                                for a, b in zip(heights, heights[1:])))
            self.assertLessEqual(heights[-1], high)
            self.assertGreaterEqual(heights[0], 8 if high == 300 else 0)

    def test_push_labels_no_farther_than_they_must(self):
        group = [[0, y, 's1', 'a'] for y in (100, 101, 102, 160)]
        chart._spread(group, 8, 300)
        self.assertEqual([label[1] for label in group], [87, 101, 115, 160])

    def test_push_what_stands_in_the_same_columns(self):
        placed = [[200, 50, 's1', 'far'], [10, 50, 's1', 'long enough'],
                  [70, 51, 's1', 'b'], [79, 52, 's1', 'c']]
        groups = chart._side_by_side(placed)
        self.assertEqual([[label[3] for label in g] for g in groups],
                         [['long enough', 'b', 'c'], ['far']])

    def test_leave_room_for_the_names_of_bars(self):
        made = {**record(), 'file': 'a.json', 'device': 'GPU'}
        short = pictures.phases.inside(made)[0].left
        for row in made['rows']:
            if row['section'] == 'phases':
                row['n'] = 32768
                row['methods'][0]['name'] = 'diagonal blocks by the CPU'
        wide = pictures.phases.inside(made)[0].left
        self.assertGreater(wide, chart.width('32k, CPU') + 6)
        self.assertGreater(wide, short)

    def test_write_times_without_powers_of_ten(self):
        self.assertEqual([axes.figure(v) for v in (0.0303, 281.4, 2321.6)],
                         ['0.0303 ms', '281 ms', '2322 ms'])


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: BSD-3-Clause
"""The cells of the documents' tables: numbers as text."""

import records


def g(value, form='.3g'):
    """Returns '12.3', '1230', or '-' for None."""
    if value is None:
        return '-'
    text = format(value, '#.3g' if form == '.3g' else form).rstrip('.')
    return f'{value:.0f}' if 'e+' in text else text


def span(method):
    """Returns '12.3 (11.9 .. 14.0)', or '-' without times."""
    values = records.times(method) if method else []
    if not values:
        return '-'
    return (f'{records.middle(values):.4g} ({min(values):.4g} .. '
            f'{max(values):.4g})')


def goal(value):
    """Returns '1.5', or '' without a goal."""
    return format(value, 'g') if value else ''


def missed(text, value, wanted):
    """Returns text, in bold if the value is less than wanted."""
    return f'**{text}**' if wanted and value and value < wanted else text

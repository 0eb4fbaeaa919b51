"""Texts in Markdown: what is said arrives as it is."""

import pytest

from harness.records.markdown import escaped, table_lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('it\'s a "case"', 'it\'s a "case"'),
        ("a < b & c", "a &lt; b &amp; c"),
        ("two\n  lines", "two lines"),
        ("a|b `c` *d* [e] ~f~ g\\h", r"a\|b \`c\` \*d\* \[e\] \~f\~ g\\h"),
        ("_x y_ inner_name", r"\_x y\_ inner_name"),
        ("@somebody", "&#64;somebody"),
        (3.5, "3.5"),
    ],
)
def test_text_is_escaped_where_it_would_mean_something(text, expected):
    assert escaped(text) == expected


def test_cells_are_escaped_and_headings_are_as_given():
    assert table_lines(["`a`", "b"], [["1|2", 3]]) == [
        "| `a` | b |",
        "| --- | --- |",
        r"| 1\|2 | 3 |",
    ]

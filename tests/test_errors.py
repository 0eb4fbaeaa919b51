"""Names that a user types; tests/cli/test_options.py holds what is said of those of a command."""

import pytest

from harness.errors import UsageError, find_name, nearest


def test_of_names_that_differ_in_case_alone_only_the_exact_one_is_found():
    assert find_name("A", ["a", "A"], "axis") == "A"
    with pytest.raises(UsageError, match=r"No axis is called 'Ab'\. Did you mean 'a[bB]'"):
        find_name("Ab", ["ab", "aB"], "axis")


def test_an_unknown_name_is_told_with_what_else_would_do_and_no_guess_where_nothing_is_near():
    said = r"No axis is called 'zzz'\. There are: size, or a path\.$"
    with pytest.raises(UsageError, match=said):
        find_name("zzz", ["size"], "axis", ", or a path")
    with pytest.raises(UsageError, match="There are: none at all"):
        find_name("a", [], "workload")
    assert nearest("zzz", ["size"]) == ""

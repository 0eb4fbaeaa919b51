"""Names that a user types are found whatever their case; what is meant is guessed."""

import pytest

from harness.errors import UsageError, find_name, match_names, nearest

KNOWN = ("nn.Gelu", "nn.Softmax", "fft.Fft")


@pytest.mark.parametrize("typed", ["fft.Fft", "FFT.FFT", "fft.fft"])
def test_a_name_is_found_whatever_its_case(typed):
    assert find_name(typed, KNOWN, "workload") == "fft.Fft"


def test_of_names_that_differ_in_case_alone_only_the_exact_one_is_found():
    assert find_name("A", ["a", "A"], "axis") == "A"
    with pytest.raises(UsageError, match=r"No axis is called 'Ab'\. Did you mean 'a[bB]'"):
        find_name("Ab", ["ab", "aB"], "axis")


def test_an_unknown_name_is_told_with_the_nearest_all_and_what_else_would_do():
    with pytest.raises(UsageError) as caught:
        find_name("fft.Fff", KNOWN, "workload", ", or a path")
    assert str(caught.value) == (
        "No workload is called 'fft.Fff'. Did you mean 'fft.Fft'? There are: nn.Gelu, nn.Softmax, "
        "fft.Fft, or a path."
    )
    with pytest.raises(UsageError, match="There are: none at all"):
        find_name("a", [], "workload")


def test_an_expression_finds_names_whatever_their_case():
    assert match_names("^NN", KNOWN, "workload") == ["nn.Gelu", "nn.Softmax"]
    with pytest.raises(UsageError, match=r"'\(' is no regular expression"):
        match_names("(", KNOWN, "workload")
    with pytest.raises(UsageError, match=r"No workload matches 'sofmax'\. Did you mean 'nn.Softm"):
        match_names("sofmax", KNOWN, "workload")


def test_nothing_is_guessed_where_nothing_is_near():
    assert nearest("zzz", KNOWN) == ""

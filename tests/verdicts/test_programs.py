"""Changed programs are named wherever arms are compared, and counts alone decide where asked."""

import json

import pytest

from harness.output.programs import MOST
from harness.program.facts import Facts
from harness.records.store import Store, store_path
from harness.verdicts import programs
from tests.frame.trees import COMMIT, failed
from tests.verdicts.arms_of import OTHER
from tests.verdicts.test_output import add

BOTH = (COMMIT, OTHER, "-r")
BEFORE = Facts(trace_calls=10_000, lower_calls=2_000, hlo_instructions=100, fusions=3)
MORE = Facts(trace_calls=10_020, lower_calls=2_000, hlo_instructions=147, fusions=17)
NAMED = "family.Work size=8: +47 HLO instructions, +14 fusions"


def grown(folder, b=MORE, n=8, spread=0.4, **fields):
    """Return a tree of two commits, the second with another program, and noisy times."""
    both = {"n": n, "spread": spread, "stages": ("trace", "lower", "execute")}
    for commit, facts, fingerprint in ((COMMIT, BEFORE, "f1"), (OTHER, b, "f2")):
        more = fields if commit == OTHER else {}
        add(folder, commit=commit, facts=facts, fingerprint=fingerprint, **both, **more)
    return folder


def test_a_changed_program_is_named_though_no_time_tells(compare, tmp_path):
    folder = grown(tmp_path)
    code, table, _ = compare(*BOTH, folder)
    _, markdown, _ = compare(*BOTH, folder, "--format", "markdown")
    _, document, _ = compare(*BOTH, folder, "--format", "json")

    assert code == 0
    assert f"Another program in 1 of 1 case:\n  {NAMED}\n" in table
    assert "another program in 1 case" in table
    assert f"- {NAMED}\n" in markdown
    assert "another program in 1 case" in markdown
    assert json.loads(document)["programs"] == [NAMED]
    for commit in (COMMIT, OTHER):
        add(tmp_path / "same", commit=commit, fingerprint="f1", facts=BEFORE)
    for form in ("table", "markdown"):
        assert "nother program" not in compare(*BOTH, tmp_path / "same", "--format", form)[1]


def test_what_is_named_has_an_end_unless_all_is_wanted(compare, tmp_path):
    for size in range(MOST + 3):
        for commit, fingerprint in ((COMMIT, "f1"), (OTHER, "f2")):
            add(tmp_path, commit=commit, fingerprint=fingerprint, axes={"size": size})
    _, short, _ = compare(*BOTH, tmp_path)
    _, long, _ = compare(*BOTH, tmp_path, "--all")

    assert short.count(f": {programs.UNTOLD}\n") == MOST
    assert "… and 3 more; `--all` lists all." in short
    assert long.count(f": {programs.UNTOLD}\n") == MOST + 3


@pytest.mark.parametrize(
    ("fields", "code", "said"),
    [
        (
            {"b": MORE},
            0,
            "By Python's calls in trace and lower, of 1 case: 1 no rise, another program in 1",
        ),
        (
            {"b": Facts(trace_calls=10_400, lower_calls=2_000, hlo_instructions=100, fusions=3)},
            1,
            "trace: proven by counts: 10,000 → 10,400 Python calls (+4.0 %)",
        ),
        ({"b": Facts(trace_calls=10_000, lower_calls=1_900)}, 0, "1 faster, another program in 1"),
        ({"b": Facts(trace_calls=10_400, lower_calls=1_900)}, 1, "1 slower, another program in 1"),
        ({"b": Facts()}, 4, "1 case: no calls counted in B: measure again with this harness."),
        ({"python": "3.12.1"}, 4, "Python 3.11.7 → 3.12.1, which counts differently"),
        ({"version": "2.b"}, 4, "the workload or the method changed: 1.aaaa → 2.b"),
    ],
)
def test_counts_alone_decide_from_one_process(compare, tmp_path, fields, code, said):
    found, out, err = compare(*BOTH, grown(tmp_path, n=1, **fields), "--counts")

    assert found == code
    assert said in out
    assert ("nothing is comparable by counts" in err) == (code == 4)
    assert " p = " not in out


def test_by_counts_what_broke_is_no_success(compare, tmp_path):
    folder = grown(tmp_path)
    for process in range(8):
        one = failed(process, commit=OTHER)
        Store(store_path(folder, "box", OTHER, one.env)).append([one])
    code, out, _ = compare(*BOTH, folder, "--counts", "--all")
    _, document, _ = compare(*BOTH, folder, "--counts", "--format", "json")

    assert code == 7
    assert "broken" in out
    assert json.loads(document)["counts"]["broken"] == 1
    assert compare(OTHER, OTHER, "-r", folder, "--counts")[0] == 4, "it was broken before"

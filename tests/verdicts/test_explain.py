"""What `harness compare --explain` says a verdict rests on."""

from __future__ import annotations

from harness.records.store import Store, store_path
from tests.frame.trees import COMMIT
from tests.verdicts.arms_of import OTHER, records, tree


def test_processes_samples_hosts_programs_and_the_rule_are_shown(compare, tmp_path):
    folder = tree(tmp_path, factor=1.2, fingerprint="f" * 16)
    file = max((folder / "box" / "records").iterdir())
    read = list(Store(file).read())
    for one in read:
        one.stages["compile"].cpu_ns = [3e6, 2e6, 4e6]
    file.unlink()
    Store(file).append(read)
    out = compare(COMMIT, OTHER, "-r", folder, "--stage", "compile", "--explain")[1]

    assert "family.Work · size=8 · compile: slower" in out
    assert "% slower in wall time (threshold 5 %)" in out
    assert "alpha 0.05" in out
    assert out.count("family.Work@cpu#") == 16
    assert out.count(" · loop 1.0 ms · ") == 16
    assert out.count(" · CPU 2.0 ms · ") == 8
    assert "threshold 5 %; wall time" in out
    assert "program: not known" in out
    assert "program ffffffffffff" in out
    old, new = sorted((folder / "box" / "records").iterdir())
    out = compare(old, new, "-r", tmp_path / "none", "--explain")[1]
    assert out.count("family.Work@cpu#") == 16


def test_at_most_twenty_rows_are_explained_and_same_ones_only_where_they_were_chosen(
    compare, tmp_path
):
    for commit in (COMMIT, OTHER):
        for size in range(25):
            own = records(commit=commit, axes={"size": size}, n=2)
            Store(store_path(tmp_path, "box", commit, own[0].env)).append(own)
    out = compare(COMMIT, OTHER, "-r", tmp_path, "--explain")[1]
    assert out.count("· compile: unsure") == 20
    assert "5 more rows are not explained: narrow with -s, --stage or --case." in out
    same = tree(tmp_path / "same")
    assert "compile: same" not in compare(COMMIT, OTHER, "-r", same, "--explain")[1]
    assert "compile: same" in compare(COMMIT, OTHER, "-r", same, "--explain", "-s", "Work")[1]

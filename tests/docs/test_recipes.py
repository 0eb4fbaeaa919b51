"""The recipes: five lines at most, executed, with answers that are known."""

import ast
import contextlib
import json

import pytest

from harness.program.compiler.times import CompileTime, CompileTimes
from tests.docs import pages
from tests.frame import trees

FIRST, *RECIPES = (
    block
    for block in pages.blocks("docs/frame.md")
    if block.mark("executed by") == "tests/docs/test_recipes.py"
)
SPENT = {"layout": 1.0, "fusion": 3.0}
NIGHTS = [f"2026-11-{day}" for day in range(10, 16)]


def answer(block, names):
    """Execute a block, and return the value of its last line."""
    *lines, last = ast.parse(block.text).body
    exec(compile(ast.Module(lines, []), block.where, "exec"), names)
    return eval(compile(ast.Expression(last.value), block.where, "eval"), names)


@pytest.fixture(scope="module")
def committed(tmp_path_factory):
    """What the page begins with, on the committed results."""
    names = {}
    with contextlib.chdir(committed_in(tmp_path_factory.mktemp("recipes"))):
        exec(FIRST.text, names)
    return names


def committed_in(folder):
    """Have a folder hold the committed results as its own, and return it."""
    (folder / "results").symlink_to(pages.ROOT / "docs" / "example-results")
    return folder


def where_the_time_goes(found):
    assert found.index[0] == "import_share"
    assert 0.5 < found.iloc[0] < 0.8
    assert found.sum() == pytest.approx(1, abs=0.05)


def which_static_value(found):
    axes = found.set_index("workload")["axes"].map(json.loads)
    assert axes["control_flow.UnrolledLoop"]["unroll"] == 16
    assert axes["elementwise.Gelu"]["approximate"] in (True, False)


def cold_against_warm(found):
    assert list(found.index) == ["dense.MlpLoss"]
    assert 2 < found.iloc[0] < 20


def what_a_release_changed(found):
    assert "python 3.11.7 → 3.12.1" in found["jax=0.10.2", "jax=0.11.2"]
    assert "python" not in found["jax=0.11.2", "jax=0.12.0.1"]


def where_xla_loses(found):
    assert len(found) == 5
    assert (found["ratio_high"] < 1).all()


def which_case_is_noisy(found):
    assert found["spread"].is_monotonic_decreasing
    assert found["spread"].iloc[0] > 1


def what_changed_last_night(found):
    (row,) = found.to_dict("records")
    assert (row["stage"], row["change"], row["state"]) == ("compile", "slower", "new")
    assert row["ratio"] == pytest.approx(1.5, rel=0.05)


def which_pass(found):
    assert list(found.index) == [("family.Work", "fusion"), ("family.Work", "layout")]


ANSWERS = [
    *(where_the_time_goes, which_static_value, cold_against_warm),
    *(what_a_release_changed, where_xla_loses, which_case_is_noisy, what_changed_last_night),
    which_pass,
]


@pytest.mark.parametrize("check", ANSWERS, ids=lambda check: check.__name__)
def test_a_recipe_is_short_and_its_answer_is_right(check, committed, tmp_path, monkeypatch):
    recipe = RECIPES[ANSWERS.index(check)]
    assert len(recipe.text.splitlines()) <= 5
    assert len(RECIPES) == len(ANSWERS)
    names = dict(committed)
    if check in (what_changed_last_night, which_pass):
        night_by_night(tmp_path / "results")
        monkeypatch.chdir(tmp_path)
        exec(FIRST.text, names)
    else:
        monkeypatch.chdir(committed_in(tmp_path))
    check(answer(recipe, names))


def night_by_night(results):
    """Write six nights, in the last of which a case compiles half as long again."""
    passes = [CompileTime("passes", name=name, wall_s=s) for name, s in SPENT.items()]
    inside = CompileTimes([CompileTime("passes", wall_s=4.0)], passes)
    for number, night in enumerate(NIGHTS):
        for size in range(8):
            slower = 1.5 if number == 5 and size == 3 else 1.0
            trees.write(
                results,
                *(
                    trees.record(
                        process,
                        {"compile": [4e7 * slower * (1 + 0.003 * ((process * 7 + number) % 5))]},
                        axes={"size": size},
                        night=night,
                        process=str(process),
                        started_at_ms=1_700_000_000_000 + 86_400_000 * number + process,
                        compile_times=inside if not (size or process) else None,
                    )
                    for process in range(6)
                ),
            )

from __future__ import annotations

import io
import json

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from rich.console import Console

import harness
from harness.cli.output import print_page
from harness.cli.profile import app
from harness.cli.profile import show as showing
from harness.errors import ProfileError, UsageError
from harness.jaxhooks import events
from harness.output.profile_tables import listed
from harness.profiles import tables
from harness.profiles.causes.cause import Remedy
from harness.profiles.tables import TABLES
from tests.profiles.logs import (
    MAIN,
    build,
    caused,
    ended,
    ns,
    profile_of,
    request,
    samples,
    started,
)

SPANS = ("trace", 200, 210), ("lower", 210, 220), ("compile", 220, 290)
LINES = [
    build(
        1,
        200,
        300,
        *SPANS,
        requests=(request("written", 70, 60, write=5, key="a"),),
        program=events.Program(code_bytes=100, temp_bytes=7),
        own_ns=ns(1),
    ),
    build(2, 300, 340, ("compile", 300, 330), requests=(request("hit", 30, load=10, key="a"),)),
    build(3, 400, 450, ("compile", 400, 450), function=2),
    events.Visits(1, 1, MAIN, 12, 0.25),
    events.Visits(2, 1, MAIN, 3, 0.5),
    samples(600, library=4),
    ended(600),
]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "p"
    return caused(
        profile_of(folder, [started(), *LINES]), argument="n", remedy=Remedy("few values", "n")
    )


def held(row, **expected):
    """Hold some columns of a row against what is expected, None of what is not known."""
    found = {name: None if pd.isna(row[name]) else row[name] for name in expected}
    assert found == pytest.approx(expected)


def test_every_table_has_its_rows(recorded):
    tables = {table: recorded.frame(table).to_dict("records") for table in TABLES}
    first, hit, _ = tables["builds"]
    held(first, call_site="train.py:88", trace_s=0.01, lower_s=0.01, compile_s=0.065)
    held(first, write_s=0.005, build_s=0.09, other_s=0.01, begin_s=0.2, saved_s=None)
    held(first, compiles=1, loads=0, outcome="written", code_bytes=100, temporary_bytes=7)
    held(hit, compiles=0, loads=1, load_s=0.03, saved_s=0.05)
    held(
        hit,
        cause="static value",
        argument="n",
        remedy="Let `n` take few values.",
        remedy_id="JH023",
    )
    loss, broadcast = tables["functions"]
    held(loss, function="loss", builds=2, again=1, first_call_s=0.1, visits=12, visit_s=0.25)
    held(loss, causes="first, static value", build_s=0.12)
    held(broadcast, causes="first")
    (site,) = tables["sites"]
    held(site, call_site="train.py:88", builds=3, sampled_s=0.1)
    held(site, functions="loss ×2, broadcast_in_dim")
    (eager,) = tables["eager"]
    held(eager, functions="broadcast_in_dim")
    assert [row["cause"] for row in tables["causes"]] == ["first", "first", "static value"]
    saved = {row["outcome"]: row for row in tables["cache"]}
    held(saved["hit"], saved_s=0.05)
    held(saved["written"], saved_s=None)
    of_run = [row for row in tables["time"] if row["scope"] == "run"]
    assert sum(row["seconds"] for row in of_run) == pytest.approx(0.6)
    assert sum(row["share"] for row in of_run) == pytest.approx(1)
    assert [row["main"] for row in tables["threads"]] == ["yes"]
    with pytest.raises(UsageError, match="'bulids' is not known; there are time, functions"):
        recorded.frame("bulids")


def test_a_function_that_was_only_visited_has_a_row(tmp_path):
    lines = [started(), *LINES[:2], events.Visits(2, 1, MAIN, 3, 0.5), ended(600)]
    found = caused(profile_of(tmp_path, lines)).frame("functions")
    assert (list(found["builds"]), found["builds"].dtype) == ([2, 0], "int64")
    assert found["visits"].sum() == 3


def test_columns_and_types_are_the_same_with_and_without_rows(recorded, tmp_path):
    empty = profile_of(tmp_path / "empty", [started(), ended(600)])
    for table in TABLES:
        full, none = recorded.frame(table), empty.frame(table)
        assert list(full.columns) == list(none.columns), table
        assert full.dtypes.to_dict() == none.dtypes.to_dict(), table
        assert not any(full[name].isna().any() for name in full if full[name].dtype == "str")


def test_a_build_that_never_ended_has_a_row(tmp_path):
    lines = [started(), events.Running(1, "compile", 1, MAIN, ns(200), ns(900))]
    (row,) = profile_of(tmp_path, lines).frame().to_dict("records")
    assert (row["error"], row["cause"], row["build"]) == ("unfinished", "", -1)
    assert row["compile_s"] == pytest.approx(0.7)


def test_a_real_program(tmp_path):
    """Two shapes of one function, and operations outside jit."""

    def double(x):
        return 2 * x

    jitted = jax.jit(double)
    jax.clear_caches()
    with harness.profile(tmp_path / "p") as real:
        for size in (3, 4, 4):
            jitted(jnp.zeros(size))
    functions = real.frame("functions").set_index("function")
    held(functions.loc["double"], compiles=2, origin="program")
    assert functions.loc["double", "compile_s"] > 0
    time = real.frame("time")
    run = time[time.scope == "run"].set_index("part")["seconds"]
    assert (run >= 0).all()
    assert run["compile"] > 0
    assert "`double` was compiled once more" in "\n".join(real.summary())
    assert "went into building programs" in real._repr_html_()
    assert "builds" in repr(real)


def test_functions_of_one_name_are_told_apart_in_every_table():
    def scaled(by):
        def step(carry, x):
            return carry, by * x

        return step

    def step(x):
        return x + 1

    with harness.profile() as real:
        jax.jit(step)(np.ones(3))
        jax.jit(scaled(2.0))(np.ones(3), np.ones(3))
        jax.lax.scan(scaled(3.0), np.ones(3), np.ones((2, 3)))
    lines = [function.__code__.co_firstlineno for function in (step, scaled(2.0))]
    apart = {f"step (test_tables.py:{line})" for line in lines}
    for table in ("functions", "causes", "builds"):
        names = set(listed(real, real.frame(table), table, None)[0]["function"])
        assert apart | {f"scan of step (test_tables.py:{lines[1]})"} <= names
    assert apart <= {
        name for names in real.frame("sites")["functions"] for name in names.split(", ")
    }


def shown(*arguments):
    return CliRunner().invoke(app, ["show", *map(str, arguments)])


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_line(recorded, width):
    for table in TABLES:
        rows, note = listed(recorded, recorded.frame(table), table, None)
        console = Console(width=width, record=True, file=io.StringIO())
        print_page(showing._rows(rows, table, ""), console)
        text = console.export_text()
        assert all(len(line.rstrip()) <= width for line in text.splitlines())
        assert rows.columns[0] in text.splitlines()[0]
        for value in rows.iloc[:, 0]:
            assert value in text
        if table == "builds":  # columns that do not fit are named
            assert {"function", "call_site", "build_s", "cause"} <= set(rows)
            assert (f"Not shown at {width} columns: " in text) == (width < 200)
        assert not note


def test_the_rows_of_builds_are_made_once(tmp_path, monkeypatch):
    recorded = profile_of(tmp_path, [started(), *LINES])
    made = []
    rows = tables._columns
    monkeypatch.setattr(tables, "_columns", lambda profile: made.append(1) or rows(profile))
    frame = recorded.frame("builds")
    frame["function"] = "mine"
    for table in ("functions", "eager", "sites"):
        assert "mine" not in recorded.frame(table).to_string()
    assert len(made) == 1


def test_show_prints_the_answer_and_every_table(recorded):
    for words in ((), *(("--table", table) for table in TABLES)):
        done = shown(recorded.folder, *words)
        assert done.exit_code == 0, done.output
        assert len(done.output.splitlines()) > 1
    assert "went into building programs" in shown(recorded.folder).output
    assert "train.py:88" in shown(recorded.folder, "-t", "sites").output


def test_show_writes_files(recorded, tmp_path):
    to = tmp_path / "new" / "builds.csv"
    assert shown(recorded.folder, "-t", "builds", "--format", "csv", "-o", to).exit_code == 0
    assert list(pd.read_csv(to).columns) == list(recorded.frame().columns)
    rows = json.loads(shown(recorded.folder, "-t", "causes", "--format", "json").output)
    assert (rows["table"], len(rows["rows"])) == ("causes", 3)
    assert shown(recorded.folder, "-o", tmp_path / "answer.txt").exit_code == 0
    assert "went into building" in (tmp_path / "answer.txt").read_text()


@pytest.mark.parametrize(
    ("folder", "words", "error", "text"),
    [
        (".", (), ProfileError, "holds no profile"),
        ("x", (), UsageError, "is no folder"),
        (".", ("--format", "csv"), UsageError, "name one with --table"),
    ],
)
def test_show_says_what_is_wrong(tmp_path, folder, words, error, text):
    done = shown(tmp_path / folder, *words)
    assert isinstance(done.exception, error)
    assert text in str(done.exception)

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
from harness.errors import UsageError
from harness.profiles.tables import builds as build_rows
from harness.profiles.tables.frames import TABLES
from harness.profiles.tables.listing import listed
from harness.watch import events
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

LINES = [
    build(
        1,
        200,
        300,
        ("trace", 200, 210),
        ("lower", 210, 220),
        ("compile", 220, 290),
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


@pytest.fixture
def recorded(tmp_path):
    return caused(profile_of(tmp_path / "p", [started(), *LINES]), argument="n", remedy="Do.")


def test_a_row_per_build(recorded):
    frame = recorded.frame()
    first, hit, _ = frame.to_dict("records")
    assert first["call_site"] == "train.py:88"
    assert (first["trace_s"], first["lower_s"]) == pytest.approx((0.01, 0.01))
    assert (first["compile_s"], first["write_s"]) == pytest.approx((0.065, 0.005))
    assert (first["build_s"], first["other_s"]) == pytest.approx((0.09, 0.01))
    assert first["begin_s"] == pytest.approx(0.2)
    assert (first["compiles"], first["loads"], first["outcome"]) == (1, 0, "written")
    assert (first["code_bytes"], first["temporary_bytes"]) == (100, 7)
    assert (hit["compiles"], hit["loads"], hit["load_s"]) == (0, 1, pytest.approx(0.03))
    assert hit["saved_s"] == pytest.approx(0.05)
    assert (hit["cause"], hit["argument"], hit["remedy"]) == ("static value", "n", "Do.")
    assert np.isnan(first["saved_s"])


def test_a_row_per_function_with_visits(recorded):
    loss, broadcast = recorded.frame("functions").to_dict("records")
    assert (loss["function"], loss["builds"], loss["again"]) == ("loss", 2, 1)
    assert loss["first_call_s"] == pytest.approx(0.1)
    assert (loss["visits"], loss["visit_s"]) == (12, 0.25)
    assert (loss["causes"], broadcast["causes"]) == ("first, static value", "first")
    assert loss["build_s"] == pytest.approx(0.12)


def test_a_function_that_was_only_visited_has_a_row(tmp_path):
    lines = [started(), *LINES[:2], events.Visits(2, 1, MAIN, 3, 0.5), ended(600)]
    found = caused(profile_of(tmp_path, lines)).frame("functions")
    assert list(found["builds"]) == [2, 0]
    assert found["builds"].dtype == "int64"
    assert found["visits"].sum() == 3


def test_a_row_per_line_cause_request_and_part(recorded):
    (site,) = recorded.frame("sites").to_dict("records")
    assert (site["call_site"], site["builds"]) == ("train.py:88", 3)
    assert site["functions"] == "loss ×2, broadcast_in_dim"
    assert site["sampled_s"] == pytest.approx(0.1)
    assert list(recorded.frame("eager")["functions"]) == ["broadcast_in_dim"]
    assert list(recorded.frame("causes")["cause"]) == ["first", "first", "static value"]
    requests = recorded.frame("cache").set_index("outcome")
    assert requests.loc["hit", "saved_s"] == pytest.approx(0.05)
    assert np.isnan(requests.loc["written", "saved_s"])
    time = recorded.frame("time")
    assert time[time.scope == "run"]["seconds"].sum() == pytest.approx(0.6)
    assert time[time.scope == "run"]["share"].sum() == pytest.approx(1)
    assert list(recorded.frame("threads")["main"]) == ["yes"]


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


def test_an_unknown_table_is_refused(recorded):
    with pytest.raises(UsageError, match="'bulids' is not known; there are time, functions"):
        recorded.frame("bulids")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """What is really recorded: two shapes of one function, and operations outside jit."""

    def double(x):
        return 2 * x

    jitted = jax.jit(double)
    folder = tmp_path_factory.mktemp("real") / "p"
    jax.clear_caches()
    with harness.profile(folder) as found:
        for size in (3, 4, 4):
            jitted(jnp.zeros(size))
    return caused(found, "shape", argument="x")


def test_a_real_program(real):
    frame = real.frame("functions").set_index("function")
    assert frame.loc["double", "compiles"] == 2
    assert frame.loc["double", "origin"] == "program"
    assert 0 < frame.loc["double", "compile_s"] < 20
    time = real.frame("time")
    run = time[time.scope == "run"]
    assert (run["seconds"] >= 0).all()
    assert run.set_index("part").loc["compile", "seconds"] > 0
    assert "`double` was compiled once more" in "\n".join(real.summary())
    assert "went into building programs" in real._repr_html_()
    assert "builds" in repr(real)


def shown(*arguments):
    return CliRunner().invoke(app, ["show", *map(str, arguments)])


@pytest.fixture
def causes_given(monkeypatch):
    """The command reads the folder anew: what it reads is given causes."""
    from harness.profiles import recorded

    read = recorded.read
    monkeypatch.setattr(recorded, "read", lambda folder: caused(read(folder), argument="n"))


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_line(recorded, width):
    for table in TABLES:
        rows, note = listed(recorded.frame(table), table, None, width)
        console = Console(width=width, record=True, file=io.StringIO())
        print_page(showing._rows(rows, table, ""), console)
        text = console.export_text()
        assert all(len(line.rstrip()) <= width for line in text.splitlines())
        grid = rows.columns[0] in text.splitlines()[0]  # else a block a row: a long folder's name
        for heading in rows if grid else ():  # none is folded
            assert heading in text.splitlines()[0]
        for value in rows.iloc[:, 0]:
            assert value in text
        if width == 200:
            assert not note


def test_columns_that_do_not_fit_are_named(recorded):
    rows, note = listed(recorded.frame("builds"), "builds", None, 80)
    assert {"function", "call_site", "build_s", "cause"} <= set(rows)
    assert "other_s" in note
    assert "the line is too short" in note


def test_the_rows_of_builds_are_made_once(recorded, monkeypatch):
    made = []
    rows = build_rows._rows
    monkeypatch.setattr(build_rows, "_rows", lambda profile: made.append(1) or rows(profile))
    frame = recorded.frame("builds")
    frame["function"] = "mine"
    for table in ("functions", "eager", "sites"):
        assert "mine" not in recorded.frame(table).to_string()
    assert len(made) == 1


@pytest.mark.usefixtures("causes_given")
def test_show_prints_the_answer_and_every_table(recorded, tmp_path):
    done = shown(recorded.folder)
    assert done.exit_code == 0, done.output
    assert "went into building programs" in done.output
    for table in TABLES:
        done = shown(recorded.folder, "--table", table)
        assert done.exit_code == 0, done.output
        assert len(done.output.splitlines()) > 1
    assert "train.py:88" in shown(recorded.folder, "-t", "sites").output


@pytest.mark.usefixtures("causes_given")
def test_show_writes_files(recorded, tmp_path):
    to = tmp_path / "new" / "builds.csv"
    assert shown(recorded.folder, "-t", "builds", "--format", "csv", "-o", to).exit_code == 0
    read = pd.read_csv(to)
    assert list(read.columns) == list(recorded.frame().columns)
    done = shown(recorded.folder, "-t", "causes", "--format", "json")
    rows = json.loads(done.output)
    assert (rows["table"], len(rows["rows"])) == ("causes", 3)
    assert shown(recorded.folder, "-o", tmp_path / "answer.txt").exit_code == 0
    assert "went into building" in (tmp_path / "answer.txt").read_text()


def test_show_says_what_is_wrong(tmp_path):
    (tmp_path / "none").mkdir()
    from harness.errors import ProfileError

    for folder, text in ((tmp_path / "none", "holds no profile"), (tmp_path / "x", "is no folder")):
        done = shown(folder)
        assert isinstance(done.exception, ProfileError)
        assert text in str(done.exception)
    done = shown(tmp_path, "--format", "csv")
    assert isinstance(done.exception, UsageError)
    assert "name one with --table" in str(done.exception)

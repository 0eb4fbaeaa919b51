"""The main tables as a terminal of each width shows them, against files that people have read.

Each file in `golden/` holds what a command prints at 200 columns, and then at fewer what differs
from that. After a change that is meant, write them anew and read the difference:

    TESTS_GOLDEN=write python -m pytest tests/cli/test_golden.py
"""

import itertools
import os
import time
import zlib
from pathlib import Path

import pytest

from harness.cli.output import WIDTH
from harness.profiles.causes.cause import Cause
from tests.cache.test_entry import HEADER, packed
from tests.frame.trees import write
from tests.profiles.made import Made
from tests.verdicts.history.trees import nights, noisy

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("golden")
WRITE = os.environ.get("TESTS_GOLDEN") == "write"
NARROWER = (120, 100, 80)
LOOP = ("-s", "UnrolledLoop", "--case", "unroll=16")
BENCHMARKS = ("--benchmarks", str(ROOT / "benchmarks"))
RELEASES = ("compare", "jax=0.11.2", "jax=0.12.0.1")
COMMANDS = {
    "show": (("show", *LOOP, "--case", "unroll=1"), ["control_flow.UnrolledLoop", "± 0.3 µs"]),
    "brief": (("show", "--brief"), ["control_flow.UnrolledLoop", "dense.MlpLoss depth=4"]),
    "compare": (
        (*RELEASES, *LOOP, "--stage", "compile", "--stage", "dispatch"),
        ["control_flow.UnrolledLoop", "unroll=16", "120 ms"],
    ),
    "baselines": (
        ("baselines", "-s", "Predict", "--case", "batch=64", "--case", "dtype=float32"),
        ["batch=64, dtype=float32", "205 µs", "baseline faster"],
    ),
    "history": (("history", "-r", "made"), ["family.Work size=8", "1.0 s → 1.3 s"]),
    "explain": (
        (*RELEASES, *LOOP, "--stage", "compile", "--explain"),
        ["control_flow.UnrolledLoop", "unroll=16"],
    ),
    "targets": (("targets", "cpu"), ["cpu"]),
    "diff": (("profile", "diff", "started", "again"), ["train_step", "30 ms"]),
    "list": (("list", "Gelu", "Predict", *BENCHMARKS), ["elementwise.Gelu", "approximate: True"]),
    "functions": (("profile", "show", "started", "-t", "functions"), ["train_step", "30 ms"]),
    "causes": (("profile", "show", "started", "-t", "causes"), ["train_step"]),
    "inspect": (("cache", "inspect", "kept"), ["jit_train_step_of_a_transformer", "7 s"]),
    "doctor": (
        ("cache", "doctor", "cache", "--jax", "0.12.0.1"),
        ["worst of 3", "harness cache doctor cache --repair"],
    ),
}
"""What is typed, and names and values with their units that stand there as a whole."""


HEADERS = {
    "baselines": "case",
    "history": "change",
    "explain": "  rule:",
    "functions": "function",
    "causes": "function",
    "inspect": "module",
    "doctor": "unusable:",
    "diff": "function",
    "targets": "target",
}
"""How a line of each page begins at every width, where that is not `workload`."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the results of this repository, a history of nights, and a cache."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "docs" / "example-results")
    times = [value * (1.3 if night >= 6 else 1) for night, value in enumerate(noisy(12, 1))]
    write(tmp_path / "made", *nights(times))
    started = Made()
    for steps in ("1", "2"):
        started.build(
            "train_step", line=12, cause=Cause("static value", "steps", steps, steps + "0")
        )
    started.build("loss_of_a_transformer", line=40).write(tmp_path / "started")
    Made().build("train_step", line=12).write(tmp_path / "again")
    (tmp_path / "kept").mkdir()
    for module, days in (("jit_train_step_of_a_transformer", 3.2), ("jit_loss", 9.2)):
        file = tmp_path / "kept" / f"{module}-{module.encode().hex():0<64.64}-cache"
        file.write_bytes(zlib.compress(zlib.decompress(packed()), 0))
        now = time.time()
        os.utime(file, (now - (days - 1) * 86400, now - days * 86400))
    fill_with_problems(tmp_path / "cache")
    return tmp_path


def fill_with_problems(cache):
    """Make a cache with three problems: another program inside, torn entries, another processor."""
    cache.mkdir()
    machine = b"\n\x18x86_64-unknown-linux-gnu\x12\x06znver9\x1a\x11+64bit,+avx512zz9"
    loss, sort = (b"\x17" + HEADER[1:] + b":\x08jit_" + name for name in (b"loss", b"sort"))
    files = {
        "jit_loss": packed(loss),
        "jit_step": packed(loss),
        "jit_eval": packed(loss)[:20],
        "jit_init": packed(loss)[:30],
        "jit_sort": packed(sort + machine),
    }
    for number, (module, data) in enumerate(files.items()):
        file = cache / f"{module}-{number:064x}-cache"
        file.write_bytes(data)
        then = time.time() - 86400
        os.utime(file, (then + 3600, then))


def page(said):
    """Return what stands in the file: all of the widest, of the others what is not in that."""
    lines = [f"{WIDTH} columns:", *said[WIDTH]]
    for _, widths in itertools.groupby(NARROWER, said.__getitem__):
        equal = list(widths)
        lines.append(f"{', '.join(map(str, equal))} columns:")
        for known, part in itertools.groupby(said[equal[0]], said[WIDTH].__contains__):
            lines += ["…"] if known else part
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_table_is_as_it_was_at_every_width(name, folder, command, monkeypatch):
    words, whole = COMMANDS[name]
    said = {}
    for width in (WIDTH, *NARROWER):
        monkeypatch.setattr("harness.cli.output.console.width", width)
        code, out, err = command(*words)
        assert code in (0, 1, 5), err
        assert "\x1b" not in out
        said[width] = [line.rstrip() for line in out.replace(str(folder), "~").splitlines()]
        if width == WIDTH:
            for text in whole:
                assert text in out
        # One word, such as a path or a command's argument, may be longer than a line.
        if width != WIDTH:
            assert not [line for line in said[width] if len(line) > width and " " in line.strip()]
        header = HEADERS.get(name, "workload")
        assert [line for line in said[width] if line.startswith(header)]
    file = GOLDEN / f"{name}.txt"
    if WRITE:
        file.write_text(page(said), encoding="utf-8")
    assert page(said) == file.read_text(encoding="utf-8"), "see the top of this file"


def test_another_sentence_in_a_template_is_one_golden_file(folder, command, monkeypatch):
    monkeypatch.setattr("harness.cli.output.console.width", WIDTH)
    monkeypatch.setattr("harness.output.history.LEGEND", ("Another sentence.",))
    different = []
    for name, (words, _) in COMMANDS.items():
        out = command(*words)[1].replace(str(folder), "~")
        widest, _, _ = (GOLDEN / f"{name}.txt").read_text(encoding="utf-8").partition("\n120")
        lines = [f"{WIDTH} columns:", *(line.rstrip() for line in out.splitlines())]
        different += [] if lines == widest.splitlines() else [name]
    assert different == ["history"]


def test_the_end_of_make_bench_is_one_screen(folder, command):
    code, out, _ = command("show", "--brief")
    assert code == 0
    assert 24 <= len(out.splitlines()) <= 39  # and a line of the Makefile's
    assert out.count("compile takes") == 4  # the longest stage of all, and three compiles


def test_three_problems_of_a_cache_take_at_most_12_lines_of_80(folder, command, monkeypatch):
    monkeypatch.setattr("harness.cli.output.console.width", 80)
    _, out, _ = command(*COMMANDS["doctor"][0])
    assert sum(-(-max(len(line), 1) // 80) for line in out.splitlines()) <= 12
    assert "harness cache doctor cache --repair" in out.splitlines()[0]

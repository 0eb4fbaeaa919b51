"""A hundred wrong inputs on the command line: what is said, and what the command ends with.

    python -m tests.wrong_inputs [--show]

Each must end with the exit code of the table in `harness.errors` that fits, name what is wrong with
its value, and say what to do, in few lines and without a traceback. `--show` prints what is said.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests import forks
from tests.left_over import Place

MOST_LINES = 6

WRONG: dict[int, list[tuple[str, str]]] = {
    2: [
        # Commands and options
        ("harnes", "harnes"),
        ("--json list", "--version"),
        ("shwo", "shwo"),
        ("run --efort quick", "--efort"),
        ("run --effort", "--effort"),
        ("run --effort fast", "fast"),
        ("run --effort 0x1", "0x1"),
        ("run --effort 8x", "8x"),
        ("run --effort 1x1x1", "1x1x1"),
        ("run --timeout 0", "0"),
        ("run --timeout soon", "soon"),
        ("run --first-calls -1", "-1"),
        ("run --seed pi", "pi"),
        ("run --scenario hot", "hot"),
        ("run --target gpu:h2000", "gpu:h2000"),
        ("run --target cpu:avx", "cpu:avx"),
        ("run --target gpu:missing.pbtxt", "missing.pbtxt"),
        ("run --case size", "size"),
        ("run --case sise=8", "sise"),
        ("run --case =8", "=8"),
        ("run --select '('", "("),
        ("run NoSuchWorkload", "NoSuchWorkload"),
        ("run --machine a/b", "a/b"),
        ("run --night ../../etc", "../../etc"),
        ("run --benchmarks nowhere", "nowhere"),
        ("run --benchmarks asv.conf.json", "asv.conf.json"),
        ("run --store folder", "--on"),
        ("run --each-machine", "--on"),
        ("run --wait-for-workers 5", "--on"),
        ("list --format xml", "xml"),
        ("list NoSuchWorkload", "NoSuchWorkload"),
        ("targets gpu:h2000", "gpu:h2000"),
        ("show results other", "other"),
        ("show --stage compilee", "compilee"),
        ("show --scenario hot", "hot"),
        ("show --target gpu:h2000", "gpu:h2000"),
        ("show --case size", "size"),
        ("show --case sise=8", "sise"),
        ("show -s '['", "["),
        ("show --format yaml", "yaml"),
        ("show results -r other", "other"),
        ("compare HEAD", "B"),
        ("compare HEAD nosuchcommit", "nosuchcommit"),
        ("compare jax=0.1 jax=0.2", "0.1"),
        ("compare colour=red HEAD", "colour"),
        ("compare HEAD HEAD~1 --across planet", "planet"),
        ("compare --live HEAD nosuchcommit", "nosuchcommit"),
        ("compare --live HEAD HEAD~1 --effort fast", "fast"),
        ("history --stage compilee", "compilee"),
        ("history --figure history.bmp", "history.bmp"),
        ("aa --pairs 0", "0"),
        ("aa --effect compile", "compile"),
        ("aa --effect compiel=0.1", "compiel"),
        ("aa --effect compile=much", "much"),
        ("aa --name a/b", "a/b"),
        ("ir NoSuchWorkload", "NoSuchWorkload"),
        ("ir Scale --stage llvm", "llvm"),
        ("ir Scale --transform hessian", "hessian"),
        ("ir Scale --target gpu:h2000", "gpu:h2000"),
        ("ir Scale --diff something", "something"),
        ("ir Scale --diff commit:nosuchcommit", "nosuchcommit"),
        ("ir Scale --exit-code", "--diff"),
        ("compile NoSuchWorkload", "NoSuchWorkload"),
        ("compile Scale --depth 0", "0"),
        ("compile Scale --least 200", "200"),
        ("compile Scale --against nosuch", "nosuch"),
        ("compile Scale --figure x.bmp", "x.bmp"),
        ("cache inspect cache --sort colour", "colour"),
        ("cache inspect cache --limit -1", "-1"),
        ("cache prune cache --max-size lots", "lots"),
        ("cache advise --starts 0 -- -c pass", "0"),
        ("cache ship NoSuchWorkload", "NoSuchWorkload"),
        ("cache ship Scale --processes 0", "0"),
        ("cache ledger -o l.jsonl", "PROGRAM"),
        ("profile -- nosuchprogram", "nosuchprogram"),
        ("profile -- missing.py", "missing.py"),
        ("profile show --table colours folder", "colours"),
        ("profile nosuch.py", "nosuch.py"),
        ("report --png", "--figures"),
        ("report --into a -o b", "-o"),
        ("report --into nowhere", "nowhere"),
        ("export -o rows.xlsx", "rows.xlsx"),
        ("export -o rows.csv --where colour=red", "colour"),
        ("export -o rows.csv --where value", "value"),
        ("fsck asv.conf.json", "asv.conf.json"),
        ("fsck nowhere", "nowhere"),
        ("nightly --jax newst", "newst"),
        ("nightly --without everything", "everything"),
        ("nightly --config nowhere.json", "nowhere.json"),
        ("nightly --night a/b", "a/b"),
        ("init --function tiny", "tiny"),
        ("init --function tiny:f --arg float32", "float32"),
        ("init --function tiny:f --arg 'float32[3]'", "tiny"),
        ("init asv.conf.json", "asv.conf.json"),
        ("show nowhere", "nowhere"),
        ("cache unpack asv.conf.json cache", "asv.conf.json"),
        ("compare HEAD HEAD~1", "HEAD~1"),
        ("compare HEAD HEAD --stage compilee", "compilee"),
        ("cache prune cache", "--max-size"),
        ("cache prune cache --age soon", "soon"),
        ("cache prune cache --older 5d", "--older"),
        ("profile check folder", "--budget"),
        ("profile --sample often -- -c pass", "often"),
        ("profile -o asv.conf.json -- -c pass", "asv.conf.json"),
    ],
    4: [
        ("run --results asv.conf.json", "asv.conf.json"),
        ("show --results asv.conf.json", "asv.conf.json"),
        ("history", "results"),
        ("baselines", "results"),
        ("profile show folder", "folder"),
        ("profile check folder --budget b.toml", "folder"),
        ("profile report folder", "folder"),
        ("profile try folder", "folder"),
        ("profile diff folder other", "folder"),
        ("cache explain a.jsonl b.jsonl", "a.jsonl"),
        ("cache ledger a.jsonl", "a.jsonl"),
        ("ir Scale -o /proc/nowhere/x.txt", "/proc/nowhere"),
    ],
    5: [
        ("cache inspect nowhere", "nowhere"),
        ("cache stats nowhere", "nowhere"),
        ("cache doctor asv.conf.json", "asv.conf.json"),
        ("run --on tcp://127.0.0.1:9", "127.0.0.1:9"),
        ("run --on nowhere", "nowhere"),
    ],
}
"""What is given, and a piece of the answer, by exit code."""


def said(words: list[str], place: Place) -> tuple[int, str]:
    """Return what a command ends with, and all that it says."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=place.project,
        env=place.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def problems(code: int, piece: str, ended: int, text: str) -> Iterator[str]:
    """Yield what is wrong with an answer."""
    if ended != code:
        yield f"ended with {ended}, expected {code}"
    if "Traceback" in text:
        yield "traceback"
    if len(text.splitlines()) > MOST_LINES:
        yield f"{len(text.splitlines())} lines"
    if piece not in text:
        yield f"does not name {piece!r}"


def main() -> int:
    """Give all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    bad = 0
    inputs = [(code, *one) for code, ones in WRONG.items() for one in ones]
    variables = {name: text for name, text in os.environ.items() if name != forks.ADDRESS}
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder), variables) as place:
        said(["run", "--effort", "1x1"], place)
        for code, words, piece in inputs:
            ended, text = said(shlex.split(words), place)
            wrong = "; ".join(problems(code, piece, ended, text))
            bad += bool(wrong)
            if given.show or wrong:
                print(f"$ harness {words}\n{text.rstrip()}\n[{ended}] {wrong}\n", flush=True)
    print(f"{len(inputs)} wrong inputs, {bad} not answered well")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())

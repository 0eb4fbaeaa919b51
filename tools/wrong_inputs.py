"""A hundred wrong inputs on the command line: what is said, and what the command ends with.

    python -m tools.wrong_inputs [--show]

Each must end with the exit code of the table in `harness.errors` that fits, name what is wrong with
its value, and say what to do, in few lines and without a traceback. `--show` prints what is said.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.left_over import Place

MOST_LINES = 6

WRONG = {
    2: """
: «harnes» ; --json list => --version ; «shwo»
run: «--efort» quick ; «--effort» ; --effort «fast» ; --effort «0x1» ; --effort «8x»
run: --effort «1x1x1» ; --timeout «0» ; --timeout «soon» ; --first-calls «-1» ; --seed «pi»
run: --scenario «hot» ; --target «gpu:h2000» ; --target «cpu:avx» ; --target gpu:«missing.pbtxt»
run: --case «size» ; --case «sise»=8 ; --case «=8» ; --select '«(»' ; «NoSuchWorkload»
run: --machine «a/b» ; --night «../../etc» ; --benchmarks «nowhere» ; --benchmarks «asv.conf.json»
run: --wait 5 => --on
list: --format «xml» ; «NoSuchWorkload»
targets: «gpu:h2000»
show: --stage «compilee» ; --scenario «hot» ; --target «gpu:h2000» ; --case «size»
show: --case «sise»=8 ; -s '«[»' ; --format «yaml» ; -r «nowhere» ; «results»
compare: HEAD => B ; HEAD «nosuchcommit» ; jax=«0.1» jax=0.2 ; «colour»=red HEAD
compare: --live HEAD «nosuchcommit»
compare: --live HEAD HEAD~1 --effort «fast» ; HEAD «HEAD~1» ; HEAD HEAD --stage «compilee»
history: --stage «compilee»
aa: --pairs «0» ; --effect «compile» ; --effect «compiel»=0.1 ; --effect compile=«much»
aa: --name «a/b»
ir: «NoSuchWorkload» ; Scale --stage «llvm» ; Scale --transform «hessian»
ir: Scale --target «gpu:h2000» ; Scale --diff «something» ; Scale --diff commit:«nosuchcommit»
ir: Scale --exit-code => --diff
compile: «NoSuchWorkload» ; Scale --depth «0» ; Scale --least «200» ; Scale --against «nosuch»
compile: Scale --figure «x.bmp»
cache inspect: cache --sort «colour» ; cache --limit «-1»
cache ledger: -o l.jsonl => PROGRAM
profile: -- «nosuchprogram» ; -- «missing.py» ; «nosuch.py» ; --sample «often» -- -c pass
profile: -o «asv.conf.json» -- -c pass ; --max-compiles «-1» -- -c pass
profile show: --table «colours» folder
report: --png => --figures ; --into a «-o» b ; --into «nowhere»
export: -o «rows.xlsx» ; -o rows.csv --where «colour»=red ; -o rows.csv --where «value»
nightly: --python «nowhere/python» ; --night «a/b» ; --effort «much» ; --machine «../up»
init: --function «tiny» ; --function tiny:f --arg «float32» ; --function «tiny»:f --arg 'float32[3]'
init: «asv.conf.json»
profile report: folder -o «x.pdf»
cache inspect: «nowhere»
cache explain: «a.jsonl» b.jsonl
cache ledger: «a.jsonl»
profile show: «nowhere»
profile report: «nowhere»
profile try: «nowhere»
profile diff: «nowhere» other
""",
    4: """
run: --results «asv.conf.json»
show: --results «asv.conf.json»
profile show: «benchmarks»
: history => results ; baselines => results
ir: Scale -o «/proc/nowhere»/x.txt
""",
    5: """
cache doctor: «asv.conf.json»
run: --on tcp://«127.0.0.1:9» ; --on «nowhere»
""",
}
"""By exit code and command what is given, with the piece that the answer names between « and », or
after =>."""
MARKS = str.maketrans("", "", "«»")


def inputs() -> Iterator[tuple[int, str, str]]:
    """Yield each exit code, what is given, and the piece of the answer."""
    for code, lines in WRONG.items():
        for line in lines.strip().splitlines():
            command, _, all_given = line.partition(": ")
            for given in all_given.split(" ; "):
                words, _, piece = given.partition(" => ")
                piece = piece or words.partition("«")[2].partition("»")[0]
                yield code, f"{command} {words.translate(MARKS)}".strip(), piece


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
    given_all = list(inputs())
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        place.run("-m", "harness", "run", "--effort", "1x1")
        for code, words, piece in given_all:
            done = place.run("-m", "harness", *shlex.split(words))
            text = done.stdout + done.stderr
            ended = done.returncode
            wrong = "; ".join(problems(code, piece, ended, text))
            bad += bool(wrong)
            if given.show or wrong:
                print(f"$ harness {words}\n{text.rstrip()}\n[{ended}] {wrong}\n", flush=True)
    print(f"{len(given_all)} wrong inputs, {bad} not answered well")
    return min(bad, 100)


if __name__ == "__main__":
    sys.exit(main())

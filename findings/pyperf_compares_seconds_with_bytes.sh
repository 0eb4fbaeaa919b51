#!/usr/bin/env bash
# pyperf compare_to takes a ratio of seconds to bytes, and refuses a value of 0.
# Most would expect: two units are an error; a count or a size may be 0.
# Seen: '1.97x slower' from seconds to bytes; 0 raises ValueError (and infinity is taken).
# An export to pyperf has to leave out or shift rows that can be 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'pyperf==2.11.0'
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import subprocess
import sys

import pyperf


def benchmark(values, unit):
    run = pyperf.Run(values, metadata={"name": "b", "unit": unit}, collect_metadata=False)
    return pyperf.Benchmark([run])


benchmark([1.0, 1.1, 1.0], "second").dump("1.json")
benchmark([2.0, 2.1, 2.0], "byte").dump("2.json")
command = [sys.executable, "-m", "pyperf", "compare_to", "1.json", "2.json"]
done = subprocess.run(command, capture_output=True, text=True)
print(f"pyperf {pyperf.__version__}")
print(f"expected: an error; exit {done.returncode}: {done.stdout.strip()}")
assert done.returncode == 0 and "x slower" in done.stdout and "bytes" in done.stdout
try:
    benchmark([0.0, 1.0], "byte")
except ValueError as error:
    print(f"a value of 0: {error}")
else:
    raise SystemExit("0 was taken")
assert benchmark([float("inf"), 1.0], "byte").mean() == float("inf")
PYTHON

#!/usr/bin/env bash
# asv 0.6.6 never calls a change of a benchmark with exactly six samples on each side.
# Most would expect: more samples decide more: five a side are marked, and seven.
# Seen: the rank test is used where 1/C(12, 6) is below 0.002, then its two-sided p, at least 0.00216, is held against 0.002.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check 'asv==0.6.6'
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
from asv._stats import is_different
from asv_runner.statistics import compute_stats

seen = {}
for n in (5, 6, 7, 8):
    old, new = [1 + i / 1000 for i in range(n)], [10 + i / 1000 for i in range(n)]
    seen[n] = is_different(old, new, compute_stats(old, 1)[1], compute_stats(new, 1)[1])
print("asv 0.6.6")
print(f"samples that are ten times as long, by samples a side; expected: True for all; seen: {seen}")
assert seen == {5: True, 6: False, 7: True, 8: True}
PYTHON

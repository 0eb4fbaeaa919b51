#!/usr/bin/env bash
# asv 0.6.6 shows "failed" for a track_ benchmark that returns a NumPy scalar, unless that is a float64.
# Most would expect: a number is a number: float32 and int64 are stored as a float64 is.
# Seen: the result is written as JSON as it is, and only a float64 is one of Python's floats.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --no-compile --quiet --disable-pip-version-check \
    'asv==0.6.6' 'numpy==2.4.6'
cd "$folder"
export HOME="$folder" PATH="$folder/venv/bin:$PATH"
mkdir -p project/benchmarks
cd project
cat > asv.conf.json <<'JSON'
{"version": 1, "project": "p", "repo": ".", "branches": ["HEAD"], "environment_type": "virtualenv", "results_dir": "results"}
JSON
touch benchmarks/__init__.py
cat > benchmarks/tracked.py <<'PYTHON'
import numpy as np


class Tracked:
    params = ["float", "float64", "float32", "int64"]

    def track_it(self, kind):
        return 2.5 if kind == "float" else np.dtype(kind).type(2.5)
PYTHON
git init --quiet .
git add .
git -c user.name=n -c user.email=n@example.org commit --quiet -m one
asv machine --yes > /dev/null 2>&1
asv run -E existing --set-commit-hash HEAD > /dev/null 2>&1 || true
python - <<'PYTHON'
import glob
import json

files = [json.load(open(name)) for name in glob.glob("results/*/*.json")]
results = next(one["results"] for one in files if "results" in one)
values = dict(zip(["float", "float64", "float32", "int64"], results["tracked.Tracked.track_it"][0]))
print("asv 0.6.6, NumPy 2.4.6")
print(f"what is stored; expected: 2.5, 2.5, 2.5 and 2; seen: {values}")
assert values == {"float": 2.5, "float64": 2.5, "float32": None, "int64": None}
PYTHON

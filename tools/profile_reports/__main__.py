"""What a profile says of programs like those of published reports, against what is true of them.

    python -m tools.profile_reports --python PYTHON [NAME ...]

PYTHON is of an environment with JAX and the libraries that reports.toml lists. Each program runs
unchanged under `harness profile`; where the report is about one slow compile, under `harness
compile` as well. It is right if function, cause, argument, place and remedy are those expected,
partly if cause and function are, and wrong otherwise. The exit code is the number of those that
are not right.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import harness
from harness.output.profile_findings import finding_texts

HERE = Path(__file__).parent
TABLE = HERE / "reports.toml"
MARK = "# HERE"
OUTSIDE = ("small", "large", "loop", "shard_map")
"""Kinds of findings about JAX's own functions outside jit."""
SURROUNDINGS = {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "0"}


def places_of(file: Path) -> list[str]:
    """Return the lines of which one is to be named, as `train.py:8`."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [f"{file.name}:{n}" for n, line in enumerate(lines, 1) if line.endswith(MARK)]


def judged(report: dict[str, Any], python: str) -> list[tuple[str, str]]:
    """Return the verdict and what was said, of the profile and perhaps of the compile."""
    file = HERE / "programs" / f"{report['name']}.py"
    with tempfile.TemporaryDirectory() as out:
        folder = Path(out) / "profile"
        done = run("profile", "-o", folder, "--", python, file)
        if done.returncode:
            return [("wrong", done.stderr.strip().splitlines()[-1])]
        results = [of_profile(report, harness.load_profile(folder), places_of(file))]
        if kinds := report.get("compile"):
            words = ("--format", "json", "-o", Path(out) / "compile.json", "--", python, file)
            done = run("compile", report["compile_function"], *words)
            text = (Path(out) / "compile.json").read_text() if not done.returncode else "{}"
            results.append(of_compile(json.loads(text), kinds.split("|"), places_of(file)))
    return results


def run(command: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run one of the harness's commands."""
    line = [sys.executable, "-P", "-m", "harness", command, *map(str, words)]
    environment = {**os.environ, **SURROUNDINGS}
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=600)


def of_profile(report: dict[str, Any], profile: Any, places: Sequence[str]) -> tuple[str, str]:
    """Judge what a profile says."""
    best = ("wrong", "; ".join(one.text for one in finding_texts(profile)[:2]))
    for function, cause, argument, site, remedy in answers(profile):
        if cause not in report["cause"].split("|"):
            continue
        if report["function"] and function not in report["function"].split("|"):
            continue
        words = [any(word in remedy for word in words) for words in report["remedy"]]
        exact = argument == report["argument"] or argument.startswith(f"{report['argument']}.")
        exact = report["argument"] in argument if cause == "eager" else exact
        # Of a first build, the line inside is for `harness compile` to name.
        there = cause == "first" or any(place in site for place in places)
        whole = all(words) and (exact or not report["argument"]) and there
        text = f"{function}: {cause} {argument} at {site}: {remedy}"
        if whole:
            return "right", text
        best = max(best, ("partly", text), key=lambda one: one[0] == "partly")
    return best


def answers(profile: Any) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield function, cause, argument, place and remedy of what is reported."""
    for one in finding_texts(profile):
        finding, place = one.finding, ", ".join(one.finding.sites)
        names = [function.name for function in finding.functions]
        if finding.kind in OUTSIDE:
            yield names[0], "eager", one.text, place, one.remedy
        for name in names if finding.cause else ():
            yield name, finding.cause.kind, finding.cause.argument, place, one.remedy
        if finding.kind == "firsts":
            for name in names:
                yield name, "first", "", place, ""


def of_compile(
    document: dict[str, Any], kinds: Sequence[str], places: Sequence[str]
) -> tuple[str, str]:
    """Judge what the inside of a compile says."""
    causes = [one for one in document.get("causes", []) if one["kind"] in kinds]
    lines = {f"{Path(file).name}:{line}" for one in causes for _, file, line in [one["place"]]}
    verdict = "right" if lines & set(places) else "partly"
    return verdict if causes else "wrong", json.dumps(document.get("causes"))[:600]


def main() -> None:
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))["report"]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="these reports only")
    parser.add_argument("--python", default=sys.executable, help="with JAX and the libraries")
    options = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    for report in table:
        if options.names and report["name"] not in options.names:
            continue
        results = judged(report, options.python)
        for command, (verdict, text) in zip(("profile", "compile"), results, strict=False):
            counts[command, verdict] += 1
            print(f"{verdict:7}{command:9}{report['name']:18}{text}", flush=True)
    for command in ("profile", "compile"):
        parts = (f"{counts[command, what]} {what}" for what in ("right", "partly", "wrong"))
        print(f"harness {command}: {', '.join(parts)}")
    sys.exit(sum(count for (_, what), count in counts.items() if what != "right"))


if __name__ == "__main__":
    main()

"""The page of what changed between releases of JAX, and the results it is made of."""

import json
from pathlib import Path

from tools.probe.rows import ROWS
from tools.releases.experiments import EXPERIMENTS, SURPRISES

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "by-release"
PAGE = DOCS / "jax-by-release.md"
AREAS = ("tracing", "lowering", "compiling", "caching", "exporting", "targets")
LEAST_S = 0.1
"""CPU seconds that a group of compiling must have in some release to have a row of its own."""

HEAD = """\
# JAX from release to release

What changed for tracing, lowering, compiling, caching, exporting and compile-only targets, each by
an experiment on a CPU: small programs in processes of their own, with JAX alone. Made by

    make releases

which makes an environment for each supported release, runs all experiments there, prints what
differs from the committed results (docs/by-release/) and writes this page. To try another release:
`python -m tools.releases --python EXE`, with an environment that has it and the harness; rows stand
in `tools/releases/experiments.py` and, with real cache directories, in `tools/probe/rows.py`.
"""

SECONDS = """\
CPU seconds for the committed suite (`benchmarks/`, the last case of each workload and transform
that needs one device), the least of 2 compiles of each program, summed and split by XLA's own
events into [groups](compile.md#why-does-one-function-take-so-long-to-compile). Releases were
measured one after the other beside other work: a few percent say nothing. `python -m
tools.releases --seconds` measures them again.
"""


def load():
    """Return the committed results by release, oldest first."""
    return ordered({file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")})


def ordered(results):
    """Return results by release, oldest first."""
    order = sorted(results, key=lambda release: [int(part) for part in release.split(".")])
    return {release: results[release] for release in order}


def save(results):
    """Write the results of each release, and the page."""
    FOLDER.mkdir(exist_ok=True)
    for release, found in results.items():
        (FOLDER / f"{release}.json").write_text(json.dumps(found, indent=1) + "\n")
    PAGE.write_text(text(results))


def cells(found):
    """Return what a release does, by area and title; order is that of the page."""
    rows = {
        (area, title): str(found["results"][name])
        for name, (area, title, _) in EXPERIMENTS.items()
        if name in found["results"]
    }
    for name, row in ROWS.items():
        if name in found["cache"]:
            verdict, happened = found["cache"][name]
            if verdict != "n/a":
                rows["caching", f"{row.title} (expected: {row.expectation})"] = happened
    for release, result in found.get("reads", {}).items():
        rows["exporting", f"an export of jax {release} is called"] = result
    rows |= {("targets", title): text for title, text in found["targets"].items()}
    return rows


def differences(release, results, committed):
    """Yield a line per cell that differs from the committed one, or the release's before it."""
    known = committed.get(release)
    since = release if known else ""
    if not known:
        before = [one for one in list(results)[: list(results).index(release)] if one in committed]
        if not before:
            return
        since, known = before[-1], committed[before[-1]]
    was, now = cells(known), cells(results[release])
    for key in {**was, **now}:
        if was.get(key) != now.get(key):
            area, title = key
            yield (
                f"jax {release}, {area}, {title}: {now.get(key, 'not tried')} "
                f"(jax {since}, committed: {was.get(key, 'not tried')})"
            )


def text(results):
    """Return the page."""
    installed = [
        [release, one["jaxlib"], one["python"], *one["dates"].values()]
        for release, one in results.items()
    ]
    headings = ["jax", "jaxlib", "Python", "experiments on", "caching on", "seconds on"]
    lines = [HEAD, *_table(headings, installed)]
    columns = [cells(one) for one in results.values()]
    keys = list(dict.fromkeys(key for column in columns for key in column))
    changed = {key for key in keys if len({column.get(key) for column in columns}) > 1}
    for area in AREAS:
        rows = [
            [title, *(column.get((one, title), "not tried") for column in columns)]
            for one, title in keys
            if one == area and (one, title) in changed
        ]
        same = sum(key[0] == area for key in keys) - len(rows)
        lines += ["", f"## {area.capitalize()}", ""]
        lines += [*_table(["experiment", *results], rows), ""] if rows else []
        lines.append(f"{same} of {same + len(rows)} experiments go alike on all releases.")
        alike = [EXPERIMENTS[name][:2] for name in SURPRISES if name in EXPERIMENTS]
        alike = [key for key in alike if key[0] == area and key not in changed]
        if alike:
            lines += ["", "Otherwise than most expect, on all of them:", ""]
            lines += [f"- {key[1]}: {columns[0].get(key, 'not tried')}" for key in alike]
        if area == "compiling":
            lines += _seconds(results)
        if area == "caching":
            lines += _failing(results)
    return "\n".join(lines) + "\n"


def _seconds(results):
    """Return the tables of how long compiling takes."""
    lines = ["", SECONDS.rstrip()]
    of = {release: one["seconds"] for release, one in results.items() if one["seconds"]}
    for target in next(iter(of.values()), {}):
        each = [one[target] for one in of.values()]
        groups = dict.fromkeys(name for one in each for name in one["groups"])
        sums = [[one["groups"].get(name, 0.0) for one in each] for name in groups]
        rows = [
            [name, *(f"{value:.2f}" for value in values), _change(values)]
            for name, values in zip(groups, sums, strict=True)
            if max(values) >= LEAST_S
        ]
        values = [sum(one["groups"].values()) for one in each]
        rows.append(["all", *(f"{value:.2f}" for value in values), _change(values)])
        kernels = [one["kernels"] for one in each]
        rows.append(["kernels (a number)", *map(str, kernels), _change(kernels)])
        programs = min(one["programs"] for one in each)
        lines += ["", *_table([f"{target}, {programs} programs", *of, "change"], rows)]
    return lines


def _failing(results):
    """Return what goes otherwise than a user expects on every release."""
    changed, lines = [], ["", "Otherwise than most expect, on all of them:", ""]
    for name, row in ROWS.items():
        findings = [one["cache"].get(name, ["n/a", ""]) for one in results.values()]
        happened = {what for _, what in findings}
        if {verdict for verdict, _ in findings} == {"fail"} and len(happened) == 1:
            lines.append(f"- {row.title}: {happened.pop()}. {row.advice}".rstrip())
        elif len({verdict for verdict, _ in findings}) > 1:
            changed.append(f"- {row.title}: {row.advice}")
    return ["", *changed, *lines]


def _change(values):
    return f"{values[-1] / values[0] - 1:+.0%}" if values[0] else "new"


def _table(headings, rows):
    """Return the lines of a table."""
    cells = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(one).replace('<', '&lt;')} |" for one in cells]

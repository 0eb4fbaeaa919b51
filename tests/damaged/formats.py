"""Every format that is read back: a healthy file of it, its reader, its commands."""

from __future__ import annotations

import dataclasses
import json
import random
import shutil
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from harness.cache import ledger
from harness.cache.entry import read_contents
from harness.errors import StoreError
from harness.frame import load as loading
from harness.frame import parquet
from harness.jaxhooks import events, parts, programs
from harness.output.comparison import rates_text
from harness.profiles import recorded
from harness.records import json_file, kept
from harness.records.nights import SCHEMA, MeasuredEnvironment, NightSummary
from harness.records.schema import Problems, read_file
from harness.records.store import Store
from harness.verdicts import error_rates
from harness.verdicts.aa import rates as stored_rates
from harness.verdicts.live import comparison as live
from tests.frame.trees import failed, record
from tests.profiles import logs

RECORDS_FILE, NIGHT, PROGRAM = "01234567-a.jsonl", "2026-11-20", "ab" * 8
ORIGINAL = Path(__file__).parents[2] / "docs" / "example-results" / "cpu-2core"

Values = dict[Any, Any]
"""What a reader says, by name."""


@dataclass(frozen=True)
class Format:
    """One kind of file."""

    name: str
    make: Callable[[Path], Path]
    """Fills an empty folder, and returns the file that is to be damaged."""
    read: Callable[[Path], Values]
    """Returns what the reader finds; raises HarnessError where it refuses."""
    commands: tuple[str, ...] = ()
    """Commands of which one reads the file in every so many cases; `{out}` is a name outside."""
    checked: bool = True
    """Whether a file of today's has a checksum, so that no flipped bit goes unnoticed."""
    lines: bool = False
    """Whether it is a line of JSON each."""
    json: bool = True
    """Whether it is JSON, which is twisted value by value."""

    def command(self, path: Path, rng: random.Random) -> list[str]:
        """Return the words of one of the commands, for a file; none where there are none."""
        if not self.commands:
            return []
        tree = next(one for one in path.parents if one.name == "tree")
        places = {"path": path, "folder": path.parent, "tree": tree, "out": tree.parent / "out"}
        return [word.format(**places) for word in rng.choice(self.commands).split()]


def _samples() -> list[Any]:
    stages = {"trace": [1e6, 2e6, 3e6], "compile": [5e7, 6e7, 7e7], "execute": [1234.5]}
    found = [
        record(number, stages, axes={"size": size, "name": "größe"}, fingerprint=PROGRAM)
        for size in (8, 16)
        for number in range(6)
    ]
    real = Store(ORIGINAL / "records" / "587eb46c-existing-py3.11-jax0.10.2.jsonl").read()
    step = len(real) // 12
    return [*found, failed(99, "ValueError: " + "x" * 50, axes={"size": 32}), *real[::step]]


def _records(folder: Path) -> Path:
    samples = _samples()
    other = [msgspec.structs.replace(one, commit="f" * 40, key=one.key[::-1]) for one in samples]
    home = folder / "box" / "records"
    for name, records in ((RECORDS_FILE, samples), ("ffffffff-b.jsonl", other)):
        Store(home / name).append(records)
    _rates(folder)
    return home / RECORDS_FILE


def _read_records(path: Path) -> Values:
    loading.everything(path)
    found = read_file(path, Problems())
    return {(one.key, one.replicate): msgspec.json.encode(one) for one in found}


def _parquet(folder: Path) -> Path:
    file = folder / "rows.parquet"
    with file.open("wb") as handle:
        parquet.write(loading.frame_of(_samples()), handle)
    return file


def _read_parquet(path: Path) -> Values:
    columns = loading.load(path, all=True).to_dict("list")
    return {(name, at): repr(one) for name, own in columns.items() for at, one in enumerate(own)}


WATCHED = Path(__file__).parents[1] / "jaxhooks" / "data"


def _profile(folder: Path) -> Path:
    lines = list(recorded.read_file(WATCHED / "profile.jsonl").lines)
    lines[0] = logs.started(clock=1e-5, process=0.0)
    logs.profile_of(folder, lines)
    programs.write_run(folder, events.Run(("python", "train.py"), 100, 2_000_000, 3, 7))
    (path,) = folder.glob("*.jsonl")
    return path


def _warn(said: object) -> None:
    if said:
        warnings.warn(str(said), stacklevel=1)


def _read_profile(path: Path) -> Values:
    profile = recorded.read(path.parent)
    _warn(profile.broken_lines)
    _ = profile.causes, [built.pieces for built in (*profile.builds, *profile.unfinished)]
    return {repr(line): True for process in profile.processes for line in process.lines}


def _read_run(path: Path) -> Values:
    profile = recorded.read(path.parent)
    _warn(profile.run_damage)
    return {} if profile.run is None else {"run": repr(profile.run)}


def _night(folder: Path) -> Path:
    file = folder / "box" / "nights" / "2026-11-20" / "summary.json5"
    asked = ("2026-11-20", "box", "a" * 40, "8x1", ["--select", "Mlp"], 1_700_000_000_000)
    measured = MeasuredEnvironment("existing-py3.11-jax0.10.2", RECORDS_FILE, 0, {"ok": 5})
    json_file.write(file, NightSummary(SCHEMA, *asked, [measured]))
    return file


def _read_night(path: Path) -> Values:
    try:
        return {"night": msgspec.json.encode(json_file.read(path, NightSummary))}
    except json_file.DamagedError as error:
        raise StoreError(str(error)) from None


def _rates(folder: Path) -> Path:
    (source, *_) = sorted((ORIGINAL / "aa").glob("*.json5"))
    rates = msgspec.json.decode(source.read_bytes(), type=error_rates.ErrorRates)
    rates.noise = rates.noise[:3]
    rates.method, rates.schema = error_rates.METHOD, error_rates.SCHEMA
    rates.effort = "default"
    file = folder / "box" / "aa" / "run.json5"
    stored_rates.write(file, rates)
    return file


def _read_rates(path: Path) -> Values:
    found = error_rates.stored(path.parents[2], "box", "default")
    for one in found:
        rates_text(one, error_rates.Setting("box", "default", "env"))
    return dict(enumerate(map(msgspec.json.encode, found)))


def _kept(folder: Path) -> Path:
    home = kept.folder_of(folder, "box")
    texts = ("module @jit_f {}\n", "HloModule jit_f\n\nENTRY %main (x: f32[8]) -> f32[8] {\n}\n")
    shown = [SimpleNamespace(as_text=partial(str, 40 * text)) for text in texts]
    kept.keep(home, PROGRAM, *shown)
    return kept.path_of(home, PROGRAM)


def _read_kept(path: Path) -> Values:
    found = kept.read(path.parent, PROGRAM)
    return {} if found is None else {"texts": (found.hlo, found.stablehlo)}


def _ledger(folder: Path) -> Path:
    path = folder / "run.jsonl"
    with ledger.ledger(path) as book:
        for event in ledger.read(WATCHED / "ledger.jsonl").events:
            for number in range(3):
                about = {"at_s": event.at_s + number, "pid": number}
                book.requested(dataclasses.replace(event, **about))
    stored = parts.parts_of(path)
    stored.put("aa", "--xla_flag=1 " * 50)
    stored.put("bb", "module @jit_loss {}\n" * 50)
    shutil.copy(path, folder / "other.jsonl")
    return path


def _read_ledger(path: Path) -> Values:
    found = ledger.read(path)
    _warn(found.broken_lines)
    ledger.summarize(found.events)
    ledger.frame(found.events)
    return {repr(event): True for event in found.events}


def _read_part(path: Path) -> Values:
    text = parts.parts_of(path.parent.with_suffix("")).get("bb")
    _warn("it is not there" if text is None else "")
    return {} if text is None else {"text": text}


def _asv(folder: Path) -> Path:
    file = folder / "box" / "587eb46c-existing-py3.11-jax0.10.2.json"
    file.parent.mkdir(parents=True)
    shutil.copy(ORIGINAL / "machine.json", file.parent)
    found = json.loads((ORIGINAL / file.name).read_text())
    found["results"] = {name: found["results"][name] for name in sorted(found["results"])[::40]}
    file.write_text(json.dumps(found))
    about = json.loads((ORIGINAL.parent / "benchmarks.json").read_text())
    about = {name: one for name, one in about.items() if name in (*found["results"], "version")}
    (folder / "benchmarks.json").write_text(json.dumps(about))
    return file


def _read_asv(path: Path) -> Values:
    loading.everything(path.parents[1])
    return {}


def _live(folder: Path) -> Path:
    file = folder / "box" / "live" / "20261123T000000Z-1" / live.STATE
    state = live.LiveState("ab" * 32, 1, 2_000_000_000_000, 4, [4], {"a.B": 2})
    state.schema = json_file.SEALED
    json_file.write(file, state)
    return file


def _read_live(path: Path) -> Values:
    state, folder = live._begun("ab" * 32, 1, path.parents[1])
    return {folder.name: msgspec.json.encode(state)} if folder and folder.exists() else {}


def _entry(folder: Path) -> Path:
    path = folder / f"jit_f-{'ab' * 32}-cache"
    path.write_bytes(zlib.compress(b"\x00\x00\x00\x07" + b"an executable" * 500))
    return path


def _read_entry(path: Path) -> Values:
    with path.open("rb") as file:
        contents = read_contents(file)
    _warn(contents.fault)
    if contents.state != "readable":
        return {}
    return {"contents": (contents.compile_whole_s, contents.executable)}


_TREE = (
    *("show --results {tree}", "history --results {tree}", "baselines --results {tree}"),
    "compare {path} {folder}/ffffffff-b.jsonl --results {tree}",
    "compare {folder}/ffffffff-b.jsonl {path} --results {tree} --format json",
    *("export --results {tree} -o {out}.csv", "export --results {tree} -o {out}.parquet"),
    "report --results {tree} -o {out}.html",
)
_PARQUET = (
    *("show --results {path}", "compare {path} {path} --format json"),
    *("export --results {path} -o {out}.csv", "report --results {path} -o {out}.html"),
)
_PROFILE = (
    *("profile show {folder}", "profile diff {folder} {folder}"),
    *(f"profile show {{folder}} --table {t}" for t in ("builds", "functions", "causes", "cache")),
    *("profile report {folder} -o {out}.json", "profile report {folder} -o {out}.html"),
)
_LEDGER = (
    *("cache ledger {path}", "cache explain {folder}/other.jsonl {path} --all"),
    *("cache ledger {path} {folder}/other.jsonl", "cache ledger --format json {path}"),
)
_ASV = (
    *("show --results {tree}", "export --results {tree} -o {out}.csv", "history --results {tree}"),
)
_ENTRY = ("cache inspect {folder}", "cache doctor {folder} --no-put-cost")

FORMATS: tuple[Format, ...] = (
    Format("records", _records, _read_records, _TREE, lines=True),
    Format("parquet", _parquet, _read_parquet, _PARQUET, json=False),
    Format("profile log", _profile, _read_profile, _PROFILE, lines=True),
    Format("profile run", lambda own: _profile(own).with_name(events.RUN), _read_run, _PROFILE),
    Format("night", _night, _read_night),
    Format("error rates", _rates, _read_rates),
    Format("kept program", _kept, _read_kept, json=False),
    Format("ledger", _ledger, _read_ledger, _LEDGER, lines=True),
    Format(
        "ledger part",
        lambda own: _ledger(own).with_name("run.jsonl.parts") / "bb",
        _read_part,
        json=False,
    ),
    Format("asv result", _asv, _read_asv, _ASV, checked=False),
    Format("live state", _live, _read_live),
    Format("cache entry", _entry, _read_entry, _ENTRY, json=False),
)
"""JAX's own entries are compressed with zlib here, which has a checksum; its zstd has none."""

"""Findings, the changes that their remedies are, and what a run with each of them shows."""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import UsageError
from harness.jaxhooks.events import Frame
from harness.patches import arguments, copies, hoist
from harness.patches.copies import CopiedProgram, Observed
from harness.patches.source import Edit, ProgramFile, Refused
from harness.profiles.finding import Finding
from harness.profiles.findings import findings
from harness.profiles.model import Built, seconds_of
from harness.profiles.recorded import Recorded

ONCE = ("JH001", "JH002", "JH004", "JH005", "JH006", "JH007", "JH010", "JH013", "JH014")
DYNAMIC = ("JH020", "JH021", "JH022", "JH024", "JH025")
TYPED = ("JH054", "JH055")
ITERATED = ("JH086",)
SIZED = ("JH088", "JH089", "JH090")
"""The remedies that are written, by identifier."""

OUTSIDE_JIT = 0.9
"""Share of the programs of a finding outside jit that has to be gone."""


@dataclass(frozen=True)
class Proposal:
    """A change that a finding's remedy is."""

    finding: Finding
    source: ProgramFile
    edits: tuple[Edit, ...]
    names: frozenset[str]
    """What JAX calls the functions that are built less, before and after."""
    also: tuple[Finding, ...] = ()
    """Other findings that the same change is for: one place, built for several reasons."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that the change is for, the slowest first."""
        return (self.finding, *self.also)

    @property
    def text(self) -> str:
        """The file as it is then."""
        return self.source.edited(self.edits)


@dataclass(frozen=True)
class NotPatched:
    """A finding whose remedy is not written, and why."""

    finding: Finding
    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Proven:
    """A change that saves what it is to save, and changes no result."""

    proposal: Proposal
    builds: tuple[int, int]
    """Of its functions, before and after."""
    seconds: tuple[float, float]
    """Of building them."""

    @property
    def saved_s(self) -> float:
        """Seconds of building that are saved."""
        return self.seconds[0] - self.seconds[1]


# --- what could be written ------------------------------------------------------------------------


def proposals(profile: Recorded, program: CopiedProgram) -> tuple[list[Proposal], list[NotPatched]]:
    """Return the changes that remedies of a profile are, the slowest first, and what is none."""
    made: list[Proposal] = []
    left: list[NotPatched] = []
    for finding in findings(profile):
        if finding.remedy is None or finding.kind in ("first", "firsts", "unfinished"):
            continue
        try:
            proposal = _proposal(finding, program)
        except Refused as refused:
            left.append(NotPatched(finding, refused.reason, refused.detail))
            continue
        for number, other in enumerate(made):
            if (other.source.path, other.text) == (proposal.source.path, proposal.text):
                names = other.names | proposal.names
                made[number] = replace(other, names=names, also=(*other.also, finding))
                break
        else:
            made.append(proposal)
    return made, left


def _proposal(finding: Finding, program: CopiedProgram) -> Proposal:
    assert finding.remedy is not None
    remedy, function = finding.remedy.id, finding.function
    site = finding.builds[0].call_site
    names = {one.name for one in finding.functions}
    if remedy in ONCE:
        source = _source(site.file, program)
        edits, name = hoist.jitted_once(source, function, site)
        names.add(name)
    elif remedy in DYNAMIC:
        source = _source(function.file, program)
        edits = arguments.made_dynamic(source, function, _statics(finding))
    elif remedy in TYPED:
        source = _source(site.file, program)
        edits = _typed(finding, source, site)
    elif remedy in ITERATED + SIZED:
        sites = _own_sites(finding.builds, program)
        source = _source(next(iter(sites)), program)
        iterates = remedy in ITERATED
        write = arguments.iterated_by_numpy if iterates else arguments.sized_by_numpy
        edits = write(source, sites[str(source.path)])
    else:
        raise Refused("no-kind")
    proposal = Proposal(finding, source, tuple(edits), frozenset(names))
    if proposal.text == source.text:
        raise Refused("no-place", function.name)
    return proposal


def _statics(finding: Finding) -> list[str]:
    """Return the static arguments that take other values: one alone would still be built for."""
    assert finding.remedy is not None
    also = finding.cause.also.first if finding.cause is not None else ()
    changing = [one.argument for one in also if one.kind == "static value"]
    return [finding.remedy.argument, *(name for name, _ in finding.others), *changing]


def _source(file: str, program: CopiedProgram) -> ProgramFile:
    path = Path(file)
    if not file or not path.is_relative_to(program.root):
        raise Refused("elsewhere", file)
    parts = path.relative_to(program.root).parts
    if copies.left_out(parts) or "site-packages" in parts:
        raise Refused("elsewhere", file)
    return ProgramFile(path)


def _own_sites(builds: Sequence[Built], program: CopiedProgram) -> dict[str, set[int]]:
    sites: defaultdict[str, set[int]] = defaultdict(set)
    for built in builds:
        if Path(built.call_site.file).is_relative_to(program.root):
            sites[built.call_site.file].add(built.call_site.line)
    if not sites:
        raise Refused("elsewhere", builds[0].call_site.file)
    return sites


def _typed(finding: Finding, source: ProgramFile, site: Frame) -> list[Edit]:
    cause = finding.cause
    if cause is None:
        raise Refused("no-place")
    texts = [
        text
        for way, text in zip(cause.ways, (cause.before, cause.after), strict=True)
        if way == "fixed"
    ]
    dtype = (texts or [cause.after])[0]
    function = finding.function
    made = arguments.definition(ProgramFile(Path(function.file)), function)
    if made is None:
        raise Refused("no-place", function.name)
    parameters = [one.arg for one in made.args.posonlyargs + made.args.args]
    return arguments.typed(source, function, parameters, cause.argument, dtype, site)


# --- what a run shows -----------------------------------------------------------------------------


def runs(proposed: int) -> int:
    """Return how often the program runs: twice as it is, with each change, and with all."""
    return 2 + proposed + (proposed > 1)


def program_of(profile: Recorded) -> CopiedProgram:
    """Return the program that a profile is of.

    Raises:
        UsageError: if it is of no command.
    """
    if profile.run is None or not profile.processes or profile.run.exit_code is None:
        raise UsageError(
            "This profile is of no command that came to its end, which could run again. Record one "
            "with `harness profile -o FOLDER -- PROGRAM`."
        )
    cwd = Path(profile.processes[0].started.cwd)
    return CopiedProgram(profile.run.command, cwd, copies.root_of(cwd), profile.run.exit_code)


@dataclass
class Patches:
    """What came of all changes.

    Attributes:
        diff: All that are proven, as one unified diff; empty if none is.
        building_s: Seconds of building of the program as it is.
    """

    proven: list[Proven]
    left: list[NotPatched]
    diff: str = ""
    building_s: float = 0.0


def prove(
    program: CopiedProgram,
    proposed: Sequence[Proposal],
    scratch: Path,
    progress: Callable[[Sequence[Proposal]], None],
) -> Patches:
    """Run copies of the program, as it is and with each change, and return what holds.

    Args:
        program: What runs.
        proposed: Changes to try.
        scratch: An empty folder for the copies.
        progress: Is called before each run with the changes that it has.

    Raises:
        UsageError: if the program fails as it is, or is too large to copy.
    """
    program.check_size()
    usual = []
    for number in (1, 2):
        progress(())
        usual.append(copies.run(program, {}, scratch / f"as-it-is-{number}"))
    if failed := next((one.failed for one in usual if one.failed), ""):
        raise UsageError(f"The program fails as it is: {failed}")
    wanted = copies.agreed(*usual)
    proof = Patches([], [], building_s=sum(seconds_of(one.profile.builds) for one in usual) / 2)
    for number, proposal in enumerate(proposed, 1):
        if wanted.is_empty:
            proof.left.append(NotPatched(proposal.finding, "not-observable"))
            continue
        progress((proposal,))
        changed = {proposal.source.path: proposal.text}
        seen = copies.run(program, changed, scratch / f"changed-{number}")
        try:
            _check(seen, wanted, usual, [proposal])
            proof.proven.append(_proven(proposal, usual, seen))
        except Refused as refused:
            proof.left.append(NotPatched(proposal.finding, refused.reason, refused.detail))
    _together(proof, program, usual, wanted, scratch, progress)
    return proof


def _together(
    proof: Patches,
    program: CopiedProgram,
    usual: Sequence[Observed],
    wanted: copies.Agreed,
    scratch: Path,
    progress: Callable[[Sequence[Proposal]], None],
) -> None:
    """Put all proven changes together, and leave out those that do not go with slower ones."""
    texts: dict[Path, tuple[ProgramFile, list[Edit]]] = {}
    for one in list(proof.proven):
        source = one.proposal.source
        before = texts.get(source.path, (source, []))[1]
        try:
            source.edited([*before, *one.proposal.edits])
        except (Refused, SyntaxError):
            proof.proven.remove(one)
            proof.left.append(NotPatched(one.proposal.finding, "overlaps"))
            continue
        texts[source.path] = (source, [*before, *one.proposal.edits])
    changed = {path: source.edited(edits) for path, (source, edits) in texts.items()}
    if len(proof.proven) > 1:
        progress([one.proposal for one in proof.proven])
        seen = copies.run(program, changed, scratch / "together")
        try:
            _check(seen, wanted, usual, [one.proposal for one in proof.proven])
        except Refused as refused:
            for one in proof.proven[1:]:
                proof.left.append(NotPatched(one.proposal.finding, "alone-only", refused.reason))
            del proof.proven[1:]
            first = proof.proven[0].proposal
            changed = {first.source.path: first.text}
    proof.diff = "".join(
        _diff(texts[path][0], text, program.root) for path, text in sorted(changed.items())
    )


def _diff(source: ProgramFile, text: str, root: Path) -> str:
    name = source.path.relative_to(root).as_posix()
    lines = difflib.unified_diff(
        source.text.splitlines(keepends=True),
        text.splitlines(keepends=True),
        f"a/{name}",
        f"b/{name}",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _check(
    seen: Observed,
    wanted: copies.Agreed,
    usual: Sequence[Observed],
    proposed: Sequence[Proposal],
) -> None:
    """Refuse a change that raises, gives other results, leaves builds, or makes others."""
    if seen.failed:
        raise Refused("raises", seen.failed)
    if differs := copies.difference(wanted, seen):
        raise Refused("differs", differs)
    before = [_builds(one.profile) for one in usual]
    after = _builds(seen.profile)
    for one in proposed:
        most = max(_sum(counts, one.names) for counts in before)
        # What runs outside jit may run elsewhere too.
        count = sum(each.count for each in one.findings)
        gone = count * (1 if one.finding.cause is not None else OUTSIDE_JIT)
        if _sum(after, one.names) > most - gone:
            raise Refused("builds-stay", str(_sum(after, one.names)))
    mine = frozenset().union(*(one.names for one in proposed))
    for name, count in after.items():
        if name not in mine and count > max(counts[name] for counts in before):
            raise Refused("builds-more", name)


def _builds(profile: Recorded) -> Counter[str]:
    return Counter(built.function.name for built in profile.builds)


def _sum(counts: Counter[str], names: frozenset[str]) -> int:
    return sum(counts[name] for name in names)


def _seconds(seen: Observed, names: frozenset[str]) -> float:
    return seconds_of(one for one in seen.profile.builds if one.function.name in names)


def _proven(proposal: Proposal, usual: Sequence[Observed], seen: Observed) -> Proven:
    names = proposal.names
    builds = max(_sum(_builds(one.profile), names) for one in usual)
    before = sum(_seconds(one, names) for one in usual) / len(usual)
    after = _builds(seen.profile)
    return Proven(proposal, (builds, _sum(after, names)), (before, _seconds(seen, names)))

"""`harness profile try`: run the program again with remedies, and say what they save."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from click.exceptions import Exit

from harness.cli import options
from harness.cli.options import Option
from harness.cli.output import Heading, Output, Part, TextTable, say
from harness.errors import ExitCode
from harness.output.profile_remedies import TrialNames
from harness.profiles import trials
from harness.profiles.recorded import read
from harness.profiles.trials import Trial
from harness.records.units import counted, seconds_text


@options.command(
    common="most format_",
    most=Option(min=1, help="How many remedies, those that save most first."),
)
def try_(*, folder: options.Profile, most: int = 5, output: Output) -> None:
    r"""Try remedies that need no edit of the program: what do they save?

    \b
      harness profile -o FOLDER -- python train.py --steps 10
      harness profile try FOLDER

    The program runs again as it is, then once with each remedy, in the folder and with the
    arguments of the profile; what it prints is not shown. Let it do as little as shows the builds,
    and nothing that may not be done twice.

    Tried are: a static number becomes a dynamic argument, where the function works on it so; an
    argument that is sometimes weakly typed always has its dtype; axes that vary are filled up with
    zeros to powers of two (the results are others, so only building is compared: mask them in your
    own code); the persistent cache, in a folder of its own. What else there is, is named.

    Exit codes: 0 fine; 2 wrong usage, or the program fails as it is; 4 no profile, or nothing to
    try.
    """
    profile = read(folder)
    names = TrialNames(profile)
    remedies, others = trials.of(profile)
    left = list(map(names.not_tried, others))
    if not remedies:
        say("there is no remedy that can be tried without an edit.", *left)
        raise Exit(ExitCode.NOTHING)
    cache = [one for one in remedies if one.function is None]
    remedies = [one for one in remedies if one.function is not None]
    chosen = [*remedies[:most], *cache]
    left += [f"{names.of(one)} (--most)" for one in remedies[most:]]
    times = 1 + len(chosen) + len(cache)
    say(f"the program runs {counted(times, 'time')}; what it prints is not shown.")
    tried = []
    with tempfile.TemporaryDirectory(prefix="harness-try-") as scratch:
        for trial in trials.run(profile, chosen, Path(scratch)):
            say(_line(names.of(trial.remedy), trial))
            tried.append(trial)
    rows = pd.DataFrame([_row(names.of(trial.remedy), trial) for trial in tried])
    output.show(_page(tried, names, left), rows)


def _line(name: str, trial: Trial) -> str:
    if trial.failed:
        return f"{name}: does not work: {trial.failed}"
    return f"{name}: saves {seconds_text(trial.saved_s)}"


def _row(name: str, trial: Trial) -> dict[str, object]:
    return {
        "remedy": name,
        "predicted": trial.remedy.predicted,
        "predicted_s": trial.remedy.predicted_s,
        "before": trial.before,
        "before_s": trial.before_s,
        "after": trial.after,
        "after_s": trial.after_s,
        "failed": trial.failed,
        "saved_s": trial.saved_s,
    }


def _page(tried: Sequence[Trial], names: TrialNames, left: Sequence[str]) -> Iterator[Part]:
    alone = [trial for trial in tried if trial.remedy.function is not None]
    good = [trial for trial in alone if not trial.failed and trial.after < trial.before]
    answer = []
    if alone:
        part = f"{len(good)} of {len(alone)}"
        saved = seconds_text(sum(trial.saved_s for trial in good))
        answer.append(f"Remedies that leave builds out: {part}, {saved} saved.")
    for trial in (one for one in tried if one.remedy.function is None and not one.failed):
        saved = seconds_text(trial.saved_s)
        answer.append(f"The persistent cache saves {saved} from the second run on.")
    yield Heading(" ".join(answer) or "No remedy works.")
    rows = []
    for trial in tried:
        building = f"{seconds_text(trial.before_s)} → {seconds_text(trial.after_s)}"
        counts, saved = f"{trial.before} → {trial.after}", seconds_text(trial.saved_s)
        if trial.failed:
            counts, building, saved = "", "", "does not work"
        most = seconds_text(trial.remedy.predicted_s)
        rows.append((names.of(trial.remedy), counts, building, most, saved, trial.failed))
    headings = ["remedy", "builds", "building", "saves at most", "saved", "why"]
    yield TextTable(pd.DataFrame(rows, columns=headings), cut=("why",))
    if left:
        yield f"Not tried: {'; '.join(left)}."

"""The error rates of a run, and the file that holds them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.engine.plan import Context
from harness.errors import StoreError
from harness.frame.load import frame_of
from harness.verdicts.aa import judging, power
from harness.verdicts.aa.arms import Arms, folder_of
from harness.verdicts.error_rates import SCHEMA, ErrorRates, Power


def rates_of(
    arms: Arms,
    context: Context,
    effort: str,
    earlier: Sequence[Power] = (),
    narrowed: bool = False,
) -> ErrorRates:
    """Return what the arms of a run say of this machine.

    `earlier` is the power that the run has measured before; it is kept where there is none anew.
    `narrowed` says that a user chose what was measured.
    """
    pairs = [(frame_of(a), frame_of(b)) for a, b in arms.pairs]
    flagged = judging.rates_by_stage(judging.judged_by_us(pairs))
    by_asv = judging.rates_by_stage(judging.judged_by_asv(pairs))
    started = [record.started_at_ms for pair in arms.pairs for arm in pair for record in arm]
    found = [
        Power(stage, effects[stage], effort, rate)
        for effects, records in arms.injected
        for stage, rate in judging.rates_by_stage(
            power.found_by_stage(pairs[-1], frame_of(records), effects)
        ).items()
    ]
    return ErrorRates(
        schema=SCHEMA,
        machine=context.machine,
        env=context.env,
        commit=context.commit.hash,
        started_at_ms=min(started, default=0),
        effort=effort,
        pairs=len(pairs),
        flagged=judging.total(flagged.values()),
        flagged_by_stage=flagged,
        flagged_by_asv=judging.total(by_asv.values()),
        asv_by_stage=by_asv,
        noise=judging.noise(pairs),
        power=found or list(earlier),
        narrowed=narrowed,
    )


def file_of(context: Context, run: str) -> Path:
    """Return the file that holds the error rates of a run."""
    return folder_of(context.results, context.machine) / f"{run}.json"


def read(file: Path) -> ErrorRates | None:
    """Return what a file holds; None where there is none, or one of another schema."""
    try:
        found = msgspec.json.decode(file.read_bytes(), type=ErrorRates)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.schema == SCHEMA else None


def write(file: Path, rates: ErrorRates) -> None:
    """Write error rates, all or nothing.

    Raises:
        StoreError: the folder cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(rates), indent=1)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".", delete=False) as handle:
            handle.write(text + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        os.chmod(handle.name, 0o644)
        os.replace(handle.name, file)
    except OSError as error:
        raise StoreError(
            f"{file} cannot be written: {error.strerror or error}. The records of the run are "
            "kept; the same command writes it without measuring again."
        ) from error

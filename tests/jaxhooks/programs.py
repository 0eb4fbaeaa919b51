"""Programs run under a profile, in processes of their own, and what was recorded of them."""

import os
import subprocess
import sys
from pathlib import Path

from harness.jaxhooks import events, programs
from harness.profiles.recorded import read

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "harness", "profile"]


def environment(**more):
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def profiled(*words, folder, **options):
    """Run the whole command; return what it did, and the profile."""
    done = subprocess.run(
        [*COMMAND, "-o", str(folder), "--", *words],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=120,
        **options,
    )
    return done, read(folder)


def followed(folder, *words, sample_ms=25):
    """Run a program without the command around it; return its code and its profile."""
    command = [sys.executable, *map(str, words)]
    ran = programs.run_profiled(command, programs.new_folder(folder), sample_ms)
    assert ran.complete
    return ran.code, read(folder)


def built(process, name):
    """Return the builds of a function in one process."""
    numbers = {line.id for line in process.of(events.Function) if line.name == name}
    return [line for line in process.of(events.Build) if line.function in numbers]


def how(profile):
    return sorted(process.started.how for process in profile.processes)

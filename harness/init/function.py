"""The user's function to measure: what was asked for, and whether it imports and traces."""

from __future__ import annotations

import json
import keyword
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.workload.location import asv_path

Argument = tuple[tuple[int, ...], str]
"""Shape and dtype of one array."""

FUNCTION_SYNTAX = "package.module:function"
ARG_SYNTAX = '--arg "float32[64,784]" (dtype[sizes], and float32[] for a scalar), once per argument'
LIMIT_S = 300.0
"""How long importing and tracing a user's function may take, in seconds."""

LARGEST_ELEMENTS = 2**26
"""A sweep stops here: an argument of 256 MiB in float32."""

_WIDE = frozenset({"float64", "int64", "uint64", "complex128"})


@dataclass(frozen=True)
class ChosenFunction:
    """A function to measure, and its arguments."""

    module: str
    name: str
    """Dotted where it is an attribute of something in the module, such as a static method."""
    arguments: tuple[Argument, ...]
    inputs: str = ""
    """The function that makes the arguments, instead of these: `package.module:function`."""

    @property
    def place(self) -> str:
        """As the user wrote it: `package.module:function`."""
        return f"{self.module}:{self.name}"

    @property
    def dotted(self) -> str:
        """As Python writes it, once the module is imported."""
        return f"{self.module}.{self.name}"

    @property
    def x64(self) -> bool:
        """Whether an argument has a 64-bit type."""
        return any(dtype in _WIDE for _, dtype in self.arguments)


@dataclass(frozen=True)
class Checked:
    """A function that imports and traces."""

    subject: ChosenFunction
    size: int | None
    """The size, among those of the arguments, that can be swept; None if there is none."""
    wakes_backend: bool
    """Whether importing its module starts a backend of JAX's, which does not survive forking."""
    is_beside: bool
    """Whether it is found in the project's folder only: asv has to be told of that."""
    hidden: tuple[str, ...] = ()
    """Modules that an attribute of their package hides: `import package.module` does not find them.
    """


def parse(function: str, arguments: Sequence[str], inputs: str = "") -> ChosenFunction:
    """Read `--function`, and its `--arg`s or `--inputs`; nothing is imported."""
    module, name = _place("--function", function, "mypackage.models:predict")
    if inputs:
        _place("--inputs", inputs, "mypackage.fixtures:make_batch")
    if bool(inputs) == bool(arguments):
        raise UsageError(
            f"--function {function} needs its arguments, by one of two: {ARG_SYNTAX}, in the "
            f"function's order; or --inputs {FUNCTION_SYNTAX}, which returns all of them: a tuple, "
            "or the only one."
        )
    return ChosenFunction(module, name, tuple(map(_argument, arguments)), inputs)


def _place(option: str, text: str, example: str) -> tuple[str, str]:
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        raise UsageError(f"{option} {text!r}: expected {FUNCTION_SYNTAX}, such as {example}.")
    return module, name


def _argument(text: str) -> Argument:
    sizes = r"(\d+\s*(,\s*\d+\s*)*)?"
    matched = re.fullmatch(rf"\s*(?P<dtype>[a-z]\w*)\s*\[\s*(?P<sizes>{sizes})\]\s*", text)
    if not matched:
        raise UsageError(f"--arg {text!r}: expected {ARG_SYNTAX}.")
    return tuple(map(int, re.findall(r"\d+", matched["sizes"]))), matched["dtype"]


def check(subject: ChosenFunction, folder: Path) -> Checked:
    """Import the function and trace it with its arguments, in a process of this interpreter.

    It sees what is installed, what ASV_PYTHONPATH names, and after that the folder.
    """
    sizes = _sizes(subject)
    tries = [subject.arguments, *(larger(subject.arguments, size) for size in sizes)]
    question = {**vars(subject), "x64": subject.x64, "tries": tries, "last": str(folder)}
    answer = _ask(question, subject, folder)
    if "error" in answer:
        raise UsageError(_explain(subject, folder, answer["stage"], answer["error"].rstrip(".")))
    traced = [sizes[number - 1] for number in answer["traced"]]
    hidden = tuple(answer["hidden"])
    size = traced[0] if traced else None
    return Checked(subject, size, answer["backend"], answer["beside"], hidden)


def _ask(question: dict[str, Any], subject: ChosenFunction, folder: Path) -> dict[str, Any]:
    """Return what `child.py` answers, in a process of this interpreter."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path := [place for place in asv_path() if Path(place).resolve() != folder]:
        environment["PYTHONPATH"] = os.pathsep.join(path)
    what = f"--function {subject.place}: importing and tracing it"
    try:
        done = subprocess.run(
            # -P: neither the current folder nor the script's is on the path; -B writes no bytecode.
            [sys.executable, "-P", "-B", str(Path(__file__).with_name("child.py"))],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=environment,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{what} took longer than {LIMIT_S:.0f} s. Name a function that takes less, of a "
            "module that does no work when it is imported."
        ) from None
    if done.returncode != 0 or not done.stdout:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise UsageError(f"{what} ended with exit code {done.returncode}: {last}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def larger(arguments: Sequence[Argument], size: int) -> tuple[Argument, ...]:
    """Return the arguments with every size that equals `size` four times as large."""
    return tuple(
        (tuple(4 * one if one == size else one for one in shape), dtype)
        for shape, dtype in arguments
    )


def _sizes(subject: ChosenFunction) -> list[int]:
    """Return the sizes to try as an axis: first those that only lead, such as a batch.

    Of several, the one that most arguments have, and of those the largest.
    """
    shapes = [shape for shape, _ in subject.arguments]
    sizes = list(dict.fromkeys(size for shape in shapes for size in shape if size > 1))
    inner = {size for shape in shapes for size in shape[1:]}
    sizes.sort(key=lambda n: (n in inner, -sum(n in shape for shape in shapes), -n))
    return [
        size
        for size in sizes
        if max(math.prod(shape) for shape, _ in larger(subject.arguments, size)) <= LARGEST_ELEMENTS
    ]


def _explain(subject: ChosenFunction, folder: Path, stage: str, error: str) -> str:
    here = f"--function {subject.place}"
    if stage == "import":
        text = f"{here}: {subject.module} cannot be imported by {sys.executable}: {error}."
        if os.environ.get("PYTHONPATH"):
            text += " PYTHONPATH is not used here, as asv leaves it out: set ASV_PYTHONPATH."
        missing = re.fullmatch(r"ModuleNotFoundError: No module named '([\w.]+)'", error)
        if not missing:
            return text
        if missing[1].partition(".")[0] != subject.module.partition(".")[0]:
            return f"{text} {subject.module} needs it: install it for this Python."
        if any((folder / name).is_file() for name in ("pyproject.toml", "setup.py")):
            command = shlex.join([sys.executable, "-m", "pip", "install", "-e", str(folder)])
            return f"{text} Install your project first: {command}"
        return (
            f"{text} It is looked for among installed packages, in the folders of ASV_PYTHONPATH "
            f"and in {folder}: give the function as MODULE:NAME of a file MODULE.py there, or set "
            "ASV_PYTHONPATH to the folder that has it."
        )
    shown = ", ".join(f"{dtype}[{','.join(map(str, shape))}]" for shape, dtype in subject.arguments)
    texts = {
        "attribute": f"{here}: {subject.module} has no {subject.name}: {error}.",
        "callable": f"{here}: expected a function; {error}.",
        "dtype": f"{here}: {error}. Expected a dtype such as float32, bfloat16, int32, bool or "
        "key.",
        "inputs": f"--inputs {subject.inputs}: {error}. Expected a function that takes no "
        "argument.",
        "wide": f"--inputs {error}. Make it so yourself, or enable jax_enable_x64 in its module.",
        "static": f"{here}: jax.jit takes its argument {error} as static: a value that is part of "
        "the program, where --arg is an array. Write a workload of your own with the value as an "
        'axis, `sweep = {"name": [3]}` and `static = ("name",)`, see docs/workloads.md.',
        "trace": f"{here} cannot be traced with what {subject.inputs} returns: {error}."
        if subject.inputs
        else f"{here} cannot be traced with ({shown}): {error}. Every --arg is one array. For "
        "anything else, name a function that makes the arguments with --inputs.",
    }
    return texts[stage]

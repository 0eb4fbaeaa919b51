"""The text of the first benchmark module: an example, or a workload for the user's function."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Sequence

from harness.scaffold.function import Argument, Checked, ChosenFunction
from harness.scaffold.templates import render

LINE = 88
"""The length at which the common formatters break a line."""


def example(package: str) -> str:
    """Return a module with one workload that runs as it is, and how to measure one's own."""
    return render("example.py", package=package or "mypackage")


def module_name(subject: ChosenFunction, long: bool = False) -> str:
    """Return a name for the module: the function's, or with `long` after that of its own module.

    It has no leading underscore, which makes tools pass over a module.
    """
    parts = [*subject.module.split(".")[-1:], subject.name] if long else [subject.name]
    last = [part.split(".")[-1].strip("_") or "function" for part in parts]
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", "_".join(last)).lower()
    usable = snake.isidentifier() and not keyword.iskeyword(snake)
    return snake if usable else f"measured_{snake}"


def measures(text: str, subject: ChosenFunction) -> bool:
    """Tell whether the text of a module measures a function."""
    return f"({subject.dotted})" in text


def workload(checked: Checked, module: str) -> str:
    """Return the text of `module`: a workload for a function, swept over a size if that traces."""
    subject, size = checked.subject, checked.size
    comment = (
        "The shapes and dtypes of the arguments; seeded random data is made when it is needed."
    )
    imported = {subject.module}
    if subject.inputs:
        module_of, _, name = subject.inputs.partition(":")
        imported.add(module_of)
        inputs = f"        return {module_of}.{name}()"
        comment = "The arguments, as a tuple; each measuring process makes them anew."
    else:
        inputs = returned([_spec(argument, size) for argument in subject.arguments])
    attributes = []
    if size is not None:
        attributes.append(f'sweep = {{"size": [{size}, {4 * size}]}}')
    if subject.x64:
        attributes.append(X64)
    declared = declaration(
        class_name(module),
        subject.dotted,
        attributes,
        comment,
        ["size"] if size is not None else [],
        inputs,
        subject.dotted,
    )
    return text(module, imported, [declared])


X64 = "x64 = True  # 64-bit types in the measuring process"


def text(module: str, imported: Collection[str], classes: Sequence[str]) -> str:
    """Return the text of `module`, which imports other modules and declares classes."""
    used = [name for name in ("arguments", "spec") if f"{name}(" in "".join(classes)]
    return render(
        "workload.py",
        module=module,
        imported="\n".join(f"import {one}" for one in sorted(imported)),
        names=", ".join(["Workload", *used]),
        classes="\n\n".join(classes).rstrip("\n"),
    )


def declaration(
    name: str,
    about: str,
    attributes: Sequence[str],
    comment: str,
    axes: Sequence[str],
    inputs: str,
    function: str,
) -> str:
    """Return the text of a class; `inputs` is what its method does."""
    lines = "".join(f"    {line}\n" for line in attributes)
    return render(
        "class.py",
        name=name,
        about=about,
        attributes=f"\n{lines}" if lines else "",
        comment=comment,
        axes="".join(f", {axis}" for axis in axes),
        inputs=inputs,
        function=function,
    )


def returned(values: Sequence[str], call: str = "") -> str:
    """Return a line that returns values, or a call of a function with them; several if too long."""
    whole = f"{call}({', '.join(values)})" if call else ", ".join(values) or "()"
    if len(whole) <= LINE - len("        return "):
        return f"        return {whole}"
    inner = "".join(f"            {value},\n" for value in values)
    return f"        return {call}(\n{inner}        )"


def class_name(module: str) -> str:
    """Return a name for a class, after a module or a test."""
    name = "".join(part[:1].upper() + part[1:] for part in module.split("_"))
    # `Workload` is imported there, and `True` is Python's.
    return f"Measured{name}" if name == "Workload" or keyword.iskeyword(name) else name


def _spec(argument: Argument, size: int | None) -> str:
    shape, dtype = argument
    sizes = ["size" if size is not None and one == size else str(one) for one in shape]
    inner = f"{sizes[0]}," if len(sizes) == 1 else ", ".join(sizes)
    return f'spec(({inner}), "{dtype}")'

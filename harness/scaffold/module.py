"""The text of the first benchmark module: an example, or a workload for the user's function."""

from __future__ import annotations

import keyword
import re

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
    imported = [subject.module]
    if subject.inputs:
        module_of, _, name = subject.inputs.partition(":")
        imported += [module_of] if module_of != subject.module else []
        inputs = f"        return {module_of}.{name}()"
        comment = "The arguments, as a tuple; each measuring process makes them anew."
    else:
        inputs = _inputs([_spec(argument, size) for argument in subject.arguments])
    attributes = []
    if size is not None:
        attributes.append(f'    sweep = {{"size": [{size}, {4 * size}]}}\n')
    if subject.x64:
        attributes.append("    x64 = True  # 64-bit types in the measuring process\n")
    return render(
        "workload.py",
        imported="\n".join(f"import {one}" for one in sorted(imported)),
        spec="" if subject.inputs else ", spec",
        comment=comment,
        function=subject.dotted,
        module=module,
        name=_class_name(module),
        attributes="\n" + "".join(attributes) if attributes else "",
        axes=", size" if size is not None else "",
        inputs=inputs,
    )


def _inputs(specs: list[str]) -> str:
    inputs = f"        return {', '.join(specs)}"
    if len(inputs) <= LINE:
        return inputs
    inner = "".join(f"            {spec},\n" for spec in specs)
    return f"        return (\n{inner}        )"


def _class_name(module: str) -> str:
    name = "".join(part.capitalize() for part in module.split("_"))
    # `Workload` is imported there, and `True` is Python's.
    return f"Measured{name}" if name == "Workload" or keyword.iskeyword(name) else name


def _spec(argument: Argument, size: int | None) -> str:
    shape, dtype = argument
    sizes = ["size" if size is not None and one == size else str(one) for one in shape]
    inner = f"{sizes[0]}," if len(sizes) == 1 else ", ".join(sizes)
    return f'spec(({inner}), "{dtype}")'

"""Which of the user's lines an instruction of optimised HLO comes from, as its metadata says."""

from __future__ import annotations

import functools
import re
import sysconfig
from collections import Counter
from dataclasses import dataclass, field

from harness.program.calls import is_ours

_TABLE = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n((?:\d+ .*\n)*)", re.MULTILINE
)
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = .*?metadata=\{(.*)\}", re.MULTILINE)
_COMPUTATION = re.compile(r"^%?([^\s(]+) \(.*\{\n((?: .*\n)*)\}", re.MULTILINE)
_NAME = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = ", re.MULTILINE)
_CALLS = re.compile(r"^\s+(?:ROOT )?%?([^\s=]+) = .*?\bcalls=%?([^\s,]+)", re.MULTILINE)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_OLD_PLACE = re.compile(r'source_file="((?:[^"\\]|\\.)*)".*?source_line=(\d+)')
_FIELD = re.compile(r"(\w+)=(\d+)")
_LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]|^<(?:frozen |string>|__array_function)")
_STANDARD = tuple(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib"))


@functools.cache
def is_users(file: str) -> bool:
    """Tell whether a file is the user's: of no installed distribution, Python's, nor ours."""
    return not (_LIBRARIES.search(file) or file.startswith(_STANDARD) or is_ours(file))


@dataclass(frozen=True)
class SourceLine:
    """Where an instruction comes from; "" and 0 where its metadata does not say.

    A fusion without metadata comes from where most of what is fused in it does.
    """

    op_name: str = ""
    function: str = ""
    file: str = ""
    line: int = 0


@dataclass
class SourceLines:
    """The places of a program's instructions, by the names that the optimised HLO has for them."""

    of: dict[str, SourceLine] = field(default_factory=dict)

    @classmethod
    def read(cls, hlo: str) -> SourceLines:
        """Read the text of an HLO module, with its metadata and its tables of stack frames."""
        tables = {
            name: [line.split(" ", 1) for line in body.splitlines()]
            for name, body in _TABLE.findall(hlo)
        }
        files, functions = (
            {int(number): text.strip('"') for number, text in tables.get(name, ())}
            for name in ("FileNames", "FunctionNames")
        )
        locations, frames = (
            {
                int(number): {key: int(value) for key, value in _FIELD.findall(text)}
                for number, text in tables.get(name, ())
            }
            for name in ("FileLocations", "StackFrames")
        )

        def place(metadata: str) -> SourceLine:
            named = _OP_NAME.search(metadata)
            op_name = named[1] if named else ""
            old = _OLD_PLACE.search(metadata)
            if old:
                return SourceLine(op_name, "", old[1], int(old[2]))
            at = _FRAME.search(metadata)
            known: list[SourceLine] = []
            number = int(at[1]) if at else 0
            while number in frames and len(known) < len(frames):
                location = locations.get(frames[number].get("file_location_id", 0), {})
                known.append(
                    SourceLine(
                        op_name,
                        functions.get(location.get("function_name_id", 0), ""),
                        files.get(location.get("file_name_id", 0), ""),
                        location.get("line", 0),
                    )
                )
                # XLA counts parents from one behind: 0 and itself are no parent.
                parent = frames[number].get("parent_frame_id", 0) - 1
                if parent == number:
                    break
                number = parent
            users = [one for one in known if one.file and is_users(one.file)]
            return (users or known or [SourceLine(op_name)])[0]

        of = {name: place(metadata) for name, metadata in _INSTRUCTION.findall(hlo)}
        within: dict[str, Counter[SourceLine]] = {}
        for computation, body in _COMPUTATION.findall(hlo):
            names = _NAME.findall(body)
            within[computation] = Counter(of[name] for name in names if name in of)
        for name, computation in _CALLS.findall(hlo):
            if name not in of and within.get(computation):
                of[name] = within[computation].most_common(1)[0][0]
        return cls(of)

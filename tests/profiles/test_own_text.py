"""No decision about a profile reads a text that this program made.

Whatever takes a text apart stands in :data:`ALLOWED`, with whose text it is: Python's, JAX's, the
user's, or a value's `repr`. Anything else that does so makes this test fail.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PROFILES = Path(__file__).parents[2] / "harness" / "profiles"

APART = {
    *("match", "fullmatch", "search", "sub", "findall", "finditer"),  # a pattern's
    *("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines"),
    *("removeprefix", "removesuffix", "replace", "find", "rfind", "strip", "lstrip", "rstrip"),
    *("isdigit", "isidentifier", "istitle", "isupper"),
}
"""Methods of texts and of patterns that look into a text."""

ALLOWED = {
    "Python's: files, names of functions and modules, a line of source, a command line": (
        "answer/enclosing.py: Enclosing.to_jit",
        "answer/enclosing.py: _imports_jax",
        "answer/enclosing.py: _may_be_jitted",
        "answer/enclosing.py: _needs_values",
        "answer/findings.py: _of_results",
        "answer/findings.py: _shard_maps",
        "answer/inside.py: RecordedCompile._beside",
        "answer/inside.py: recorded",
        "decision/differences.py: _remedy",  # a path in arguments, `x.a`
        "functions.py: Counted.names",
        "model.py: Built.operation",
        "model.py: Process.name",
        "names.py: Names.place",
        "names.py: _script_of",
        "names.py: line_text",
        "names.py: package_of",
        "names.py: place_of",
        "names.py: program_of",
        "names.py: transformed",
        "trials.py: _ran",
    ),
    "JAX's: types, shardings, options, settings": (
        "causes/arrays.py: _wider",
        "causes/arrays.py: dtype_remedy",
        "causes/outside.py: is_iteration",
        "causes/values.py: _where",
        "causes/values.py: array_type",
        "causes/values.py: moved",
        "diff/compare.py: _facts",
    ),
    "the `repr` of a value, and the type of it": (
        "causes/functions.py: traced_for",
        "causes/pytree.py: _are_numbers",
        "causes/pytree.py: _short",
        "causes/static_value.py: remedy",
        "causes/static_value.py: tried",
        "causes/values.py: another_object",
        "causes/values.py: around",
        "causes/values.py: defined_at",
        "causes/values.py: is_number",
        "causes/values.py: numbers_aside",
        "causes/values.py: numbers_in",
        "causes/values.py: short_functions",
        "causes/values.py: short_functions.short",
    ),
    "the user's: a pattern of a budget": ("budgets/limits.py: _fits",),
    "the log's: a list that it has as one text, the number of a class": (
        "names.py: wrappers",
        "causes/pytree.py: _unnumbered",
        "slow.py: _Log.new",
    ),
    "no text: members of a tuple or mapping, letters that stand for stages": (
        "causes/functions.py: chosen_statics",
        "causes/functions.py: recreated_remedy",
        "causes/static_value.py: values",
        "decision/history.py: entry_of",
    ),
    "nothing is decided: a text is made, a column has the type of its unit": (
        "causes/cause.py: Cause.values",
        "causes/pytree.py: _of_fields",
        "names.py: shortened",
        "tables/builds.py: type_of",
        "tables/frames.py: functions",
        "tracks.py: process_names",
    ),
}
"""By whose text it is: the file and function where it is taken apart."""

DECIDE = "decision/decide.py"

PLANTS = {
    "a regular expression": "re.match('first', cause.sentence)",
    "a pattern": "_FIRST.search(cause.sentence)",
    "the beginning": "cause.remedy.startswith('Pad')",
    "the end": "cause.after.endswith('(the rest differs)')",
    "a part": "cause.before.partition(' (')[0]",
    "a part less": "cause.before.removeprefix('a Python ')",
    "a piece of it": "'an array' in cause.before",
    "a piece that is made": "f'`{name}`' in text",
    "no piece of it": "'Also:' not in sentence",
}


def looks_into_a_text(node: ast.AST) -> bool:
    """Return whether a node is one of the forms in which a text is taken apart."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in APART
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.In | ast.NotIn):
        return False
    left, right = node.left, node.comparators[0]
    if isinstance(right, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Call):
        return False
    constant = isinstance(right, ast.Name) and right.id.isupper()
    text = isinstance(left, ast.JoinedStr) or (
        isinstance(left, ast.Constant) and isinstance(left.value, str)
    )
    held = isinstance(right, ast.Constant | ast.JoinedStr | ast.BinOp)
    return held or (text and not constant)


def taken_apart(text: str, file: str) -> set[str]:
    """Return `FILE: FUNCTION` for each function in which a text is taken apart."""
    places = set()

    def visit(node: ast.AST, around: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            around = f"{around}.{node.name}".lstrip(".")
        if looks_into_a_text(node):
            places.add(f"{file}: {around}")
        for child in ast.iter_child_nodes(node):
            visit(child, around)

    visit(ast.parse(text), "")
    return places


def all_places() -> set[str]:
    return {
        place
        for file in PROFILES.rglob("*.py")
        for place in taken_apart(file.read_text(encoding="utf-8"), str(file.relative_to(PROFILES)))
    }


def test_only_texts_of_others_are_taken_apart():
    allowed = [place for places in ALLOWED.values() for place in places]
    assert sorted(all_places()) == sorted(allowed)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_decision_that_reads_a_text_of_our_own_is_seen(plant):
    text = (PROFILES / DECIDE).read_text(encoding="utf-8")
    assert taken_apart(text, DECIDE) == set()
    planted = text + f"\n\ndef planted(cause, name, text, sentence):\n    return {plant}\n"
    assert taken_apart(planted, DECIDE) == {f"{DECIDE}: planted"}


def test_a_code_and_a_member_of_a_tuple_are_no_texts():
    text = "def f(cause):\n    return cause.kind in ('first', 'shape') or cause.kind == 'dtype'\n"
    assert taken_apart(text, DECIDE) == set()

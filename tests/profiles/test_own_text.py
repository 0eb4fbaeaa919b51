"""No decision about a profile reads a text that this program made.

Whatever takes a text apart stands in :data:`ALLOWED`, with whose text it is: Python's, JAX's, the
user's, or a value's `repr`. Anything else that does so makes this test fail.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[2] / "harness"
ROOMS = ("profiles", "jaxhooks")

APART = {
    *("match", "fullmatch", "search", "sub", "findall", "finditer"),  # a pattern's
    *("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines"),
    *("removeprefix", "removesuffix", "replace", "find", "rfind", "strip", "lstrip", "rstrip"),
    *("isdigit", "isidentifier", "istitle", "isupper"),
}
"""Methods of texts and of patterns that look into a text."""

ALLOWED = {
    "Python's: files, names of functions and modules, a line of source, a command line": (
        "profiles/enclosing.py: Enclosing.mapped",
        "profiles/enclosing.py: Enclosing.to_jit",
        "profiles/enclosing.py: _imports_jax",
        "profiles/enclosing.py: _may_be_jitted",
        "profiles/enclosing.py: _needs_values",
        "profiles/outside_jit.py: _of_results",
        "profiles/outside_jit.py: _shard_maps",
        "profiles/findings.py: _compares",
        "profiles/inside.py: RecordedCompile._beside",
        "profiles/inside.py: recorded",
        "profiles/causes/decide.py: _remedy",  # a path in arguments, `x.a`
        "profiles/functions.py: Counted.names",
        "profiles/model.py: Built.operation",
        "profiles/model.py: Process.name",
        "profiles/names.py: Names.place",
        "profiles/names.py: _script_of",
        "profiles/names.py: line_text",
        "profiles/names.py: package_of",
        "profiles/names.py: place_of",
        "profiles/names.py: program_of",
        "profiles/trials.py: _ran",
        "jaxhooks/bootstrap/sitecustomize.py: _load_log_file",
        "jaxhooks/builds.py: _is_jaxs",
        "jaxhooks/call_sites.py: _pmapped",
        "jaxhooks/call_sites.py: is_jitted_by_jax",
        "jaxhooks/call_sites.py: kernel_of",
        "jaxhooks/call_sites.py: loop_of",
        "jaxhooks/call_sites.py: _installed",
        "jaxhooks/call_sites.py: origin_of",
        "jaxhooks/call_sites.py: owner_of",
        "jaxhooks/compile_traces.py: CompileTraces._read",  # `module:function`
        "jaxhooks/jax_names.py: mlir_module",  # MLIR's
        "jaxhooks/jax_names.py: points",
        "jaxhooks/ledger.py: open_until_exit",
        "jaxhooks/log_file.py: LogFile.open",
        "jaxhooks/log_file.py: _age_ns",
        "jaxhooks/log_file.py: is_sealed",
        "jaxhooks/log_file.py: started",
        "jaxhooks/observe.py: begin.as_numpy",  # NumPy's
        "jaxhooks/observe.py: begin.observed",
        "jaxhooks/programs.py: command_of",
        "jaxhooks/programs.py: environment",
        "jaxhooks/replacements.py: error_text",
        "jaxhooks/session.py: _import_jax",
        "jaxhooks/signatures.py: Texts._label",
        "jaxhooks/statics.py: filtered_call",
        "jaxhooks/structures.py: _fields",
        "jaxhooks/structures.py: _read_by",
        "jaxhooks/temporary.py: _remove",  # git's
    ),
    "JAX's: types, shardings, options, settings": (
        "profiles/causes/arrays.py: _wider",
        "profiles/causes/arrays.py: dtype_remedy",
        "profiles/causes/again.py: is_iteration",
        "profiles/causes/values.py: _plain",
        "profiles/causes/values.py: _where",
        "profiles/causes/values.py: array_type",
        "profiles/causes/values.py: moved",
        "profiles/compare.py: _facts",
        "jaxhooks/cache_keys.py: KeyParts.proves",
        "jaxhooks/cache_keys.py: SettingsReader._state",
        "jaxhooks/cache_keys.py: _attributes",
        "jaxhooks/cache_keys.py: _option_fields",
        "jaxhooks/cache_keys.py: _readable",
        "jaxhooks/cache_keys.py: _setting_text",
        "jaxhooks/call_sites.py: source_of",
        "jaxhooks/outcomes.py: _directory",
        "jaxhooks/requests.py: _Requests._evict_entries",
        "jaxhooks/signatures.py: Texts.leaf",
        "jaxhooks/signatures.py: jit_options",
        "jaxhooks/signatures.py: layout_text",
        "jaxhooks/structures.py: static_text",
    ),
    "the `repr` of a value, and the type of it": (
        "profiles/causes/functions.py: traced_for",
        "profiles/causes/pytree.py: _are_numbers",
        "profiles/causes/pytree.py: _short",
        "profiles/causes/functions.py: static_remedy",
        "profiles/causes/functions.py: tried_dynamic",
        "profiles/causes/values.py: another_object",
        "profiles/causes/values.py: around",
        "profiles/causes/values.py: defined_at",
        "profiles/causes/values.py: is_number",
        "profiles/causes/values.py: numbers_aside",
        "profiles/causes/values.py: numbers_in",
        "profiles/causes/values.py: short_functions",
        "profiles/causes/values.py: short_functions.short",
    ),
    "the user's: a pattern of a budget": ("profiles/budgets/limits.py: _fits",),
    "the log's: how its lines begin and end": ("profiles/slow.py: _Log.new",),
    "no text: members of a tuple or mapping, letters that stand for stages": (
        "profiles/causes/functions.py: chosen_statics",
        "profiles/causes/functions.py: recreated_remedy",
        "profiles/causes/functions.py: static_values",
        "jaxhooks/evidence.py: contradiction",
        "jaxhooks/remedies.py: Remedied._changed",  # a path in arguments, as JAX prints it
    ),
    "nothing is decided: a text is made, a column has the type of its unit": (
        "profiles/causes/cause.py: Cause.values",
        "profiles/causes/pytree.py: _of_fields",
        "profiles/names.py: shortened",
        "profiles/tables.py: type_of",
        "profiles/tables.py: functions",
        "profiles/tracks.py: process_names",
    ),
}
"""By whose text it is: the file and function where it is taken apart."""

DECIDE = "profiles/causes/kinds.py"

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
        if node.func.attr == "replace" and node.args:  # not a file's, or of a function of JAX's
            return isinstance(node.args[0], ast.Constant)
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
        for room in ROOMS
        for file in (HARNESS / room).rglob("*.py")
        for place in taken_apart(file.read_text(encoding="utf-8"), str(file.relative_to(HARNESS)))
    }


def test_only_texts_of_others_are_taken_apart():
    allowed = [place for places in ALLOWED.values() for place in places]
    assert sorted(all_places()) == sorted(allowed)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_decision_that_reads_a_text_of_our_own_is_seen(plant):
    text = (HARNESS / DECIDE).read_text(encoding="utf-8")
    assert taken_apart(text, DECIDE) == set()
    planted = text + f"\n\ndef planted(cause, name, text, sentence):\n    return {plant}\n"
    assert taken_apart(planted, DECIDE) == {f"{DECIDE}: planted"}


def test_a_code_and_a_member_of_a_tuple_are_no_texts():
    text = "def f(cause):\n    return cause.kind in ('first', 'shape') or cause.kind == 'dtype'\n"
    assert taken_apart(text, DECIDE) == set()

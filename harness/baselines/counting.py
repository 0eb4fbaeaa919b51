"""What a baseline does when nothing is fused: how many array operations, and the bytes they move.

The baseline runs in NumPy on arrays that count. Each operation reads every operand once, and writes
its result: so the bytes are an upper bound, because a temporary that stays in a cache costs less.
About one operation is one kernel of CuPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.tree_util import tree_leaves, tree_map

from harness.workload.workload import Case, Workload, static_arguments


class OperationTally:
    """The operations so far."""

    def __init__(self) -> None:
        self.operations = 0
        self.traffic_bytes = 0
        self.names: list[str] = []

    def add(self, name: str, operands: Any, results: Any, in_place: bool = False) -> None:
        """Count one operation, unless all that it returns is a view of its operands.

        One that is `in_place` writes into arrays that were there before.
        """
        read = _distinct(operands)
        written = [
            leaf for leaf in tree_leaves(results) if isinstance(leaf, np.ndarray | np.generic)
        ]
        shared = any(np.may_share_memory(new, old) for new in written for old in read)
        if written and (in_place or not shared):
            self.operations += 1
            self.names.append(name)
            self.traffic_bytes += sum(map(_touched_bytes, read))
            self.traffic_bytes += sum(int(array.nbytes) for array in written)


def _distinct(tree: Any) -> list[Any]:
    """Return the arrays of a tree, one that occurs twice once."""
    arrays = [leaf for leaf in tree_leaves(tree) if isinstance(leaf, np.ndarray)]
    return list(
        {
            (array.__array_interface__["data"], array.shape, array.strides): array
            for array in arrays
        }.values()
    )


def _touched_bytes(array: Any) -> int:
    """Return an operand's bytes; an axis that broadcasting repeats is read once."""
    sizes = zip(array.shape, array.strides, strict=True)
    return int(math.prod(size for size, stride in sizes if stride) * array.itemsize)


class CountedArray(np.ndarray[Any, Any]):
    """An array whose operations are counted by its `tally`, which results inherit."""

    tally: OperationTally | None = None

    def __array_finalize__(self, source: Any) -> None:
        self.tally = getattr(source, "tally", None)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        out = keywords.get("out", ())
        plain = {**keywords, **({"out": tree_map(_plain, out)} if out else {})}
        operands = tree_map(_plain, inputs)
        result = getattr(ufunc, method)(*operands, **plain)
        return _note(self, ufunc.__name__, (operands, plain.get("where")), result, out, inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        operands, plain = tree_map(_plain, args), tree_map(_plain, keywords)
        composed = _COMPOSED.get(function)
        if composed is not None:  # made of operations that are counted one by one
            return composed(*args, **keywords)
        result = function(*operands, **plain)
        return _note(self, function.__name__, (operands, plain), result, (), (args, keywords))

    def __getitem__(self, key: Any) -> Any:
        plain = tree_map(_plain, key)
        result = _plain(self)[plain]
        return _note(self, "getitem", (_plain(self), plain), result, (), self)

    def astype(self, dtype: Any, *args: Any, **keywords: Any) -> Any:
        """Convert, which is an operation if it copies."""
        result = _plain(self).astype(dtype, *args, **keywords)
        return _note(self, "astype", _plain(self), result, (), self)

    def copy(self, *args: Any, **keywords: Any) -> Any:
        """Copy, which is an operation."""
        return _note(self, "copy", _plain(self), _plain(self).copy(*args, **keywords), (), self)

    def __setitem__(self, key: Any, value: Any) -> None:
        target, plain = _plain(self), tree_map(_plain, key)
        target[plain] = _plain(value)
        if self.tally is not None:
            self.tally.add("setitem", (plain, _plain(value)), target[plain], in_place=True)


def _method(name: str) -> Callable[..., Any]:
    """Return a method that does what NumPy's function of that name does, and so is counted."""
    function = getattr(np, name)

    def method(self: CountedArray, *args: Any, **keywords: Any) -> Any:
        return function(self, *args, **keywords)

    return method


for _name in ("mean", "var", "std", "argmax", "argmin", "cumsum", "cumprod", "take", "dot"):
    setattr(CountedArray, _name, _method(_name))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, CountedArray) else value


def _note(owner: CountedArray, name: str, operands: Any, result: Any, out: Any, inputs: Any) -> Any:
    """Count an operation, and return its result as an array that counts."""
    tally = owner.tally or next(
        (leaf.tally for leaf in tree_leaves(inputs) if getattr(leaf, "tally", None)), None
    )
    if tally is None:
        return result
    if out:
        tally.add(name, operands, tree_map(_plain, out), in_place=True)
        return out[0] if len(out) == 1 else out
    tally.add(name, operands, result)
    return tree_map(lambda leaf: _counted(leaf, tally), result)


def _counted(leaf: Any, tally: OperationTally) -> Any:
    if isinstance(leaf, np.generic):  # a full reduction: in CuPy an array of no axes
        leaf = np.asarray(leaf)
    if not isinstance(leaf, np.ndarray):
        return leaf
    counted = leaf.view(CountedArray)
    counted.tally = tally
    return counted


def _mean(x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
    """As CuPy with CUB: a sum, and a division of what is left."""
    total = np.sum(x, axis=axis, keepdims=keepdims)
    return total / (x.size // max(total.size, 1))


def _var(
    x: Any,
    axis: Any = None,
    keepdims: bool = False,
    correction: float = 0,
    ddof: float = 0,
    **_: Any,
) -> Any:
    """As CuPy: the mean, and one kernel more that squares the distances to it and sums them."""
    mean = np.mean(x, axis=axis, keepdims=True)
    result = np.var(_plain(x), axis=axis, keepdims=keepdims, ddof=correction or ddof)
    return _note(x, "var", (_plain(x), _plain(mean)), result, (), x)


_COMPOSED: dict[Any, Callable[..., Any]] = {
    np.mean: _mean,
    np.var: _var,
    np.std: lambda *args, **keywords: np.sqrt(_var(*args, **keywords)),
}


class CountingNamespace:
    """NumPy, which is the array API since version 2, with `erf`, `expit` and `logsumexp`."""

    def __getattr__(self, name: str) -> Any:
        if name in ("erf", "expit"):
            import scipy.special  # long to import, for few baselines

            return getattr(scipy.special, name)
        return getattr(np, name)

    @staticmethod
    def asarray(value: Any, dtype: Any = None, **keywords: Any) -> Any:
        """As NumPy's, but an array that counts stays one."""
        return np.asanyarray(value, dtype=dtype, **keywords)

    @staticmethod
    def astype(x: Any, dtype: Any, **keywords: Any) -> Any:
        """As NumPy's."""
        return x.astype(dtype, **keywords)

    @staticmethod
    def logsumexp(x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Any:
        """As `cupyx.scipy.special.logsumexp`, which composes it."""
        greatest = np.max(x, axis=axis, keepdims=True)
        total = np.log(np.sum(np.exp(x - greatest), axis=axis, keepdims=keepdims))
        return total + (greatest if keepdims else np.squeeze(greatest, axis=axis))


def tally(function: Callable[..., Any], arguments: Any) -> OperationTally:
    """Run `function(xp, *arguments)` on arrays that count, and return what it did.

    `arguments` is a sequence of pytrees of NumPy arrays. Inputs are not changed unless `function`
    writes into them.
    """
    done = OperationTally()
    counted = tree_map(lambda leaf: _counted(np.asarray(leaf), done), tuple(arguments))
    with np.errstate(all="ignore"):
        function(CountingNamespace(), *counted)
    return done


def count(
    workload: type[Workload], case: Case, arguments: Any
) -> tuple[int, int] | tuple[None, None]:
    """Return how many array operations a workload's eager baseline makes, and the bytes they move.

    None for both where it does what an array that counts cannot. `arguments` are NumPy arrays, of
    the case's full size: the bytes are counted, not scaled.
    """
    baseline, static = workload.baseline, static_arguments(workload, case)
    assert baseline is not None
    try:
        done = tally(lambda xp, *inputs: baseline(xp, *inputs, **static), arguments)
    except Exception:  # a baseline may use what a counting array does not have
        return None, None
    return done.operations, done.traffic_bytes

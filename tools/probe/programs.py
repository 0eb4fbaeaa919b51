"""The probe's programs: each gives its jitted functions, their argument and what must come out."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

X = np.linspace(-1, 1, 8, dtype=np.float32)


def callback():
    """Call back into Python from the compiled program."""

    def subject(x):
        tanh = jax.pure_callback(
            lambda y: np.tanh(np.asarray(y)), jax.ShapeDtypeStruct(x.shape, x.dtype), x
        )
        return tanh * 2

    return [(jax.jit(subject), X, np.tanh(X) * 2)]


def partitioned():
    """Partition by a rule of its own, over two devices."""
    from jax.experimental.custom_partitioning import custom_partitioning
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    @custom_partitioning
    def doubled(x):
        return jnp.tanh(x) * 2

    def partition(mesh, arguments, result):
        sharding = arguments[0].sharding
        return mesh, lambda x: jnp.tanh(x) * 2, sharding, (sharding,)

    doubled.def_partition(
        partition=partition,
        infer_sharding_from_operands=lambda mesh, arguments, result: arguments[0].sharding,
        sharding_rule="i -> i",
    )

    def subject(x):
        return doubled(x)

    split = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("i",)), PartitionSpec("i"))
    return [(jax.jit(subject, in_shardings=split), X, np.tanh(X) * 2)]


def several(*names):
    """Compile to entries of about one size, under different names."""
    programs = []
    for name in names or ("first", "second", "third", "fourth"):

        def function(x):
            return jnp.tanh(x) * 2 + x

        function.__name__ = function.__qualname__ = name
        programs.append((jax.jit(function), X, np.tanh(X) * 2 + X))
    return programs


def slow():
    """Take XLA a few tenths of a second on a CPU: sort and scale, many times over."""
    steps = 12

    def subject(x):
        for step in range(steps):
            x = jnp.sort(x, axis=step % 2) * (1 - step / 64)
        return x

    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    expected = x
    for step in range(steps):
        expected = np.sort(expected, axis=step % 2) * np.float32(1 - step / 64)
    return [(jax.jit(subject), x, expected)]


def unused(size):
    """Leave the second of its two arguments unused, which has so many elements."""

    def subject(pair):
        return jnp.tanh(pair[0]) * 2

    pair = X, np.zeros(int(size), np.float32)
    return [(jax.jit(subject), pair, np.tanh(X) * 2)]


def late(directory):
    """Compile, set another directory, and compile another program."""

    def first(x):
        return jnp.tanh(x) * 2

    def second(x):
        return jnp.sort(x) + 1

    def set_and_call(x):
        jax.config.update("jax_compilation_cache_dir", directory)
        return jax.jit(second)(x)

    return [(jax.jit(first), X, np.tanh(X) * 2), (set_and_call, X, np.sort(X) + 1)]


def wrapped():
    """Be the function of plain.py, wrapped as a decorator of the user's would wrap it."""

    def subject(x):
        return jnp.tanh(x) * 2 + x

    @functools.wraps(subject)
    def wrapper(*arguments):
        return subject(*arguments)

    return [(jax.jit(wrapper), X, np.tanh(X) * 2 + X)]

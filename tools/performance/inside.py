"""How much of a compile XLA names, and what it costs to ask, for large programs on each target.

    python -m tools.performance.inside [--target cpu --target gpu:h200 ...] [PROGRAM ...]

Each program is compiled in a process of its own without and with a trace, in turns; the ratio is
that of the least compiles. Covered: the share of the wall time in events of a known group. Read:
what it takes to read the trace and make the tree of it, beside the compile.
"""

import json
import time

import jax
import jax.numpy as jnp

from harness import targets
from harness.program.compiler import recording
from harness.program.compiler.inside import inside
from harness.targets import topologies
from tools.performance.command import fresh, options


def spec(*shape):
    return jax.ShapeDtypeStruct(shape, "float32")


def transformer(layers, scanned):
    width, heads, length = 512, 8, 128

    def block(x, w):
        q, k, v = jnp.split((x @ w["qkv"]).reshape(length, 3 * heads, -1), 3, axis=1)
        a = jax.nn.softmax(jnp.einsum("ihd,jhd->hij", q, k))
        x = x + jnp.einsum("hij,jhd->ihd", a, v).reshape(length, width) @ w["out"]
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]

    def loss(w, x):
        if scanned:
            x, _ = jax.lax.scan(lambda x, each: (block(x, each), None), x, w)
        else:
            for layer in range(layers):
                x = block(x, jax.tree.map(lambda leaf, i=layer: leaf[i], w))
        return (x**2).mean()

    sizes = {"qkv": (1, 3), "out": (1, 1), "up": (1, 4), "down": (4, 1)}
    weights = {name: spec(layers, a * width, b * width) for name, (a, b) in sizes.items()}
    return jax.grad(loss), (weights, spec(length, width))


def diffrax_solve():
    import diffrax

    def solve(y):
        term = diffrax.ODETerm(lambda t, y, args: jnp.sin(y) - 0.1 * y * y * y)
        control = diffrax.PIDController(rtol=1e-4, atol=1e-6)
        solver = diffrax.Kvaerno3()
        return diffrax.diffeqsolve(term, solver, 0, 1, 0.1, y, stepsize_controller=control).ys

    return solve, (spec(8),)


def rnn(steps=200):
    def run(w, x):
        h = jnp.zeros(x.shape[1])
        for step in range(steps):
            h = jnp.tanh(w @ h + x[step])
        return (h**2).sum()

    return jax.grad(run), (spec(64, 64), spec(steps, 64))


def fft():
    def run(x):
        for _ in range(12):
            x = jnp.fft.ifft2(jnp.fft.fft2(x) * jnp.exp(-jnp.abs(x))).real
        return x.sum()

    return jax.grad(run), (spec(128, 128),)


def conv():
    def run(w, x):
        for each in w:
            x = jax.nn.relu(jax.lax.conv(x, each, (1, 1), "SAME"))
            x = x / (1e-3 + x.std(axis=(2, 3), keepdims=True))
        return x.mean()

    return jax.grad(run), ([spec(32, 32, 3, 3)] * 16, spec(8, 32, 32, 32))


PROGRAMS = {
    "transformer, 24 layers unrolled": lambda: transformer(24, scanned=False),
    "transformer, 24 layers scanned": lambda: transformer(24, scanned=True),
    "Diffrax, Kvaerno3": diffrax_solve,
    "RNN, 200 steps unrolled": rnn,
    "FFT, 12 pairs": fft,
    "convolutions, 16 layers": conv,
}


def measure(place, name, rounds):
    """Return what one program takes, and what XLA names of it."""
    function, arguments = PROGRAMS[name]()
    one = place.description and topologies.describe(place.name, place.description).one
    arguments = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=one or None), arguments
    )
    jax.jit(lambda x: x + 1).lower(jax.tree.leaves(arguments)[0]).compile()
    plain, traced, read = [], [], []
    for _ in range(rounds):
        for seconds in (plain, traced):
            jax.clear_caches()
            lowered = jax.jit(function).lower(*arguments)
            made = []

            def compile(lowered=lowered, seconds=seconds, made=made):
                begin = time.perf_counter()
                made.append(lowered.compile())
                seconds.append(time.perf_counter() - begin)

            if seconds is plain:
                compile()
                continue
            seen = recording.recorded(compile)
            text = made[0].as_text()
            begin = time.perf_counter()
            told = inside(seen, text)
            read.append(time.perf_counter() - begin)
    named = sum(bool(kernel.file) for kernel in told.kernels)
    groups = sum(group.wall_s for group in told.groups)
    said = (
        f"{min(plain):7.2f} s {min(traced) / min(plain):6.2f} {told.covered:6.1%} "
        f"{groups / told.wall_s:7.3f} {len(seen):7} {min(read):5.2f} s {len(told.kernels):8} "
        f"{named:11}"
    )
    unknown = dict(list(told.unknown.items())[:3])
    return said if told.covered >= 0.9 else f"{said}\n           {unknown}"


def main():
    given = options(__doc__, select=True, target=[], rounds=2, child="")
    places = map(targets.find, given.target or ("cpu", "gpu:h200", "tpu:v5e"))
    if given.child:  # what each process does
        print(json.dumps(measure(next(places), given.child, given.rounds)))
        return
    print(
        "target     program                            compile  traced covered    sum  events"
        "    read  kernels with a line"
    )
    for place in places:
        for name in PROGRAMS:
            if given.select and not name.startswith(tuple(given.select)):
                continue
            child = ("--target", place.name, "--child", name, "--rounds", given.rounds)
            there = {"JAX_ENABLE_COMPILATION_CACHE": "0", "JAX_PLATFORMS": place.platforms}
            try:
                said = fresh(__spec__.name, *child, **there, **place.environment)
            except SystemExit as failed:
                said = str(failed).strip().splitlines()[-1][:90]
            print(f"{place.name:10} {name:32} {said}", flush=True)


if __name__ == "__main__":
    main()

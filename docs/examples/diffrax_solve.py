"""Solve an ordinary differential equation with Diffrax, over and over; needs diffrax.

Python numbers are static in Diffrax's `diffeqsolve`, and so is a function; the number of points
to save is a shape.
"""

import argparse

import diffrax
import jax.numpy as jnp


def lotka_volterra(t, y, args):
    """Return the change of prey and predators."""
    prey, predator = y
    a, b, c, d = args
    return jnp.stack([a * prey - b * prey * predator, -c * predator + d * prey * predator])


def decay(t, y, rate):
    """Return the change of what decays."""
    return -rate * y


def main():
    """Solve for longer and longer times."""
    options = argparse.ArgumentParser()
    options.add_argument("--traced", action="store_true", help="pass arrays, not numbers")
    options.add_argument("--points", type=int, default=0, help="save so many points, always")
    options = options.parse_args()

    start = jnp.array([10.0, 10.0])
    args = (0.1, 0.02, 0.4, 0.02)
    term = diffrax.ODETerm(lotka_volterra)
    for number in range(1, 7):
        until = 10.0 * number
        times = jnp.linspace(0, until, options.points or 20 * number)
        solution = diffrax.diffeqsolve(
            term,
            diffrax.Tsit5(),
            t0=0.0,
            t1=jnp.asarray(until) if options.traced else until,
            dt0=0.1,
            y0=start,
            args=args,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=1e-5, atol=1e-6),
        )
        print(f"until {until:.0f}: {solution.ys[-1]}")

    for rate in (0.1, 0.15, 0.2):
        if options.traced:
            term, given = diffrax.ODETerm(decay), jnp.asarray(rate)
        else:
            term, given = diffrax.ODETerm(lambda t, y, args, rate=rate: -rate * y), None
        solution = diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 10.0, 0.1, start, given)
        print(f"decay {rate}: {solution.ys[-1]}")


if __name__ == "__main__":
    main()

"""Train an Equinox model; needs equinox and optax.

Two habits make it compile more than once: the last batch of an epoch is smaller, and the learning
rate is a Python number, which `eqx.filter_jit` takes as static.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Classifier(eqx.Module):
    """A multilayer perceptron with layer normalisation."""

    first: eqx.nn.Linear
    norm: eqx.nn.LayerNorm
    rest: eqx.nn.MLP

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.first = eqx.nn.Linear(64, 128, key=one)
        self.norm = eqx.nn.LayerNorm(128)
        self.rest = eqx.nn.MLP(128, 10, 128, 2, key=two)

    def __call__(self, x):
        """Return the logits of one example."""
        return self.rest(jax.nn.relu(self.norm(self.first(x))))


def batches(x, y, size, drop_last):
    """Yield the data in a random order, in batches."""
    order = np.random.default_rng(0).permutation(len(x))
    for begin in range(0, len(x), size):
        chosen = order[begin : begin + size]
        if len(chosen) == size or not drop_last:
            yield x[chosen], y[chosen]


optimizer = optax.scale_by_adam()


@eqx.filter_value_and_grad
def loss_and_gradients(model, x, y):
    """Return the loss of a batch, and its gradient."""
    logits = jax.vmap(model)(x)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, y))


@eqx.filter_jit
def make_step(model, state, x, y, learning_rate):
    """Take one step of gradient descent."""
    loss, gradients = loss_and_gradients(model, x, y)
    updates, state = optimizer.update(gradients, state, model)
    updates = jax.tree.map(lambda update: -learning_rate * update, updates)
    return eqx.apply_updates(model, updates), state, loss


@eqx.filter_jit
def accuracy(model, x, y):
    """Return the share of right answers."""
    return jnp.mean(jnp.argmax(jax.vmap(model)(x), axis=1) == y)


def main():
    """Train for some epochs."""
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--drop-last", action="store_true", help="leave out the last batch")
    options.add_argument("--traced-rate", action="store_true", help="pass the rate as an array")
    options = options.parse_args()

    data = np.random.default_rng(1)
    x = data.normal(size=(1_030, 64)).astype(np.float32)
    y = (x[:, :10].argmax(axis=1)).astype(np.int32)
    model = Classifier(jax.random.key(0))
    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    for epoch in range(options.epochs):
        rate = 1e-3 * 0.8**epoch
        if options.traced_rate:
            rate = jnp.asarray(rate)
        for inputs, labels in batches(x, y, 100, options.drop_last):
            model, state, loss = make_step(model, state, inputs, labels, rate)
        print(f"epoch {epoch}: loss {loss:.3f}, accuracy {accuracy(model, x, y):.3f}")


if __name__ == "__main__":
    main()

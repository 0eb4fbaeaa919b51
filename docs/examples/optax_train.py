"""Fit a network with plain JAX and Optax; needs optax.

The evaluation's last batch is smaller, `train` is static, the trained parameters are moved to a
device before the second phase, and the evaluation asks for another precision than the training.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    """Return random weights, layer by layer."""
    keys = jax.random.split(key, len(sizes) - 1)
    layers = []
    for number, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        weights = jax.random.normal(keys[number], (rows, columns)) * jnp.sqrt(2 / rows)
        layers.append({"w": weights, "b": jnp.zeros(columns)})
    return layers


@functools.partial(jax.jit, static_argnames="train")
def predict(params, x, key, train):
    """Return the logits; with dropout in training."""
    for number, layer in enumerate(params):
        x = x @ layer["w"] + layer["b"]
        if number < len(params) - 1:
            x = jax.nn.relu(x)
            if train:
                key, mine = jax.random.split(key)
                x = jnp.where(jax.random.bernoulli(mine, 0.9, x.shape), x / 0.9, 0)
    return x


optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-3))


@jax.jit
def train_step(params, state, key, x, y):
    """Take one step of gradient descent."""

    def loss_fn(params):
        logits = predict(params, x, key, train=True)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

    loss, gradients = jax.value_and_grad(loss_fn)(params)
    updates, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, loss


def accuracy(params, x, y, size=200):
    """Return the share of right answers, in batches of at most `size`."""
    right = 0
    with jax.default_matmul_precision("highest"):
        for begin in range(0, len(x), size):
            logits = predict(params, x[begin : begin + size], jax.random.key(0), train=False)
            right += (logits.argmax(axis=1) == y[begin : begin + size]).sum()
    return right / len(x)


def main():
    """Train in two phases; the second starts from parameters that were put on a device."""
    data = np.random.default_rng(1)
    x = data.normal(size=(1_250, 64)).astype(np.float32)
    y = (x[:, :10].argmax(axis=1)).astype(np.int32)
    test_x, test_y = x[1_000:], y[1_000:]
    key = jax.random.key(0)
    params = init(key, [64, 128, 128, 10])
    state = optimizer.init(params)
    for phase in range(2):
        if phase == 1:
            params = jax.device_put(params, jax.devices()[0])
        for epoch in range(4):
            losses = []
            for begin in range(0, 1_000, 100):
                key, mine = jax.random.split(key)
                batch = slice(begin, begin + 100)
                params, state, loss = train_step(params, state, mine, x[batch], y[batch])
                losses.append(loss)
            mean = jnp.mean(jnp.array(losses))
            share = accuracy(params, test_x, test_y)
            print(f"phase {phase}, epoch {epoch}: loss {mean:.3f}, test accuracy {share:.3f}")


if __name__ == "__main__":
    main()

"""Train a Flax NNX model with Optax; needs flax and optax.

`evaluate` jits a new lambda each time, so that it is compiled each time.
"""

import argparse

import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Model(nnx.Module):
    """A small network with dropout and batch normalisation."""

    def __init__(self, rngs):
        self.first = nnx.Linear(64, 128, rngs=rngs)
        self.norm = nnx.BatchNorm(128, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        """Return the logits of a batch."""
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


def loss_fn(model, x, y):
    """Return the loss of a batch, and the logits."""
    logits = model(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits


@nnx.jit
def train_step(model, optimizer, metrics, x, y):
    """Take one step of gradient descent."""
    (loss, logits), gradients = nnx.value_and_grad(loss_fn, has_aux=True)(model, x, y)
    metrics.update(loss=loss, logits=logits, labels=y)
    optimizer.update(model, gradients)


@nnx.jit
def eval_step(model, x, y):
    """Return the number of right answers."""
    return jnp.sum(jnp.argmax(model(x), axis=1) == y)


def evaluate(model, x, y, again):
    """Return the share of right answers in the data."""
    step = eval_step
    if again:
        step = nnx.jit(lambda model, x, y: jnp.sum(jnp.argmax(model(x), axis=1) == y))
    right = 0
    for begin in range(0, len(x), 100):
        right += step(model, x[begin : begin + 100], y[begin : begin + 100])
    return right / len(x)


def main():
    """Train for some epochs, evaluating after each."""
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--jit-once", action="store_true", help="evaluate with eval_step")
    options = options.parse_args()

    data = np.random.default_rng(1)
    x = data.normal(size=(1_000, 64)).astype(np.float32)
    y = (x[:, :10].argmax(axis=1)).astype(np.int32)
    test_x, test_y = x[:250], y[:250]
    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)
    metrics = nnx.MultiMetric(accuracy=nnx.metrics.Accuracy(), loss=nnx.metrics.Average("loss"))
    for epoch in range(options.epochs):
        model.train()
        for begin in range(0, len(x), 100):
            batch = slice(begin, begin + 100)
            train_step(model, optimizer, metrics, x[batch], y[batch])
        model.eval()
        found = metrics.compute()
        metrics.reset()
        share = evaluate(model, test_x, test_y, not options.jit_once)
        print(f"epoch {epoch}: loss {found['loss']:.3f}, test accuracy {share:.3f}")


if __name__ == "__main__":
    main()

"""Pytrees with many leaves: costs that depend on the number of arrays, not on their size."""

import jax

from harness import Workload, spec


class MomentumUpdate(Workload):
    """SGD with momentum over a tree of small parameters: dispatch grows with the leaves.

    Each call flattens, checks and passes three arrays for each leaf and wraps two results, while
    the arithmetic is next to nothing. Tracing, lowering and compilation grow with the leaves too.
    """

    sweep = {"leaves": [8, 128]}

    def inputs(self, leaves):
        # Two leaves per layer, as in a network: the tree is deep as well as wide.
        tree = {
            f"layer_{i}": {"dense": {"w": spec((16, 16)), "b": spec((16,))}}
            for i in range(leaves // 2)
        }
        return tree, tree, tree

    @staticmethod
    def function(params, momentum, gradients):
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradients)
        params = jax.tree.map(lambda p, m: p - 0.01 * m, params, momentum)
        return params, momentum

    @staticmethod
    def baseline(xp, params, momentum, gradients):
        new_params, new_momentum = {}, {}
        for layer, old in momentum.items():
            weights, slopes = params[layer]["dense"], gradients[layer]["dense"]
            moved = {k: 0.9 * m + slopes[k] for k, m in old["dense"].items()}
            new_momentum[layer] = {"dense": moved}
            new_params[layer] = {"dense": {k: p - 0.01 * moved[k] for k, p in weights.items()}}
        return new_params, new_momentum

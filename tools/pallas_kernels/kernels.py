"""Kernels in Pallas that others have published, as they stand in installed packages.

Each is called in one line, marked `# called`, and names in `called` what its authors call it.
"""

import jax
import jax.numpy as jnp

from harness import Workload, spec

H200, V5E = ("gpu:h200",), ("tpu:v5e",)


def _half(*shape):
    return spec(shape, "bfloat16")


class Attention(Workload):
    targets = H200
    package, called = "jax", ("mha_forward",)

    def inputs(self):
        return tuple(_half(2, 512, 4, 64) for _ in range(3))

    @staticmethod
    def function(q, k, v):
        from jax.experimental.pallas.ops.gpu.attention import mha

        return mha(q, k, v, None)  # called


class AttentionGradient(Attention):
    called = ("mha_backward", "mha_forward", "mha_preprocess_backward")

    @staticmethod
    def function(q, k, v):
        from jax.experimental.pallas.ops.gpu.attention import mha

        def loss(q):
            return mha(q, k, v, None).astype(jnp.float32).sum()  # called

        return jax.grad(loss)(q)


class LayerNorm(Workload):
    targets = H200
    package, called = "jax", ("layer_norm_forward_kernel",)

    def inputs(self):
        return spec((2, 64, 1024)), spec((1024,)), spec((1024,))

    @staticmethod
    def function(x, weight, bias):
        from jax.experimental.pallas.ops.gpu.layer_norm import layer_norm

        return layer_norm(x, weight, bias)  # called


class Softmax(Workload):
    targets = H200
    package, called = "jax", ("_vmappable_softmax_kernel",)

    def inputs(self):
        return (spec((64, 1024)),)

    @staticmethod
    def function(x):
        from jax.experimental.pallas.ops.gpu.softmax import softmax

        return softmax(x)  # called


class HopperMatmul(Workload):
    targets = H200
    # JAX's own name: the authors hand over a functools.partial, which has none.
    package, called = "jax", ("anonymous",)

    def inputs(self):
        return tuple(spec((1024, 1024), "float16") for _ in range(3))

    @staticmethod
    def function(a, b, c):
        from jax.experimental.pallas.ops.gpu import hopper_matmul_mgpu as hopper

        hopper.get_num_sms = lambda: 132  # asks the device, which is not here
        config = hopper.TuningConfig(tile_m=64, tile_n=128, tile_k=64, max_concurrent_steps=4)
        return hopper.matmul(a, b, c, config)  # called


class FlashAttention(Workload):
    targets = V5E
    package, called = "jax", ("_flash_attention_kernel",)

    def inputs(self):
        return tuple(_half(2, 4, 512, 128) for _ in range(3))

    @staticmethod
    def function(q, k, v):
        from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

        return flash_attention(q, k, v)  # called


class FlashAttentionGradient(FlashAttention):
    called = (
        "_flash_attention_dkv_kernel",
        "_flash_attention_dq_kernel",
        "_flash_attention_kernel",
    )

    @staticmethod
    def function(q, k, v):
        from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

        def loss(q, k, v):
            return flash_attention(q, k, v).astype(jnp.float32).sum()  # called

        return jax.grad(loss, (0, 1, 2))(q, k, v)


class Matmul(Workload):
    targets = V5E
    package, called = "jax", ("matmul_kernel",)

    def inputs(self):
        return _half(1024, 1024), _half(1024, 1024)

    @staticmethod
    def function(x, y):
        from jax.experimental.pallas.ops.tpu.matmul import matmul

        return matmul(x, y, block_shape=(256, 256))  # called


class GroupedMatmul(Workload):
    targets = V5E
    package, called = "jax", ("kernel",)

    def inputs(self):
        return _half(512, 256), _half(4, 256, 256), spec((4,), "int32", 128, 129)

    @staticmethod
    def function(x, w, sizes):
        from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

        return gmm(x, w, sizes)  # called


class TokamaxRaggedDot(Workload):
    targets = V5E
    package, called = "tokamax", ("pallas_tpu_ragged_dot_gmm",)

    def inputs(self):
        return _half(512, 256), _half(4, 256, 256), spec((4,), "int32", 128, 129)

    @staticmethod
    def function(x, w, sizes):
        import tokamax

        return tokamax.ragged_dot(x, w, sizes, implementation="mosaic")  # called

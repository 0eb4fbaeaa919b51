"""What an event of XLA's is part of: one table of names, for all targets and releases of JAX.

Seen with jax 0.10.2, 0.11.2 and 0.12.0.1, compiling for cpu, gpu and tpu. What no line knows is of
its parent's group; what has no parent of a known one is `rest`, and is told.
"""

from __future__ import annotations

import re

PASSES, FUSION, LAYOUT = "optimisation passes", "fusion", "layout"
SCHEDULING, BUFFERS = "scheduling", "buffer assignment"
FOLDING, AUTOTUNING = "constant folding", "autotuning"
GENERATION, SERIALISATION, REST = "code generation", "serialisation", "rest"

GROUPS = (
    *(PASSES, FUSION, LAYOUT, SCHEDULING, BUFFERS, FOLDING, AUTOTUNING),
    *(GENERATION, SERIALISATION, REST),
)
"""All groups, in the order in which a compile goes through them."""

MLIR, LLVM, CUBIN = "MLIR", "LLVM", "PTX to CUBIN"
REGISTERS, BUNDLES, EMITTERS = "register allocation", "scheduling and bundles", "emitters"

_GENERATION = (
    (CUBIN, r"PTX->CUBIN|ptxas|nvlink|LinkProgram"),
    (MLIR, r"FusionCompiler::Compile"),
    (LLVM, r"TaskDispatcher::dispatch|JitCompiler::Compile|Compiling IR|CompileSingleModule"),
    (LLVM, r"IrCompiler|LlvmIrToPTX|CompileToPtx"),
    (REGISTERS, r"LSRAv2|[Rr]egister alloc"),
    (BUNDLES, r"XLA::TPU LLO .*scheduling|bundle packing"),
    (EMITTERS, r"XLA::TPU emitting"),
    ("", r"^Codegen\b|ThunkEmitter|CompileModuleToLlvmIr|IrEmitter"),
    ("", r"XLA::TPU (code generat|lowering|run backend|LLO|program)|CloneAsThreadSafeModule"),
)

_OTHERS = (
    (PASSES, r"^HLO |HLO passes|^run hlo|XLA::TPU (run hlo|HLO)|OptimizeHlo|RunHloPasses"),
    (AUTOTUNING, r"[Aa]utotun|algorithm-picker"),
    (FOLDING, r"constant[-_ ]folding|ConstantFolding|[Ee]valuat(e|or)"),
    (SERIALISATION, r"[Ss]erializ|ToProto|FromProto"),
    (
        BUFFERS,
        r"[Bb]uffer.?[Aa]ssign|memory space|[Mm]emory.?[Ss]pace.?[Aa]ssign|[Hh]eap.?[Ss]imul",
    ),
    (SCHEDULING, r"[Ss]chedul"),
    (LAYOUT, r"[Ll]ayout[-_ ]?([Aa]ssign|[Nn]ormal)"),
    (FUSION, r"[Ff]usion"),
    (PASSES, r"[Pp]ipeline|Phase\d|[Rr]emat|Alias|[Cc]opy.?[Ii]nsert|HloModule|^dce$|Verif"),
)

_WRAPPERS = re.compile(
    r"^(backend_compile_and_load|PjRt\w*::Compile\b.*|\w*PjRtClient::Compile\b.*|CompileAheadOfTime|"
    r"CompileToBackendResult|(Cpu|Gpu|NVPTX|AMDGPU|Tpu)Compiler::(Compile|Run)\w*)$"
)
"""Events around the whole of a compile, which are part of nothing in it."""


def group_of(name: str, parent: tuple[str, str], is_pipeline: bool) -> tuple[str, str]:
    """Return the group of an event, and the part of it, "" where it has none.

    Args:
        name: of the event.
        parent: group and part of the event that it is inside of.
        is_pipeline: XLA says that it is a pipeline of passes.
    """
    if _WRAPPERS.match(name):
        return REST, ""
    for part, pattern in _GENERATION:
        if re.search(pattern, name):
            return GENERATION, part
    if parent[0] == GENERATION:
        return parent
    for group, pattern in _OTHERS:
        if re.search(pattern, name):
            return group, ""
    if is_pipeline:
        return PASSES, ""
    return parent

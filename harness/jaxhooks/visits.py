"""What is recorded of one pass through JAX's slow path, until it is written down."""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from harness.jaxhooks.call_sites import Places
from harness.jaxhooks.events import Kind, Promoted, Request


class Promotion:
    """A loop whose carry is promoted, while JAX traces its body again."""

    done: Promoted | None = None
    """What is recorded of it, once that trace is over."""
    values = 0

    def __init__(self, frame: FrameType, before: str, after: str) -> None:
        self.frame: FrameType | None = frame
        """Of JAX's loop, until that trace is over."""
        self.before, self.after = before, after
        self.begin_ns = 0


class JaxVisit:
    """What has been seen of a visit so far.

    Programs make these by the hundred thousand: what is not known yet is the class's own default.
    """

    outer: JaxVisit | None = None
    """The visit in which this one takes place, on the same thread."""
    function: Any = None
    """The Python function; None where JAX has only what it traced of one."""
    info: Any = None
    args: Any = ()
    kwargs: Any = None
    name: str = ""
    debug: Any = None
    """JAX's note of where the function is from."""
    params: Any = None
    """JAX's record of what it traced, and for which arguments."""
    values: Any = ()
    """The dynamic arguments, flat."""
    meta: Any = None
    """JAX's types of the arguments with their placement, from lowering."""
    how: Any = None
    """What JAX lowers with: donated arguments, shardings, options."""
    options: Any = None
    link: Any = None
    """What is known from an earlier stage, ahead of time."""
    frame: Any = None
    """Where it was asked for, while it is going on."""
    stack: Places = Places()
    """The same, once it is over."""
    stage: str = ""
    stage_begin_ns: int = 0
    expects: str = ""
    """Which stage comes next for this very program: `lower`, `compile`, or none."""
    ran: bool = False
    """Whether JAX came as far as running the program of this visit."""
    run_ns: int = 0
    """When JAX set out to run what it had traced."""
    traced: int = 0
    """Real traces of the function itself."""
    nested: int = 0
    """Real traces of what it calls."""
    lowered: int = 0
    compiled: int = 0
    spans: tuple[tuple[str, int, int, int], ...] = ()
    requests: tuple[Request, ...] = ()
    inner: tuple[tuple[Any, int, int, int], ...] = ()
    kernels: dict[CodeType, int] | None = None
    """Nanoseconds of what JAX called and waited for that is not its own."""
    promotions: tuple[Promotion, ...] = ()
    unjitted: bool = False
    """Whether it is an operation that runs by itself as jit is disabled."""
    held: tuple[JaxVisit, ...] = ()
    executable: Any = None
    described: Any = None
    own_ns: int = 0
    error: str = ""
    id: int = 0
    parent: int = 0
    end_ns: int = 0
    checked_ns: int = 0
    """When it was last seen to be really going on."""

    def __init__(self, kind: Kind, begin_ns: int, thread: int) -> None:
        self.kind = kind
        self.begin_ns = begin_ns
        self.thread = thread

    @property
    def built(self) -> bool:
        """Whether anything was traced, lowered or compiled, or was to be."""
        return bool(self.traced or self.nested or self.by_itself or self.error or self.id)

    @property
    def by_itself(self) -> bool:
        """Whether it is more than a trace inside another."""
        return bool(self.lowered or self.compiled)

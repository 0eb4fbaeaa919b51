"""The lines of a recording: one JSON object each, with its kind in `event`.

Of a profile every process writes a file of its own, `HOST-PID-N.jsonl`, in the profile's folder. Of
the persistent cache alone (a ledger) processes may share one file, which has nothing but
:class:`Request`. A line is appended by one write, so that a process that is killed loses none that
it has written. What repeats
(functions, stacks, arguments) is written once, with a number that later lines of the same file
refer to; 0 means that there is none.

All `_ns` are `time.perf_counter_ns`, which on Linux all processes of a machine share; `Started`
ties it to the calendar.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar, dataclass_transform

SCHEMA = 4
"""From 2 on each line has a checksum; from 3 on arguments are data; from 4 on calls of what was
compiled ahead of time are recorded, and wrappers of functions are data."""

Kind = Literal["call", "trace", "lower", "compile"]
"""How JAX was entered: a jitted function was called, or `.trace()`, `.lower()`, `.compile()`."""

Origin = Literal["program", "library", "jax"]
"""Whose code it is: the user's own, an installed package's, or JAX's (`jnp.ones` and the like)."""


LONGEST_VALUE = 200
"""Characters of a static value's text that are kept."""

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True)
def struct(cls: type[_T]) -> type[_T]:
    """Make a class of fields that are frozen for the type checker: Python's own cost ten times."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Line:
    """What all lines share: `event`, which is the class's name in small letters."""

    __slots__ = ()


@struct
class Started(Line):
    """A process began to record; the first line of every file."""

    schema: int
    pid: int
    parent_pid: int
    host: str
    how: Literal["command", "context", "fork", "pytest"]
    argv: tuple[str, ...]
    cwd: str
    python: str
    at_s: float
    """Seconds since the epoch, at `clock_ns`."""
    clock_ns: int
    process_ns: int
    """When the process itself was started, by the same clock."""
    cpu_count: int
    main_thread: int
    """`threading.get_ident()` of the main thread."""


@struct
class Import(Line):
    """`import jax`, as far as it ran on one thread."""

    begin_ns: int
    end_ns: int
    thread: int
    versions: dict[str, str]
    """`jax`, `jaxlib`."""
    without_bytecode: str = ""
    """Where JAX lies, if Python compiles its modules anew at each start: it could not keep them."""


@struct
class Backend(Line):
    """The first time JAX made its backends."""

    begin_ns: int
    end_ns: int
    thread: int
    platform: str
    devices: tuple[str, ...]


class Around(NamedTuple):
    """A wrapper of a function, or a function that an operation of JAX's was given."""

    name: str
    """`grad_f`, `partial`, `method`, `equinox.filter_jit`; the function's own."""
    file: str = ""
    """Of a function that was given."""
    line: int = 0


@struct
class Function(Line):
    """A function that was jitted, by its place in the source: the same one for every object."""

    id: int
    name: str
    """As JAX calls it."""
    qualname: str
    file: str
    line: int
    origin: Origin
    column: int = 0
    """Where its code begins in the line, which tells two lambdas of one line apart."""
    around: tuple[Around, ...] = ()
    """What stands between it and `jax.jit`, the outermost first."""


class Frame(NamedTuple):
    """A line of a stack."""

    file: str
    line: int
    function: str
    origin: Origin


MOST_STACKS = 10_000
"""Stacks that are written whole; later ones are their innermost line of the program."""


@struct
class Stack(Line):
    """Where from: frames outside JAX and this package, the outermost first."""

    id: int
    frames: tuple[Frame, ...]


@struct
class Leaf:
    """A dynamic argument, or one array in it."""

    path: str
    """In the user's words: `x`, `params['w']`, `args[0]`."""
    aval: str
    """`float32[8,4]`, with the sharding where that is part of the type."""
    weak: bool = False
    kind: str = ""
    """What was passed: `jax.Array`, `numpy.ndarray`, `int`, `float`."""
    committed: bool = False
    sharding: str = ""
    """Of a `jax.Array`, with the devices by number."""
    layout: str = ""
    unused: bool = False
    """Whether nothing that was traced takes it."""


@struct
class Static:
    """A static argument."""

    name: str
    type: str
    value: str
    """Its `repr`, shortened."""
    object: int = 0
    """The same number for what JAX takes as equal; 0 where type and value say all there is."""
    keyword: bool = False
    equality: str = ""
    """Where the `__eq__` of its type is written, `FILE:LINE`; empty for Python's and generated
    ones."""
    number: int = 1
    """Which class of that name its type is: a function that makes one makes another at each call.
    """


class FixedField(NamedTuple):
    """A fixed field of a class of pytrees, or of an object in one: what JAX compares by value."""

    name: str
    """`rate`, `config.width`; empty where the class does not say."""
    value: str
    """As text, shortened; `<Config>` where its own fields follow."""


class Tree(NamedTuple):
    """A container in a tree of arguments, or an object of a class that JAX takes apart."""

    type: str
    """`tuple`, `list`, `dict`, `None`; a class, with its module where that is not the program's."""
    children: tuple[Tree | None, ...] = ()
    """What JAX finds in it; None for an array."""
    names: tuple[str, ...] = ()
    """One for each child, where it has some: `'w'` of a dictionary, `rate` of an object."""
    fields: tuple[FixedField, ...] = ()
    """What is fixed in it."""
    number: int = 1
    """Which class of that name: a function that makes one makes another at each call."""


class Dynamic(NamedTuple):
    """A dynamic argument, as JAX takes it apart."""

    name: str
    tree: Tree | None = None
    """None for an array."""
    keyword: bool = False


@struct
class Arguments(Line):
    """What a jitted function was called with."""

    id: int
    leaves: tuple[Leaf, ...]
    statics: tuple[Static, ...]
    trees: tuple[Dynamic, ...] = ()


@struct
class Settings(Line):
    """Everything else that JAX looks at before it takes something from a cache."""

    id: int
    jit: dict[str, str]
    """What `jax.jit` was given: `donate_argnums`, `in_shardings`, `compiler_options` ...

    `donated` names the arguments; a program without a Python function has what JAX made of it.
    """
    context: dict[str, str]
    """JAX's configuration as this thread sees it, with the mesh, and `XLA_FLAGS`."""


Outcome = Literal["hit", "written", "unwritten", "failed"]

# Codes: why a miss was not written.
BELOW_TIME = "below the time threshold"
BELOW_SIZE = "below the size threshold"
NOT_PROCESS_0 = "not process 0"
DISABLED = "disabled"
HOST_CALLBACK = "host callback"
NO_DIRECTORY = "no directory"
UNUSABLE_DIRECTORY = "unusable directory"
OVER_CAP = "over the size cap"
UNREADABLE_IN_PLACE = "an unreadable file is in the place"
ALREADY_THERE = "another writer was first"
CHECKED = "the first look-up is skipped"
OTHER_PROCESS = "received from another process"
ERROR = "error"

# Codes of `Request.detail`: by what the cache is disabled, and errors that JAX does not report.
SWITCHED_OFF, OFF_AT_FIRST_USE, CANNOT_SERIALISE = "off", "off at the first use", "backend"
NOT_TRIED, NO_FILE = "not tried", "no file"


class Component(NamedTuple):
    """One of the parts that JAX hashes into the key of an entry."""

    name: str
    """JAX's own name of it, such as `compile_options`."""
    sha256: str
    values: tuple[str, ...] = ()
    """What was hashed, where that is short text: versions, flags, the compression's name."""


class Overridden(NamedTuple):
    """A setting of the environment that did not take effect, as where the program sets its own."""

    name: str
    """Such as `jax_compilation_cache_dir`."""
    variable: str
    value: str
    """What JAX uses instead."""


class Late(NamedTuple):
    """A setting that the program changed after the cache's first use, when JAX had frozen it."""

    name: str
    value: str
    """What it was changed to, without effect."""
    used: str


@struct
class Request(Line):
    """What the persistent cache did for one request to compile; 0 is nothing, or unknown.

    A line of its own where the cache alone is recorded, otherwise a part of a :class:`Build`.
    """

    module: str
    request_ns: int
    """All of it, without what the recording took."""
    outcome: Outcome = "unwritten"
    key: str = ""
    """Empty where JAX made none: the cache is disabled, or hashing failed."""
    reason: str = ""
    """Of a miss that was not written: one of the codes above."""
    compile_ns: int = 0
    """In XLA; 0 of a hit."""
    load_ns: int = 0
    """Of a hit: reading, decompressing and deserialising the entry. Of a miss: looking for it."""
    write_ns: int = 0
    """Serialising, compressing and writing the entry."""
    entry_bytes: int = 0
    """Size of the compressed entry, written or not, where JAX got as far as making it."""
    directory: str = ""
    """The absolute path, or address, that JAX uses; empty where none is set."""
    relative: str = ""
    """The same as it is set, where that is relative to where the program was started."""
    detail: str = ""
    """An error's text, or one of the codes above."""
    value: float | None = None
    """What was held against `limit`, in seconds or bytes; or the number of a process but 0."""
    limit: float | None = None
    """The threshold that decided that a miss was not written, in seconds or bytes; without a cache,
    the seconds that would decide."""
    key_ns: int = 0
    lock_wait_ns: int = 0
    """Getting the lock of a directory with a size cap; a part of `load_ns` and `write_ns`."""
    own_ns: int = 0
    bytes_in: int = 0
    """Read from the entry's file, as compressed there."""
    bytes_out: int = 0
    stored_compile_s: int | None = None
    """Of a hit: the whole seconds that JAX stored in the entry."""
    jax_saved_ns: int = 0
    """Of a hit: what JAX reports as `compile_time_saved_sec`."""
    read_error: str = ""
    write_error: str = ""
    metadata_in_key: bool = False
    settings: str = ""
    """The hash under which JAX's settings at this request are stored in the parts."""
    evicted: tuple[str, ...] = ()
    """Keys of the entries that this write evicted, under a size cap."""
    components: tuple[Component, ...] = ()
    key_is_proven: bool = True
    """False where the components, hashed together again, do not give JAX's key."""
    overridden: tuple[Overridden, ...] = ()
    late: tuple[Late, ...] = ()
    at_s: float = 0.0
    """When it was done, in seconds since 1970."""
    pid: int = 0
    """Here and below: in a recording of the cache alone, whose processes share a file."""
    host: str = ""
    jax: str = ""


class Span(NamedTuple):
    """A stage of a build, from the first to the last thing done for it."""

    stage: Literal["trace", "lower", "compile"]
    begin_ns: int
    end_ns: int
    times: int
    """How often JAX really did it: 0 if everything came from a cache of its own."""


class Inner(NamedTuple):
    """A jitted function of the user's that was traced inside another."""

    function: int
    begin_ns: int
    end_ns: int
    times: int = 1
    """How often JAX really traced it: 0 where only what it calls was."""


class LoweringCall(NamedTuple):
    """Code that JAX called and waited for.

    In lowering it compiles a kernel, say; in tracing it is the `__eq__` of a static value.
    """

    file: str
    line: int
    """Of the function's definition."""
    function: str
    ns: int


class Promoted(NamedTuple):
    """A loop of JAX's whose body was traced again, as its carry had to be promoted."""

    loop: str
    """`scan`, `while_loop`, `fori_loop`."""
    file: str
    line: int
    """Of the call of it."""
    before: str
    """The dtype of the first weakly typed value that was promoted."""
    after: str
    values: int
    """How many of the carry were promoted."""
    ns: int
    """What the second trace of the body took."""


@struct
class Program:
    """What was built, as far as it is known at no cost."""

    code_bytes: int = 0
    argument_bytes: int = 0
    output_bytes: int = 0
    temp_bytes: int = 0
    flops: float = 0.0
    fingerprint: str = ""
    constants: str = ""
    """A hash of the arrays that it closes over, which XLA's fingerprint leaves out."""


@struct
class Build(Line):
    """JAX left its fast path for a function, and traced, lowered or compiled something."""

    id: int
    function: int
    object: int
    """Which function object: numbers in the order of their first appearance in the process."""
    wrapper: int
    """Which `jax.jit` of it."""
    stack: int
    thread: int
    begin_ns: int
    end_ns: int
    """For a call: when it returned, its result perhaps not yet finished."""
    spans: tuple[Span, ...]
    kind: Kind = "call"
    arguments: int = 0
    settings: int = 0
    requests: tuple[Request, ...] = ()
    inner: tuple[Inner, ...] = ()
    program: Program | None = None
    error: str = ""
    test: str = ""
    own_ns: int = 0
    parent: int = 0
    """The build of the same thread in whose spans all of this one lies; 0 for none."""
    nested: int = 0
    """Real traces of what the function calls, loops and branches included."""
    derived: int = 0
    """The number of the program that JAX made of the function's trace (by differentiation, or
    batching) and ran in its place; 0 where it ran the trace itself."""
    kernels: tuple[LoweringCall, ...] = ()
    """What is not JAX's own in its lowering, and comparisons, as far as they were sampled."""
    promoted: tuple[Promoted, ...] = ()
    """Loops in its trace whose bodies were traced twice."""


@struct
class Called(Line):
    """A program that was compiled ahead of time was called for the first time."""

    build: int


@struct
class Visits(Line):
    """Calls that left the fast path and built nothing, since the last such line."""

    function: int
    stack: int
    thread: int
    count: int
    seconds: float


@struct
class Running(Line):
    """A build that is still going on: written while it does, so that one that hangs is seen."""

    function: int
    stage: str
    stack: int
    thread: int
    begin_ns: int
    at_ns: int
    stage_ns: int = 0


@struct
class Cleared(Line):
    """A cache of JAX's was emptied."""

    what: str
    """`jax.clear_caches`, `clear_cache` of a function, `backends`."""
    function: int
    stack: int
    at_ns: int


@struct
class Samples(Line):
    """Where threads were outside builds, each `interval_ns`: a sampled picture of the rest."""

    interval_ns: int
    at_ns: int
    counts: tuple[tuple[int, int, str, int], ...]
    """(thread, stack, `jax` | `library` | `program`: whose code was innermost, samples)."""


@struct
class Ended(Line):
    """Recording ended in good order; a file without it was cut off."""

    at_ns: int
    why: Literal["exit", "context", "exec"]
    own_ns: int = 0
    lost: int = 0
    failures: tuple[str, ...] = ()
    """What went wrong in the profile itself; the program did not notice."""


ReferredTo = Function | Stack | Arguments | Settings
AnyLine = (
    Started
    | Import
    | Backend
    | ReferredTo
    | Build
    | Called
    | Request
    | Visits
    | Running
    | Cleared
    | Samples
    | Ended
)


RUN = "run.json"
"""In the profile's folder, beside the logs: what was run, and how it ended."""


@struct
class Run:
    """The command that a profile was taken of, as its parent saw it."""

    command: tuple[str, ...]
    begin_ns: int
    """By `time.perf_counter_ns` of the parent: on Linux the same clock as the logs'."""
    end_ns: int = 0
    """0 while it runs, and where the parent was killed as well."""
    exit_code: int | None = None
    """The program's own; negative for a signal."""
    pid: int = 0
    schema: int = 0
    """From 2 on there is a checksum."""

"""How a client reaches workers: what every kind of pool can do."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from harness.fleet.messages import Assignment, RecordLine, Result
from harness.fleet.place import Place, Question


class Lost(NamedTuple):
    """An assignment will not come back."""

    assignment: str
    why: str


class Gone(NamedTuple):
    """The pool itself cannot be reached any more."""

    why: str

    def text(self, pool: str) -> str:
        """Tell a user, and what to do."""
        return (
            f"{pool} is gone: {self.why}. What arrived is stored, and workers keep what did not. "
            "Start it again and run the same command: it resumes."
        )


class Changed(NamedTuple):
    """Workers have come or gone, or have been started anew, since the pool was asked for them."""


Event = RecordLine | Result | Lost | Gone | Changed


class Answers(NamedTuple):
    """What the workers of a pool say of themselves."""

    places: list[Place]
    silent: dict[str, str]
    """Worker to the reason why it could not answer."""
    offsets_ns: dict[str, int]
    """Worker to how much its clock is ahead of this machine's."""


class Pool(Protocol):
    """Workers that carry assignments out."""

    name: str
    """What it is called in messages, such as the scheduler's address."""
    by_resources: bool
    """Whether workers say by resources what they are there for; else they take what they can."""

    def workers(self) -> dict[str, str]:
        """Return the addresses of the workers that are there now, and which each of them is.

        Another worker may come under the address of one that is gone. A pool that cannot say who
        is there returns nothing.

        Raises:
            FleetError: the pool is gone.
        """

    def survey(self, question: Question, workers: Sequence[str]) -> Answers:
        """Ask workers what they are; all of them where the pool cannot say who is there.

        Raises:
            FleetError: the pool is gone.
        """

    def send(self, assignment: Assignment, place: Place) -> None:
        """Send an assignment to a worker."""

    def next_events(self, timeout_s: float) -> Sequence[Event]:
        """Wait until something happens, and return it."""

    def fetch(self, owner: str, workers: Collection[str]) -> dict[str, dict[str, bytes]]:
        """Return what workers keep for an owner: worker to assignment to lines."""

    def forget(self, owner: str, stored: dict[str, dict[str, int]]) -> None:
        """Let workers remove what has been stored: worker to assignment to bytes."""

    def stop(self, sweep: str) -> None:
        """End what is being measured for a sweep."""

    def close(self) -> None:
        """Let go of the workers; they go on living."""

"""What a server asks of a gate. The gates themselves belong to the strategies."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Push(NamedTuple):
    """One gradient's name and weight. The gradient itself stays where it was received."""

    worker: int
    sequence: int
    version: int
    weight: float
    lr: float


class Decision(NamedTuple):
    """Apply these as one update (none: no update), then answer these workers."""

    apply: tuple[Push, ...] = ()
    answer: tuple[int, ...] = ()


WAIT = Decision()


class Gate(Protocol):
    """`places` is how many copies of the parameters it needs, `place` which one a worker reads."""

    @property
    def places(self) -> int: ...

    def place(self, worker: int) -> int: ...

    def push(self, push: Push) -> Decision: ...

    def leave(self, worker: int) -> Decision: ...

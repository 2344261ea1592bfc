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
    """Apply these as one update (none: no update), answer these workers, drop these pushes."""

    apply: tuple[Push, ...] = ()
    answer: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


WAIT = Decision()


class Gate(Protocol):
    """Decides for one block.

    `holds`: gradients are kept until others have come; otherwise each is used at once.
    `steady`: nothing is applied before every answer of the last update was taken.
    """

    @property
    def holds(self) -> bool: ...

    @property
    def steady(self) -> bool: ...

    def push(self, push: Push) -> Decision: ...

    def leave(self, worker: int) -> Decision: ...

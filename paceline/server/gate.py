"""What a server asks of a gate. The gates themselves belong to the strategies."""

from __future__ import annotations

from typing import NamedTuple, Protocol

Shares = dict[int, tuple[int, int]]  # of a round's batch: begin and end, a worker


class Push(NamedTuple):
    """One gradient's name and weight, and what it took to compute.

    The gradient itself stays where it was received.
    """

    worker: int
    sequence: int
    version: int
    weight: float
    lr: float
    round: int = 0  # the worker's own count, alike at all servers
    seconds: float = 0.0
    stop: bool = False  # its worker was asked to end
    keep: bool = False  # and for a checkpoint
    last: bool = False  # the worker goes after this one


class Decision(NamedTuple):
    """Apply these as one update (none: no update), answer these workers, drop these pushes.

    `keep`: all were asked for a checkpoint, and it is what this update makes.
    """

    apply: tuple[Push, ...] = ()
    answer: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()
    keep: bool = False


WAIT = Decision()


class Gate(Protocol):
    """Decides for one block.

    `holds`: gradients are kept until others have come; otherwise each is used at once.
    `steady`: nothing is applied before every answer of the last update was taken.
    `ahead`: how many versions a gradient may be ahead of this block, since others were quicker.
    """

    @property
    def holds(self) -> bool: ...

    @property
    def steady(self) -> bool: ...

    @property
    def ahead(self) -> float: ...

    def push(self, push: Push) -> Decision: ...

    def leave(self, worker: int) -> Decision:
        """Nobody waits for this worker any more. What it has pushed counts."""
        ...

    def resume(self, version: int, pushes: dict[int, int], shares: Shares) -> None:
        """Go on for a former gate, after so many updates and so many pushes of each worker, whose
        shares of the round that is open are known to some of them already."""

    def join(self, worker: int) -> None:
        """This worker counts again, from the round that is open now."""

    def missing(self) -> tuple[int, ...]:
        """Workers that others wait for here."""
        ...

    def share(self, worker: int) -> tuple[int, int]:
        """The worker's part of the batch of the round that is open now, where there are rounds."""
        ...

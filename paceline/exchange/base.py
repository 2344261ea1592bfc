"""What a strategy is to a worker: start, step, finish, close."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from paceline.server.rules import Hyper
from paceline.server.shards import BLOCK, Cut
from paceline.transport.slate import Slate, worker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from paceline.exchange.replica import Replica
    from paceline.kernels.load import Kernels
    from paceline.transport.memory import Stretch
    from paceline.types import Parked, Plan, Traffic


class Gradient(NamedTuple):
    """What a step brings to the exchange besides the gradients in the replica.

    `weight` counts the samples behind them, `whole` those of the round over all workers, `lr` is
    the rate the recipe gives now, `stopping` says that this worker was asked to end, `keeping`
    that it was asked for a checkpoint, and `leaving` to meet the others in a new group. With
    `parting` it goes after this step, while the others go on. `began` is when there was a batch to
    compute them from.
    """

    weight: int
    whole: int
    lr: float
    stopping: bool
    keeping: bool = False
    leaving: bool = False
    parting: bool = False
    began: float = 0.0

    def spent(self, until: float | None = None) -> float:
        """Seconds of computing until then, or now, where it is known when that began."""
        if not self.began:
            return 0.0
        return (time.monotonic() if until is None else until) - self.began


class Copied(Protocol):
    """Makes copies on the host; by their names it may use the memory of former ones again."""

    def __call__(self, name: str, tensor: Tensor, /) -> Tensor: ...


class Among(NamedTuple):
    """Which of several workers this is: the first does for all what one is enough for."""

    number: int
    of: int

    @property
    def first(self) -> bool:
        return self.number == 0

    def mine(self, shards: int) -> range:
        """Of so many shards, those that this one does it for."""
        return range(self.number, shards, self.of)


class Outcome(NamedTuple):
    """What a step of the exchange did: where the time went, what is held now, whether to go on.

    `push` is giving the gradient, `encode` making it smaller before, `pull` taking parameters (or
    the sum of gradients, with all that a group does for it), `wait` is when nothing is on its way.
    It looked at the clock when it began and when it ended: nobody has to do so again.
    """

    began: float = 0.0
    ended: float = 0.0
    encode: float = 0.0
    push: float = 0.0
    pull: float = 0.0
    wait: float = 0.0
    update: float = 0.0
    version: int = 0
    staleness: int = 0
    # Of the seconds above, those in which the step was not yet here: rows that forward had to pull,
    # and what was encoded and pushed while backward went on.
    fetched: float = 0.0
    early: float = 0.0
    dropped: bool = False  # the gradient came too late and was not used
    skipped: int = 0  # rounds that were closed without this worker since its last
    share: tuple[int, int] | None = None  # of a whole batch, from now on; None: as before
    stop: bool = False
    keep: bool = False  # all were asked for a checkpoint: this is the moment for it
    again: bool = False  # somebody left in the middle of the round: it has to be taken again


class Closed(NamedTuple):
    """A round that is closed: whose gradients were in it, with the samples behind each, and the
    rate; `there` says of a worker whether it is still there."""

    round: int
    pushes: Sequence[tuple[int, float]]
    rate: float
    there: Callable[[int], bool]


class Exchange:
    """One worker's end of a strategy. Bytes are counted in `sent` and `received`, and by peer in
    `traffic`.

    `summed` says that gradients are added up as they are, so that each worker has to weigh its
    loss by its share of the round; otherwise whoever applies them weighs them.
    """

    summed = False
    sent = 0
    received = 0
    taken = 0  # steps of this worker whose gradients were used, those of former lives too
    round = 0  # the next, where there are rounds
    share: tuple[int, int] | None = None  # of its batch, where that is not this worker's to know
    generation = 0  # of the group, where workers form one
    closed: Closed | None = None  # the last round, where workers of one host close it
    over = False  # the last step is taken, or nobody trains any more: this life came too late

    def start(self, replica: Replica) -> None:
        """Meet the others; on return the replica holds the shared parameters.

        In a later life of a worker `taken`, `round` and `share` then say where to go on, or `over`
        that there is nothing left to do.
        """
        raise NotImplementedError

    def expect(self, gradient: Gradient) -> None:
        """The next backward makes this gradient: parts of it may leave as they are made.

        Nobody has to call this; `step` gives whatever has not left by then.
        """

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        """Give the replica's gradients, and return with the parameters of the next step.

        `meanwhile` is worth doing while there is nothing but waiting to do; it says how many
        seconds it took.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """No more steps from this worker: the others must not wait for it."""

    def leave(self) -> None:
        """As `finish`, of a worker that goes while the others go on: nothing follows."""
        self.finish()

    def close(self) -> None:
        """Take the final shared parameters and part. Called when all workers have finished."""

    @property
    def updates(self) -> int:
        """How many there were of the parameters that this worker has."""
        return self.round

    def complete(self) -> None:
        """Have all parameters here, to be saved: of tables there may be only what was used."""

    def regroup(self) -> None:
        """After the last step: form another group with those who need the parameters."""

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """All that a checkpoint needs of this worker's end, `copied` between two steps.

        `among` is its place among those who keep: what is everybody's one of them keeps for all.
        """
        raise NotImplementedError

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Once started, be as when this was kept, by whoever had this place in the crew.

        `round` and `taken` are those of then; whoever knows better, by what servers have of this
        worker's pushes, sets them.
        """
        raise NotImplementedError

    def coding(self) -> dict[str, float] | None:
        """Where gradients are made smaller before they are sent: `ratio` and relative `error`."""
        return None

    def hosted(self) -> list[Hosted]:
        """What the servers did that live inside this worker."""
        return []

    def traffic(self) -> tuple[Traffic, ...]:
        """What went to and came from each peer. Asked a few times a second."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A server without a process of its own, and what it did."""

    server: int
    holds: int  # bytes of parameters
    applied: int
    sent: int
    received: int
    update: float = 0.0


class Groups(Protocol):
    """The supervisor's word on who forms a process group, and what they say to one another."""

    def park(self, parked: Parked) -> Plan:
        """Wait to be told of the next one."""
        ...

    def broken(self, generation: int) -> bool:
        """Whether a member of it is gone."""
        ...

    def put(self, generation: int, key: str, value: bytes) -> None:
        """Say something to all its members."""
        ...

    def got(self, generation: int, key: str) -> bytes | None:
        """What was said, if it is here."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where one worker stands: everything a strategy needs to know to start."""

    index: int
    workers: int  # places that were taken at the start, or kept free
    rule: str
    hyper: Hyper
    room: int = 0  # how many workers there may ever be: at least as many as at the start
    crew: tuple[int, ...] = ()  # who was there at the start: all, unless a run was taken up
    life: int = 0  # not 0 if others were at it before: it was started again, or has come later
    secret: bytes = b""
    returns: bool = False  # servers that are gone may come back
    lease: float = 0.0  # seconds after which a silent role counts as gone
    limits: Mapping[int, float] = field(default_factory=dict)  # bytes a second to a server, if any
    certificate: str = ""  # the run's own, where servers are reached through TLS
    shards: tuple[tuple[int, int], ...] = ()  # (start, stop) of each server's range
    block: int = BLOCK  # floats a frame
    held: Callable[[], Cut] | None = None  # by server, its blocks, where they may be cut anew
    addresses: tuple[str, ...] = ()  # where each server is reached; none where it is inside workers
    where: Callable[[], Sequence[str]] | None = None  # asks again, once one of them is gone
    # Tells the version that each has answered, once one of them is gone; nothing: all are back.
    answered: Callable[[Sequence[int]], None] | None = None
    board: int | None = None  # shared memory of the strategies that use it, as file and tensors
    params: Tensor | None = None  # [places, size]
    grads: Tensor | None = None  # [workers, size]
    state: Tensor | None = None  # [states, size] of the update rule
    journal: Tensor | None = None  # what is about to be changed
    tables: tuple[Stretch, ...] = ()  # shared memory of each sparse table, where it is shared
    table_journals: tuple[Tensor, ...] = ()
    table_pushes: tuple[Tensor, ...] = ()  # [workers, room for all rows of the table]
    table_board: int | None = None
    cores: tuple[int, ...] = ()  # those the run may use
    codec: str = "none"
    bound: int = 0  # rounds a worker may be ahead of the slowest; 0: as many as it likes
    backup: int = 0  # workers a round goes without
    whole: int = 0  # samples of a round over all workers
    balance: bool = False  # they are shared out by speed, else evenly
    damp_stale: bool = False  # a gradient's rate is divided by its staleness
    spin: float = 0.0  # seconds to spin before sleeping: none where workers share cores
    apply: Callable[[], None] | None = None  # a user's own optimizer, where no server applies
    kernels: Kernels | None = None  # compiled loops, where they are worth it
    groups: Groups | None = None  # where workers meet for all-reduce
    regroups: bool = False  # whether there may be another group after the first
    slate: Slate = field(default_factory=Slate)  # what this worker is at, for whoever watches it

    def __post_init__(self) -> None:
        object.__setattr__(self, "room", max(self.room, self.workers))
        object.__setattr__(self, "crew", self.crew or tuple(range(self.workers)))

    @property
    def first(self) -> bool:
        """Whether this worker does for those of the start what one is enough for."""
        return self.index == self.crew[0]

    @property
    def beginner(self) -> int:
        """That one, as a slate names it."""
        return worker(self.crew[0])

    def host(self, shard: int) -> int:
        """The worker of the start that a shard is counted with."""
        return self.crew[shard % len(self.crew)]

    @property
    def hosts(self) -> list[int]:
        """The shards that are counted with this worker."""
        return [shard for shard in range(len(self.shards)) if self.host(shard) == self.index]

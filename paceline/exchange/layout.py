"""How much shared memory a strategy needs, and what is where on its board.

No torch here: the supervisor reads this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from paceline.exchange.muster import Muster
from paceline.exchange.quorum import Quorum
from paceline.exchange.seats import Seats
from paceline.server.catalog import CHUNK, LAYERWISE, STATES
from paceline.transport import memory

if TYPE_CHECKING:
    from paceline.spec import RunSpec


SMALL = 1 << 17  # parameters up to which to apply a round takes less than to wait for another
SHARD_WORDS = 4  # of the log of pushes, a shard

# Every board begins with these.
READY = 0  # 1 once there are first parameters, and one more for each part of a checkpoint put back
ROLL = 1  # and the words after it: who takes part, where workers go in rounds


class Layout(NamedTuple):
    """Copies of the flat parameters (each `size` floats), words on the board, and a journal."""

    params: int
    grads: int
    state: int
    board: int
    journal: int = 0  # floats

    @property
    def copies(self) -> int:
        return self.params + self.grads + self.state


class SyncWords(NamedTuple):
    """What is on the board of `ps-sync`, after the roll: round applied, chunk begun and round
    measured, a shard; two squared norms a shard and layer. The last two for layer-wise rules."""

    applied: range
    begun: range
    measured: range
    norms: range

    @classmethod
    def of(cls, room: int, shards: int, layers: int) -> SyncWords:
        """`layers` is 0 unless the rule is layer-wise."""
        first = ROLL + Muster.words(room)
        applied, begun, measured = (
            range(first + n * shards, first + (n + 1) * shards) for n in range(3)
        )
        norms = range(measured.stop, measured.stop + shards * 2 * layers)
        return cls(applied, begun, measured, norms)

    @property
    def total(self) -> int:
        """How many words there are on that board."""
        return self.norms.stop


def pushlog_words(shards: int, room: int) -> int:
    """Of the board: some a shard, two a worker and shard."""
    return shards * (SHARD_WORDS + 2 * room)


def final_word(room: int) -> int:
    """The last on the board of a small model: of which round the final parameters are."""
    return ROLL + Muster.words(room)


def roll(spec: RunSpec) -> type[Muster | Quorum] | None:
    """Where workers go in rounds over shared memory: what says who takes part in them."""
    if spec.transport != "shm" or spec.kind.samples != "slices":
        return None
    return Quorum if spec.backup else Muster


def outer_rule(spec: RunSpec) -> str:
    """What is done in a round with the mean of all: in `local-sgd` they train by another rule."""
    if spec.strategy == "local-sgd":
        return "nesterov" if spec.outer_momentum else "sgd"
    return spec.optimizer or "sgd"


def small(spec: RunSpec, size: int) -> bool:
    """Whether every worker applies all of every round to parameters of its own."""
    return spec.strategy == "ps-sync" and not spec.backup and size <= SMALL


def in_a_group(spec: RunSpec) -> bool:
    """Whether the workers form a process group of torch's."""
    if spec.strategy == "local-sgd":
        return spec.transport == "tcp" or (spec.transport == "auto" and not memory.available())
    return spec.strategy == "allreduce"


def layout(spec: RunSpec, size: int, shards: int, layers: int, room: int = 0) -> Layout:
    """For `room` workers, or as many as the run begins with. What nobody touches costs nothing.

    Only the board depends on `layers`, how many the model has, and only for layer-wise rules.
    """
    rule = outer_rule(spec)
    room, state = max(room, spec.workers), STATES[rule]
    if spec.strategy == "hogwild":
        # Everything is everybody's.
        return Layout(params=1, grads=0, state=state, board=1 + Seats.words(room))
    if spec.kind.samples == "leases":
        # A place each; the state has one for even and one for odd versions.
        return Layout(
            params=room,
            grads=0,
            state=2 * state,
            board=1 + Seats.words(room) + pushlog_words(shards, room),
            journal=shards * 2 * min(CHUNK, size),
        )
    if spec.backup:
        # A place for even rounds and one for odd ones; whoever closes a round has the state.
        board = ROLL + Quorum.words(spec.workers)
        return Layout(params=2, grads=spec.workers, state=2 * state, board=board)
    if small(spec, size):
        # A place to begin from and to end in, and one for whoever comes back, with the state; rows
        # for even and odd rounds.
        board = final_word(room) + 1
        return Layout(params=2, grads=2 * room, state=state, board=board)
    # One place for all, since nobody reads while it is written.
    words = SyncWords.of(room, shards, layers if rule in LAYERWISE else 0)
    journal = shards * 2 * (1 + state) * min(CHUNK, size)
    return Layout(params=1, grads=room, state=state, board=words.total, journal=journal)

"""How much shared memory a strategy needs. No torch here: the supervisor reads this."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from paceline.server.catalog import CHUNK, LAYERWISE, STATES

if TYPE_CHECKING:
    from paceline.spec import RunSpec


SMALL = 1 << 17  # parameters up to which to apply a round takes less than to wait for another
SHARD_WORDS = 4  # of the log of pushes, a shard


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


def pushlog_words(shards: int, workers: int) -> int:
    """Of the board: some a shard, two a worker and shard."""
    return shards * (SHARD_WORDS + 2 * workers)


def balance_words(workers: int) -> int:
    """Of the board: round, samples and seconds, a worker, for even and for odd rounds."""
    return 2 * 3 * workers


def small(spec: RunSpec, size: int) -> bool:
    """Whether every worker applies all of every round to parameters of its own."""
    return spec.strategy == "ps-sync" and not spec.backup and size <= SMALL


def keeps(spec: RunSpec, size: int) -> bool:
    """Whether what the workers have can be kept in checkpoints; of a spec that is resolved."""
    over_shm = spec.transport == "shm" and small(spec, size)
    return spec.kind.alone or spec.strategy == "allreduce" or over_shm


def layout(spec: RunSpec, size: int, shards: int, layers: int) -> Layout:
    """Only the board depends on `layers`, how many the model has, and only for layer-wise rules."""
    rule = spec.optimizer or "sgd"
    workers, state = spec.workers, STATES[rule]
    if spec.strategy == "hogwild":
        # Everything is everybody's.
        return Layout(params=1, grads=0, state=state, board=1 + workers)
    if spec.kind.samples == "leases":
        # A place each; the state has one for even and one for odd versions.
        return Layout(
            params=workers,
            grads=0,
            state=2 * state,
            board=1 + workers + pushlog_words(shards, workers),
            journal=shards * 2 * min(CHUNK, size),
        )
    if spec.backup:
        # A place for even rounds and one for odd ones; whoever closes a round has the state.
        return Layout(params=2, grads=workers, state=state, board=2 + 3 * workers)
    paces = balance_words(workers) if spec.balance else 0
    if small(spec, size):
        # A place to begin from and to end in; rows for even and odd rounds.
        return Layout(params=1, grads=2 * workers, state=0, board=2 + 4 * workers + paces)
    # One place for all, since nobody reads while it is written; each owner has its own state.
    norms = shards * (1 + 2 * layers) if rule in LAYERWISE else 0
    board = 1 + 3 * workers + paces + shards + norms
    return Layout(params=1, grads=workers, state=0, board=board)

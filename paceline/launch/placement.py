"""Threads and cores for each role, so that roles do not fight over cores."""

from __future__ import annotations

from dataclasses import dataclass

LEAST_ROOM = 16  # workers


@dataclass(frozen=True, slots=True)
class Place:
    """`cores` is None where the operating system may choose."""

    threads: int
    cores: tuple[int, ...] | None
    nice: int = 0


def place_worker(
    index: int, workers: int, threads: int | None, cores: list[int], granted: int
) -> Place:
    """A worker gets as threads an equal share of the cores that are granted, if not all are.

    It is bound to cores of its own only where the workers fill the machine exactly: with fewer,
    a second run beside this one would be bound to the same; with more, two would share a core
    for the whole run while the scheduler could take turns.
    """
    count = threads or max(1, granted // workers)
    if count * workers == len(cores) and workers > 1 and index < workers:
        return Place(count, tuple(cores[index * count : (index + 1) * count]))
    return Place(count, None)


def place_server() -> Place:
    """A server floats: it runs where a worker has just gone to sleep waiting for it."""
    return Place(1, None)


def place_evaluator() -> Place:
    """The evaluator takes what the workers leave over."""
    return Place(1, None, nice=10)


def room_for(workers: int, cores: int) -> int:
    """For how many workers memory is laid out, so that more may come: what is unused costs none."""
    return max(workers, 4 * cores, LEAST_ROOM)

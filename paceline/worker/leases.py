"""A worker's side of leasing: ask for the next range before the present one is used up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.data.sampler import Lease
from paceline.transport.control import Control

LEASE_SECONDS = 300.0


def leases(control: Control, done: Callable[[], int]) -> Iterator[Lease]:
    """Ranges from the supervisor, one asked for ahead, until it has no more; the first at once.

    `done` says how many batches this worker has finished.
    """
    control.send("lease", done=done())
    return _answers(control, done)


def _answers(control: Control, done: Callable[[], int]) -> Iterator[Lease]:
    while True:
        answer = control.wait("lease", seconds=LEASE_SECONDS)
        if answer["epoch"] is None:
            return
        control.send("lease", done=done())
        yield Lease(answer["epoch"], answer["start"], answer["stop"])

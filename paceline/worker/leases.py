"""A worker's side of leasing: ask for the next range before the present one is used up."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.data.sampler import Lease
from paceline.transport.control import Control

LEASE_SECONDS = 300.0


def leases(control: Control) -> Iterator[Lease]:
    """Ranges from the supervisor, one asked for ahead, until it has no more."""
    control.send("lease")
    while True:
        answer = control.wait("lease", seconds=LEASE_SECONDS)
        if answer["epoch"] is None:
            return
        control.send("lease")
        yield Lease(answer["epoch"], answer["start"], answer["stop"])

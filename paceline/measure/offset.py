"""How far one clock is from another, from messages that went there and back.

A role says when it asked (sent) and the supervisor when it heard that; the answer came back when
the role's clock was at (back). Somewhere in between the supervisor heard, and nobody knows where:

    offset = heard − (sent + back) / 2,   off by at most (back − sent) / 2

So of several exchanges the quickest tells most. Clocks drift, so offsets are found anew now and
then, and between two of them a time is moved by what lies between. They drift slowly, though: what
was found at one time tells something of all others,

    | offset at t − offset found at u | ≤ error at u + DRIFT · | t − u |

and each is taken from the middle of what all of them allow. Otherwise a slow exchange would bend
time around it by as much as it is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

BOOT = Path("/proc/sys/kernel/random/boot_id")
NAMESPACE = Path("/proc/self/ns/time")
DRIFT = 5e-4  # seconds a second, the most by which clocks are steered


Times = TypeVar("Times", float, npt.NDArray[np.float64])


class Offset(NamedTuple):
    """When a role's clock was `at`, the supervisor's had `seconds` more, give or take `error`."""

    at: float
    seconds: float
    error: float


def offset(sent: float, heard: float, back: float) -> Offset:
    """From one exchange."""
    middle = (sent + back) / 2
    return Offset(middle, heard - middle, (back - sent) / 2)


def best(offsets: Iterable[Offset]) -> Offset:
    """Of several that were found one right after the other."""
    return min(offsets, key=lambda found: found.error)


def aligned(times: Times, offsets: Sequence[Sequence[float]]) -> Times:
    """Times of a role's clock as the supervisor's has them; without offsets it is the same."""
    if not offsets:
        return times
    at, seconds, error = np.array(offsets, dtype=np.float64).T
    reach = error + DRIFT * np.abs(at[:, None] - at)
    low, high = (seconds - reach).max(axis=1), (seconds + reach).min(axis=1)
    agreed = np.where(low <= high, (low + high) / 2, seconds)  # else it was set
    moved: Times = times + np.interp(times, at, agreed)
    return moved


def clock_id() -> str | None:
    """The same for all processes that have the same monotonic clock; None where it cannot be told.

    Linux counts that clock from boot, and a time namespace has one of its own. Other namespaces
    and containers change nothing about it.
    """
    try:
        boot = BOOT.read_text().strip()
    except OSError:
        return None
    try:
        return f"{boot} {NAMESPACE.readlink()}"
    except OSError:  # a kernel without such namespaces
        return boot

"""Whether devices that should be equal are.

One that is slower holds back all others of a round, so what it loses the whole run loses.
"""

from __future__ import annotations

from collections.abc import Mapping

APART = 0.05  # of the fastest: what repeats of one measurement hardly differ by


def slower(rates: Mapping[str, float], apart: float = APART) -> dict[str, float]:
    """Devices that lag behind the fastest by more than `apart`, and by which share of its rate."""
    best = max(rates.values(), default=0.0)
    behind = {device: 1 - rate / best for device, rate in rates.items() if best > 0}
    return {device: share for device, share in behind.items() if share > apart}

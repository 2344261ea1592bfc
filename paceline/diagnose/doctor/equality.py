"""Are devices that should be equal in fact equal?

Every round measures each device once. The ratio of two devices is taken within a round, since the
machine's moods fall on all of a round alike; its interval is over rounds. Two devices are apart if
even the low end of that interval is beyond 5 %, equal if even the high end is not, and otherwise
it cannot be told: noise is never called a difference, nor its absence equality.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from paceline.diagnose.doctor.facts import Equality, Speed
from paceline.measure.spread import Spread, paired, spread

APART = 1.05


def compare(
    kind: str,
    unit: str,
    names: Sequence[str],
    rounds: Sequence[Sequence[float]],
    *,
    taken: Sequence[float | None] = (),
    clocks: Sequence[float | None] = (),
) -> Equality:
    """Judge devices by `rounds`: in each, one speed a device."""
    columns = list(zip(*rounds, strict=True))
    fastest = max(columns, key=statistics.median)
    devices = tuple(
        Speed(
            name=name,
            speed=spread(column),
            against=paired(fastest, column),
            taken=taken[i] if taken else None,
            clock=clocks[i] if clocks else None,
        )
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    )
    return Equality(
        kind=kind,
        unit=unit,
        verdict=_verdict([device.against for device in devices]),
        devices=devices,
    )


def slow(found: Equality) -> list[Speed]:
    """Those beyond doubt slower than the fastest, the slowest first."""
    devices = [d for d in found.devices if _beyond(d.against)]
    return sorted(devices, key=lambda device: -device.against.value)


def _beyond(gap: Spread) -> bool:
    return gap.low is not None and gap.low > APART


def _verdict(gaps: Sequence[Spread]) -> str:
    if any(map(_beyond, gaps)):
        return "apart"
    # The fastest against itself is 1 in every round, also where rounds are too few to tell.
    if all((gap.high is not None and gap.high <= APART) or gap.value == 1.0 for gap in gaps):
        return "equal"
    return "unsure"

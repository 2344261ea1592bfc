"""What machines cost.

    price = Σ over machines of count · price an hour · hours

Hours are those for which a machine is rented, whether it is used or not: all that start together
are paid until the last has finished. The money is whatever the prices are in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paceline.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Rented:
    """Some machines of one kind, for the same hours."""

    machine: str
    count: int
    price_an_hour: float
    hours: float


def price(rented: Iterable[Rented]) -> float:
    return sum(some.count * some.price_an_hour * some.hours for some in rented)


def rent(
    machines: Mapping[str, int], prices: Mapping[str, float], hours: float
) -> tuple[Rented, ...]:
    """Machines by kind, all for the same hours, at prices an hour."""
    for machine in machines:
        if machine not in prices:
            raise UnknownName("machine", machine, prices)
    return tuple(
        Rented(machine=machine, count=count, price_an_hour=prices[machine], hours=hours)
        for machine, count in machines.items()
    )

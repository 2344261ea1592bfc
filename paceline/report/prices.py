"""The price book: machines that can be rented, from the package and from a file of the user's."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from paceline.errors import RequestError, UnknownName, unknown

BOOK = "prices.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One kind of machine. What is not known is None."""

    kind: str
    price_an_hour: float
    devices: int | None = None
    device: str | None = None
    network_gbit: float | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """Machines by kind; all prices are in one currency."""

    currency: str
    machines: Mapping[str, Machine]

    def machine(self, kind: str) -> Machine:
        if kind not in self.machines:
            raise UnknownName("machine", kind, self.machines)
        return self.machines[kind]


FIELDS: dict[str, tuple[type, ...]] = {
    "price_an_hour": (int, float),
    "devices": (int,),
    "device": (str,),
    "network_gbit": (int, float),
    "source": (str,),
}


def price_book(own: Path | None = None) -> PriceBook:
    """What comes with the package, and the user's own file on top of it."""
    shipped = resources.files("paceline.report").joinpath(BOOK).read_text("utf-8")
    book = _read(shipped, BOOK)
    if own is None:
        return book
    try:
        text = own.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        why = (wrong.strerror or "") if isinstance(wrong, OSError) else "it is not UTF-8 text"
        raise RequestError(f"cannot read price book '{own}': {why.lower()}.") from None
    mine = _read(text, str(own), usual=book.currency)
    if mine.currency != book.currency:  # prices of two currencies cannot stand in one book
        return mine
    return replace(book, machines={**book.machines, **mine.machines})


def _read(text: str, where: str, usual: str | None = None) -> PriceBook:
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise RequestError(f"price book '{where}' is not valid TOML: {wrong}.") from None
    known = ("currency", "machine")
    faults = [unknown("key of a price book", key, known) for key in told if key not in known]
    currency, machines = told.get("currency", usual), told.get("machine", {})
    if not isinstance(currency, str):
        faults.append('say the currency, such as currency = "USD".')
    if not isinstance(machines, dict):
        faults.append('machines are tables, such as [machine."p2.xlarge"].')
        machines = {}
    for kind, fields in machines.items():
        faults += [f"{kind}: {fault}" for fault in _faults(fields)]
    if faults:
        raise RequestError("\n".join(f"price book '{where}': {fault}" for fault in faults))
    found = {kind: Machine(kind=kind, **fields) for kind, fields in machines.items()}
    return PriceBook(currency=str(currency), machines=found)


def _faults(fields: Any) -> list[str]:
    if not isinstance(fields, dict):
        return ["must be a table with price_an_hour."]
    faults = [unknown("field of a machine", name, FIELDS) for name in fields if name not in FIELDS]
    faults += [
        f"{name} = {value!r}: must be {'a string' if str in FIELDS[name] else 'a number'}."
        for name, value in fields.items()
        if name in FIELDS and type(value) not in FIELDS[name]
    ]
    price = fields.get("price_an_hour")
    if price is None:
        faults.append("has no price_an_hour.")
    elif type(price) in (int, float) and not (math.isfinite(price) and price >= 0):
        faults.append(f"price_an_hour = {price!r}: must be a number that is not below 0.")
    return faults

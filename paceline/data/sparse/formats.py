"""From what was asked for to a conversion: formats, columns, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.data.shape import MOST_FEATURES
from paceline.data.sparse.catalog import FORMATS
from paceline.errors import DataError, SpecError, unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How text is to be read. Names of columns are of `csv`, names of fields of `json`."""

    format: str
    features: int
    label: str | None = None
    categories: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    crosses: tuple[tuple[str, str], ...] = ()
    hashed: bool = False
    text: str | None = None
    above: float | None = None
    part: str | None = None
    pairs: bool = True
    test_share: float = 0.0
    malformed: float = 0.01

    def faults(self) -> list[str]:
        """Every one, in words."""
        found = []
        if self.format not in FORMATS:
            return [unknown("format", self.format, FORMATS)]
        if not 1 <= self.features <= MOST_FEATURES:
            found.append(f"--features {self.features}: must be from 1 to {MOST_FEATURES:,}.")
        for name, share in (("test-share", self.test_share), ("malformed", self.malformed)):
            if not 0 <= share < 1:
                found.append(f"--{name} {share:g}: must be at least 0 and less than 1.")
        for flag, value, formats in (
            ("label", self.label, ("csv", "json")),
            ("categories", self.categories, ("csv",)),
            ("counts", self.counts, ("csv",)),
            ("numbers", self.numbers, ("csv",)),
            ("cross", self.crosses, ("csv", "criteo")),
            ("hashed", self.hashed, ("libsvm",)),
            ("text", self.text, ("json",)),
            ("above", self.above is not None, ("libsvm", "csv", "json")),
            ("part", self.part, ("json",)),
        ):
            if value and self.format not in formats:
                found.append(f"--{flag}: format '{self.format}' has none.")
        if self.part and self.test_share:
            found.append("--part and --test-share: give one of them, not both.")
        columns = [self.label, *self.categories, *self.counts, *self.numbers]
        for name in sorted({name for name in columns if name and columns.count(name) > 1}):
            found.append(f"column '{name}': name it once, as the label or as one kind of column.")
        needed = {"csv": ("label",), "json": ("label", "text")}.get(self.format, ())
        found += [
            f"--{flag}: format '{self.format}' needs it."
            for flag in needed
            if not vars_of(self)[flag]
        ]
        return found


def vars_of(asked: Asked) -> dict[str, Any]:
    return asdict(asked)


def request_for(asked: Asked, train: Sequence[Path], test: Sequence[Path] = ()) -> Any:
    """What `convert` takes; SpecError with every fault."""
    faults = asked.faults()
    if test and asked.test_share:
        faults.append("--test and --test-share: give one of them, not both.")
    if faults:
        raise SpecError(faults)
    for path in (*train, *test):
        if not path.is_file():
            raise DataError(f"there is no file '{path}'.")
    from paceline.data.sparse.convert import Request
    from paceline.data.sparse.delimited import CRITEO, Delimited
    from paceline.data.sparse.hashing import KIND
    from paceline.data.sparse.libsvm import Libsvm
    from paceline.data.sparse.texts import Fields, Texts

    sources = [[str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns] for p in (*train, *test)]
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in vars_of(asked).items()}
    plain["crosses"] = [list(pair) for pair in asked.crosses]
    del plain["malformed"]  # it does not decide what comes out
    common: dict[str, Any] = {
        "made": {**plain, "sources": sources, "tests": len(test), "hash": KIND},
        "features": asked.features,
        "train": train,
        "test": test,
        "test_share": asked.test_share,
        "malformed": asked.malformed,
    }
    match asked.format:
        case "libsvm":
            parse = Libsvm(asked.features, hashed=asked.hashed, above=asked.above)
            return Request(parse=parse, width=None, valued=True, **common)
        case "json":
            fields = Fields(asked.text or "", asked.label or "", asked.above, asked.part)
            texts = Texts(fields, asked.features, pairs=asked.pairs)
            return Request(parse=texts, width=None, valued=True, **common)
        case "criteo":
            columns = CRITEO._replace(crosses=_known(asked.crosses, CRITEO.fields, train[0]))
            delimited = Delimited(columns, "\t", asked.features, quotes=False)
            return Request(parse=delimited, width=columns.width, valued=False, **common)
    columns, delimiter = _header(asked, train[0])
    for path in (*train[1:], *test):
        if _header(asked, path) != (columns, delimiter):
            raise DataError(f"'{path}' has other columns than '{train[0]}'.")
    if not columns.width:
        raise DataError(
            f"'{train[0]}' has no column but the label: there is nothing to learn from."
        )
    delimited = Delimited(columns, delimiter, asked.features, quotes=True, above=asked.above)
    valued = columns.valued
    return Request(parse=delimited, width=columns.width, valued=valued, header=True, **common)


def _header(asked: Asked, path: Path) -> tuple[Any, str]:
    """What the columns of a CSV file are, by its first line, and what is between them."""
    import csv

    from paceline.data.sparse.delimited import Columns
    from paceline.data.sparse.sources import first_line, opened

    with opened(path) as file:
        line = first_line(path, file).decode("utf-8-sig", errors="replace").rstrip("\r\n")
    delimiter = max(",;\t|", key=line.count)
    try:
        names = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as wrong:
        raise DataError(f"the first line of '{path}' does not name columns: {wrong}.") from None
    kinds = {asked.label: "label"}
    for kind, those in (
        ("category", asked.categories),
        ("count", asked.counts),
        ("number", asked.numbers),
    ):
        kinds |= dict.fromkeys(those, kind)
    missing = [name for name in kinds if name not in names]
    if missing:
        known = ", ".join(names)
        raise DataError(f"'{path}' has no column '{missing[0]}'; it has: {known}.")
    named = asked.categories or asked.counts or asked.numbers
    other = "skip" if named else "category"
    fields = [name for name in names if kinds.get(name, other) not in ("skip", "label")]
    crosses = _known(asked.crosses, fields, path)
    return Columns(tuple(names), tuple(kinds.get(n, other) for n in names), crosses), delimiter


def _known(
    crosses: Sequence[tuple[str, str]], fields: Sequence[str], path: Path
) -> tuple[tuple[str, str], ...]:
    for name in (name for pair in crosses for name in pair):
        if name not in fields:
            raise DataError(f"--cross: '{path}' has no field '{name}'; it has {', '.join(fields)}.")
    return tuple(crosses)

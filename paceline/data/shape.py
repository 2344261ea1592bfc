"""What data that is made looks like, as it is written: `5000x1x28x28:10`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from paceline.errors import DataError

GRAMMAR = re.compile(r"([0-9]{1,12})((?:x[0-9]{1,12})+)(?::([0-9]{1,12}))?")
CLICK_ROWS, CLICK_FIELDS, CLICK_FEATURES = 1_000_000, 39, 33_762_578
FEWEST_CLICKS = 200  # features: several for each field
MOST_FEATURES = 2**31  # the number of one fits 32 bits, with a sign
MOST_CLASSES = 100_000
MOST_VALUES = 2**34  # a byte each: 16 GB
MOST_PROTOTYPES = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many training samples, the shape of one, and how many classes."""

    samples: int = 10_000
    dims: tuple[int, ...] = (784,)
    classes: int = 10

    @property
    def features(self) -> int:
        return math.prod(self.dims)


def parse_shape(arguments: str) -> Shape:
    """Read `SAMPLESxDIM[xDIM…][:CLASSES]`; nothing at all means 10000x784:10."""
    if not arguments:
        return Shape()
    match = GRAMMAR.fullmatch(arguments)
    if match is None:
        raise _wrong(arguments, "is not SAMPLESxDIM[xDIM…][:CLASSES]")
    samples, dims, classes = match.groups()
    shape = Shape(
        samples=int(samples),
        dims=tuple(int(dim) for dim in dims[1:].split("x")),
        classes=int(classes) if classes else Shape().classes,
    )
    if shape.samples < 1 or min(shape.dims) < 1:
        raise _wrong(arguments, "has a size of 0")
    if not 2 <= shape.classes <= MOST_CLASSES:
        raise _wrong(arguments, f"must have 2 to {MOST_CLASSES:,} classes")
    if shape.samples * shape.features > MOST_VALUES:
        raise _wrong(arguments, f"has more than {MOST_VALUES:,} values")
    if shape.classes * shape.features > MOST_PROTOTYPES:
        raise _wrong(arguments, f"has more than {MOST_PROTOTYPES:,} values a sample of each class")
    return shape


def parse_clicks(arguments: str) -> tuple[int, int]:
    """Read `ROWS` or `ROWSxFEATURES`: both, by default a million and those of a known click log."""
    rows, _, features = arguments.partition("x")
    try:
        found = int(rows or CLICK_ROWS), int(features or CLICK_FEATURES)
    except ValueError:
        raise DataError(
            f"data set 'clicks:{arguments}': write clicks:ROWS or clicks:ROWSxFEATURES, such as "
            "clicks:1000000x33762578."
        ) from None
    if found[0] < 1 or not FEWEST_CLICKS <= found[1] <= MOST_FEATURES:
        raise DataError(
            f"data set 'clicks:{arguments}': at least one row, and {FEWEST_CLICKS} to "
            f"{MOST_FEATURES:,} features."
        )
    return found


def _wrong(arguments: str, why: str) -> DataError:
    return DataError(f"synthetic data '{arguments}' {why}; for example synthetic:5000x20:3.")

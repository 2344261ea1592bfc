"""What a piece of text is parsed to, and what can be wrong with a line of it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

SHOWN = 5  # faults of a piece that are remembered
LONGEST = 60  # characters of a faulty line that are shown


class Fault(Enum):
    """Of one line; the number is what compiled code says."""

    FEW = 1
    MANY = 2
    NO_LABEL = 3
    NO_COUNT = 4
    NO_NUMBER = 5
    OPEN = 6
    NO_ENTRY = 7
    LARGE = 8
    NO_FIELDS = 9
    ODD_LABEL = 10

    @property
    def sentence(self) -> str:
        return SENTENCES[self]


SENTENCES = {
    Fault.FEW: "too few fields",
    Fault.MANY: "too many fields",
    Fault.NO_LABEL: "the label is not a number",
    Fault.ODD_LABEL: "the label is not -1, 0 or 1, and no --above says which are 1",
    Fault.NO_COUNT: "a count is not a whole number",
    Fault.NO_NUMBER: "a number is none",
    Fault.OPEN: "its quotes do not match",
    Fault.NO_ENTRY: "an entry is not of the form index:value",
    Fault.LARGE: "an index is not below --features",
    Fault.NO_FIELDS: "it is not JSON with the fields that were named",
}


class FaultyLine(NamedTuple):
    """The number counts from 0, within the piece."""

    line: int
    fault: Fault
    text: str


class Parsed(NamedTuple):
    """Rows of a piece of text: row i has entries offsets[i] to offsets[i + 1].

    No offsets: all rows have equally many. No values: all are one. `test` says of each whether it
    is for testing, where the text does.
    """

    labels: npt.NDArray[np.uint8]
    ids: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64] | None
    values: npt.NDArray[np.float32] | None
    lines: int
    bad: int
    faults: list[FaultyLine]
    test: npt.NDArray[np.bool_] | None = None


def worst(text: npt.NDArray[np.uint8], faults: npt.NDArray[np.int64]) -> list[FaultyLine]:
    """The first few of them, with what stands there."""
    if not len(faults):
        return []
    ends = np.flatnonzero(text == ord("\n"))
    found = []
    for line, fault in faults[:SHOWN].tolist():
        begin = int(ends[line - 1]) + 1 if line else 0
        shown = text[begin : min(int(ends[line]), begin + LONGEST)].tobytes()
        found.append(FaultyLine(line, Fault(fault), _printable(shown.decode(errors="replace"))))
    return found


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text.rstrip("\r"))

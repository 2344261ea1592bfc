"""LIBSVM / SVMlight text: `label index:value index:value … # comment`, indices as they are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from paceline.data.sparse.hashing import NONE, closed, fed, mixed, number, start
from paceline.data.sparse.scan import NEWLINE, NINE, RETURN, SPACE, ZERO, decimal, integer, label
from paceline.data.sparse.text import Fault, Parsed, worst
from paceline.kernels.jit import compiled, inlined

COLON, HASH, TAB = ord(":"), ord("#"), ord("\t")
QID = tuple(b"qid")
SHORTEST = 4  # bytes of an entry, the space before it included


class Libsvm:
    """Parses pieces of text that end with a line's end; from any thread.

    With `hashed`, an index is a name and may be of any size.
    """

    def __init__(self, features: int, *, hashed: bool = False, above: float | None = None) -> None:
        self._features = np.int64(features)
        self._start = np.uint64(start("index"))
        self._hashed = hashed
        self._above = np.nan if above is None else above
        self(np.empty(0, np.uint8))  # its loop is here from now on

    def __call__(self, text: npt.NDArray[np.uint8]) -> Parsed:
        lines = int(np.count_nonzero(text == NEWLINE))
        most = len(text) // SHORTEST + 1
        labels, offsets = np.empty(lines, np.uint8), np.zeros(lines + 1, np.int64)
        ids, values = np.empty(most, np.int32), np.empty(most, np.float32)
        faults = np.empty((lines, 2), np.int64)
        rows, bad = read(
            *(text, self._features, self._hashed, self._start, self._above),
            *(labels, offsets, ids, values, faults),
        )
        entries = int(offsets[rows])
        return Parsed(
            labels=labels[:rows],
            ids=ids[:entries],
            offsets=offsets[: rows + 1],
            values=values[:entries],
            lines=lines,
            bad=bad,
            faults=worst(text, faults[:bad]),
        )


@compiled
def read(  # type: ignore[no-untyped-def]
    text, features, hashed, first, above, labels, offsets, ids, values, faults
):
    """Fill the arrays from all lines; how many rows there were, and how many that are none."""
    row, bad, line, at = 0, 0, 0, 0
    while at < len(text):
        entry, wrong, word = offsets[row], 0, 0
        while text[at] != NEWLINE and text[at] != HASH:
            begin = at
            while not _ends(text[at]):
                at += 1
            if at > begin:
                wrong = wrong or _word(
                    *(text, begin, at, word, features, hashed, first, above),
                    *(labels, row, ids, values, entry),
                )
                entry += word > 0 and not _query(text, begin, at)
                word += 1
            while text[at] in (SPACE, TAB, RETURN):
                at += 1
        while text[at] != NEWLINE:
            at += 1
        at += 1
        if wrong:
            faults[bad, 0], faults[bad, 1] = line, wrong
            bad += 1
        elif word:
            row += 1
            offsets[row] = entry
        line += 1
    return row, bad


@inlined
def _ends(byte):  # type: ignore[no-untyped-def]
    return byte in (SPACE, TAB, RETURN, NEWLINE, HASH)


@inlined
def _query(text, begin, end):  # type: ignore[no-untyped-def]
    """Whether it is `qid:…`."""
    if end - begin < 4 or text[begin + 3] != COLON:
        return False
    return (text[begin], text[begin + 1], text[begin + 2]) == QID


@inlined
def _word(  # type: ignore[no-untyped-def]
    text, begin, end, word, features, hashed, first, above, labels, row, ids, values, entry
):
    """The label, or an entry: what is wrong with it, or 0."""
    if not word:
        wrong, labels[row] = label(text, begin, end, above)
        return wrong
    if _query(text, begin, end):  # which one a row belongs to: not asked for here
        return 0
    colon = begin
    while colon < end and text[colon] != COLON:
        colon += 1
    sound, value = decimal(text, min(colon + 1, end), end)
    good, index = begin < colon, np.int64(0)
    if hashed:
        for place in range(begin, colon):
            good = good and ZERO <= text[place] <= NINE
    else:
        good, index = integer(text, begin, colon)
    if not good or not sound or index < 0:
        return NO_ENTRY
    if hashed:
        h, eight, length = first, NONE, NONE
        for place in range(begin, colon):
            h, eight, length = fed(h, eight, length, text[place])
        ids[entry] = number(mixed(closed(h, eight, length)), np.uint64(features))
    elif index >= features:
        return LARGE
    else:
        ids[entry] = index
    values[entry] = value
    return 0


NO_ENTRY, LARGE = Fault.NO_ENTRY.value, Fault.LARGE.value

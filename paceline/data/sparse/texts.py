"""Texts as the words in them: JSON lines, each with a text and a number that says what it is.

A word is a run of letters, digits and apostrophes, in lower case; everything beyond ASCII is a
letter. Features are words, and pairs of words that follow each other. What is there several times
counts once; a row is divided by its length, so that long texts weigh no more than short ones.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.data.sparse.hashing import NONE, closed, crossed, fed, mixed, number, start
from paceline.data.sparse.scan import NINE, ZERO
from paceline.data.sparse.text import Fault, Parsed, worst
from paceline.kernels.jit import compiled, inlined

UPPER, LOWER, LAST, CASE, APOSTROPHE, BEYOND = 65, 97, 26, 32, 39, 128
LARGEST = 1e300  # of a number that is a label
TEST = "test"  # of the field that says which part a text belongs to


class Fields(NamedTuple):
    """Of a line: where the text is, what decides the label, and above what; which part it is in."""

    text: str
    label: str
    above: float | None  # none: it is -1, 0 or 1
    part: str | None = None


class Texts:
    """Parses pieces of JSON lines; the counting is compiled."""

    def __init__(self, fields: Fields, features: int, *, pairs: bool = True) -> None:
        self._fields = fields
        self._features = np.uint64(features)
        self._pairs = pairs
        self._start = np.uint64(start("word"))
        self(np.empty(0, np.uint8))  # its loop is here from now on

    def __call__(self, text: npt.NDArray[np.uint8]) -> Parsed:
        bodies, labels, test, faults = [], [], [], []
        lines = text.tobytes().split(b"\n")[:-1]
        for place, line in enumerate(lines):
            if not line.strip():
                continue
            fault, found = self._read(line)
            if fault is not None:
                faults.append((place, fault.value))
                continue
            body, label, held_out = found
            bodies.append(body.encode(errors="replace"))
            labels.append(label)
            test.append(held_out)
        ids, offsets = self._count(bodies)
        counts = np.diff(offsets)
        lengths = np.sqrt(np.maximum(1, counts))
        return Parsed(
            labels=np.array(labels, np.uint8),
            ids=ids,
            offsets=offsets,
            values=np.repeat(1 / lengths, counts).astype(np.float32),
            lines=len(lines),
            bad=len(faults),
            faults=worst(text, np.array(faults, np.int64).reshape(-1, 2)),
            test=np.array(test, bool) if self._fields.part else None,
        )

    def _read(self, line: bytes) -> tuple[Fault | None, tuple[str, bool, bool]]:
        nothing = "", False, False
        try:
            about = json.loads(line)
            body, label = about[self._fields.text], about[self._fields.label]
            part = about[self._fields.part] if self._fields.part else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return Fault.NO_FIELDS, nothing
        if not isinstance(body, str):
            return Fault.NO_FIELDS, nothing
        number = isinstance(label, int | float) and not isinstance(label, bool)
        if not number or not abs(label) < LARGEST:  # nor is NaN
            return Fault.NO_LABEL, nothing
        if self._fields.above is None and label not in (-1, 0, 1):
            return Fault.ODD_LABEL, nothing
        return None, (body, label > (self._fields.above or 0), part == TEST)

    def _count(self, bodies: list[bytes]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        ends = np.cumsum([0, *(len(body) for body in bodies)])
        text = np.frombuffer(b"".join(bodies), np.uint8)
        most = (len(text) // 2 + len(bodies)) * (2 if self._pairs else 1)
        ids, offsets = np.empty(most, np.int32), np.zeros(len(bodies) + 1, np.int64)
        _words(text, ends, self._start, self._pairs, self._features, ids, offsets)
        return ids[: offsets[-1]], offsets


@compiled
def _words(text, ends, first, pairs, features, ids, offsets):  # type: ignore[no-untyped-def]
    """Each text's features, in order of their numbers, each once."""
    count = 0
    for row in range(len(ends) - 1):
        begin, found, before = count, 0, np.uint64(0)
        at, end = ends[row], ends[row + 1]
        while at < end:
            h, word, length = first, NONE, NONE
            while at < end:
                byte = text[at]
                if UPPER <= byte < UPPER + LAST:
                    byte += CASE
                small = LOWER <= byte < LOWER + LAST
                if not (small or ZERO <= byte <= NINE or byte >= BEYOND or byte == APOSTROPHE):
                    break
                h, word, length = fed(h, word, length, byte)
                at += 1
            at += 1
            if not length:
                continue
            this = mixed(closed(h, word, length))
            ids[count] = number(this, features)
            count += 1
            if pairs and found:
                ids[count] = number(crossed(before, this), features)
                count += 1
            before, found = this, found + 1
        count = _distinct(ids, begin, count)
        offsets[row + 1] = count


@inlined
def _distinct(ids, begin, end):  # type: ignore[no-untyped-def]
    """Each of these once, in order; where they end then."""
    if begin == end:
        return end
    ids[begin:end].sort()
    last = begin
    for at in range(begin + 1, end):
        if ids[at] != ids[last]:
            last += 1
            ids[last] = ids[at]
    return last + 1

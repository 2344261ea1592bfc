"""Lines of fields between delimiters: click logs (TSV) and CSV.

Every field but the label becomes one entry of its row: the feature that stands for what is in it.
A field that is blank has a feature of its own. A number that is used as one has the same feature in
all rows, and is that entry's value. Crosses follow after the fields.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.data.sparse.eights import EIGHT, eight_at, eight_of, ends_in, first_of, number_in
from paceline.data.sparse.hashing import (
    NONE,
    ONE,
    PLACES,
    closed,
    crossed,
    fed,
    folded,
    hashed,
    least,
    mixed,
    number,
    place_of,
    start,
)
from paceline.data.sparse.scan import (
    DIGITS,
    MINUS,
    NEWLINE,
    NINE,
    QUOTE,
    RETURN,
    ZERO,
    decimal,
    integer,
    label,
)
from paceline.data.sparse.text import Fault, Parsed, worst
from paceline.kernels.jit import compiled, inlined

SKIP, LABEL, CATEGORY, COUNT, NUMBER = range(5)
TEN = np.uint64(10)
NOT_PLAIN = -1
KINDS = {"skip": SKIP, "label": LABEL, "category": CATEGORY, "count": COUNT, "number": NUMBER}


class Columns(NamedTuple):
    """What each column is, by name, and which pairs of them are crossed."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    crosses: tuple[tuple[str, str], ...] = ()

    @property
    def fields(self) -> list[str]:
        """The columns that make features, in order."""
        pairs = zip(self.names, self.kinds, strict=True)
        return [name for name, kind in pairs if kind not in ("skip", "label")]

    @property
    def width(self) -> int:
        """Entries of a row."""
        return len(self.fields) + len(self.crosses)

    @property
    def valued(self) -> bool:
        """Whether entries have values other than one."""
        return "number" in self.kinds


COUNTS, CATEGORIES = 13, 26
CRITEO = Columns(
    ("label", *(f"I{n + 1}" for n in range(COUNTS)), *(f"C{n + 1}" for n in range(CATEGORIES))),
    ("label", *("count",) * COUNTS, *("category",) * CATEGORIES),
)


class Delimited:
    """Parses pieces of text that end with a line's end; from any thread."""

    def __init__(
        self,
        columns: Columns,
        delimiter: str,
        features: int,
        *,
        quotes: bool,
        above: float | None = None,
    ) -> None:
        self._columns = columns
        self._above = np.nan if above is None else above
        self._delimiter = ord(delimiter)
        self._quotes = quotes
        self._features = np.uint64(features)
        self._kinds = np.array([KINDS[kind] for kind in columns.kinds], np.uint8)
        self._starts = np.array([start(name) for name in columns.names], np.uint64)
        # What a count's hash is: of few numbers, and from a table faster.
        self._counted = np.zeros((len(columns.names), PLACES), np.uint64)
        for column, (name, kind) in enumerate(zip(columns.names, columns.kinds, strict=True)):
            if kind == "count":
                found = [hashed(name, str(least(p))) for p in range(PLACES)]
                self._counted[column] = mixed.py_func(np.array(found, np.uint64))
        places = {name: place for place, name in enumerate(columns.names)}
        self._pairs = np.array(
            [[places[a], places[b]] for a, b in columns.crosses], np.int64
        ).reshape(-1, 2)
        self(np.empty(0, np.uint8))  # its loops are here from now on

    def __call__(self, text: npt.NDArray[np.uint8]) -> Parsed:
        lines = int(lines_of(text))
        width = self._columns.width
        labels = np.empty(lines, np.uint8)
        ids = np.empty((lines, width), np.int32)
        values = np.empty((lines if self._columns.valued else 0, width), np.float32)
        faults = np.empty((lines, 2), np.int64)
        rows, bad = read(
            text,
            self._delimiter,
            self._quotes,
            self._kinds,
            self._starts,
            self._counted,
            self._pairs,
            self._features,
            self._above,
            labels,
            ids,
            values,
            faults,
        )
        return Parsed(
            labels=labels[:rows],
            ids=ids[:rows].reshape(-1),
            offsets=None,
            values=values[:rows].reshape(-1) if self._columns.valued else None,
            lines=lines,
            bad=bad,
            faults=worst(text, faults[:bad]),
        )


@compiled
def read(  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915
    text,
    delimiter,
    quotes,
    kinds,
    starts,
    counted,
    pairs,
    features,
    above,
    labels,
    ids,
    values,
    faults,
):
    """Fill the arrays from all lines; how many rows there were, and how many that are none.

    A fault is (line, what is wrong with it).
    """
    columns, valued = len(kinds), len(values) > 0
    hashes = np.empty(columns, np.uint64)
    ends = np.zeros(256, np.bool_)
    for byte in (delimiter, NEWLINE, RETURN):
        ends[byte] = True
    plain = not valued and np.isnan(above)
    row, bad, line, at = 0, 0, 0, 0
    while at < len(text):
        if plain:
            after = swift(
                text,
                at,
                delimiter,
                quotes,
                ends,
                kinds,
                starts,
                counted,
                features,
                hashes,
                labels,
                ids,
                row,
            )
            if after != NOT_PLAIN:
                entry = ids.shape[1] - len(pairs)
                cross(pairs, hashes, features, ids, values, row, entry)
                row, line, at = row + 1, line + 1, after
                continue
        wrong, column, entry, ended = 0, 0, 0, False
        blank = text[at] == NEWLINE or (text[at] == RETURN and text[at + 1] == NEWLINE)
        while not ended:
            quoted = quotes and text[at] == QUOTE
            begin = at + quoted
            at = begin
            if quoted:
                while text[at] != NEWLINE and not (text[at] == QUOTE and text[at + 1] != QUOTE):
                    at += 1 + (text[at] == QUOTE)
                if text[at] == NEWLINE or text[at + 1] not in (delimiter, NEWLINE, RETURN):
                    wrong = OPEN
            kind = kinds[column] if column < columns else SKIP
            h = starts[column] if column < columns else NONE
            end, digits, count = at, 0, np.int64(0)
            if kind == CATEGORY and not quoted:
                at, h = through(text, at, delimiter, h)
            elif kind == COUNT:
                digits, count = digits_at(text, at)
            at = end_of(text, at, delimiter)
            if not quoted:
                end = at
            ended = text[at] == NEWLINE
            at += 1
            if ended and end > begin and text[end - 1] == RETURN:
                end -= 1
            if column >= columns:
                column += 1
                continue
            value, counts = np.float32(1.0), False
            if kind == CATEGORY and quoted:
                place, eight, length = begin, NONE, NONE
                while place < end:
                    h, eight, length = fed(h, eight, length, text[place])
                    place += 1 + (text[place] == QUOTE)
                h = closed(h, eight, length)
            elif kind == COUNT and end > begin:
                if digits != end - begin or digits > DIGITS:  # a sign, or something else
                    good, count = integer(text, begin, end)
                    if not good:
                        wrong = wrong or NO_COUNT
                counts = True
                hashes[column] = (
                    mixed(_fed_number(h, count)) if count < 0 else counted[column, place_of(count)]
                )
            elif kind == LABEL:
                odd, labels[row] = label(text, begin, end, above)
                wrong = odd or wrong
            elif kind == NUMBER:
                good, found = decimal(text, begin, end)
                if not good and end > begin:
                    wrong = wrong or NO_NUMBER
                value = np.float32(found)
            if kind not in (SKIP, LABEL):
                if not counts:
                    hashes[column] = mixed(h)
                ids[row, entry] = number(hashes[column], features)
                if valued:
                    values[row, entry] = value
                entry += 1
            column += 1
        if blank:
            line += 1
            continue
        if column != columns and wrong != OPEN:
            wrong = FEW if column < columns else MANY
        if wrong:
            faults[bad, 0], faults[bad, 1] = line, wrong
            bad += 1
        else:
            cross(pairs, hashes, features, ids, values, row, entry)
            row += 1
        line += 1
    return row, bad


@inlined
def cross(pairs, hashes, features, ids, values, row, entry):  # type: ignore[no-untyped-def]
    """Fill a row's last entries, from that one on."""
    for pair in range(len(pairs)):
        h = crossed(hashes[pairs[pair, 0]], hashes[pairs[pair, 1]])
        ids[row, entry + pair] = number(h, features)
        if len(values):
            values[row, entry + pair] = 1.0


# Places in the text are unsigned here: a signed one might count from the end, which is asked each
# time it is used.


@inlined
def swift(  # type: ignore[no-untyped-def]  # noqa: PLR0911, PLR0912
    text, at, delimiter, quotes, ends, kinds, starts, counted, features, hashes, labels, ids, row
):
    """A line as almost all are: where the next one begins, with the row's label and entries filled.

    NOT_PLAIN where there is anything else in it: quotes, signs, other labels than 0 and 1, too few
    fields or too many. `read` then looks at it with more care; what both take is the same.
    """
    place, entry, last = np.uint64(at), np.uint64(0), len(kinds) - 1
    size = np.uint64(len(text))
    for column in range(len(kinds)):
        kind, begin, h = kinds[column], place, starts[column]
        if quotes and text[place] == QUOTE:
            return NOT_PLAIN
        if kind == COUNT:
            if place + EIGHT > size:
                return NOT_PLAIN
            eight = eight_at(text, place)
            here = ends_in(eight, delimiter)
            if here == NONE:
                return NOT_PLAIN
            length = first_of(here)
            hashes[column] = mixed(h)
            if length > NONE:
                good, count = number_in(eight, length)
                if not good:
                    return NOT_PLAIN
                hashes[column] = counted[column, place_of(np.int64(count))]
                place += length
        elif kind == LABEL:
            labels[row] = text[place] == ZERO + 1
            if text[place] != ZERO and not labels[row]:
                return NOT_PLAIN
            place += ONE
        elif kind == CATEGORY:
            while True:
                if place + EIGHT > size:
                    return NOT_PLAIN
                eight = eight_at(text, place)
                here = ends_in(eight, delimiter)
                if here != NONE:
                    break
                h = folded(h, eight)
                place += EIGHT
                if text[place] == delimiter:  # many are of eight letters
                    break
            if text[place] != delimiter:
                length = first_of(here)
                if length > NONE:
                    h = folded(h, eight_of(eight, length))
                    place += length
            h ^= place - begin
        else:
            while not ends[text[place]]:
                place += ONE
        if column == last and text[place] == RETURN:
            place += ONE
        if text[place] != (NEWLINE if column == last else delimiter):
            return NOT_PLAIN
        place += ONE
        if kind not in (LABEL, SKIP):
            if kind != COUNT:
                hashes[column] = mixed(h)
            ids[row, entry] = number(hashes[column], features)
            entry += ONE
    return np.int64(place)


@inlined
def through(text, at, delimiter, h):  # type: ignore[no-untyped-def]
    """To the end of a field, and the hash of what is in it."""
    place, eight, length = np.uint64(at), NONE, NONE
    while True:
        byte = text[place]
        if byte in (delimiter, NEWLINE) or (byte == RETURN and text[place + ONE] == NEWLINE):
            return np.int64(place), closed(h, eight, length)
        h, eight, length = fed(h, eight, length, byte)
        place += ONE


@inlined
def end_of(text, at, delimiter):  # type: ignore[no-untyped-def]
    """The end of a field, with what may belong to the line's."""
    place = np.uint64(at)
    while text[place] not in (delimiter, NEWLINE):
        place += ONE
    return np.int64(place)


@inlined
def digits_at(text, at):  # type: ignore[no-untyped-def]
    """How many digits there are, and the number they make."""
    place, value = np.uint64(at), np.uint64(0)
    while ZERO <= text[place] <= NINE:
        value = value * TEN + np.uint64(text[place] - ZERO)
        place += ONE
    return np.int64(place) - at, np.int64(value)


@inlined
def _fed_number(h, value):  # type: ignore[no-untyped-def]
    """The hash goes on over a negative number's decimal digits."""
    h, eight, length = fed(h, NONE, NONE, MINUS)
    value = -value
    power = np.int64(1)
    while value // power >= 10:
        power *= 10
    while power:
        h, eight, length = fed(h, eight, length, ZERO + (value // power) % 10)
        power //= 10
    return closed(h, eight, length)


@compiled
def lines_of(text):  # type: ignore[no-untyped-def]
    """How many lines end in it."""
    count = 0
    for byte in text:
        count += byte == NEWLINE
    return count


FEW, MANY = Fault.FEW.value, Fault.MANY.value
NO_COUNT, NO_NUMBER, OPEN = Fault.NO_COUNT.value, Fault.NO_NUMBER.value, Fault.OPEN.value

"""Eight bytes of a text at once, as a part of compiled loops: where a field ends, what it counts.

The first byte is the lowest of the number they make. Whoever asks sees to it that all eight are
there.
"""

from __future__ import annotations

import numpy as np

from paceline.data.sparse.hashing import NONE, ONE, trailing_zeros
from paceline.kernels.jit import inlined
from paceline.kernels.places import array_at

CONTROL = 14  # below are tab, newline and return
EIGHT = np.uint64(8)
CONTROLS = np.uint64(CONTROL * 0x0101010101010101)
EACH = np.uint64(0x0101010101010101)
HIGHEST = np.uint64(0x8080808080808080)
ZEROS = np.uint64(0x3030303030303030)  # digits
BEYOND_NINE = np.uint64(0x7676767676767676)  # added to a byte above nine, it reaches the highest
BITS, ALL = np.uint64(3), np.uint64(64)


@inlined
def eight_at(text, place):  # type: ignore[no-untyped-def]
    return array_at(text.ctypes.data + np.int64(place), 1, np.uint64)[0]


@inlined
def ends_in(eight, delimiter):  # type: ignore[no-untyped-def]
    """Bits that stand for a delimiter, a line's end, or what else is no letter; the lowest surely
    does, others perhaps."""
    found = (eight - CONTROLS) & ~eight & HIGHEST
    if delimiter >= CONTROL:
        other = eight ^ (np.uint64(delimiter) * EACH)
        found |= (other - EACH) & ~other & HIGHEST
    return found


@inlined
def first_of(found):  # type: ignore[no-untyped-def]
    """How many bytes come before the first that was found."""
    return np.uint64(trailing_zeros(found)) >> BITS


@inlined
def eight_of(eight, length):  # type: ignore[no-untyped-def]
    """The first few of them, less than eight."""
    return eight & ((ONE << (length << BITS)) - ONE)


@inlined
def number_in(eight, length):  # type: ignore[no-untyped-def]
    """Whether the first few of them, one to seven, are digits, and the number they make.

    They are put behind as many zeros as it takes to be eight; then neighbours are made numbers of
    two digits, of four and of eight, all at once.
    """
    rest = length << BITS
    digits = ((eight << (ALL - rest)) | (ZEROS >> rest)) ^ ZEROS
    good = ((digits + BEYOND_NINE) | digits) & HIGHEST == NONE
    two = digits * np.uint64(10) + (digits >> EIGHT)
    every_other = np.uint64(0x000000FF000000FF)
    high = (two & every_other) * np.uint64(0x000F424000000064)
    low = ((two >> np.uint64(16)) & every_other) * np.uint64(0x0000271000000001)
    return good, (high + low) >> np.uint64(32)

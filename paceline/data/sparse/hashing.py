"""Features by name: a field and what stands in it become a number.

    h  = FNV-1a of the field's name, '=' and the token, 64 bits
    h ← the finalizer of MurmurHash3, which makes every bit depend on all
    id = ⌊⌊h / 2³²⌋ · features / 2³²⌋, evenly spread below `features`

Two features of a row, a before b, make a third one: the finalizer of 3·hₐ + h_b. Nothing here
depends on the machine, on Python's seed, or on what other features there are. Numbers that count
something are rounded down to their three leading binary digits before: 1000 counts as 896.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cpython.unsafe import numbers

from paceline.kernels.jit import inlined

PRIME = np.uint64(0x100000001B3)
FIRST = 0xCBF29CE484222325
MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
PLACES = 4 * 61  # of all counts of 63 bits
leading_zeros: Any = numbers.leading_zeros
HALF, SHIFT, THREE = np.uint64(32), np.uint64(33), np.uint64(3)


def feature(field: str, token: str | bytes, features: int) -> int:
    """The number of one feature."""
    return int(number(np.uint64(mixed(np.uint64(hashed(field, token)))), np.uint64(features)))


def hashed(field: str, token: str | bytes) -> int:
    """What the finalizer makes a feature of."""
    return _fnv(token.encode() if isinstance(token, str) else token, start(field))


def start(field: str) -> int:
    """What the hash of every token of a field begins with."""
    return _fnv(field.encode() + b"=", FIRST)


def _fnv(content: bytes, h: int) -> int:
    for byte in content:
        h = (h ^ byte) * int(PRIME) % 2**64
    return h


def rounded(count: int) -> int:
    """A count by its three leading binary digits."""
    return least(int(place_of(count)))


def least(place: int) -> int:
    """The least count in a place: all that have the same leading digits are in one."""
    return place if place < 8 else (4 + place % 4) << (place // 4 - 1)


@inlined
def fed(h, byte):  # type: ignore[no-untyped-def]
    return (h ^ np.uint64(byte)) * PRIME


@inlined
def mixed(h):  # type: ignore[no-untyped-def]
    h ^= h >> SHIFT
    h *= MIX[0]
    h ^= h >> SHIFT
    h *= MIX[1]
    return h ^ (h >> SHIFT)


@inlined
def crossed(a, b):  # type: ignore[no-untyped-def]
    return mixed(a * THREE + b)


@inlined
def number(h, features):  # type: ignore[no-untyped-def]
    return np.int32(((h >> HALF) * features) >> HALF)


@inlined
def place_of(count):  # type: ignore[no-untyped-def]
    """The place of a count: 0 to 7, then four for each binary digit more."""
    drop = max(0, 61 - leading_zeros(np.uint64(count)))
    return 4 * drop + (count >> drop)

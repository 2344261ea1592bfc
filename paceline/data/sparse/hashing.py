"""Features by name: a field and what stands in it become a number.

    s  = the hash of the field's name and '=', from 14695981039346656037
    h  = the hash of the token, from s
    h ← the finalizer of MurmurHash3, which makes every bit depend on all
    id = ⌊⌊h / 2³²⌋ · features / 2³²⌋, evenly spread below `features`

Of n bytes, taken eight at a time as a number w, the first byte its lowest, the last ones filled up
with zeros, a hash is, modulo 2⁶⁴:

    h ← (h ⊕ w) · 11400714819323198485;  h ← h ⊕ ⌊h / 2³²⌋        for each w
    h ← h ⊕ n                                                      once

Two features of a row, a before b, make a third one: the finalizer of 3·hₐ + h_b. Nothing here
depends on the machine, on Python's seed, or on what other features there are. Numbers that count
something are rounded down to their three leading binary digits before: 1000 counts as 896.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.cpython.unsafe import numbers

from paceline.kernels.jit import inlined

KIND = "eights"  # stands in manifests: what is numbered otherwise does not go together with it
FACTOR = np.uint64(0x9E3779B97F4A7C15)
FIRST = 0xCBF29CE484222325
MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
PLACES = 4 * 61  # of all counts of 63 bits
leading_zeros: Any = numbers.leading_zeros
trailing_zeros: Any = numbers.trailing_zeros
NONE, ONE, THREE, SEVEN = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7)
HALF, SHIFT = np.uint64(32), np.uint64(33)


def feature(field: str, token: str | bytes, features: int) -> int:
    """The number of one feature."""
    return int(number(np.uint64(mixed(np.uint64(hashed(field, token)))), np.uint64(features)))


def hashed(field: str, token: str | bytes) -> int:
    """What the finalizer makes a feature of."""
    return _hash(token.encode() if isinstance(token, str) else token, start(field))


def start(field: str) -> int:
    """What the hash of every token of a field begins with."""
    return _hash(field.encode() + b"=", FIRST)


def _hash(content: bytes, h: int) -> int:
    for at in range(0, len(content), 8):
        h = (h ^ int.from_bytes(content[at : at + 8], "little")) * int(FACTOR) % 2**64
        h ^= h >> 32
    return h ^ len(content)


def rounded(count: int) -> int:
    """A count by its three leading binary digits."""
    return least(int(place_of(count)))


def least(place: int) -> int:
    """The least count in a place: all that have the same leading digits are in one."""
    return place if place < 8 else (4 + place % 4) << (place // 4 - 1)


# In compiled loops a hash that is under way is three numbers: what it is so far, up to seven bytes
# that are not in it yet, and how many bytes there were.


@inlined
def fed(h, word, length, byte):  # type: ignore[no-untyped-def]
    """The hash goes on with a byte."""
    word |= np.uint64(byte) << ((length & SEVEN) * np.uint64(8))
    length += ONE
    if length & SEVEN == NONE:
        return folded(h, word), NONE, length
    return h, word, length


@inlined
def closed(h, word, length):  # type: ignore[no-untyped-def]
    """There are no more bytes."""
    if length & SEVEN != NONE:
        h = folded(h, word)
    return h ^ length


@inlined
def folded(h, word):  # type: ignore[no-untyped-def]
    """The hash goes on with eight bytes at once."""
    h = (h ^ word) * FACTOR
    return h ^ (h >> HALF)


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

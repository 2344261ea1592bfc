"""The number of a feature is what the documentation says, on any machine."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.hashing import (
    NONE,
    closed,
    crossed,
    feature,
    fed,
    hashed,
    mixed,
    rounded,
    start,
)

WHOLE = 2**64
KNOWN, KNOWN_START = [4981078, 1617748506], 10925526807903198742


def plain(content: bytes, h: int) -> int:
    """The hash of some bytes, by its definition."""
    for at in range(0, len(content), 8):
        (w,) = struct.unpack("<Q", content[at : at + 8].ljust(8, b"\0"))
        h = (h ^ w) * 11400714819323198485 % WHOLE
        h ^= h >> 32
    return h ^ len(content)


def final(h: int) -> int:
    """MurmurHash3's finalizer."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> 33) * factor % WHOLE
    return h ^ h >> 33


@given(st.text(max_size=20), st.binary(max_size=30), st.integers(1, 2**31))
def test_a_number_is_what_is_documented(field: str, token: bytes, features: int) -> None:
    h = final(plain(token, plain(field.encode() + b"=", 14695981039346656037)))
    assert feature(field, token, features) == (h >> 32) * features >> 32


def test_known_numbers_stay() -> None:
    """Shards of other machines and years are of use as long as these hold."""
    found = [feature("C1", "68fd1e64", 33_762_578), feature("I1", "", 2**31)]
    assert found == KNOWN
    assert start("a field with a long name") == KNOWN_START


@given(st.binary(max_size=40))
def test_byte_by_byte_is_the_same(token: bytes) -> None:
    h, word, length = np.uint64(start("site")), NONE, NONE
    for byte in token:
        h, word, length = map(np.uint64, fed(h, word, length, byte))
    assert int(closed(h, word, length)) == hashed("site", token)


def test_numbers_are_spread_evenly() -> None:
    numbers = [feature("site", str(token), 1000) for token in range(20_000)]
    counts = np.bincount(numbers, minlength=1000)
    assert counts.min() > 0
    assert counts.max() < 60  # 20 on average, with a deviation of 4.5


def test_a_cross_knows_which_came_first() -> None:
    a, b = np.uint64(3), np.uint64(5)
    assert crossed(a, b) == mixed(np.uint64(14))
    assert crossed(a, b) != crossed(b, a)


@pytest.mark.parametrize(
    ("count", "kept"), [(0, 0), (1, 1), (7, 7), (8, 8), (9, 8), (15, 14), (1000, 896), (1023, 896)]
)
def test_counts_are_rounded_to_three_digits(count: int, kept: int) -> None:
    assert rounded(count) == kept

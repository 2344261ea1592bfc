"""The number of a feature is what the documentation says, on any machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.hashing import crossed, feature, mixed, rounded, start

WHOLE = 2**64


def plain(content: bytes) -> int:
    """FNV-1a and MurmurHash3's finalizer, by their definitions."""
    h = 0xCBF29CE484222325
    for byte in content:
        h = (h ^ byte) * 0x100000001B3 % WHOLE
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ h >> 33) * factor % WHOLE
    return h ^ h >> 33


@given(st.text(max_size=8), st.binary(max_size=12), st.integers(1, 2**31))
def test_a_number_is_what_is_documented(field: str, token: bytes, features: int) -> None:
    h = plain(field.encode() + b"=" + token)
    assert feature(field, token, features) == (h >> 32) * features >> 32


def test_known_numbers_stay() -> None:
    """Shards of other machines and years are of use as long as these hold."""
    assert start("") == ((0xCBF29CE484222325 ^ ord("=")) * 0x100000001B3) % WHOLE
    found = [feature("C1", "68fd1e64", 33_762_578), feature("I1", "", 2**31)]
    assert found == [(plain(b"C1=68fd1e64") >> 32) * 33_762_578 >> 32, plain(b"I1=") >> 33]


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

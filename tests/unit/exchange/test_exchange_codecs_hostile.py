"""Bytes from anywhere: refused in a sentence or decoded, and never a float beside the block."""

from __future__ import annotations

import contextlib
import math
import struct

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from paceline.errors import WireError
from paceline.exchange.codecs.base import Codec
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.codecs.rows import ROW

TEXTS = ["none", "bf16", "fp16", "int8", "topk:0.01", "topk:0.3", "onebit"]
GUARD = 64


def decode(codec: Codec, data: bytes, count: int) -> Tensor:
    """Between guards. What is refused has changed nothing."""
    area = torch.full((count + 2 * GUARD,), 7.0)
    out = area[GUARD : GUARD + count]
    try:
        codec.decode(torch.tensor(list(data), dtype=torch.uint8), out)
    except WireError:
        assert (area == 7.0).all()
        raise
    assert (area[:GUARD] == 7.0).all()
    assert (area[GUARD + count :] == 7.0).all()
    return out


def survives(codec: Codec, data: bytes, count: int) -> None:
    with contextlib.suppress(WireError):
        decode(codec, data, count)


def encoded(codec: Codec, count: int) -> bytes:
    values = torch.randn(count, generator=torch.Generator().manual_seed(count))
    out = torch.empty(codec.room(count), dtype=torch.uint8)
    return bytes(out[: codec.encode(values, out)].tolist())


@settings(deadline=None)
@given(text=st.sampled_from(TEXTS), count=st.integers(0, 200), data=st.binary(max_size=900))
def test_random_bytes(text: str, count: int, data: bytes) -> None:
    survives(make_codec(text), data, count)


@settings(deadline=None)
@given(text=st.sampled_from(TEXTS), count=st.integers(0, ROW + 50), draw=st.data())
def test_random_bytes_of_the_right_length(text: str, count: int, draw: st.DataObject) -> None:
    codec = make_codec(text)
    room = codec.room(count)
    noise = draw.draw(st.randoms(use_true_random=False)).randbytes(room)
    survives(codec, noise, count)


@settings(deadline=None)
@given(
    text=st.sampled_from(TEXTS), count=st.integers(1, ROW + 50), at=st.integers(0), new=st.binary()
)
def test_a_block_with_some_bytes_changed(text: str, count: int, at: int, new: bytes) -> None:
    codec = make_codec(text)
    data = bytearray(encoded(codec, count))
    at %= len(data)
    data[at : at + len(new)] = new[: len(data) - at]
    survives(codec, bytes(data), count)


@settings(deadline=None)
@given(text=st.sampled_from(TEXTS), count=st.integers(1, ROW + 50), less=st.integers(1))
def test_a_block_cut_short_or_too_long_is_refused(text: str, count: int, less: int) -> None:
    codec = make_codec(text)
    data = encoded(codec, count)
    for wrong in (data[: -(less % len(data)) or 0], data + b"\0", data * 2):
        with pytest.raises(WireError):
            decode(codec, wrong, count)


@pytest.mark.parametrize("text", TEXTS)
def test_bytes_for_an_empty_block_are_refused(text: str) -> None:
    with pytest.raises(WireError):
        decode(make_codec(text), b"\0", 0)


@pytest.mark.parametrize(
    "places",
    [
        (-1, 3, 4),
        (0, 3, 10),
        (3, 3, 4),
        (4, 3, 5),
        (5, 100, 6),
        (2**31 - 1, 1, 2),
        (-(2**31), 0, 1),
    ],
)
def test_topk_refuses_places_that_do_not_ascend_within_the_block(places: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match="places"):
        decode(make_codec("topk:0.3"), struct.pack("=3i3f", *places, 1, 2, 3), 10)


@pytest.mark.parametrize("scale", [-1.0, math.inf, -math.inf, 3e38])
def test_int8_refuses_scales_it_would_not_make(scale: float) -> None:
    with pytest.raises(WireError, match="scale"):
        decode(make_codec("int8"), struct.pack("=f2b", scale, 1, 2), 2)


@pytest.mark.parametrize(
    "means", [(-1.0, -1.0), (1.0, 1.0), (math.inf, -1.0), (1.0, -math.inf), (math.nan, -1.0)]
)
def test_onebit_refuses_means_it_would_not_make(means: tuple[float, float]) -> None:
    with pytest.raises(WireError, match="means"):
        decode(make_codec("onebit"), struct.pack("=2fB", *means, 0b10000000), 2)


def test_onebit_refuses_signs_of_floats_that_are_not_there() -> None:
    with pytest.raises(WireError, match="signs"):
        decode(make_codec("onebit"), struct.pack("=2fB", 1.0, -1.0, 0b10100000), 2)
    assert decode(make_codec("onebit"), struct.pack("=2fB", 1.0, -2.0, 0b10000000), 2).tolist() == [
        1.0,
        -2.0,
    ]

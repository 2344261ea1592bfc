"""Headers: what goes in comes out, and no bytes whatever do more harm than a WireError."""

from __future__ import annotations

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import WireError
from paceline.transport.frames import (
    HEADER_BYTES,
    MAGIC,
    MAX_PAYLOAD,
    PROTOCOL,
    Frame,
    Kind,
    pack,
    unpack,
)

counts = st.integers(0, 2**64 - 1)
floats = st.floats(allow_nan=False)
frames = st.builds(
    Frame,
    kind=st.sampled_from(Kind),
    sender=st.integers(0, 2**32 - 1),
    sequence=counts,
    version=counts,
    weight=floats,
    lr=floats,
    staleness=st.integers(0, 2**32 - 1),
    begin=st.integers(0, 2**32 - 1),
    end=st.integers(0, 2**32 - 1),
    block=st.integers(0, 2**32 - 1),
    seconds=floats,
    asked=st.integers(0, 2**32 - 1),
    length=st.integers(0, MAX_PAYLOAD),
)


@given(frames)
def test_a_frame_survives_the_wire(frame: Frame) -> None:
    header = pack(frame)
    assert len(header) == HEADER_BYTES
    for form in (header, bytearray(header), memoryview(header)):
        assert unpack(form) == frame


@given(st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_random_bytes_are_a_frame_or_a_wire_error(header: bytes) -> None:
    with contextlib.suppress(WireError):
        assert unpack(header).length <= MAX_PAYLOAD


@given(frame=frames, at=st.integers(0, HEADER_BYTES - 1), byte=st.integers(0, 255))
def test_a_damaged_header_is_a_frame_or_a_wire_error(frame: Frame, at: int, byte: int) -> None:
    header = bytearray(pack(frame))
    header[at] = byte
    with contextlib.suppress(WireError):
        unpack(header)


def test_what_is_no_frame_of_ours_is_told() -> None:
    with pytest.raises(WireError, match="not a Paceline frame"):
        unpack(b"GET / HTTP/1.1\r\n".ljust(HEADER_BYTES, b"\0"))


def test_another_protocol_is_told_by_number() -> None:
    header = bytearray(pack(Frame(Kind.PULL, 0)))
    header[len(MAGIC)] = PROTOCOL + 6
    with pytest.raises(WireError, match=f"protocol {PROTOCOL + 6}.*protocol {PROTOCOL}"):
        unpack(header)


@pytest.mark.parametrize("kind", [0, max(Kind) + 1, 255])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    with pytest.raises(WireError, match=f"kind {kind}"):
        unpack(pack(Frame(kind, 0)))


@pytest.mark.parametrize("length", [MAX_PAYLOAD + 1, 2**64 - 1])
def test_an_absurd_length_is_refused(length: int) -> None:
    with pytest.raises(WireError, match=str(length)):
        unpack(pack(Frame(Kind.PUSH, 0, length=length)))


def test_a_header_has_one_length_on_every_machine() -> None:
    assert HEADER_BYTES == struct.calcsize("<2sBBIQQddIIQIIdI") == 76

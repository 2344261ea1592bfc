"""What a codec is: a block of float32 to fewer bytes, and back. Arithmetic only, no I/O.

A gradient is cut into blocks; a worker encodes each, a server decodes it into its own memory. What
a codec loses a worker keeps, and adds to its next gradient (`feedback.py`).

**Not finite.** A gradient that is not finite is never hidden: where a worker had NaN or an
infinity, the server gets NaN or an infinity. The casts and `topk` keep it where it was; `int8` and
`onebit`, where a row shares its scale, send that row as NaN.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from paceline.errors import WireError


class Codec(Protocol):
    """Both ends make it from the same text and know a block's length, so neither travels.

    All tensors are one-dimensional, contiguous and in the host's memory; bytes may begin at any
    address. A codec keeps scratch memory: one thread at a time.
    """

    @property
    def name(self) -> str: ...

    @property
    def lossy(self) -> bool: ...

    def room(self, count: int) -> int:
        """How many bytes `count` floats take."""
        ...

    def encode(self, values: Tensor, out: Tensor) -> int:
        """Write float32 `values` into the bytes `out`, of `room` or more: how many were used.

        `values` is left as it is; the same values give the same bytes.
        """
        ...

    def decode(self, data: Tensor, out: Tensor) -> None:
        """Fill float32 `out` from exactly the bytes that `encode` used for as many floats.

        Bytes may come from anywhere: what cannot be a block raises `WireError`, and then nothing
        has been written; what can be one gives floats, if not sensible ones.
        """
        ...


class Scratch:
    """Memory that is kept from call to call, for what need not be."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._held = torch.empty(0, dtype=dtype)

    def take(self, count: int) -> Tensor:
        if count > len(self._held):
            self._held = self._held.new_empty(count)
        return self._held[:count]


def check_length(codec: Codec, data: Tensor, out: Tensor) -> None:
    need = codec.room(len(out))
    if len(data) != need:
        raise WireError(
            f"a block of {len(out)} floats takes {need} bytes in {codec.name}, not {len(data)}."
        )


def malformed(codec: Codec, what: str) -> WireError:
    return WireError(f"a block that is not {codec.name}: {what}.")


def numbers(data: Tensor, dtype: torch.dtype) -> Tensor:
    """Bytes as numbers: in place where they lie on a number's boundary, else a copy."""
    if not len(data):  # of nothing, torch makes no other view
        return data.new_empty(0, dtype=dtype)
    aligned = (data.data_ptr() | int(data.storage_offset())) % dtype.itemsize == 0
    return (data if aligned else data.clone()).view(dtype)

"""`topk:RATIO`: the numbers largest in magnitude, with their places; the others are nought.

    k = max(1, ⌈RATIO · count⌉);   D = x at the k largest |x|, the first of equals; 0 elsewhere

    bytes:   k places, ascending (int32)  │  k values (float32)

NaN counts as larger than any number, and an infinity is: neither is ever left behind.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from paceline.exchange.codecs.base import Scratch, check_length, malformed

# Every 64th number tells well enough where the k largest begin.
STRIDE = 64


class TopK:
    lossy = True

    def __init__(self, ratio: float) -> None:
        self.name = f"topk:{ratio:g}"
        self._ratio = ratio
        self._scratch = Scratch(torch.int32)

    def kept(self, count: int) -> int:
        return min(count, max(1, math.ceil(self._ratio * count)))

    def room(self, count: int) -> int:
        return 8 * self.kept(count)

    def encode(self, values: Tensor, out: Tensor) -> int:
        kept = self.kept(len(values))
        if kept:
            floats = values.numpy()
            sizes = self._scratch.take(len(values)).numpy()
            # Without the sign, floats are ordered as their bits are; NaN comes after infinity.
            np.bitwise_and(floats.view(np.int32), 0x7FFFFFFF, out=sizes)
            places = largest(sizes, kept)
            room = out[: 8 * kept].numpy()
            room[: 4 * kept] = places.astype(np.int32).view(np.uint8)
            room[4 * kept :] = floats[places].view(np.uint8)
        return 8 * kept

    def decode(self, data: Tensor, out: Tensor) -> None:
        check_length(self, data, out)
        kept = self.kept(len(out))
        if not kept:
            return
        places = data[: 4 * kept].numpy().view(np.int32)
        if places[0] < 0 or places[-1] >= len(out) or (places[1:] <= places[:-1]).any():
            raise malformed(self, "places do not ascend within it")
        out.zero_()
        out.numpy()[places] = data[4 * kept :].numpy().view(np.float32)


def largest(sizes: np.ndarray, kept: int) -> np.ndarray:
    """The places of the `kept` largest, ascending; of equals, the first."""
    near = _candidates(sizes, kept)
    found = sizes[near]
    least = np.partition(found, len(found) - kept)[len(found) - kept]
    keep = found > least
    equals = np.flatnonzero(found == least)
    keep[equals[: kept - np.count_nonzero(keep)]] = True
    places: np.ndarray = near[keep]
    return places


def _candidates(sizes: np.ndarray, kept: int) -> np.ndarray:
    """Places that hold the `kept` largest and few others, by what a sample tells; else all."""
    sample = sizes[::STRIDE]
    # Half as many again, and some: a guess that is too high would be found out, at a cost.
    wanted = int(1.5 * kept * len(sample) / len(sizes)) + 8
    if wanted < len(sample):
        guess = np.partition(sample, len(sample) - wanted)[len(sample) - wanted]
        near = np.flatnonzero(sizes >= guess)
        if len(near) >= kept:
            return near
    return np.arange(len(sizes))

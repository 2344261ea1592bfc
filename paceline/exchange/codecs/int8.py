"""`int8`: a byte a number, scaled by row.

    s = max |x| / 127 over a row;   q = round(x / s);   D = q s;   |x − D| ≤ s / 2

    bytes:   s of every row (float32)  │  q of every float (int8)

A row of which something is not finite has s = NaN, and so arrives as NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paceline.exchange.codecs.base import Scratch, check_length, malformed, numbers
from paceline.exchange.codecs.rows import pieces, row_count

# Below the least, 1 / s would be infinite; above the most, 127 s would be.
LEAST_SCALE, MOST_SCALE = 1.2e-38, 2.67e36


class Int8:
    name = "int8"
    lossy = True

    def __init__(self) -> None:
        self._scratch = Scratch(torch.float32)

    def room(self, count: int) -> int:
        return 4 * row_count(count) + count

    def encode(self, values: Tensor, out: Tensor) -> int:
        count, head = len(values), 4 * row_count(len(values))
        scales = self._scales(values)
        out[:head].copy_(scales.view(torch.uint8))
        inverse = torch.where(scales >= LEAST_SCALE, 1 / scales, 0).unsqueeze(1)
        codes = out[head : head + count].view(torch.int8)
        for at, rows, shape in pieces(count):
            scaled = self._scratch.take(at.stop - at.start)
            torch.mul(values[at].view(shape), inverse[rows], out=scaled.view(shape))
            codes[at].copy_(scaled.round_())
        return head + count

    def decode(self, data: Tensor, out: Tensor) -> None:
        check_length(self, data, out)
        head = 4 * row_count(len(out))
        scales = numbers(data[:head], torch.float32)
        self._check(scales)
        codes = data[head:].view(torch.int8)
        for at, rows, shape in pieces(len(out)):
            out[at].copy_(codes[at]).view(shape).mul_(scales[rows].unsqueeze(1))

    def _scales(self, values: Tensor) -> Tensor:
        most = torch.empty(row_count(len(values)))
        for at, rows, shape in pieces(len(values)):
            sizes = torch.abs(values[at], out=self._scratch.take(at.stop - at.start))
            torch.amax(sizes.view(shape), 1, out=most[rows])
        scales = (most / 127).clamp_(max=MOST_SCALE)
        return scales.add_(most.mul_(0))  # 0 times what is not finite is NaN

    def _check(self, scales: Tensor) -> None:
        good = scales.isnan() | ((scales >= 0) & (scales <= MOST_SCALE))
        if not good.all():
            raise malformed(self, "a scale is negative or too large")

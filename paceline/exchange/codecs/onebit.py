"""`onebit`: the sign of each number, and two means a row.

    p = mean of x ≥ 0,  n = mean of x < 0 over a row;   D = p where x ≥ 0, else n

    bytes:   p of every row  │  n of every row (float32)  │  a bit for every float, 1 where x ≥ 0

Of all that one bit can tell, these two numbers lose least: Σ(x − D)² is the variance within the
two groups. It is still most of the gradient, and lives by error feedback.

A row of which something is not finite has both means NaN, and so arrives as NaN. So does one
whose sum is beyond float32.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from paceline.exchange.codecs.base import Scratch, check_length, malformed
from paceline.exchange.codecs.rows import pieces, row_count

# How many bits of a byte are 1.
ONES = np.unpackbits(np.arange(256, dtype=np.uint8).reshape(-1, 1), axis=1).sum(1)


class OneBit:
    name = "onebit"
    lossy = True

    def __init__(self) -> None:
        self._scratch = Scratch(torch.float32)

    def room(self, count: int) -> int:
        return 8 * row_count(count) + -(-count // 8)

    def encode(self, values: Tensor, out: Tensor) -> int:
        used, rows = self.room(len(values)), row_count(len(values))
        bits = out[8 * rows : used].numpy()
        means = torch.empty(2, rows)
        for at, within, shape in pieces(len(values)):
            packed = np.packbits(values[at].numpy() >= 0)  # numpy compares faster than torch
            bits[at.start // 8 : -(-at.stop // 8)] = packed
            ones = torch.from_numpy(ONES[packed].reshape(shape[0], -1).sum(1, dtype=np.float32))
            block = values[at].view(shape)
            part = self._scratch.take(at.stop - at.start).view(shape)
            sums = means[:, within]
            torch.sum(torch.clamp(block, min=0, out=part), 1, out=sums[0])
            torch.sum(torch.clamp(block, max=0, out=part), 1, out=sums[1])
            sums[0].div_(ones.clamp(min=1))
            sums[1].div_((shape[1] - ones).clamp_(min=1))
        means[:, ~means.isfinite().all(0)] = torch.nan
        out[: 8 * rows].copy_(means.view(-1).view(torch.uint8))
        return used

    def decode(self, data: Tensor, out: Tensor) -> None:
        check_length(self, data, out)
        rows = row_count(len(out))
        means = data[: 8 * rows].numpy().view(np.float32).reshape(2, rows)
        bits = data[8 * rows :].numpy()
        self._check(means, bits, len(out))
        # Either mean exactly, without a branch: low ⊕ bit · (high ⊕ low), on their bits.
        patterns = torch.from_numpy(means.copy()).view(torch.int32).unsqueeze(2)
        low, change = patterns[1], patterns[0] ^ patterns[1]
        for at, within, shape in pieces(len(out)):
            packed = bits[at.start // 8 : -(-at.stop // 8)]
            signs = torch.from_numpy(np.unpackbits(packed, count=at.stop - at.start))
            got = out[at].view(torch.int32).copy_(signs).view(shape)
            got.mul_(change[within]).bitwise_xor_(low[within])

    def _check(self, means: np.ndarray, bits: np.ndarray, count: int) -> None:
        high, low = means
        lost = np.isnan(high) & np.isnan(low)
        sound = (high >= 0) & (high < np.inf) & (low <= 0) & (low > -np.inf)
        if not (lost | sound).all():
            raise malformed(self, "means of the wrong sign, or without bound")
        if count % 8 and bits[-1] & (0xFF >> count % 8):
            raise malformed(self, "more signs than floats")

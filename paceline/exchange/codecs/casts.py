"""`bf16` and `fp16`: each number by itself, in two bytes, rounded to the nearest.

    bf16   8 bits of mantissa, the range of float32          |x − D(C(x))| ≤ 2⁻⁸ |x|
    fp16   11 bits of mantissa, up to 65504, down to 6e-8    |x − D(C(x))| ≤ 2⁻¹¹ |x| or 2⁻²⁵

What is beyond the range travels as the largest number there is; the rest of it is left to error
feedback. NaN and infinities travel as themselves.
"""

from __future__ import annotations

import torch
from torch import Tensor

from paceline.exchange.codecs.base import Scratch, check_length, numbers


class Cast:
    lossy = True

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.name = name
        self._dtype = dtype
        self._most = torch.finfo(dtype).max
        self._scratch = Scratch(dtype)

    def room(self, count: int) -> int:
        return 2 * count

    def encode(self, values: Tensor, out: Tensor) -> int:
        used = self.room(len(values))
        if used:
            short = self._scratch.take(len(values)).copy_(self._within(values))
            out[:used].copy_(short.view(torch.uint8))
        return used

    def _within(self, values: Tensor) -> Tensor:
        """The values themselves wherever none is out of range, as is the rule."""
        low, high = torch.aminmax(values)
        if -self._most <= low.item() and high.item() <= self._most:
            return values
        return torch.where(values.isfinite(), values.clamp(-self._most, self._most), values)

    def decode(self, data: Tensor, out: Tensor) -> None:
        check_length(self, data, out)
        out.copy_(numbers(data, self._dtype))

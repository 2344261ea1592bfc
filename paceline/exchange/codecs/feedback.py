"""Error feedback: what a codec lost is added to the next gradient.

With gradient g, what is owed e, encoding C and decoding D:

    t = g + e;   send C(t);   e ← t − D(C(t))

so what a server got until now is Σ g − e: nothing is lost for good, some of it is late. A codec
for which |t − D(C(t))| ≤ q |t| with q < 1 then trains to where plain gradients do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from paceline.exchange.codecs.base import Codec, Scratch


class Feedback:
    """One worker's side of a codec, for a flat gradient of `size` floats.

    Encode each block of a push once: a push that is sent again is the same bytes again. Where a
    block was not finite, what was owed there is forgotten: the server has been told, and the next
    gradient that is finite is sent as if it were the first.
    """

    def __init__(self, codec: Codec, size: int) -> None:
        self.codec = codec
        self.owed = torch.zeros(size) if codec.lossy else None  # none where nothing is lost
        self._scratch = Scratch(torch.float32)
        self._whole = self._lost = 0.0  # squared norms, of finite blocks
        self._raw = self._sent = 0  # bytes

    @property
    def error(self) -> float:
        """√(Σ|t − D(C(t))|² / Σ|t|²) so far: 0 loses nothing, at 1 nothing gets through."""
        return math.sqrt(self._lost / self._whole) if self._whole else 0.0

    @property
    def ratio(self) -> float:
        """Bytes of float32 for a byte sent, so far."""
        return self._raw / self._sent if self._sent else 1.0

    def encode(self, values: Tensor, at: slice, out: Tensor) -> int:
        """Write `values`, which are those `at` of the gradient, into `out`: how many bytes."""
        if self.owed is None:
            used = self.codec.encode(values, out)
        else:
            used = self._encode(self.owed[at], values, out)
        self._raw += values.nbytes
        self._sent += used
        return used

    def _encode(self, owed: Tensor, values: Tensor, out: Tensor) -> int:
        owed.add_(values)
        used = self.codec.encode(owed, out)
        got = self._scratch.take(len(owed))
        self.codec.decode(out[:used], got)
        whole = torch.dot(owed, owed).item()
        owed.sub_(got)
        lost = torch.dot(owed, owed).item()
        if math.isfinite(whole) and math.isfinite(lost):
            self._whole += whole
            self._lost += lost
        else:
            owed.nan_to_num_(0.0, 0.0, 0.0)
        return used

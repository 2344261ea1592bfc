"""Where gradients lie, and small ones copied side by side with as little in between as can be.

A backward pass has driven torch's code out of the cache: each thing that is asked of a tensor takes
longer than a few hundred numbers' arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import memmove

from torch import Tensor

SMALL = 1 << 17  # floats: beyond that the copying is what counts, not the call

Grads = list[Tensor | None]  # a parameter's each, as backward left it; None where there is none


def addresses(grads: Grads) -> list[int] | None:
    """Where they lie, if there are all. One whose numbers are in another order is put in order."""
    found = []
    for index, grad in enumerate(grads):
        if grad is None:
            return None
        if grad.is_contiguous():
            found.append(grad.data_ptr())
        else:
            grads[index] = ordered = grad.contiguous()
            found.append(ordered.data_ptr())
    return found


def join(out: Tensor, grads: Sequence[Tensor]) -> None:
    """Copy gradients in the host's memory end to end."""
    at = out.data_ptr()
    for grad in grads:
        lying = grad if grad.is_contiguous() else grad.contiguous()
        size = 4 * lying.numel()
        memmove(at, lying.data_ptr(), size)
        at += size

"""A worker's copy of the model as one flat buffer; the model's layers are views of it."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import memmove
from typing import NamedTuple

import torch
from torch import Tensor, nn

from paceline.errors import TaskError
from paceline.exchange.joining import SMALL, addresses
from paceline.exchange.tables import tables_of
from paceline.server.rows import RowGradient
from paceline.server.rules import chunks

SERVERS = 256  # there may be at most


class Piece(NamedTuple):
    """Part `inside` of one parameter (None: all of it), which is part `at` of the flat buffer."""

    parameter: int
    at: slice
    inside: slice | None

    def of(self, grad: Tensor) -> Tensor:
        return grad if self.inside is None else grad[self.inside]

    @property
    def begin(self) -> int:
        """Where in the parameter."""
        return 0 if self.inside is None else int(self.inside.start)


class Replica:
    """Owns where the parameters live. Exchange moves ranges of `flat`, never single tensors.

    Gradients are left where backward puts them until `gather` copies them out in one pass: a
    preset flat gradient would be zeroed, read and written again each step, which costs more.
    `on_host` says that all of it is in memory that a CPU can read, and `from_backward` that the
    gradients there are as backward left them.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.tables = tables_of(model)
        apart = {id(table.parameter) for table in self.tables}
        trained = [p for p in model.parameters() if p.requires_grad]
        if not trained:
            raise TaskError("the task's model has no trainable parameters.")
        self.parameters = [p for p in trained if id(p) not in apart]
        if self.tables:  # every server has a part of what is dense, however little that is
            self.parameters.append(nn.Parameter(torch.zeros(SERVERS, device=trained[0].device)))
        odd = {str(p.dtype) for p in trained} - {"torch.float32"}
        if odd:
            raise TaskError(
                f"the task's model has {', '.join(sorted(odd))} parameters; "
                "Paceline trains float32 ones (model.float())."
            )
        self.device = self.parameters[0].device
        self.on_host = self.from_backward = self.device.type == "cpu"
        self.spans: list[slice] = []  # of each parameter in the flat buffer
        start = 0
        for p in self.parameters:
            self.spans.append(slice(start, start + p.numel()))
            start += p.numel()
        self.size = start
        self._bytes = [4 * p.numel() for p in self.parameters]
        self._short = start <= SMALL and self.on_host
        self._views: dict[int, list[Tensor]] = {}
        first = torch.empty(start, device=self.device)
        views = self.views(first)
        for p, view in zip(self.parameters, views, strict=True):
            view.copy_(p.data)
        self._bind(first, views)

    @property
    def layers(self) -> tuple[int, ...]:
        """The size of each parameter, in the order of the flat buffer."""
        return tuple(span.stop - span.start for span in self.spans)

    @property
    def buffers(self) -> list[Tensor]:
        """State that is not trained but belongs to the model, such as running means."""
        return [b for b in self.model.buffers() if b.dtype == torch.float32]

    def views(self, flat: Tensor) -> list[Tensor]:
        """`flat` as the model's parameters see it."""
        return [flat[s].view(p.shape) for s, p in zip(self.spans, self.parameters, strict=True)]

    def bind(self, flat: Tensor) -> None:
        """From now on the model's parameters live in `flat`. A second time is cheap."""
        self._bind(flat, self._known(flat))

    def _known(self, flat: Tensor) -> list[Tensor]:
        """Views of a buffer that is used again and again: made once."""
        views = self._views.get(flat.data_ptr())
        if views is None:
            views = self._views[flat.data_ptr()] = self.views(flat)
        return views

    def _bind(self, flat: Tensor, views: list[Tensor]) -> None:
        self.flat = flat
        for p, view in zip(self.parameters, views, strict=True):
            p.data = view

    def take_rows(self) -> list[RowGradient | None]:
        """The gradient of each sparse table; None where the batch did not use it."""
        return [table.take() for table in self.tables]

    def restore(self, kept: Tensor, share: slice = slice(None)) -> None:
        """Take the parameters of a checkpoint, or a share of them."""
        place = self.flat[share]
        if kept.numel() != place.numel():
            raise TaskError(
                f"the checkpoint has {kept.numel():,} parameters where the model has "
                f"{place.numel():,}: the task has changed since."
            )
        with torch.no_grad():
            place.copy_(kept)

    def gather(self, out: Tensor, scale: float = 1.0) -> None:
        """Copy the gradients, times `scale`, into the flat `out`; then let go of them."""
        if self._short and scale == 1.0 and self._gathered(out):
            return
        grads = [grad for p in self.parameters if (grad := p.grad) is not None]
        if scale == 1.0 and len(grads) == len(self.parameters):
            torch._foreach_copy_(self._known(out), [grad.detach() for grad in grads])
        else:
            with torch.no_grad():
                for view, p in zip(self._known(out), self.parameters, strict=True):
                    if p.grad is None:  # a layer this batch did not use
                        view.zero_()
                    else:
                        torch.mul(p.grad, scale, out=view)
        self.clear()

    def _gathered(self, out: Tensor) -> bool:
        """The same with as little asked of torch as can be; False if some are not there."""
        grads = [p.grad for p in self.parameters]
        lying = addresses(grads)
        if lying is None:
            return False
        at = out.data_ptr()
        for source, size in zip(lying, self._bytes, strict=True):
            memmove(at, source, size)
            at += size
        self.clear()
        return True

    def scatter(self, flat: Tensor) -> None:
        """Give every parameter its part of a flat gradient."""
        for p, view in zip(self.parameters, self.views(flat), strict=True):
            p.grad = view

    def on_gradient(self, made: Callable[[int], None]) -> None:
        """Have `made` called with a parameter's number whenever backward has its gradient."""
        for index, p in enumerate(self.parameters):
            p.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]
                lambda _, index=index: made(index)
            )

    def take(self, parameter: int) -> Tensor | None:
        """One parameter's gradient in one dimension, which is then the caller's alone."""
        p = self.parameters[parameter]
        grad, p.grad = p.grad, None
        return None if grad is None else grad.reshape(-1)

    def flat_gradients(self) -> list[Tensor | None]:
        """Each parameter's gradient in one dimension, or None where the batch did not use it."""
        return [None if p.grad is None else p.grad.reshape(-1) for p in self.parameters]

    def pieces(self, start: int, stop: int, longest: int | None = None) -> list[Piece]:
        """A range of the flat buffer in pieces that cross no tensor's border."""
        found = []
        for index, span in enumerate(self.spans):
            for at in chunks(max(start, span.start), min(stop, span.stop), longest):
                inside = slice(at.start - span.start, at.stop - span.start)
                found.append(Piece(index, at, None if at == span else inside))
        return found

    def clear(self) -> None:
        """Let go of all gradients but those of tables."""
        for p in self.parameters:
            p.grad = None

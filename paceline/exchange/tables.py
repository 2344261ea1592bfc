"""Sparse tables: parameters of which a batch uses few rows, and only those are exchanged.

A table is [rows, columns]: the weight of a layer that says `sparse`, as an `nn.Embedding` or an
`nn.EmbeddingBag` does that was made so. Its gradient is what autograd makes of it, a sparse tensor.
Everything else of a model is dense, and goes its own way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from paceline.errors import TaskError
from paceline.kernels.arrays import Ids, sparse_of
from paceline.server.rows import RowGradient
from paceline.server.rowview import RowView
from paceline.server.striping import Size
from paceline.transport.memory import Stretch


@dataclass(slots=True)
class Table:
    """One sparse parameter, its memory and that of the update rule's state.

    `together` says that a row's weights and state lie side by side: then an update finds both with
    one look at memory. A layer of torch's own wants its weights by themselves.
    """

    name: str
    modules: list[nn.Module]  # that use it
    parameter: nn.Parameter
    together: bool = False
    zero: bool = False  # at first; memory that nobody has touched is that already
    view: RowView | None = None  # where it lives, once it is bound
    fetched: list[Ids] | None = None  # rows in use in this step, where others are out of date here

    @property
    def rows(self) -> int:
        return self.parameter.shape[0]

    @property
    def columns(self) -> int:
        return self.parameter.shape[1]

    @property
    def size(self) -> Size:
        return Size(self.rows, self.columns)

    def placed(self, memory: Stretch, states: int) -> RowView:
        """Weights and state in flat memory."""
        memory.put_together()
        if self.together:
            return RowView.together(memory, self.size, states)
        whole = memory.floats.view(1 + states, self.rows, self.columns).numpy()
        return RowView(whole[0], whole[1:].transpose(1, 0, 2))

    def bind(self, view: RowView, *, fill: bool) -> None:
        """From now on the parameter lives there; with `fill` it brings its values along."""
        weights = torch.from_numpy(view.weights)
        if fill and not self.zero:
            with torch.no_grad():
                weights.copy_(self.parameter.data)
        self.parameter.data, self.view = weights, view

    def before_use(self, fetch: Callable[[Ids], None]) -> None:
        """Have `fetch` called with the rows that a layer is about to use, each once."""

        def look(
            module: nn.Module, arguments: tuple[Tensor, ...], named: dict[str, Tensor]
        ) -> None:
            rows = torch.unique(arguments[0] if arguments else named["input"]).long().numpy()
            fetch(rows)
            if torch.is_grad_enabled():  # else nothing comes of it that they would be held against
                fetched.append(rows)

        fetched: list[Ids] = []
        self.fetched = fetched
        for module in self.modules:
            if self.together:
                module.fetch = fetch  # type: ignore[assignment]
            else:
                module.register_forward_pre_hook(look, with_kwargs=True)

    def work_in_place(self, how: Callable[..., Any] | None) -> None:
        """Whether a layer that can is to find gradients and use them at once, and how."""
        for module in self.modules:
            if hasattr(module, "in_place"):
                module.in_place = how  # type: ignore[assignment]

    def rows_in_use(self) -> Tensor:
        """All that is not zero, as a sparse tensor."""
        from paceline.server.rowkeep import used_rows

        assert self.view is not None
        rows = used_rows(self.view)
        return sparse_of(rows, self.view.weights[rows], self.parameter.shape)

    def take(self) -> RowGradient | None:
        """Its gradient, which is then the caller's alone; None if the batch did not use it."""
        grad, self.parameter.grad = self.parameter.grad, None
        if grad is None:
            return None
        if not grad.is_sparse:
            raise TaskError(
                f"'{self.name}' is a sparse table, and its gradient is dense: make its layer with "
                "sparse=False, or do not use its weight outside the layer."
            )
        grad = grad.coalesce()
        found = RowGradient(grad.indices()[0].numpy(), grad.values().numpy())
        self._check(found.rows)
        return found

    def _check(self, rows: Ids) -> None:
        """Rows that were not fetched first were out of date when they were used."""
        if self.together or self.fetched is None:
            return
        first, *more = self.fetched or [np.empty(0, np.int64)]
        self.fetched.clear()
        same = not more and np.array_equal(rows, first)  # as most often
        if not same and not np.isin(rows, np.concatenate([first, *more])).all():
            raise TaskError(
                f"'{self.name}' is a sparse table, and was used without its layer, whose rows are "
                "fetched when it is called: call the layer, or make it with sparse=False."
            )


def tables_of(model: nn.Module) -> list[Table]:
    """The sparse tables of a model, in the order of its modules, each once."""
    found: dict[int, Table] = {}
    for name, module in model.named_modules():
        weight = getattr(module, "weight", None)
        torchs = isinstance(module, nn.Embedding | nn.EmbeddingBag)
        if getattr(module, "sparse", False) is not True or not (torchs or hasattr(module, "fetch")):
            continue
        if not isinstance(weight, nn.Parameter) or not weight.requires_grad:
            continue
        if getattr(module, "max_norm", None) is not None:
            raise TaskError(
                f"'{name}' is a sparse table with max_norm, which changes rows as they are looked "
                "up, and only an update may: leave max_norm out, or make it with sparse=False."
            )
        if id(weight) in found:
            found[id(weight)].modules.append(module)
            continue
        full = f"{name}.weight" if name else "weight"
        found[id(weight)] = Table(full, [module], weight, together=not torchs, zero=not torchs)
    return list(found.values())


def make_dense(model: nn.Module) -> None:
    """Have gradients of all its tables be dense, so that there are none."""
    for table in tables_of(model):
        for module in table.modules:
            module.sparse = False  # type: ignore[assignment]

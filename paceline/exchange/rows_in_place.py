"""Rows that are changed where they lie, by whoever has a gradient.

They are in memory of the worker's own; or in everybody's, without locks, where two who change a row
at once may lose one of the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from paceline.exchange.base import Among, Copied, Post
from paceline.exchange.rows import Push, Pushed, Rows, as_arrays, as_tensors, begins
from paceline.exchange.tables import Table
from paceline.server.popular import Popular
from paceline.server.rowkeep import kept_rows, put_rows
from paceline.server.rowrules import RowRule
from paceline.server.rowview import RowView
from paceline.transport.memory import own_stretch


class RowsInPlace(Rows):
    """Each gradient is applied when it is there."""

    shared = True

    def __init__(self, post: Post) -> None:
        self._post = post
        self._rule = RowRule(post.rule, post.hyper)

    def bind(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._views = [self._placed(number, table) for number, table in enumerate(tables)]
        fill = not self._post.tables or begins(self._post)
        for table, view in zip(tables, self._views, strict=True):
            table.bind(view, fill=fill)

    def _placed(self, number: int, table: Table) -> RowView:
        states, shared = self._rule.states, self._post.tables
        memory = shared[number] if shared else own_stretch(table.size.held(states))
        return table.placed(memory, states)

    def push(self, push: Push, found: Pushed) -> None:
        for view, gradient in zip(self._views, found, strict=True):
            if gradient is not None and push.weight:
                self._rule(view.weights, view.state, *gradient, push.lr, push.version)
        for table in self._tables:
            table.work_in_place(None)

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """The first keeps what is everybody's, while others may go on changing it."""
        mine = not self._post.tables or among.first
        return as_tensors(kept_rows(self._views, "")) if mine else {}

    def restore(self, kept: dict[str, Tensor]) -> None:
        if not self._post.tables or self._post.first:
            put_rows(self._views, "", as_arrays(kept))


class AtOnce(RowsInPlace):
    """For `hogwild`: a layer that can (`in_place`) changes its rows sample by sample as it goes.

    What costs is to find a row in memory; that is then done once. Of several workers each keeps
    popular rows for itself for some samples, where the rule allows it.
    """

    def bind(self, tables: Sequence[Table]) -> None:
        """Loops are brought here before the first step, which would wait for them."""
        super().bind(tables)
        several = self._post.workers > 1 and self._rule.adds_up
        width = 1 + self._rule.states
        self._popular = [Popular(width) if several else None for _ in tables]
        nowhere, nothing = np.empty(0, np.int64), np.empty(0, np.float32)
        for _, loop in self._loops(0.0, 1):
            loop(nowhere, nowhere, nowhere, nothing, np.float32(0), np.float32(0))

    def expect(self, lr: float, version: int) -> None:
        for table, loop in self._loops(lr, version):
            table.work_in_place(loop)

    def _loops(self, lr: float, version: int) -> Iterator[tuple[Table, Callable[..., Any]]]:
        """Of each table that is for samples one by one."""
        for table, view, popular in zip(self._tables, self._views, self._popular, strict=True):
            if table.together:
                yield table, self._rule.descending(view.whole, lr, version, popular)

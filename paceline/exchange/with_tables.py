"""An exchange of everything dense, and beside it one of the rows of sparse tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from paceline.exchange.base import Among, Copied, Exchange, Gradient, Hosted, Outcome, Post
from paceline.exchange.replica import Replica
from paceline.exchange.rows import Push, Rows
from paceline.exchange.traffic import FLOAT_BYTES, added
from paceline.types import Traffic

ROWS = "rows."


def _told(name: str) -> Any:
    """What the dense exchange tells of itself holds for both."""
    return property(
        lambda both: getattr(both._dense, name),
        lambda both, value: setattr(both._dense, name, value),
    )


class WithTables(Exchange):
    """Steps as the dense exchange does, which says who goes on where."""

    summed, taken, round = _told("summed"), _told("taken"), _told("round")
    share, generation, over = _told("share"), _told("generation"), _told("over")

    def __init__(self, post: Post, dense: Exchange, rows: Rows) -> None:
        self._post = post
        self._dense = dense
        self._rows = rows
        self._version = 0

    @property
    def sent(self) -> int:  # type: ignore[override]
        return self._dense.sent + self._rows.sent

    @property
    def received(self) -> int:  # type: ignore[override]
        return self._dense.received + self._rows.received

    def traffic(self) -> tuple[Traffic, ...]:
        return added((*self._dense.traffic(), *self._rows.traffic()))

    def start(self, replica: Replica) -> None:
        """Others meet whoever is first once its parameters are there, those of tables too."""
        self._replica = replica
        before = self._post.first or self._rows.shared
        if before:
            self._rows.bind(replica.tables)
        self._dense.start(replica)
        if not before:
            self._rows.bind(replica.tables)
        self._rows.start(self._dense.closed)
        self._version = self._dense.updates

    def expect(self, gradient: Gradient) -> None:
        self._rows.expect(gradient.lr, self._version + 1)
        self._dense.expect(gradient)

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        rows, began = self._rows, time.monotonic()
        fetched, rows.fetched = rows.fetched, 0.0
        before = rows.waited, rows.updated
        push = Push(self.taken + 1, self._version + 1, gradient.lr, gradient.weight)
        rows.push(push, self._replica.take_rows())
        pushed = time.monotonic()
        outcome = self._dense.step(gradient, meanwhile)
        closed = time.monotonic()
        rows.settle(self._dense.closed)
        self._version = outcome.version
        waited, updated = rows.waited - before[0], rows.updated - before[1]
        ended = time.monotonic()
        spent = pushed - began + ended - closed - waited - updated
        return outcome._replace(
            began=began,
            ended=ended,
            push=outcome.push + spent,
            pull=outcome.pull + fetched,
            wait=outcome.wait + waited,
            update=outcome.update + updated,
            fetched=fetched,
        )

    def finish(self) -> None:
        self._dense.finish()

    def leave(self) -> None:
        self._dense.leave()

    def close(self) -> None:
        self._dense.close()

    def complete(self) -> None:
        self._rows.complete()

    def regroup(self) -> None:
        self._dense.regroup()

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """What is dense first: steps that it counts have changed their rows by then."""
        kept = self._dense.keep(among, copied)
        rows = self._rows.keep(among, lambda name, tensor: copied(ROWS + name, tensor))
        return kept | {ROWS + name: tensor for name, tensor in rows.items()}

    def restore(self, kept: dict[str, Tensor]) -> None:
        """A push that only some of it has is taken again; who has it leaves it out."""
        rows = {n.removeprefix(ROWS): t for n, t in kept.items() if n.startswith(ROWS)}
        self._rows.restore(rows)
        self._dense.restore({n: t for n, t in kept.items() if not n.startswith(ROWS)})
        if (pushed := self._rows.pushed()) is not None:
            self.taken = min(self.taken, pushed)
        self._version = self._dense.updates

    def coding(self) -> dict[str, float] | None:
        return self._dense.coding()

    def hosted(self) -> list[Hosted]:
        """Rows are spread evenly over all servers."""
        weights = sum(table.size.held(0) for table in self._replica.tables) * FLOAT_BYTES
        each = weights // max(1, len(self._post.shards))
        return [replace(one, holds=one.holds + each) for one in self._dense.hosted()]

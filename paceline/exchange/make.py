"""From a strategy's name to a worker's end of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from paceline.exchange.base import Exchange, Post
from paceline.exchange.layout import outer_rule, small
from paceline.server.rules import Hyper
from paceline.spec import RunSpec

if TYPE_CHECKING:
    from paceline.exchange.rows import Rows


def make_exchange(spec: RunSpec, post: Post, tables: int = 0) -> Exchange:
    """With `tables`, the model has so many sparse ones."""
    dense = _dense(spec, post)
    if not tables:
        return dense
    from paceline.exchange.with_tables import WithTables

    return WithTables(post, dense, _rows(spec, post, dense))


def _rows(spec: RunSpec, post: Post, dense: Exchange) -> Rows:
    if spec.kind.served and spec.transport == "tcp":
        from paceline.exchange.rows_served import RowsServed
        from paceline.exchange.served import Served

        assert isinstance(dense, Served)
        return RowsServed(post, dense)
    if post.table_board is None:
        from paceline.exchange.rows_in_place import AtOnce, RowsInPlace

        return AtOnce(post) if spec.strategy == "hogwild" else RowsInPlace(post)
    from paceline.exchange.rows_shared import RowsAtOnce, RowsInRounds

    return RowsAtOnce(post) if spec.kind.samples == "leases" else RowsInRounds(post)


def _dense(spec: RunSpec, post: Post) -> Exchange:
    match spec.strategy:
        case "single" | "independent":
            from paceline.exchange.local import Local

            return Local(post)
        case "allreduce":
            from paceline.exchange.allreduce import AllReduce

            # A user's own optimizer comes with a loss that knows nothing of the others.
            return AllReduce(post, summed=post.apply is None)
        case "local-sgd":
            return _local_sgd(spec, post)
        case "hogwild":
            from paceline.exchange.hogwild import Hogwild

            return Hogwild(post)
    if post.board is None:
        from paceline.exchange.served import Served

        return Served(post, in_rounds=spec.kind.samples == "slices")
    return _shared(spec, post)


def _shared(spec: RunSpec, post: Post) -> Exchange:
    if spec.kind.samples == "leases":
        from paceline.exchange.shared_async import SharedAsync

        return SharedAsync(post)
    if post.backup:
        from paceline.exchange.shared_backup import SharedBackup

        return SharedBackup(post)
    assert post.params is not None
    if small(spec, post.params.shape[1]):
        from paceline.exchange.shared_small import SharedSmall

        return SharedSmall(post)
    from paceline.exchange.shared_sync import SharedSync

    return SharedSync(post)


def _local_sgd(spec: RunSpec, post: Post) -> Exchange:
    from paceline.exchange.allreduce import AllReduce
    from paceline.exchange.local import Local
    from paceline.exchange.local_sgd import LocalSgd
    from paceline.exchange.shared_sync import SharedSync

    hyper = Hyper(momentum=spec.outer_momentum or 0.0)
    outer_post = replace(post, rule=outer_rule(spec), hyper=hyper, apply=None)
    shared = post.board is not None
    outer = SharedSync(outer_post) if shared else AllReduce(outer_post, summed=False)
    return LocalSgd(Local(post), outer, spec.sync_every or 1, spec.outer_lr or 1.0)

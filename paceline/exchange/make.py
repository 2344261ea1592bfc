"""From a strategy's name to a worker's end of it."""

from __future__ import annotations

from paceline.exchange.base import Exchange, Post
from paceline.exchange.catalog import Strategy


def make_exchange(strategy: Strategy, post: Post) -> Exchange:
    if strategy.name == "allreduce":
        from paceline.exchange.allreduce import AllReduce

        return AllReduce(post)
    if not strategy.served:
        from paceline.exchange.local import Local

        return Local(post)
    if post.board is None:
        from paceline.exchange.served import Served

        return Served(post)
    if strategy.name == "ps-sync":
        from paceline.exchange.shared_sync import SharedSync

        return SharedSync(post)
    from paceline.exchange.shared_async import SharedAsync

    return SharedAsync(post)

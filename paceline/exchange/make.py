"""From a strategy's name to a worker's end of it."""

from __future__ import annotations

from paceline.exchange.base import Exchange, Post
from paceline.exchange.catalog import Strategy


def make_exchange(strategy: Strategy, post: Post) -> Exchange:
    if strategy.served:
        from paceline.exchange.served import Served

        return Served(post)
    if strategy.name == "allreduce":
        from paceline.exchange.allreduce import AllReduce

        return AllReduce(post)
    from paceline.exchange.local import Local

    return Local(post)

"""Small neighbours as one: what they cover, and what their gradients are."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from paceline.exchange.base import Gradient, Post
from paceline.exchange.buckets import buckets
from paceline.exchange.layout import layout
from paceline.exchange.replica import Replica
from paceline.exchange.shared_async import SharedAsync
from paceline.server.rules import CHUNK, Hyper, make_rule
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.transport.board import size_board


class Layers(nn.Module):
    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self.rows = nn.ParameterList(nn.Parameter(torch.randn(size)) for size in sizes)


SIZES = st.lists(st.sampled_from([1, 7, 300, CHUNK - 1, CHUNK, CHUNK + 5]), min_size=1, max_size=6)


@given(sizes=SIZES, fuse=st.booleans(), data=st.data())
def test_they_cover_a_range_and_fit_the_cache(
    sizes: list[int], fuse: bool, data: st.DataObject
) -> None:
    replica = Replica(Layers(*sizes))
    start = data.draw(st.integers(0, replica.size))
    stop = data.draw(st.integers(start, replica.size))
    found = buckets(replica, start, stop, fuse=fuse)
    edges = [start, *(bucket.at.stop for bucket in found)]
    assert [bucket.at.start for bucket in found] == edges[:-1]
    assert edges[-1] == stop
    assert all(b.at.stop - b.at.start <= CHUNK for b in found)
    if not fuse:
        assert all(len(bucket.pieces) == 1 for bucket in found)


@given(sizes=SIZES, missing=st.sets(st.integers(0, 5)))
def test_their_gradients_are_those_of_the_parameters(sizes: list[int], missing: set[int]) -> None:
    replica = Replica(Layers(*sizes))
    grads = [None if n in missing else torch.randn(size) for n, size in enumerate(sizes)]
    for bucket in buckets(replica, 0, replica.size):
        whole = bucket.gradient(grads)
        lost = any(grads[piece.parameter] is None for piece in bucket.pieces)
        assert (whole is None) == lost
        parts = {piece.at.start: grad for piece, grad in bucket.apart(grads)}
        for piece in bucket.pieces:
            grad = grads[piece.parameter]
            if grad is None:
                assert piece.at.start not in parts
                continue
            assert torch.equal(parts[piece.at.start], piece.of(grad))
            if whole is not None:
                begin = piece.at.start - bucket.at.start
                got = whole[begin : begin + piece.at.stop - piece.at.start]
                assert torch.equal(got, piece.of(grad))


def test_few_small_layers_are_one() -> None:
    replica = Replica(Layers(7840, 10, 25, 3))
    assert len(buckets(replica, 0, replica.size)) == 1


@pytest.fixture
def board() -> Iterator[int]:
    fd = memory.new_segment("test")
    yield fd
    os.close(fd)


@pytest.mark.skipif(not memory.available(), reason="no memfd here")
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam", "lamb"])
def test_a_layer_without_a_gradient_stays_as_it_is(rule: str, board: int) -> None:
    """Beside layers that have one, in the same bucket: as if each were updated by itself."""
    replica = Replica(Layers(5, 3, 4))
    spec = RunSpec(strategy="ps-async", transport="shm", workers=2, optimizer=rule)
    need = layout(spec, replica.size, 1, 3)
    size_board(board, need.board)
    post = Post(
        index=0,
        workers=2,
        rule=rule,
        hyper=Hyper(),
        shards=((0, replica.size),),
        board=board,
        params=torch.zeros(need.params, replica.size),
        state=torch.zeros(need.state, replica.size) if need.state else None,
        journal=torch.zeros(need.journal),
    )
    due = [p.detach().clone() for p in replica.parameters]
    alone = [make_rule(rule, len(values), Hyper()) for values in due]
    exchange = SharedAsync(post)
    exchange.start(replica)
    for t in range(1, 6):
        grads: list[Tensor | None] = [torch.randn_like(values) for values in due]
        if t % 2:
            grads[t % 3] = None
        for p, values, own, grad in zip(replica.parameters, due, alone, grads, strict=True):
            p.grad = grad
            if grad is not None:
                own.update([(values, values, grad.clone(), slice(0, len(values)))], 0.1, t)
        exchange.step(Gradient(1, 1, 0.1, False), lambda: 0.0)
        for p, values in zip(replica.parameters, due, strict=True):
            torch.testing.assert_close(p.detach(), values)

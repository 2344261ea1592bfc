"""Small neighbours of the flat buffer as one: a call for each of them would cost more than they do.

A parameter's gradient is used where backward left it. Those of small parameters that lie side by
side are copied side by side first, and are one gradient from there on.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from paceline.exchange.joining import Grads, join
from paceline.exchange.replica import Piece, Replica
from paceline.server.rules import CHUNK


class Bucket(NamedTuple):
    """Pieces that are part `at` of the flat buffer."""

    at: slice
    pieces: list[Piece]
    side_by_side: Tensor | None = None  # where there is more than one
    views: tuple[Tensor, ...] = ()  # of that, as the parameters see it

    def gradient(self, grads: Grads) -> Tensor | None:
        """Of all of it, in one dimension; None if some of it has none."""
        if self.side_by_side is None:
            grad = grads[self.pieces[0].parameter]
            return None if grad is None else self.pieces[0].of(grad.reshape(-1))
        found = [grad for piece in self.pieces if (grad := grads[piece.parameter]) is not None]
        if len(found) < len(self.pieces):
            return None
        if found[0].is_cpu:
            join(self.side_by_side, found)
        else:
            torch._foreach_copy_(self.views, found)
        return self.side_by_side

    def apart(self, grads: Grads) -> list[tuple[Piece, Tensor]]:
        """Each piece that has a gradient."""
        return [
            (piece, piece.of(grad.reshape(-1)))
            for piece in self.pieces
            if (grad := grads[piece.parameter]) is not None
        ]

    def lying(self) -> list[tuple[int, int, int, int]]:
        """Of each piece the parameter, how many bytes it is from the flat buffer's begin and from
        the parameter's, and how many numbers it has."""
        return [
            (p.parameter, 4 * p.at.start, 4 * p.begin, p.at.stop - p.at.start) for p in self.pieces
        ]


def buckets(replica: Replica, start: int, stop: int, *, fuse: bool = True) -> list[Bucket]:
    """A range of the flat buffer in buckets of at most CHUNK; unless `fuse`, of one piece each."""
    groups: list[list[Piece]] = []
    for piece in replica.pieces(start, stop):
        group = groups[-1] if groups else []
        whole = piece.inside is None and all(p.inside is None for p in group)
        if fuse and group and whole and piece.at.stop - group[0].at.start <= CHUNK:
            group.append(piece)
        else:
            groups.append([piece])
    return [_bucket(replica, group) for group in groups]


def _bucket(replica: Replica, pieces: list[Piece]) -> Bucket:
    at = slice(pieces[0].at.start, pieces[-1].at.stop)
    if len(pieces) == 1:
        return Bucket(at, pieces)
    flat = torch.empty(at.stop - at.start)
    views = tuple(
        flat[p.at.start - at.start : p.at.stop - at.start].view_as(replica.parameters[p.parameter])
        for p in pieces
    )
    return Bucket(at, pieces, flat, views)

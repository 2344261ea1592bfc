"""Fewer points than were recorded, and honestly so: means of equal pieces, with their extremes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

POINTS = 1000  # a line, at most: more than a screen shows

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Thinned:
    """Of each piece that has any: the middle of its x, and the mean and extremes of its y."""

    x: Array
    mean: Array
    low: Array
    high: Array
    each: float  # points that were put together to one, on average


def thin(x: npt.ArrayLike, y: npt.ArrayLike, points: int = POINTS) -> Thinned:
    """At most `points` of a line, whose x ascends. What is not finite counts in no mean.

    Pieces are equally wide in x. Where there are few points they stay what they are.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = np.isfinite(xs) & np.isfinite(ys)
    xs, ys = xs[known], ys[known]
    if len(xs) <= points:
        return Thinned(xs, ys, ys, ys, 1.0)
    width = (xs[-1] - xs[0]) / points
    piece = np.minimum((xs - xs[0]) / width, points - 1).astype(np.int64) if width > 0 else None
    first = np.zeros(1, np.int64) if piece is None else np.flatnonzero(np.diff(piece, prepend=-1))
    count = np.diff(first, append=len(xs))
    return Thinned(
        np.add.reduceat(xs, first) / count,
        np.add.reduceat(ys, first) / count,
        np.minimum.reduceat(ys, first),
        np.maximum.reduceat(ys, first),
        len(xs) / len(first),
    )

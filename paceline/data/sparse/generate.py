"""Click-like rows, made: categorical fields, a few values of which are most of the rows.

Field f has Nf values; the chance of the r-th is proportional to 1 / (r + 1)^s, of the continuous
law cut at Nf, which is drawn by inversion:

    r = ⌊(1 + u (Nf^(1−s) − 1))^(1/(1−s))⌋ − 1,        u uniform

Numbers of features are scattered over the whole range, as hashing would. Every feature has a true
weight, found from its number alone, and a label is 1 with the chance 1 / (1 + e⁻ᶻ), where z is the
sum of a row's weights and a bias. So the least log loss that anybody can reach is known.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from paceline.data.shape import CLICK_FIELDS
from paceline.data.sparse.hashing import mixed
from paceline.data.sparse.text import Parsed
from paceline.kernels.jit import compiled, inlined

FIELDS = CLICK_FIELDS
SMALL, BUCKETS = 13, 40  # fields that are counts, and values of each
LARGE = 9e6  # values of the largest field, before all are made to add up
EXPONENT = 1.1
WEIGHT, BIAS = 0.35, -1.1
SCATTER = np.uint64(2654435761)  # a prime: no two features get the same number
NEXT = np.uint64(0x9E3779B97F4A7C15)
UNIT = 2.0**-53


class Clicks(NamedTuple):
    """Rows, and the least mean log loss that could be had on them."""

    rows: Parsed
    floor: float


def fields(features: int) -> npt.NDArray[np.int64]:
    """How many values each field has; together all features."""
    small = np.full(SMALL, min(BUCKETS, features // FIELDS), np.int64)
    rest = features - int(small.sum())
    shape = np.exp(np.linspace(math.log(4), math.log(LARGE), FIELDS - SMALL))
    large = np.maximum(1, (shape * (rest / shape.sum())).astype(np.int64))
    large[-1] += rest - int(large.sum())
    return np.concatenate((small, large))


def clicks(first: int, count: int, features: int, seed: int) -> Clicks:
    """Rows numbered from `first` on: the same in whatever pieces they are asked for."""
    labels, ids = np.empty(count, np.uint8), np.empty((count, FIELDS), np.int32)
    loss = _make(first, fields(features), np.uint64(features), np.uint64(seed), labels, ids)
    rows = Parsed(labels, ids.reshape(-1), None, None, count, 0, [])
    return Clicks(rows, loss / max(1, count))


def weights(ids: npt.NDArray[np.int32]) -> npt.NDArray[np.float64]:
    """The true weight of each of these features."""
    found = np.empty(len(ids))
    for place, id_ in enumerate(ids.tolist()):
        found[place] = true_weight(np.uint64(id_))
    return found


@compiled
def _make(first, sizes, features, seed, labels, ids):  # type: ignore[no-untyped-def]
    starts = np.cumsum(sizes) - sizes
    total = 0.0
    for row in range(len(labels)):
        state = mixed((np.uint64(first + row) + np.uint64(1)) * NEXT ^ mixed(seed + NEXT))
        z = BIAS
        for field in range(len(sizes)):
            state += NEXT
            u = (mixed(state) >> np.uint64(11)) * UNIT
            span = float(sizes[field]) ** (1 - EXPONENT) - 1.0
            rank = int((1.0 + u * span) ** (1 / (1 - EXPONENT))) - 1
            rank = min(max(rank, 0), sizes[field] - 1)
            id_ = (np.uint64(starts[field] + rank) * SCATTER) % features
            ids[row, field] = id_
            z += true_weight(id_)
        state += NEXT
        u = (mixed(state) >> np.uint64(11)) * UNIT
        chance = 1.0 / (1.0 + math.exp(-z))
        labels[row] = u < chance
        total += math.log1p(math.exp(-abs(z))) + max(z, 0.0) - labels[row] * z
    return total


@inlined
def true_weight(id_):  # type: ignore[no-untyped-def]
    """Nearly normal: four sixteen-bit numbers, added up."""
    h = mixed((id_ + np.uint64(1)) * NEXT)
    total = 0.0
    for part in range(4):
        total += float((h >> np.uint64(16 * part)) & np.uint64(0xFFFF)) / 65536.0
    return (total - 2.0) * WEIGHT

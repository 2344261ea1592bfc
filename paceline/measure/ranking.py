"""How well scores rank: from two histograms, which add up over batches, workers and hosts.

A scoring of two classes is kept as how many samples of each class have their score in each of many
narrow bins, and the sum of the chances that were told. From that come, whoever scored what:

    auc           the chance that a sample of class 1 has a higher score than one of class 0;
                  those of the same bin count half
    calibration   chances told over samples of class 1: 1 is right, above 1 is too sure of it
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

RANKS = "ranks"  # what such a histogram is called among metrics
BINS = 4096  # a class
EDGE = 16.0  # scores beyond are as good as certain


def quality(ranks: Sequence[float]) -> dict[str, float]:
    """AUC and calibration from means over samples: counts of class 0, of class 1, and chances."""
    counts = np.asarray(ranks, np.float64)
    low, high, chances = counts[:BINS], counts[BINS : 2 * BINS], float(counts[2 * BINS])
    found: dict[str, float] = {}
    if low.sum() > 0 and high.sum() > 0:
        below = np.cumsum(low) - low
        found["auc"] = float((high * (below + low / 2)).sum() / (low.sum() * high.sum()))
    if high.sum() > 0:
        found["calibration"] = chances / float(high.sum())
    return found

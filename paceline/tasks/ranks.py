"""Scores of two classes as a metric that adds up: `measure/ranking.py` says what becomes of it."""

from __future__ import annotations

import torch
from torch import Tensor

from paceline.measure.ranking import BINS, EDGE


def ranks(scores: Tensor, labels: Tensor) -> Tensor:
    """`scores` are log-odds, `labels` 0 or 1: name it "ranks" among a task's metrics."""
    bins = ((scores + EDGE) * (BINS / (2 * EDGE))).long().clamp_(0, BINS - 1)
    places = bins + BINS * labels.long()
    counts = torch.bincount(places, minlength=2 * BINS).double()
    return torch.cat((counts, scores.double().sigmoid().sum()[None])) / max(1, len(scores))

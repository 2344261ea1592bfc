"""AUC and calibration from histograms that add up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from paceline.measure.ranking import quality
from paceline.tasks.ranks import ranks


def exact(scores: np.ndarray, labels: np.ndarray) -> float:
    """The chance that one of class 1 is above one of class 0, by looking at all pairs."""
    high, low = scores[labels == 1], scores[labels == 0]
    return float((high[:, None] > low).mean() + (high[:, None] == low).mean() / 2)


@pytest.mark.parametrize("seed", range(5))
def test_auc_is_that_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = (rng.random(600) < 0.2).astype(np.float32)
    scores = (rng.normal(size=600) + labels).astype(np.float32) * rng.uniform(0.5, 4)
    found = quality(ranks(torch.from_numpy(scores), torch.from_numpy(labels)).tolist())
    assert found["auc"] == pytest.approx(exact(scores, labels), abs=2e-3)
    chances = 1 / (1 + np.exp(-scores.astype(float)))
    assert found["calibration"] == pytest.approx(chances.sum() / labels.sum(), rel=1e-5)


def test_parts_add_up_to_the_whole() -> None:
    scores, labels = torch.linspace(-40, 40, 90), torch.tensor([0.0, 1.0, 1.0] * 30)
    whole = ranks(scores, labels)
    parts = [ranks(scores[a:b], labels[a:b]) * (b - a) for a, b in ((0, 20), (20, 21), (21, 90))]
    torch.testing.assert_close(sum(parts) / 90, whole)


def test_of_one_class_alone_there_is_no_auc() -> None:
    none = quality(ranks(torch.zeros(4), torch.zeros(4)).tolist())
    assert none == {}
    ones = quality(ranks(torch.zeros(4), torch.ones(4)).tolist())
    assert ones == {"calibration": pytest.approx(0.5)}

"""What part of the batch each worker had, where that follows its speed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paceline.store.steps import Steps


def shares(steps: Mapping[str, Steps]) -> dict[str, dict[str, float]]:
    """By worker: its `mean` part of all samples, and its `last` of a round whose batch was whole.

    Rounds are told apart by the version they made: a worker may have missed some.
    """
    if not steps:
        return {}
    versions = np.concatenate([taken["version"] for taken in steps.values()])
    samples = np.concatenate([taken["samples"] for taken in steps.values()])
    rounds, which = np.unique(versions, return_inverse=True)
    totals = np.bincount(which, weights=samples)
    if not totals.any():
        return {}
    most = totals.max()
    last = rounds[np.flatnonzero(totals == most)[-1]]
    return {
        role: {
            "mean": float(taken["samples"].sum(dtype=np.float64) / totals.sum()),
            "last": float(taken["samples"][taken["version"] == last].sum() / most),
        }
        for role, taken in steps.items()
    }

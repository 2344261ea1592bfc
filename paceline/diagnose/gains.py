"""How much faster a run should be without something, from what it takes of the time.

    gone(s)        1 / (1 − s)                            s of the time is no longer needed (Amdahl)
    fewer(s, k)    1 / (1 − s + s / k)                    s of it is needed k times less often
    batched        k / (s + (1 − s) · k)                  k times the batch; s does not grow with it

A range covers what the records do not tell: how much of computing is a fixed cost of each step, how
much of a remedy takes hold. It is widened by how unsteady the rate was, since a gain is a ratio of
two such rates.
"""

from __future__ import annotations

import math

from paceline.diagnose.evidence import COMPUTE, Evidence
from paceline.diagnose.finding import Gain

UNSTEADY, WILD = 0.05, 0.25  # the least that two runs of one spec differ by, and the most
MOST = 0.95  # of the time: nothing is gone altogether
FLOPS = 2e10  # a second and core: more than a core gets of a small model
ENOUGH = 0.2  # of the time: an exchange that takes less is not worth a larger batch
LARGEST = 8  # times


def gone(share: float) -> float:
    return 1.0 / (1.0 - min(MOST, max(0.0, share)))


def fewer(share: float, times: float) -> float:
    return gone(share * (1.0 - 1.0 / times))


def batched(fixed: float, times: float) -> float:
    fixed = min(1.0, max(0.0, fixed))
    return times / (fixed + (1.0 - fixed) * times)


def between(e: Evidence, low: float, high: float) -> Gain:
    """The range of a gain, with the unsteadiness of a ratio of two rates; never below 1."""
    around = 1.0 + math.sqrt(2) * min(WILD, max(UNSTEADY, e.error or 0.0))
    low, high = min(low, high), max(low, high)
    return Gain(max(1.0, low / around), max(1.0, high * around))


def larger_batch(e: Evidence, fixed: float) -> tuple[int, Gain] | None:
    """How many times the batch would make `fixed` a small part of the time, and the gain of that.

    At least all of computing grows with the batch (low), at most what arithmetic itself needs
    (high). None where the data is too small for it.
    """
    if not 0.0 < fixed < 1.0 or not e.spec.batch:
        return None
    wanted = fixed * (1 - ENOUGH) / (ENOUGH * (1 - fixed))
    times = 2
    while times < min(wanted, LARGEST):
        times *= 2
    whole = e.spec.step_samples * max(1, len(e.workers))
    while e.samples and times > 1 and whole * times * 4 > e.samples:  # some rounds an epoch
        times //= 2
    if times < 2:
        return None
    most = min(1.0, fixed + e.share(*COMPUTE) * fixed_computing(e))
    return times, between(e, batched(fixed, times), batched(most, times))


def fixed_computing(e: Evidence) -> float:
    """The most of a step's computing that may not depend on the batch: what is left after the
    arithmetic of a dense model, six operations a parameter and sample."""
    seconds = e.share(*COMPUTE) * e.seconds / e.steps if e.steps else 0.0
    if not seconds or not e.parameters or not e.spec.batch:
        return 1.0
    arithmetic = 6.0 * e.parameters * e.spec.step_samples / (FLOPS * max(1, e.threads or 1))
    return max(0.0, 1.0 - arithmetic / seconds)

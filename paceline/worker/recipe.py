"""Learning-rate recipes: the rate as a function of how far the run is, counted in samples.

An update is one change of the parameters. A task's own rate is right for its own batch, so with
U samples behind an update and R in the task's batch, the rate grows by the factor k = U / R:

    peak     p = lr · k  (linear)     sgd and its kin: one step of k batches for k steps of one
             p = lr · √k (sqrt)       rules that divide by the gradient's size: keeps the noise
             p = lr      (none)

With the root goes Adam's second moment, which should remember as many samples as before, not as
many updates: β₂ = 0.999ᵏ, as far down as β₁ (Malladi et al., 2022).

With s samples of the run drawn before a step, T in all and W of them warm-up:

    rate(s) = f + (p − f) · s / W            s < W
            = p · fall((s − W) / (T − W))    s ≥ W
    fall(x) = 1 (none),  1 − x (linear),  (1 + cos πx) / 2 (cosine)

f is lr itself where p is larger, else p · U / W. So the rate is the same for every worker, however
many there are, and a run that goes on from sample s goes on with the rate it had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from paceline.server.catalog import STEADY
from paceline.spec import RunSpec
from paceline.types import Facts

# Rules that divide by the gradient's size. The others take it as it is.
ROOTED = frozenset({"adagrad", "adam", "adamw", "ftrl", "lamb"})
WARMUP = 0.1  # of the run, where the rate is scaled up
DECAY: Literal["linear"] = "linear"  # where nothing else is said
BETA1, BETA2 = 0.9, 0.999  # what Adam and its kin remember, by default


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a run's rate follows. `update`, `warmup` and `total` count samples."""

    update: int
    first: float
    peak: float
    beta2: float
    warmup: float
    total: int
    decay: str

    @classmethod
    def of(cls, spec: RunSpec, facts: Facts) -> Recipe:
        """The recipe of a spec that is resolved."""
        lr, peak = spec.lr or facts.lr, _peak(spec, facts)
        update, warmup = _update(spec, facts), (spec.warmup or 0.0) * facts.samples
        return cls(
            update=update,
            first=lr if peak > lr else peak * min(1.0, update / warmup) if warmup else peak,
            peak=peak,
            beta2=beta2(spec, facts),
            warmup=warmup,
            total=_total(spec, facts),
            decay=spec.decay,
        )

    def rate(self, seen: int) -> float:
        """The rate of a step before which `seen` samples of the run were drawn."""
        if seen < self.warmup:
            return self.first + (self.peak - self.first) * seen / self.warmup
        if self.decay == "none" or self.total <= self.warmup:
            return self.peak
        done = min(1.0, (seen - self.warmup) / (self.total - self.warmup))
        if self.decay == "linear":
            return self.peak * (1 - done)
        return self.peak * (1 + math.cos(math.pi * done)) / 2


def settle(spec: RunSpec, facts: Facts, *, given: bool) -> RunSpec:
    """The spec with its recipe said in full. `given`: the rate is the user's, not the task's.

    A rate that was given is used as it is, at all times, unless a way to scale it is given too.
    The task's own grows with the update, and does not shrink unless that is asked for by name.
    """
    scale, decay = spec.scale_lr, spec.decay
    steady = spec.optimizer in STEADY
    if decay == "auto":
        decay = "none" if steady or (given and scale == "auto") else DECAY
    if scale == "auto":
        # Below the task's own batch the task's own rate did better than a smaller one.
        scaled = not given and _update(spec, facts) > facts.batch
        scale = "none" if not scaled else "sqrt" if spec.optimizer in ROOTED else "linear"
    spec = spec.with_(scale_lr=scale, decay=decay)
    if spec.warmup is None:
        rises = not steady and _peak(spec, facts) > (spec.lr or facts.lr)
        spec = spec.with_(warmup=WARMUP * _total(spec, facts) / facts.samples if rises else 0.0)
    return spec


def beta2(spec: RunSpec, facts: Facts) -> float:
    """How much of their second moment Adam and its kin keep in an update."""
    factor = _update(spec, facts) / facts.batch if spec.scale_lr == "sqrt" else 1.0
    return max(BETA1, math.pow(BETA2, max(1.0, factor)))


def _update(spec: RunSpec, facts: Facts) -> int:
    """Samples behind one update: of all workers where they pool their gradients, else of one.

    Where samples change what they find one by one, a batch is only how often that is told.
    """
    if spec.strategy == "hogwild" and facts.one_by_one:
        return min(facts.batch, facts.samples)
    pooled = spec.workers - spec.backup if spec.kind.pooled else 1
    return min(spec.step_samples * pooled, facts.samples)


def _peak(spec: RunSpec, facts: Facts) -> float:
    lr, factor = spec.lr or facts.lr, _update(spec, facts) / facts.batch
    return lr * {"linear": factor, "sqrt": math.sqrt(factor), "none": 1.0}[spec.scale_lr]


def _total(spec: RunSpec, facts: Facts) -> int:
    """Samples of the whole run, over all workers."""
    if spec.steps is None:
        return facts.samples * (spec.epochs or facts.epochs)
    # In rounds all workers draw at once, else each on its own; neither draws across an epoch's end.
    together = spec.workers if spec.kind.samples == "slices" else 1
    drawn, draws = spec.step_samples * together, spec.steps * spec.workers // together
    epochs, rest = divmod(draws, -(-facts.samples // drawn))
    return epochs * facts.samples + rest * drawn

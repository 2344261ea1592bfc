"""`local-sgd`: each worker trains alone and every H steps they average what they have.

With shared parameters θ, a worker's own θᵢ and its share of the samples wᵢ, an averaging is one
synchronous round whose gradient is how far the worker has drifted:

    Δᵢ = θ − θᵢ        θ ← outer(θ, Σ wᵢΔᵢ)        θᵢ ← θ

With the outer rule plain descent at rate 1 that is the mean of the θᵢ (Stich, 2019); with Nesterov
momentum it is DiLoCo (Douillard et al., 2023). The round goes through whichever synchronous
exchange the transport has, and a worker's own rule keeps its state throughout; that of a worker
that comes back begins anew. What a dead worker had done since the last averaging is missing from
the next, which is the mean of the others.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from paceline.exchange.base import Among, Copied, Exchange, Gradient, Outcome
from paceline.exchange.local import Local
from paceline.exchange.replica import Replica
from paceline.types import Traffic

NOTHING_ASKED = Gradient(0, 0, 0.0, stopping=False)
OUTER = "outer."


class Drift(Replica):
    """What the outer round sees of a worker: shared parameters, and a drift for a gradient."""

    def __init__(self, own: Replica) -> None:
        self._own = own
        self.size = own.size
        self.spans = own.spans
        self.device = own.device
        self.on_host, self.from_backward = own.on_host, False
        self.flat = own.flat.clone()

    @property
    def buffers(self) -> list[Tensor]:
        return self._own.buffers

    def bind(self, flat: Tensor) -> None:
        self.flat = flat

    def gather(self, out: Tensor, scale: float = 1.0) -> None:
        torch.sub(self.flat, self._own.flat, out=out)
        if scale != 1.0:
            out.mul_(scale)


class LocalSgd(Exchange):
    """`outer` takes the averaging rounds, `every` steps apart and once more at the end."""

    def __init__(self, local: Local, outer: Exchange, every: int, outer_lr: float) -> None:
        self._local = local
        self._outer = outer
        self._every = every
        self._outer_lr = outer_lr
        self._since = 0  # steps since the last averaging, and the samples behind them
        self._weight = 0
        self._whole = 0

    @property
    def sent(self) -> int:  # type: ignore[override]
        return self._outer.sent

    @property
    def received(self) -> int:  # type: ignore[override]
        return self._outer.received

    def traffic(self) -> tuple[Traffic, ...]:
        return self._outer.traffic()

    @property
    def generation(self) -> int:  # type: ignore[override]
        return self._outer.generation

    @property
    def over(self) -> bool:  # type: ignore[override]
        return self._outer.over

    def start(self, replica: Replica) -> None:
        self._replica = replica
        self._drift = Drift(replica)
        self._outer.start(self._drift)
        replica.flat.copy_(self._drift.flat)
        self._local.start(replica)
        self.round = self.taken = self._outer.round * self._every  # in steps
        self.share = self._outer.share

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        stepped = self._local.step(gradient, meanwhile)
        self._since += 1
        self._weight += gradient.weight
        self._whole += gradient.whole
        if self._since < self._every:
            # Whoever is asked to stop, or to keep, does so after an averaging, where all can.
            return stepped._replace(stop=False, keep=False)
        outer = self._average(gradient, meanwhile)
        return outer._replace(
            began=stepped.began, update=stepped.update + outer.update, version=stepped.version
        )

    def _average(self, asked: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        drift = asked._replace(weight=self._weight, whole=self._whole, lr=self._outer_lr, began=0.0)
        outcome = self._outer.step(drift, meanwhile)
        self._replica.flat.copy_(self._drift.flat)
        self._since = self._weight = self._whole = 0
        return outcome

    def finish(self) -> None:
        self._bring_in()
        self._outer.finish()

    def leave(self) -> None:
        self._bring_in()
        self._outer.leave()

    def _bring_in(self) -> None:
        """What was done since the last averaging: after the last step all do this."""
        if self._since:
            self._average(NOTHING_ASKED, lambda: 0.0)

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Right after an averaging, when what is shared is all that a worker has of parameters."""
        kept = self._outer.keep(among, lambda name, tensor: copied(OUTER + name, tensor))
        outer = {OUTER + name: tensor for name, tensor in kept.items()}
        return self._local.keep_rule(copied) | outer

    def restore(self, kept: dict[str, Tensor]) -> None:
        outer = {n.removeprefix(OUTER): t for n, t in kept.items() if n.startswith(OUTER)}
        self._outer.restore(outer)
        self._replica.flat.copy_(self._drift.flat)
        self._local.restore_rule(kept)

    def regroup(self) -> None:
        self._outer.regroup()

    def close(self) -> None:
        self._outer.close()
        self._replica.flat.copy_(self._drift.flat)  # others may have averaged since

"""`paceline.parallel`: a PyTorch loop of one's own, made data-parallel under any strategy.

    model, optimizer, loader = paceline.parallel(model, optimizer, loader)

Run under `paceline launch -n 4 script.py` it meets the other workers; run with plain Python it
changes nothing. After it, `loss.backward(); optimizer.step()` is a step of the exchange.
"""

from __future__ import annotations

import time
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, overload

from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader

from paceline.data.sampler import Lot, no_rows
from paceline.errors import TaskError
from paceline.exchange.base import Gradient, Outcome
from paceline.exchange.make import make_exchange
from paceline.exchange.replica import Replica
from paceline.measure.clock import Clock
from paceline.measure.malloc import give_back
from paceline.spec import RunSpec
from paceline.transport.slate import EXCHANGE, OWN
from paceline.types import Facts
from paceline.worker.harm import Harm
from paceline.worker.meeting import post_from
from paceline.worker.optimizers import rule_of
from paceline.worker.reporter import Reporter
from paceline.worker.role import ready
from paceline.worker.sharded import Sharded

if TYPE_CHECKING:
    from paceline.exchange.base import Exchange
    from paceline.worker.script import Scene


def nothing_else() -> float:
    """A loop of the user's own has nothing to do while it waits."""
    return 0.0


class Stopped(SystemExit):
    """The run was asked to stop: leaves the user's loop, running its `finally` blocks."""


@overload
def parallel(model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]: ...


@overload
def parallel(
    model: nn.Module, optimizer: Optimizer, loader: DataLoader[Any]
) -> tuple[nn.Module, Optimizer, Any]: ...


def parallel(model: nn.Module, optimizer: Optimizer, loader: DataLoader[Any] | None = None) -> Any:
    """Share the model with the other workers; the loader then gives this worker's samples."""
    from paceline.worker.script import scene

    here = scene()
    if here is None:
        return (model, optimizer) if loader is None else (model, optimizer, loader)
    loop = OwnLoop(here, model, optimizer, loader)
    here.loop = loop
    return (model, optimizer) if loop.loader is None else (model, optimizer, loop.loader)


class OwnLoop:
    """One worker's end of the run while a script drives it through `optimizer.step`."""

    def __init__(
        self,
        scene: Scene,
        model: nn.Module,
        optimizer: Optimizer,
        loader: DataLoader[Any] | None,
    ) -> None:
        if scene.loop is not None:
            raise TaskError("paceline.parallel was called twice; call it once a script.")
        assignment = scene.assignment
        spec = RunSpec(**assignment["spec"])
        self._index: int = assignment["index"]
        self._optimizer = optimizer
        self._own_step = optimizer.step
        self.replica = Replica(model)
        if self.replica.tables and not spec.kind.alone:
            raise TaskError(
                f"'{self.replica.tables[0].name}' is a sparse table, and a loop of one's own has "
                "none: train the model as a Task, or make the layer with sparse=False."
            )
        give_back()
        rule, hyper = ("sgd", {}) if spec.kind.own_rule else rule_of(optimizer)
        facts = Facts(
            parameters=self.replica.size,
            layers=self.replica.layers,
            samples=len(loader.dataset) if loader is not None else 0,  # type: ignore[arg-type]
            batch=(loader.batch_size or 1) if loader is not None else 1,
            epochs=1,
            lr=float(optimizer.param_groups[0]["lr"]),
            optimizer=rule,
            hyper=hyper,
        )
        self._slate = slate = scene.slate
        roster = ready(scene.control, slate, self.replica.device, facts)
        self._spec = spec = RunSpec(**roster["spec"])
        post = post_from(
            *(roster, spec, self._index, scene.fds, self.replica, scene.control, slate),
            apply=self._apply_own,
        )
        self.exchange: Exchange = make_exchange(spec, post)
        self.exchange.start(self.replica)
        give_back()
        self.loader = Sharded(loader, spec, self._index, slate) if loader is not None else None
        if self.loader is not None:
            self.loader.skip(self.exchange.round)  # those that the others closed without it
        self.reporter = Reporter(
            control=scene.control,
            writer=scene.writer,
            clock=Clock(assignment["t0"]),
            exchange=self.exchange,
            harm=Harm(scene.control, Path(assignment["folder"])),
            slate=slate,
            steps=0,
            at_epoch_end=lambda step, epoch, share: None,
            on_snapshot=lambda message: None,
            on_keep=lambda message, position: None,
        )
        self._forward = self._entered = 0.0
        model.register_forward_pre_hook(self._enter)
        model.register_forward_hook(self._leave)
        self._began = time.monotonic()
        slate.begin(self.reporter.taken + 1, OWN)

        def step(_: Optimizer, closure: Any = None) -> Any:
            return self._step(closure)

        # Bound to the optimizer, as learning-rate schedulers expect of its method.
        optimizer.step = MethodType(step, optimizer)  # type: ignore[method-assign]

    def _enter(self, *_: Any) -> None:
        self._entered = time.monotonic()

    def _leave(self, model: nn.Module, *_: Any) -> None:
        if model.training:
            self._forward += time.monotonic() - self._entered

    def _apply_own(self) -> None:
        self._own_step()

    def _step(self, closure: Any = None) -> Any:
        """In place of `optimizer.step`."""
        value = closure() if closure is not None else None
        waited = self.loader.take_waited() if self.loader else 0.0
        self.reporter.harm.drag(self._began + waited)
        lr = float(self._optimizer.param_groups[0]["lr"])
        self._slate.at(EXCHANGE)
        outcome: Outcome = self.exchange.step(
            Gradient(1, self._spec.workers, lr, self.reporter.stopping), nothing_else
        )
        count = self.loader.last_batch if self.loader else 0
        epoch = self.loader.epoch if self.loader else 0
        if self.loader:
            self.loader.skip(outcome.skipped)
        lot = Lot(no_rows(count), count, epoch, last=False)
        loss = float(value) if value is not None else float("nan")
        began = self._began + waited  # the batch may have come later; that changes no sum
        forward, self._forward = self._forward, 0.0
        self.reporter.step(lot, count, loss, waited, 0.0, forward, began, outcome)
        self._began = time.monotonic()
        self._slate.begin(self.reporter.taken + 1, OWN)
        if outcome.stop:
            raise Stopped(0)
        return value

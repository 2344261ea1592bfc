"""Faults between fields of a spec. All are found; none is raised here."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from paceline.data.catalog import data_fault
from paceline.errors import unknown
from paceline.exchange.catalog import STRATEGIES
from paceline.server.catalog import RULES
from paceline.tasks.catalog import task_fault

if TYPE_CHECKING:
    from paceline.spec.runspec import RunSpec


def cross_faults(spec: RunSpec, skip: Collection[str] = ()) -> list[str]:
    """Every fault that one field alone does not show. Fields in `skip` are known to be wrong."""
    faults: list[str] = []

    def check(fields: str, wrong: bool, sentence: str) -> None:
        if wrong and not set(fields.split()) & set(skip):
            faults.append(sentence)

    if "task" not in skip and (fault := task_fault(spec.task)):
        faults.append(fault)
    if "data" not in skip and spec.data and (fault := data_fault(spec.data)):
        faults.append(fault)
    if "optimizer" not in skip and spec.optimizer and spec.optimizer not in RULES:
        faults.append(unknown("optimizer", spec.optimizer, RULES))
    if "strategy" not in skip and spec.strategy not in STRATEGIES:
        faults.append(unknown("strategy", spec.strategy, STRATEGIES))
        return faults
    if "strategy" in skip:
        return faults

    kind = STRATEGIES[spec.strategy]
    with_servers = ", ".join(s.name for s in STRATEGIES.values() if s.served)
    check(
        "workers",
        not kind.many and spec.workers > 1,
        f"--workers {spec.workers}: strategy '{kind.name}' has one worker; "
        "choose another strategy or --workers 1.",
    )
    check(
        "servers",
        spec.servers is not None and not kind.served,
        f"--servers {spec.servers}: strategy '{kind.name}' has no servers; "
        f"strategies with servers are {with_servers}.",
    )
    check(
        "transport",
        spec.transport != "auto" and not kind.served,
        f"--transport {spec.transport}: strategy '{kind.name}' has no servers to reach; "
        f"leave it out, or choose one of {with_servers}.",
    )
    check(
        "port",
        spec.port != 0 and (not kind.served or spec.transport != "tcp"),
        f"--port {spec.port}: only servers on --transport tcp listen on a port.",
    )
    check(
        "epochs steps",
        spec.epochs is not None and spec.steps is not None,
        "--epochs and --steps: give one of them, not both.",
    )
    check(
        "target_accuracy evaluate evaluator",
        spec.target_accuracy is not None and spec.evaluate != "epoch" and not spec.evaluator,
        f"--target-accuracy needs scores during training: --evaluate {spec.evaluate} gives none; "
        "use --evaluate epoch or --evaluator.",
    )
    return faults

"""From the spec as asked and the facts workers found, to the spec as run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paceline.errors import RequestError, RunFailed, SpecError
from paceline.exchange.catalog import STRATEGIES
from paceline.measure.process import free_memory
from paceline.server.catalog import LAYERWISE, ROWWISE
from paceline.spec import RunSpec
from paceline.transport import memory
from paceline.types import Facts
from paceline.worker.recipe import settle

# Below this many parameters one server is quicker than several: each costs a message or a lock.
LARGE = 2_000_000
BOUND = 3  # rounds
MANY, SOME_BATCHES = 32_000, 32  # samples of a batch at most, and batches of a worker at least
SYNC_EVERY = 10  # steps


def resolve(spec: RunSpec, facts: Sequence[Facts], cores: int, own_loop: bool) -> RunSpec:
    """Fill what was left open; refuse what the data or the models do not allow.

    A loop of the user's own takes its samples itself.
    """
    first = _alike(facts)
    batch = spec.batch or _batch(spec, first)
    if first.samples < 1 and not own_loop:
        raise SpecError(["the task's data has no training samples."])
    if batch > first.samples and not own_loop:
        raise SpecError(
            [
                f"--batch {batch}: larger than the data, which has {first.samples:,} samples; "
                f"use at most --batch {first.samples}."
            ]
        )
    if first.tables and (faults := _table_faults(spec, spec.optimizer or first.optimizer)):
        raise SpecError(faults)
    changes: dict[str, Any] = {
        "data": spec.data or first.data or None,
        "batch": batch,
        "lr": spec.lr or first.lr,
        "optimizer": spec.optimizer or first.optimizer,
    }
    if spec.epochs is None and spec.steps is None:
        changes["epochs"] = first.epochs
    if spec.strategy == "ssp":
        changes["bound"] = spec.bound or BOUND
    if spec.strategy == "local-sgd":
        changes["sync_every"] = spec.sync_every or SYNC_EVERY
        changes["outer_lr"] = spec.outer_lr or 1.0
        changes["outer_momentum"] = spec.outer_momentum or 0.0
    if spec.kind.transports:
        changes["transport"] = _transport(spec)
    if spec.kind.served:
        changes["servers"] = spec.servers or _servers(
            spec, changes["transport"], changes["optimizer"], first, cores
        )
        if changes["servers"] > first.parameters:
            raise SpecError([f"--servers {changes['servers']}: more than the model's parameters."])
    if own_loop:  # its rate is its own, and so is whatever it does with it
        return spec.with_(**changes, scale_lr="none", warmup=0.0, decay="none")
    return settle(spec.with_(**changes), first, given=spec.lr is not None)


def _batch(spec: RunSpec, facts: Facts) -> int:
    """The task's own; a larger one where it is only how often a worker tells what it did."""
    if spec.strategy != "hogwild" or not facts.one_by_one:
        return facts.batch
    return max(facts.batch, min(MANY, facts.samples // (SOME_BATCHES * spec.workers)))


def _alike(facts: Sequence[Facts]) -> Facts:
    """What all workers say of the task, which must be the same."""
    first = facts[0]
    for index, other in enumerate(facts):
        if (other.parameters, other.samples) != (first.parameters, first.samples):
            raise RequestError(
                f"worker-{index} has {other.parameters:,} parameters and {other.samples:,} samples,"
                f" worker-0 {first.parameters:,} and {first.samples:,}: "
                "a task must build the same model and data in every worker."
            )
        if other.tables != first.tables:
            raise RequestError(
                f"worker-{index} has sparse tables of other sizes than worker-0: "
                "a task must build the same model in every worker."
            )
    return first


def _table_faults(spec: RunSpec, rule: str) -> list[str]:
    """What a model with sparse tables cannot be trained with."""
    faults = []
    if not spec.kind.tables:
        able = ", ".join(s.name for s in STRATEGIES.values() if s.tables)
        faults.append(
            f"strategy '{spec.strategy}' has no sparse tables; these have: {able}; or exchange "
            "them whole, with --dense."
        )
    if rule not in ROWWISE:
        able = ", ".join(sorted(ROWWISE))
        faults.append(f"optimizer '{rule}' has no form for sparse tables; these have: {able}.")
    for flag, given in (
        ("--weight-decay", spec.weight_decay and rule == "adam"),
        ("--backup", spec.backup),
        ("--replicas", spec.replicas),
        ("--evaluator", spec.evaluator),
        ("--damp-stale", spec.damp_stale),
        ("--device cuda", spec.device == "cuda"),
    ):
        if given:
            faults.append(f"{flag}: not with a model that has sparse tables.")
    return faults


def _servers(spec: RunSpec, transport: str, rule: str, facts: Facts, cores: int) -> int:
    """One a worker, or one alone where each would cost more than it takes off the others.

    A layer-wise rule has one alone, too, where several could not tell one another their norms.
    """
    if spec.backup and transport == "shm":  # whoever closes a round is its server
        return 1
    free = transport == "shm" and spec.kind.samples == "slices"  # each worker applies its own
    if free or (facts.parameters >= LARGE and rule not in LAYERWISE):
        return min(spec.workers, cores, facts.parameters)
    return 1


def _transport(spec: RunSpec) -> str:
    if spec.transport != "auto":
        if spec.transport == "shm" and not memory.available():
            raise SpecError(["--transport shm: this system has no memfd; use --transport tcp."])
        return spec.transport
    sent = spec.codec != "none" or spec.tls or spec.port or spec.replicas
    several = spec.backup and (spec.servers or 1) > 1  # over shared memory it has one alone
    return "shm" if memory.available() and not sent and not several else "tcp"


def check_memory(floats: int) -> None:
    """Refuse what would not fit: the kernel would kill a role in mid-step instead."""
    need, free = floats * memory.FLOAT_BYTES, free_memory()
    if need > free:
        raise RunFailed(
            f"this run needs {need / 1e9:.1f} GB of shared memory and {free / 1e9:.1f} GB are free;"
            " use fewer workers or a smaller model."
        )

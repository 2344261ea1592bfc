"""Faults between fields of a spec. All are found; none is raised here."""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib.util import find_spec
from typing import TYPE_CHECKING

from paceline.data.catalog import data_fault
from paceline.errors import unknown
from paceline.exchange.catalog import STRATEGIES
from paceline.exchange.codecs.catalog import codec_fault
from paceline.server.catalog import LAYERWISE, RULES, STEADY
from paceline.spec.inject import inject_faults, role_faults
from paceline.tasks.catalog import BUILT_IN, FEATURED, task_fault

if TYPE_CHECKING:
    from paceline.spec.runspec import RunSpec

MOST_PROFILED = 1000  # steps: a profile has some hundred events a step
KEPT = 2  # checkpoints, where nothing is said

# What each option of some strategies is, in words.
WHAT = {
    "servers": "servers",
    "port": "servers that listen",
    "codec": "codec",
    "tls": "TLS",
    "replicas": "servers to stand by for",
    "bound": "bound",
    "backup": "backup workers",
    "balance": "batch that workers share",
    "damp_stale": "staleness to damp",
    "sync_every": "averaging",
    "outer_lr": "outer step",
    "outer_momentum": "outer step",
}


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
    if "codec" not in skip and (fault := codec_fault(spec.codec)):
        faults.append(fault)
    if "inject" not in skip:
        faults += inject_faults(spec.inject)
    if "strategy" not in skip and spec.strategy not in STRATEGIES:
        faults.append(unknown("strategy", spec.strategy, STRATEGIES))
        return faults
    if "strategy" in skip:
        return faults

    kind = STRATEGIES[spec.strategy]
    check(
        "workers",
        not kind.many and spec.workers > 1,
        f"--workers {spec.workers}: strategy '{kind.name}' has one worker; "
        "choose another strategy or --workers 1.",
    )
    for name, what in WHAT.items():
        check(
            name,
            _set(spec, name) and name not in kind.options,
            f"{_told(spec, name)}: strategy '{kind.name}' has no {what}; {_those(name)}.",
        )
    check(
        "transport",
        spec.transport not in ("auto", *kind.transports),
        f"--transport {spec.transport}: strategy '{kind.name}' "
        + (f"goes over {kind.transports[0]} only." if kind.transports else "has no choice of it."),
    )
    for name in ("port", "codec", "tls"):
        check(
            f"transport {name}",
            _set(spec, name) and name in kind.options and spec.transport == "shm",
            f"{_told(spec, name)}: over shared memory nothing is sent; use --transport tcp.",
        )
    check(
        "transport replicas",
        spec.replicas > 0 and "replicas" in kind.options and spec.transport == "shm",
        f"--replicas {spec.replicas}: over shared memory servers live inside the workers and have "
        "no standby; use --transport tcp.",
    )
    check(
        "replicas max_restarts",
        spec.replicas > 0 and not spec.max_restarts,
        f"--replicas {spec.replicas}: with --max-restarts 0 the run ends with the first role that "
        "dies; allow at least 1.",
    )
    check(
        "servers optimizer transport",
        (spec.servers or 1) > 1
        and spec.optimizer in LAYERWISE
        and (kind.samples != "slices" or spec.transport == "tcp"),
        f"--servers {spec.servers}: rule '{spec.optimizer}' needs the norms of whole layers, which "
        "several servers have only with --strategy ps-sync --transport shm; use --servers 1.",
    )
    check(
        "features task",
        spec.features is not None and spec.task in BUILT_IN and spec.task not in FEATURED,
        f"--features {spec.features}: task '{spec.task}' has no such choice; "
        f"{', '.join(FEATURED)} has.",
    )
    check(
        "optimizer decay",
        spec.optimizer in STEADY and spec.decay not in ("auto", "none"),
        f"--decay {spec.decay}: rule '{spec.optimizer}' needs one rate throughout, which falls for "
        "each parameter by itself; use --decay none.",
    )
    check(
        "optimizer warmup",
        spec.optimizer in STEADY and (spec.warmup or 0) > 0,
        f"--warmup {spec.warmup}: rule '{spec.optimizer}' needs one rate throughout; "
        "use --warmup 0.",
    )
    check(
        "l1 optimizer",
        spec.l1 > 0 and spec.optimizer not in (None, "ftrl"),
        f"--l1 {spec.l1:g}: rule '{spec.optimizer}' has no such penalty; use --optimizer ftrl.",
    )
    backed = spec.backup > 0 and "backup" in kind.options
    check(
        "servers backup transport",
        backed and (spec.servers or 1) > 1 and spec.transport == "shm",
        f"--servers {spec.servers}: with --backup over shared memory whoever closes a round is its "
        "one server; use --servers 1 or --transport tcp.",
    )
    check(
        "backup workers",
        backed and spec.backup >= spec.workers,
        f"--backup {spec.backup}: a round needs at least one of {spec.workers} workers; "
        f"use at most --backup {spec.workers - 1}.",
    )
    if not {"inject", "workers", "servers", "transport", "evaluator"} & set(skip):
        faults += role_faults(spec)
    check(
        "backup balance",
        backed and spec.balance,
        f"--balance with --backup {spec.backup}: a round that goes without somebody's share has no "
        "fixed batch; use one of them.",
    )
    check(
        "epochs steps",
        spec.epochs is not None and spec.steps is not None,
        "--epochs and --steps: give one of them, not both.",
    )
    check(
        "checkpoint_every keep_checkpoints",
        not spec.checkpoint_every and spec.keep_checkpoints != KEPT,
        f"--keep-checkpoints {spec.keep_checkpoints}: --checkpoint-every 0 makes none; "
        "give it seconds.",
    )
    check(
        "target_accuracy evaluate evaluator",
        spec.target_accuracy is not None and spec.evaluate != "epoch" and not spec.evaluator,
        f"--target-accuracy needs scores during training: --evaluate {spec.evaluate} gives none; "
        "use --evaluate epoch or --evaluator.",
    )
    if spec.tensorboard and find_spec("tensorboard") is None:
        faults.append("--tensorboard needs a package: pip install 'paceline[tensorboard]'.")
    if "profile_steps" not in skip and spec.profile_steps is not None:
        faults += _profile_faults(spec)
    return faults


def profiled(text: str) -> tuple[int, int] | None:
    """The first and the last step of `--profile-steps`; None if it cannot be read."""
    found = re.fullmatch(r"([1-9]\d{0,9})(?::([1-9]\d{0,9}))?", text)
    if found is None:
        return None
    first, last = int(found[1]), int(found[2] or found[1])
    return (first, last) if first <= last else None


def _profile_faults(spec: RunSpec) -> list[str]:
    text = str(spec.profile_steps)
    faults = []
    steps = profiled(text)
    if steps is None:
        faults.append(f"--profile-steps {text}: say the first and the last, as in 10:20.")
    elif steps[1] - steps[0] >= MOST_PROFILED:
        faults.append(f"--profile-steps {text}: at most {MOST_PROFILED} at once can be looked at.")
    if not spec.tensorboard:
        faults.append("--profile-steps needs --tensorboard DIR: that is where profiles go.")
    return faults


def _set(spec: RunSpec, field: str) -> bool:
    return getattr(spec, field) not in (None, 0, False, "none")


def _told(spec: RunSpec, field: str) -> str:
    flag, value = "--" + field.replace("_", "-"), getattr(spec, field)
    return flag if value is True else f"{flag} {value}"


def _those(option: str) -> str:
    """Which strategies have it."""
    names = [s.name for s in STRATEGIES.values() if option in s.options]
    return f"only '{names[0]}' has" if len(names) == 1 else f"these have: {', '.join(names)}"

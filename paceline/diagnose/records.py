"""All that a run's folder holds, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from paceline.measure.rates import durations
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.spans import Spans
from paceline.store.steps import Steps
from paceline.types import Event, HostResources, Resources, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    spec: RunSpec
    recipe: dict[str, Any] | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # what workers found, such as `parameters`
    cores: int | None = None
    roles: list[dict[str, Any]] = field(default_factory=list)
    steps: dict[str, Steps] = field(default_factory=dict)  # of workers that have taken any
    events: list[Event] = field(default_factory=list)
    scores: list[Score] = field(default_factory=list)
    resources: list[Resources] = field(default_factory=list)
    hosts: list[HostResources] = field(default_factory=list)
    spans: dict[str, Spans] = field(default_factory=dict)  # what roles were at besides steps
    usable: list[int] | None = None  # cores of the host it was started on

    @property
    def training(self) -> tuple[float, float] | None:
        """From the start of the first step to the end of the last."""
        if not self.steps:
            return None
        begin = min(begin_of(steps) for steps in self.steps.values())
        end = max(float(steps["time"][-1]) for steps in self.steps.values())
        return begin, end


def read(folder: RunFolder) -> Records:
    """The run as it stands: ended, under way, or broken off."""
    roles = folder.read_live()["roles"]
    listed = {role["role"] for role in roles}
    stepped = {role: folder.steps(role) for role in folder.stepped_roles()}
    about = folder.read_spec()
    host = about.get("host") or {}
    return Records(
        spec=folder.spec,
        recipe=about.get("recipe"),
        facts=about.get("facts") or {},
        cores=host.get("cores"),
        usable=host.get("usable"),
        # A supervisor that was killed may not have listed all that took steps.
        roles=roles + [{"role": role} for role in stepped if role not in listed],
        steps={role: steps for role, steps in stepped.items() if len(steps)},
        spans={
            role["role"]: spans
            for role in roles
            if (spans := folder.spans(role["role"])) is not None
        },
        events=folder.events(),
        scores=folder.scores(),
        resources=folder.resources(),
        hosts=folder.hosts(),
    )


def begin_of(steps: Steps) -> float:
    return float(steps["time"][0] - durations(steps[:1])[0])

"""Records that cross rooms. Plain data: no behaviour beyond reading and writing themselves."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

PHASES = ("data", "compute", "exchange", "wait", "update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a worker knows once its model and data are built, and the supervisor cannot know before.

    The defaults are the task's own; they fill what the spec left open.
    """

    parameters: int
    samples: int
    batch: int
    epochs: int
    lr: float
    optimizer: str
    layers: tuple[int, ...] = ()  # the size of each of the model's parameters
    tables: tuple[tuple[int, int], ...] = ()  # rows and columns of each sparse table
    one_by_one: bool = False  # the model can change its tables sample by sample
    hyper: dict[str, float] = field(default_factory=dict)  # the optimizer's, where not the spec's
    data: str = ""  # the data set's name, where the task trains on a named one


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a role is. Sent a few times a second, never per step."""

    step: int = 0
    steps: int = 0
    epoch: int = 0
    samples: int = 0
    loss: float | None = None
    sent: int = 0
    received: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One scoring of parameters on the test samples."""

    time: float
    role: str
    step: int
    epoch: float
    final: bool
    values: dict[str, float] = field(default_factory=dict)
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something worth telling: `time` is seconds since the run began."""

    time: float
    role: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one role used, at one moment."""

    time: float
    role: str
    cpu_seconds: float
    memory_bytes: int
    sent: int
    received: int


NOTHING = -1  # the version of a worker that has no parameters to give, the generation before any


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """A worker that is in no process group, and waits to be told which to form.

    `version` counts the updates in its parameters, `generation` names the group it was last in.
    """

    generation: int
    version: int
    left: bool  # between two rounds, not in the middle of one
    over: bool = False  # it has taken its last step
    broken: bool = False  # it has lost a peer, or not found it, and did not leave when all did


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The workers of one process group, in the order of their ranks, and where they go on.

    All take the parameters of `source`, which has `version` updates in them.
    `between` says that all were between two rounds; else some were in the middle of the next.
    """

    generation: int
    members: tuple[int, ...]
    source: int
    version: int
    shares: tuple[tuple[int, int], ...] = ()  # of a whole batch, by member; none: as dealt at first
    between: bool = True
    over: bool = False  # the last step is taken

    @classmethod
    def first(cls, crew: tuple[int, ...]) -> Plan:
        """How all begin."""
        return cls(generation=0, members=crew, source=crew[0], version=0)

    @classmethod
    def of(cls, values: dict[str, Any]) -> Plan:
        """From JSON values."""
        members = tuple(values["members"])
        shares = tuple((begin, end) for begin, end in values["shares"])
        return cls(**{**values, "members": members, "shares": shares})


class Observer(Protocol):
    """Whoever wants to watch a run as it happens: the terminal, a test, a page."""

    def event(self, event: Event) -> None: ...

    def progress(self, role: str, progress: Progress) -> None: ...

    def score(self, score: Score) -> None: ...

    def close(self) -> None: ...


class Silent:
    """The observer of a run nobody watches."""

    def event(self, event: Event) -> None:
        pass

    def progress(self, role: str, progress: Progress) -> None:
        pass

    def score(self, score: Score) -> None:
        pass

    def close(self) -> None:
        pass


def record(thing: Any) -> dict[str, Any]:
    """A record as plain JSON values."""
    return asdict(thing)

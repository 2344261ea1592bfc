"""Records that cross rooms. Plain data: no behaviour beyond reading and writing themselves."""

from __future__ import annotations

from dataclasses import dataclass, field, is_dataclass
from typing import Any, NamedTuple, Protocol

PHASES = ("data", "compute", "exchange", "wait", "update")

# The same in finer parts, in the order in which a step goes through them, and the phases that
# consist of several. What each means is told in docs/ARCHITECTURE.md.
FINE = ("data", "copy", "forward", "backward", "encode", "push", "pull", "wait", "update")
PARTS = {"compute": ("copy", "forward", "backward"), "exchange": ("encode", "push", "pull")}
PAUSES = ("evaluate", "checkpoint", "snapshot")  # what a worker does between two steps
SERVING = ("receive", "decode", "apply", "send", "other", "gate", "idle")  # what servers are at


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


class Traffic(NamedTuple):
    """What a role gave to one peer and took from it so far: bytes, and messages where they are
    known. A peer is a role, or `group` where it is not known which of several."""

    peer: str
    sent: int = 0
    received: int = 0
    messages_sent: int | None = None
    messages_received: int | None = None


class Own(NamedTuple):
    """What a role tells of its own process: switches between its threads and others, because it had
    to wait or because others wanted the core; and the most memory it ever had."""

    voluntary: int | None = None
    involuntary: int | None = None
    peak_bytes: int | None = None


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
    traffic: tuple[Traffic, ...] = ()  # the same by peer
    own: Own = Own()  # noqa: RUF009 - as fixed as a number

    @classmethod
    def of(cls, values: dict[str, Any]) -> Progress:
        """From JSON values."""
        own = Own(*values.get("own", ()))
        return cls(**{**values, "traffic": _traffic(values), "own": own})


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
    """What one role has used, at one moment. What is not known is None.

    All but memory and threads count from when its process was started, and so from nothing again
    after a restart.
    """

    time: float
    role: str
    cpu_seconds: float
    memory_bytes: int  # resident
    sent: int
    received: int
    threads: int | None = None
    delay_seconds: float | None = None  # its threads could have run and had no core
    major_faults: int | None = None  # pages that had to come from disk
    read_bytes: int | None = None  # from and to disks
    written_bytes: int | None = None
    # As the role said last: context switches because it had to wait, or because others wanted the
    # core; the most that was ever resident; bytes and messages by peer.
    voluntary: int | None = None
    involuntary: int | None = None
    peak_bytes: int | None = None
    traffic: tuple[Traffic, ...] = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> Resources:
        """From JSON values."""
        return cls(**{**values, "traffic": _traffic(values)})


class Nic(NamedTuple):
    """Bytes through one network interface."""

    sent: int
    received: int


class Disk(NamedTuple):
    """Bytes from and to one disk, and the seconds in which it had something to do."""

    read: int
    written: int
    busy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU at one moment, as NVML tells it: percent, bytes, MHz, watts, degrees."""

    index: int
    uuid: str = ""
    name: str = ""
    utilisation: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None
    sm_clock: int | None = None
    sm_clock_max: int | None = None
    memory_clock: int | None = None
    memory_clock_max: int | None = None
    power: float | None = None
    power_limit: float | None = None
    temperature: int | None = None
    slowed: tuple[str, ...] = ()  # what keeps its clocks down: power, heat, …


@dataclass(frozen=True, slots=True, kw_only=True)
class HostResources:
    """What one host has been doing, at one moment. What is not known is None.

    Seconds and bytes count from some moment in the past: only differences say anything. Those of
    cores and stalls are of everything on the host, not of this run alone.
    """

    time: float
    host: str
    cores: tuple[float | None, ...] = ()  # busy seconds, by the core's number
    iowait_seconds: float | None = None  # of all cores: idle, with something on disk to wait for
    steal_seconds: float | None = None  # of all cores: this host wanted them, others had them
    running: int | None = None  # threads that run or could, just now
    load: float | None = None  # the mean of that over a minute, and of those that wait for disks
    memory_available: int | None = None  # bytes
    swap_used: int | None = None
    swapped_in: int | None = None  # bytes
    swapped_out: int | None = None
    nics: dict[str, Nic] = field(default_factory=dict)
    speeds: dict[str, int] = field(default_factory=dict)  # of NICs that know theirs: Mbit/s
    disks: dict[str, Disk] = field(default_factory=dict)
    # Seconds in which something had to wait for cores, memory or disks, or (full) everything had.
    pressure: dict[str, float] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()

    @classmethod
    def of(cls, values: dict[str, Any]) -> HostResources:
        """From JSON values."""
        made = {
            "cores": tuple(values.get("cores", ())),
            "nics": {name: Nic(*of) for name, of in values.get("nics", {}).items()},
            "disks": {name: Disk(*of) for name, of in values.get("disks", {}).items()},
            "gpus": tuple(_gpu(told) for told in values.get("gpus", ())),
        }
        return cls(**{**values, **made})


def _gpu(values: dict[str, Any]) -> Gpu:
    return Gpu(**{**values, "slowed": tuple(values.get("slowed", ()))})


def _traffic(values: dict[str, Any]) -> tuple[Traffic, ...]:
    return tuple(Traffic(*of) for of in values.get("traffic", ()))


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
    """A record as plain JSON values. Not `asdict`, which copies every number of it: samples are
    written by the dozen each second."""
    return {name: _plain(getattr(thing, name)) for name in thing.__dataclass_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list) and value and is_dataclass(value[0]):
        return [record(each) for each in value]
    return value

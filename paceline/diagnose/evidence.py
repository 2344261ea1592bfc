"""All that a verdict may rest on, of one run. Plain numbers; what is not known is None or absent.

Times are of the window in which all workers were warm and none had finished. `path` says where the
time of the run went: of each round what its last worker did, since all others wait for that one;
where workers do not go in rounds, the mean of what all did. Its shares add up to 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.diagnose.straggler import Straggler
from paceline.diagnose.usage import HostUse, RoleUse
from paceline.spec import RunSpec

# What the spans of a worker are about. A run of an older version has the five phases alone.
COMPUTE = ("compute", "forward", "backward")
DATA, COPY = INPUT = ("data", "copy")
MOTION = ("exchange", "push", "pull", "wait")
KEEPING = ("checkpoint", "snapshot")
ENCODE, UPDATE, EVALUATION, OTHER = "encode", "update", "evaluation", "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One role in the window: `shares` of its time by span; none: not recorded."""

    role: str
    host: str | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    use: RoleUse | None = None

    def share(self, *spans: str) -> float:
        return sum(self.shares.get(span, 0.0) for span in spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPart(Part):
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart(Part):
    """One with a process of its own."""

    @property
    def busy(self) -> float | None:
        """What part of the time it was at work: by its spans, and by its CPU, since it also sends
        and receives while the network has it wait."""
        used = min(1.0, self.use.cpu.mean) if self.use and self.use.cpu else None
        if not self.shares:
            return used
        work, wire = self.share("decode", "apply", "other"), self.share("receive", "send")
        return work + min(wire, max(0.0, (used or 0.0) - work))

    @property
    def wire(self) -> float:
        """What part of the time it was in the middle of sending or receiving, and had to wait."""
        busy = self.busy or 0.0
        work = self.share("decode", "apply", "other")
        return max(0.0, self.share("receive", "send") - max(0.0, busy - work))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    spec: RunSpec
    parameters: int | None = None
    samples: int | None = None  # of the data
    seconds: float = 0.0  # of the window
    steps: float = 0.0  # a worker, in the window
    path: Mapping[str, float] = field(default_factory=dict)
    workers: tuple[WorkerPart, ...] = ()
    servers: tuple[ServerPart, ...] = ()
    standbys: int = 0
    beside: tuple[Part, ...] = ()  # roles that neither train nor serve: the evaluator, standbys
    straggler: Straggler | None = None
    late: float = 0.0  # share of the time that others wait for the straggler
    own: float = 1.0  # what part of that its data and computing explain
    hosts: Mapping[str, HostUse] = field(default_factory=dict)
    usable: frozenset[int] | None = None  # the numbers of its host's cores that the run may use
    cores: int | None = None  # how many that is, or fewer if so much is granted
    gpus: frozenset[str] = frozenset()  # those that roles compute on
    threads: int | None = None  # torch's, of each worker
    error: float | None = None  # of the samples a second: half the interval, as a part
    ratio: float | None = None  # how many times smaller the codec makes gradients

    def share(self, *spans: str) -> float:
        return sum(self.path.get(span, 0.0) for span in spans)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.workers, *self.servers)

    @property
    def exchanges(self) -> bool:
        """Whether workers have anything to do with one another."""
        return not self.spec.kind.alone and len(self.workers) + len(self.servers) > 1

    @property
    def wired(self) -> bool:
        """Whether what they exchange goes over sockets."""
        kind = self.spec.kind
        if not self.exchanges or kind.name == "hogwild":
            return False
        return self.spec.transport == "tcp" or not kind.transports

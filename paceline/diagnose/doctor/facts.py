"""What is known of a machine. `paceline/doctor` measures it; what is not known is None.

Sizes are bytes, rates are a second, shares are parts of 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from paceline.measure.spread import Spread

CORES = "cores"  # what the kind of those is called, among devices that are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    name: str
    os: str
    cpu: str
    virtual: bool  # a hypervisor lies below
    clock: str | None = None  # what the kernel reads the time from
    clock_ns: float | None = None  # what asking for the time costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Cores:
    logical: int
    physical: int | None
    mine: tuple[int, ...]  # those this process may run on
    sockets: int | None = None
    nodes: int | None = None  # of memory
    quota: float | None = None  # how many cores' time the cgroup grants
    throttled: int | None = None  # times it was withheld
    governor: str | None = None  # of the frequency
    driver: str | None = None
    preference: str | None = None  # between speed and power, where the driver takes one

    @property
    def usable(self) -> float:
        """How many cores' worth of work can be done at once: two halves of a core are one."""
        return min(len(self.mine), self.physical or self.logical, self.quota or self.logical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What others did: before anything was measured, and what a hypervisor took all along."""

    busy_cores: float | None = None
    steal: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    level: int
    kind: str  # data, instruction, unified
    size: int
    shared_by: int  # logical cores
    count: int  # how many such caches there are


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    total: int
    available: int
    limit: int | None = None  # the cgroup's
    swap_total: int = 0
    swap_used: int = 0
    swapped: int = 0  # pages moved to or from swap while doctor ran


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """How large pages are given out: `always`, `madvise` or `never`."""

    enabled: str | None = None
    shared: str | None = None
    reserved: int = 0  # bytes set aside for explicit ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    files: int | None  # None: no limit
    files_most: int | None
    shm_size: int | None = None  # of /dev/shm
    shm_free: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    python: str
    paceline: str
    torch: str | None = None
    numpy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """How torch was built, and what it does here unless told."""

    mkl: bool
    onednn: bool
    openmp: bool
    cuda: str | None  # the version it was built for
    instructions: str  # the widest its loops use
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One of several devices that should be equal. `against` is the fastest over this one."""

    name: str
    speed: Spread
    against: Spread
    taken: float | None = None  # the share of its time that others had meanwhile
    clock: float | None = None  # MHz under that load


@dataclass(frozen=True, slots=True, kw_only=True)
class Equality:
    """Whether devices of a kind are equally fast."""

    kind: str  # CORES, or the name of the GPUs
    unit: str
    verdict: str  # equal, apart, unsure
    devices: tuple[Speed, ...]

    @property
    def gpus(self) -> bool:
        return self.kind != CORES


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Of memory, copying: bytes read and bytes written together."""

    one: Spread  # core
    all: Spread
    cores: int
    size: int  # bytes a core copies from


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadCount:
    threads: int
    rate: Spread  # samples a second
    against_one: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """What torch threads bring to one worker of a task."""

    task: str
    batch: int
    counts: tuple[ThreadCount, ...]
    best: int  # the fewest that more would not beat
    sentence: str

    def of(self, threads: int) -> ThreadCount | None:
        return next((found for found in self.counts if found.threads == threads), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What lies between two ends: there and back in seconds, bytes a second each way."""

    address: str
    latency: Spread
    slowest: float  # 99 of 100 are no slower
    push: Spread
    pull: Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A word to another process and one back, over shared memory."""

    latency: Spread
    slowest: float
    cores: tuple[int, ...]  # the two ends were bound to; none: to no core


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    folder: str
    filesystem: str | None
    free: int
    total: int
    write: Spread  # sequential, until it is on the disk
    read: Spread  # sequential, not from memory
    sync: Spread  # seconds until one small record is on the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver describes it; whatever that would not say is None."""

    index: int
    name: str
    uuid: str | None = None
    bus: str | None = None
    memory: int | None = None
    memory_used: int | None = None
    clock: float | None = None  # MHz, now
    clock_most: float | None = None
    memory_clock: float | None = None
    memory_clock_most: float | None = None
    power: float | None = None  # watts, now
    power_limit: float | None = None
    power_usual: float | None = None  # the limit it was built with
    temperature: float | None = None
    pcie: str | None = None  # `gen 4 x16`
    pcie_most: str | None = None
    held_back: tuple[str, ...] = ()  # why its clocks are low
    processes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLink:
    """How two GPUs reach each other: over so many NVLinks, or which way over PCIe."""

    a: int
    b: int
    way: str
    nvlinks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    driver: str | None
    devices: tuple[Gpu, ...]
    links: tuple[GpuLink, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmeasured:
    """A probe that told nothing, and why."""

    probe: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that was found out."""

    host: Host | None = None
    cores: Cores | None = None
    caches: tuple[Cache, ...] = ()
    memory: Memory | None = None
    pages: Pages | None = None
    limits: Limits | None = None
    load: Load = field(default_factory=Load)
    versions: Versions | None = None
    torch: Torch | None = None
    bandwidth: Bandwidth | None = None
    threads: Threads | None = None
    shared: Shared | None = None
    loopback: Link | None = None
    peer: Link | None = None
    disk: Disk | None = None
    gpus: Gpus | None = None
    equality: tuple[Equality, ...] = ()
    unmeasured: Sequence[Unmeasured] = ()
    seconds: float = 0.0
    complete: bool = True

"""Evidence made up for tests: plain cases, and whatever hypothesis draws."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from paceline.diagnose.counters import Rate
from paceline.diagnose.evidence import Evidence, ServerPart, WorkerPart
from paceline.diagnose.straggler import Straggler
from paceline.diagnose.usage import DiskUse, GpuUse, HostUse, NicUse, RoleUse
from paceline.spec import RunSpec
from paceline.types import FINE, SERVING, Traffic

SYNC = RunSpec(strategy="ps-sync", workers=2, servers=1, transport="tcp", batch=64, optimizer="sgd")
SHARED = SYNC.with_(transport="shm")
ALONE = RunSpec(batch=64)


def rate(mean: float | None) -> Rate | None:
    return None if mean is None else Rate(mean, 2 * mean)


def a_use(role: str, cpu: float | None = 0.9, delay: float | None = 0.0, **more: Any) -> RoleUse:
    nothing = dict.fromkeys(
        ("voluntary", "involuntary", "major_faults", "read", "written", "sent", "received")
    )
    told = {name: rate(value) for name, value in more.items() if name in nothing}
    return RoleUse(
        role=role,
        seconds=3.0,
        cpu=rate(cpu),
        delay=rate(delay),
        memory_bytes=1,
        threads=1,
        traffic=more.get("traffic", ()),
        **{**nothing, **told},
    )


def a_host(**changes: Any) -> HostUse:
    values: dict[str, Any] = {
        "host": "box",
        "seconds": 3.0,
        "cores": (),
        "iowait": None,
        "steal": None,
        "running": None,
        "load": None,
        "memory_available": None,
        "swap_used": None,
        "swapped_in": None,
        "swapped_out": None,
        "nics": {},
        "disks": {},
        "pressure": {},
        "gpus": (),
    }
    return HostUse(**(values | changes))


def a_gpu(**changes: Any) -> GpuUse:
    values: dict[str, Any] = dict.fromkeys(GpuUse.__dataclass_fields__)
    return GpuUse(**(values | {"index": 0, "name": "A", "slowed": {}} | changes))


def a_worker(number: int = 0, **shares: float) -> WorkerPart:
    role = f"worker-{number}"
    return WorkerPart(role=role, host="box", steps=100, shares=shares, use=a_use(role))


def a_server(cpu: float = 0.1, **shares: float) -> ServerPart:
    told = {"idle": 1.0 - sum(shares.values()), **shares}
    return ServerPart(role="server-0", host="box", shares=told, use=a_use("server-0", cpu=cpu))


def evidence(spec: RunSpec = SYNC, /, servers: Any = (), **values: Any) -> Evidence:
    """Of a run whose path is what is not a field of Evidence."""
    fields = {k: v for k, v in values.items() if k in Evidence.__dataclass_fields__}
    path = {k: v for k, v in values.items() if k not in fields}
    path["forward"] = max(0.0, 1.0 - sum(path.values()))
    usual: dict[str, Any] = {
        "parameters": 10_000,
        "samples": 1_000_000,
        "seconds": 10.0,
        "steps": 100.0,
        "path": path,
        "workers": tuple(a_worker(n, **path) for n in range(spec.workers)),
        "servers": tuple(servers),
        "cores": 8,
        "threads": 1,
    }
    return Evidence(spec=spec, **(usual | fields))


# Whatever there may be.

shares = st.floats(0, 1)
maybe = st.none() | st.floats(0, 1e9, allow_nan=False)
rates = st.none() | st.builds(Rate, st.floats(0, 1e9), st.floats(0, 1e9))
counts = st.none() | st.integers(0, 10**9)
traffic = st.builds(
    Traffic,
    st.sampled_from(["server-0", "supervisor"]),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    counts,
    counts,
)
uses = st.none() | st.builds(
    RoleUse,
    role=st.just("role"),
    seconds=st.floats(0, 1e3),
    **dict.fromkeys(
        (
            *("cpu", "delay", "voluntary", "involuntary", "major_faults"),
            *("read", "written", "sent", "received"),
        ),
        rates,
    ),
    memory_bytes=st.integers(0),
    threads=counts,
    traffic=st.lists(traffic, max_size=2).map(tuple),
)
hosts = st.builds(
    HostUse,
    host=st.just("box"),
    seconds=st.floats(0, 1e3),
    cores=st.lists(rates, max_size=3).map(tuple),
    **dict.fromkeys(("iowait", "steal", "running", "swapped_in", "swapped_out"), rates),
    load=maybe,
    memory_available=counts,
    swap_used=counts,
    nics=st.dictionaries(st.just("eth0"), st.builds(NicUse, rates, rates, counts)),
    disks=st.dictionaries(st.just("sda"), st.builds(DiskUse, rates, rates, rates)),
    pressure=st.dictionaries(st.sampled_from(["cpu", "memory", "io"]), rates),
    gpus=st.just(()),
)


def parted(names: tuple[str, ...]) -> st.SearchStrategy[dict[str, float]]:
    """Shares that add up to 1, or nothing."""

    def whole(drawn: dict[str, float]) -> dict[str, float]:
        total = sum(drawn.values())
        return {name: value / total for name, value in drawn.items()} if total > 1e-6 else {}

    return st.dictionaries(st.sampled_from(names), shares).map(whole)


specs = st.sampled_from(
    [
        *(SYNC, SHARED, ALONE, RunSpec(strategy="independent", workers=2, batch=1)),
        RunSpec(strategy="allreduce", workers=2, batch=8),
        SYNC.with_(codec="topk:0.01", batch=2),
        RunSpec(strategy="ssp", workers=2, transport="tcp", bound=2, batch=4),
        RunSpec(strategy="local-sgd", workers=2, sync_every=4, batch=4),
        RunSpec(strategy="hogwild", workers=2),
    ]
)
spans = (*FINE, "compute", "exchange", "evaluation", "checkpoint", "other")
workers = st.builds(
    WorkerPart,
    role=st.sampled_from(["worker-0", "worker-1", "worker-2"]),
    host=st.sampled_from([None, "box", "other"]),
    steps=st.integers(0, 10**6),
    shares=parted(spans),
    use=uses,
)
servers = st.builds(
    ServerPart,
    role=st.sampled_from(["server-0", "server-1"]),
    host=st.sampled_from([None, "box"]),
    shares=parted(SERVING),
    use=uses,
)
anything = st.builds(
    Evidence,
    spec=specs,
    parameters=st.none() | st.integers(1, 10**9),
    samples=st.none() | st.integers(1, 10**9),
    seconds=st.floats(0, 1e5),
    steps=st.floats(0, 1e6),
    path=parted(spans),
    workers=st.lists(workers, max_size=3).map(tuple),
    servers=st.lists(servers, max_size=2).map(tuple),
    standbys=st.integers(0, 1),
    straggler=st.none()
    | st.builds(
        Straggler,
        role=st.sampled_from(["worker-0", "worker-9"]),
        share=shares,
        late_seconds=st.floats(1e-6, 10),
        rounds=st.integers(1, 1000),
    ),
    late=shares,
    own=st.floats(-1, 2),
    hosts=st.dictionaries(st.just("box"), hosts),
    cores=st.none() | st.integers(1, 256),
    threads=st.none() | st.integers(1, 256),
    error=st.none() | shares,
    ratio=st.none() | st.floats(1, 1000),
)

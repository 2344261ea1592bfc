"""Machines that are made up."""

from __future__ import annotations

from paceline.diagnose.doctor.equality import compare
from paceline.diagnose.doctor.facts import (
    CORES,
    Bandwidth,
    Cache,
    Cores,
    Disk,
    Equality,
    Facts,
    Host,
    Limits,
    Link,
    Load,
    Memory,
    Pages,
    Shared,
    Torch,
    Unmeasured,
    Versions,
)
from paceline.diagnose.doctor.threads import judge
from paceline.doctor.gpus import gpus
from paceline.measure.nvml_fake import FakeGpu, FakeNvml
from paceline.measure.spread import Spread


def about(value: float) -> Spread:
    return Spread(value=value, low=0.98 * value, high=1.03 * value, repeats=9)


def a_link(address: str) -> Link:
    return Link(
        address=address, latency=about(38e-6), slowest=9e-5, push=about(1.9e9), pull=about(2.1e9)
    )


def a_laptop() -> Facts:
    """Two cores, nothing wrong."""
    return Facts(
        host=Host(name="desk", os="Linux", cpu="AMD EPYC", virtual=True, clock="tsc", clock_ns=48),
        cores=Cores(logical=2, physical=2, mine=(0, 1), sockets=1, nodes=1),
        caches=(
            Cache(level=1, kind="data", size=32 << 10, shared_by=1, count=2),
            Cache(level=3, kind="unified", size=32 << 20, shared_by=2, count=1),
        ),
        memory=Memory(total=25_300_000_000, available=24_100_000_000),
        pages=Pages(enabled="madvise", shared="never"),
        limits=Limits(files=1024, files_most=4096, shm_size=12 * 10**9, shm_free=12 * 10**9),
        load=Load(busy_cores=0.1, steal=0.004),
        versions=Versions(python="3.11.7", paceline="0.1.0", torch="2.13.0+cpu", numpy="2.4.6"),
        torch=Torch(mkl=True, onednn=True, openmp=True, cuda=None, instructions="AVX2", threads=2),
        bandwidth=Bandwidth(one=about(13.7e9), all=about(20.2e9), cores=2, size=64 << 20),
        threads=judge("lenet", 64, [1, 2], [[6800.0 + n, 9000.0 - n] for n in range(9)]),
        shared=Shared(latency=about(2.1e-6), slowest=8e-6, cores=(0, 1)),
        loopback=a_link("127.0.0.1:41867"),
        disk=Disk(
            folder="/home/ada/projects/digits/runs",
            filesystem="ext4",
            free=81 * 10**9,
            total=270 * 10**9,
            write=about(9.2e8),
            read=about(1.6e9),
            sync=about(3.4e-4),
        ),
        gpus=gpus(FakeNvml([])),
        equality=(_cores(1.0, 0.99),),
        seconds=26.4,
    )


def a_large_host() -> Facts:
    """96 cores of which one is slow, four GPUs of which one is, and much that is wrong."""
    buses = [f"00000000:{n}7:00.0" for n in range(4)]
    cards = [
        FakeGpu(bus=bus, nvlinks=[other for other in buses if other != bus] * 4) for bus in buses
    ]
    cards[2] = FakeGpu(
        bus=buses[2], nvlinks=cards[2].nvlinks, clock=1005, held_back=0x40, temperature=88, width=8
    )
    desk = a_laptop()
    assert desk.torch is not None
    return Facts(
        host=Host(name="gpu-4", os="Linux", cpu="Intel Xeon Platinum 8358", virtual=False),
        cores=Cores(
            logical=96,
            physical=48,
            mine=tuple(range(96)),
            sockets=2,
            nodes=2,
            quota=24.0,
            throttled=1204,
            governor="powersave",
            driver="acpi-cpufreq",
        ),
        memory=Memory(
            total=10**12,
            available=9 * 10**11,
            limit=2 * 10**11,
            swap_total=8 * 10**9,
            swap_used=3 * 10**9,
        ),
        limits=Limits(files=256, files_most=None, shm_size=64 << 20, shm_free=0),
        load=Load(busy_cores=31.0, steal=0.07),
        versions=desk.versions,
        peer=a_link("gpu-5.cluster.example:5151"),
        gpus=gpus(FakeNvml(cards)),
        equality=(
            _cores(*[1.0] * 95, 0.7),
            compare(
                "NVIDIA A100-SXM4-80GB",
                "FLOP/s",
                [f"GPU {n}" for n in range(4)],
                [[18.9e12, 18.8e12, 13.4e12, 18.9e12 + n] for n in range(9)],
                clocks=[1410, 1410, 1005, 1410],
            ),
        ),
        unmeasured=[Unmeasured(probe="threads", reason="it took longer than 102 s")],
        seconds=31.0,
    )


def _cores(*speeds: float) -> Equality:
    rounds = [[4e8 * speed * (1 + n / 1000) for speed in speeds] for n in range(9)]
    names = [f"core {n}" for n in range(len(speeds))]
    return compare(CORES, "exponentials/s", names, rounds, taken=[0.02] * len(speeds))

"""What is made of facts: no machine is needed for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paceline.diagnose.doctor.equality import compare, slow
from paceline.diagnose.doctor.facts import (
    CORES,
    Cores,
    Disk,
    Facts,
    Gpu,
    Gpus,
    Host,
    Limits,
    Link,
    Load,
    Memory,
    Pages,
    Shared,
    Torch,
)
from paceline.diagnose.doctor.threads import candidates, judge
from paceline.diagnose.doctor.verdict import verdict
from paceline.diagnose.doctor.warnings import warnings
from paceline.measure.spread import Spread

ONE = Spread(value=1.0, low=0.99, high=1.01, repeats=9)


def steady(value: float) -> Spread:
    return Spread(value=value, low=0.99 * value, high=1.01 * value, repeats=9)


def speeds(
    *means: float, noise: float = 0.01, rounds: int = 12, seed: int = 0, moods: float = 0.3
) -> Any:
    """Rounds in which each device is so fast, and the machine has moods that all of them share."""
    rng = np.random.default_rng(seed)
    mood = 1 + moods * rng.random((rounds, 1))
    own = 1 + noise * rng.standard_normal((rounds, len(means)))
    return (np.array(means) * mood * own).tolist()


def calm(*means: float, rounds: int = 12) -> Any:
    return speeds(*means, rounds=rounds, moods=0.01)


# Equal devices.


def judged(rounds: Any) -> str:
    names = [f"core {n}" for n in range(len(rounds[0]))]
    return compare(CORES, "exponentials/s", names, rounds).verdict


def test_equal_cores_are_equal_though_the_machine_has_moods() -> None:
    assert judged(speeds(1.0, 1.0, 1.0, 1.0)) == "equal"


def test_a_core_that_is_slower_is_named() -> None:
    found = compare(CORES, "", ["core 0", "core 1", "core 2"], speeds(1.0, 0.9, 0.8))
    assert found.verdict == "apart"
    assert [device.name for device in slow(found)] == ["core 2", "core 1"]
    assert slow(found)[0].against.value == pytest.approx(1.25, rel=0.02)


def test_three_percent_are_not_five() -> None:
    assert judged(speeds(1.0, 0.97, noise=0.005)) == "equal"


def test_noise_is_hardly_ever_called_a_difference() -> None:
    """A hundred machines with equal cores and much noise."""
    found = [judged(speeds(1, 1, 1, 1, noise=0.15, seed=seed)) for seed in range(100)]
    assert found.count("apart") <= 2
    assert found.count("unsure") > 50


def test_a_real_difference_is_found_in_moderate_noise() -> None:
    found = [judged(speeds(1.0, 0.85, noise=0.03, seed=seed)) for seed in range(50)]
    assert found.count("apart") >= 45


def test_too_few_rounds_tell_nothing() -> None:
    assert judged(speeds(1.0, 0.5, rounds=4)) == "unsure"


def test_a_lone_device_equals_itself() -> None:
    assert judged(speeds(1.0)) == "equal"


# Threads.


def test_every_number_is_tried_on_few_cores_and_some_on_many() -> None:
    assert candidates(1) == [1]
    assert candidates(4) == [1, 2, 3, 4]
    assert candidates(6, 3, 12, 0) == [1, 2, 3, 4, 5, 6]
    many = candidates(128, 64)
    assert {1, 8, 64, 128} <= set(many)
    assert len(many) <= 18


@pytest.mark.parametrize(
    ("rates", "best"),
    [
        ((1000, 930), 1),  # slower
        ((1000, 1030), 1),  # not worth a core
        ((1000, 1300), 2),
        ((1000, 1900, 2600, 2630), 3),
    ],
)
def test_the_fewest_threads_that_more_would_not_beat(rates: tuple[int, ...], best: int) -> None:
    found = judge("lenet", 64, list(range(1, len(rates) + 1)), speeds(*rates, noise=0.004))
    assert found.best == best
    assert f"--threads {best}" in found.sentence


def test_a_gain_within_the_noise_is_none_and_says_so() -> None:
    rounds = speeds(1000, 1100, noise=0.25, seed=3)
    found = judge("lenet", 64, [1, 2], rounds)
    assert found.best == 1
    assert found.counts[1].against_one.value > 1.05
    assert "could be noise" in found.sentence


def test_one_core_needs_no_comparison() -> None:
    assert "one core" in judge("lenet", 64, [1], speeds(1000)).sentence


# Warnings.

CORES_2 = Cores(logical=2, physical=2, mine=(0, 1))
HOST = Host(name="h", os="Linux", cpu="c", virtual=False, clock="tsc", clock_ns=40)
MEMORY = Memory(total=16 * 10**9, available=12 * 10**9)
DISK = Disk(
    folder="/runs",
    filesystem="ext4",
    free=10**11,
    total=10**12,
    write=steady(9e8),
    read=steady(1e9),
    sync=steady(1e-3),
)
TORCH = Torch(mkl=True, onednn=True, openmp=True, cuda=None, instructions="AVX2", threads=2)
GPU = Gpu(
    index=0,
    name="A100",
    memory=80 * 10**9,
    memory_used=10**6,
    power_limit=400,
    power_usual=400,
    pcie="gen 1 x16",
    pcie_most="gen 4 x16",
    processes=0,
)
FINE = Facts(
    host=HOST,
    cores=CORES_2,
    memory=MEMORY,
    pages=Pages(enabled="madvise"),
    limits=Limits(files=1024, files_most=4096, shm_size=8 * 10**9, shm_free=8 * 10**9),
    load=Load(busy_cores=0.05, steal=0.01),
    torch=TORCH,
    disk=DISK,
    threads=judge("lenet", 64, [1, 2], speeds(1000, 1500)),
    equality=(compare(CORES, "", ["core 0", "core 1"], calm(1, 1)),),
    gpus=Gpus(driver=None, devices=()),
)
LINK = Link(address="h:1", latency=ONE, slowest=1, push=steady(1e8), pull=steady(1e9))


def test_nothing_is_wrong_with_a_good_machine_nor_with_what_is_not_known() -> None:
    assert warnings(FINE) == []
    assert warnings(Facts()) == []


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("busy", {"load": Load(busy_cores=0.9)}, "0.9 of 2 cores"),
        ("steal", {"load": Load(steal=0.08)}, "8 %"),
        ("noise", {"equality": (compare(CORES, "", ["a"], speeds(1, noise=0.4)),)}, "faster or"),
        ("quota", {"cores": replace(CORES_2, quota=1.5)}, "1.5 cores"),
        ("affinity", {"cores": replace(CORES_2, mine=(1,))}, "1 of 2 cores"),
        ("governor", {"cores": replace(CORES_2, governor="powersave")}, "powersave"),
        ("apart", {"equality": (compare(CORES, "", ["a", "b"], calm(1, 0.8)),)}, "b takes 1.2"),
        ("apart", {"equality": (compare("A100", "", ["a", "b"], calm(1, 0.8)),)}, "GPUs (A100)"),
        ("unsure", {"equality": (compare(CORES, "", ["a", "b"], calm(1, 1, rounds=4)),)}, "told"),
        (
            "threads",
            {"threads": judge("lenet", 64, [1, 2], speeds(1000, 930))},
            "the default for one",
        ),
        ("torch", {"torch": replace(TORCH, mkl=False, onednn=False)}, "oneDNN"),
        ("torch", {"gpus": Gpus(driver="1", devices=(GPU,))}, "without CUDA"),
        ("swap", {"memory": replace(MEMORY, swap_total=10**10, swap_used=10**9)}, "1.0 GB lie"),
        ("swap", {"memory": replace(MEMORY, swapped=4000)}, "4,000 pages"),
        ("memory", {"memory": replace(MEMORY, limit=5 * 10**8)}, "0.5 GB"),
        ("pages", {"pages": Pages(enabled="never")}, "large pages"),
        ("shm", {"limits": Limits(files=1024, files_most=1024, shm_size=64 << 20)}, "67 MB"),
        ("files", {"limits": Limits(files=256, files_most=1024)}, "256 files"),
        ("clock", {"host": replace(HOST, clock="hpet", clock_ns=1900)}, "1.9 µs"),
        ("space", {"disk": replace(DISK, free=10**9)}, "1.0 GB are free"),
        ("disk", {"disk": replace(DISK, write=steady(2e7))}, "20 MB/s"),
        ("link", {"peer": LINK}, "0.8 s"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(
    kind: str, changes: dict[str, Any], words: str
) -> None:
    found = warnings(replace(FINE, **changes))
    (told,) = [each for each in found if each.kind == kind]
    assert words in told.sentence
    assert told.advice
    assert not told.sentence.endswith(".")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("gpu-clock", {"held_back": ("hardware thermal slowdown",), "temperature": 91.0}),
        ("gpu-pcie", {"pcie": "gen 4 x8"}),
        ("gpu-power", {"power_limit": 250.0}),
        ("gpu-busy", {"memory_used": 30 * 10**9, "processes": 1}),
    ],
)
def test_what_is_wrong_with_a_gpu(kind: str, changes: dict[str, Any]) -> None:
    torch = replace(TORCH, cuda="12.8")
    good = replace(FINE, torch=torch, gpus=Gpus(driver="1", devices=(GPU,)))
    assert warnings(good) == []  # an idle GPU has lowered its PCIe generation: no fault
    bad = Gpus(driver="1", devices=(GPU, replace(GPU, index=1, **changes)))
    (found,) = warnings(replace(good, gpus=bad))
    assert found.kind == kind
    assert "GPU 1 (A100)" in found.sentence


@pytest.mark.parametrize(
    ("driver", "preference", "warned"),
    [
        ("intel_pstate", "balance_performance", False),
        ("intel_pstate", "power", True),
        ("acpi-cpufreq", None, True),
    ],
)
def test_powersave_is_harmless_where_the_driver_speeds_up_under_load(
    driver: str, preference: str | None, warned: bool
) -> None:
    cores = replace(CORES_2, governor="powersave", driver=driver, preference=preference)
    assert bool(warnings(replace(FINE, cores=cores))) == warned


# What it is good for.


def test_the_verdict_says_how_many_workers_and_what_an_exchange_costs() -> None:
    link = replace(LINK, latency=steady(30e-6))
    shared = Shared(latency=steady(3e-6), slowest=1e-5, cores=(0, 1))
    said = verdict(replace(FINE, shared=shared, loopback=link))
    assert "up to 2 workers of lenet with --threads 1" in said
    assert "3 µs over shared memory and 30 µs over TCP" in said


def test_the_verdict_counts_neither_halves_of_cores_nor_time_that_is_not_granted() -> None:
    halves = Cores(logical=8, physical=4, mine=tuple(range(8)))
    assert "up to 4 workers" in verdict(Facts(cores=halves))
    assert "up to 2 workers" in verdict(Facts(cores=replace(halves, quota=2.5)))
    assert "up to 1 worker " in verdict(Facts(cores=replace(halves, mine=(3,))))


def test_the_verdict_of_a_machine_with_gpus() -> None:
    gpus = Gpus(driver="1", devices=(GPU, replace(GPU, index=1)))
    assert "2 workers on 2 GPUs" in verdict(replace(FINE, gpus=gpus))


def test_of_nothing_nothing_is_said() -> None:
    assert verdict(Facts()) == ""

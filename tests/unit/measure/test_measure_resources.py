"""Clock and sampler, on this very process."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time

import pytest

from paceline.measure.clock import Clock
from paceline.measure.cores import my_cores
from paceline.measure.process import Process, still_runs
from paceline.measure.resources import Said, Sampler
from paceline.types import HostResources, Own, Traffic, record


def test_clock_counts_from_the_start() -> None:
    clock = Clock(time.monotonic() - 5)
    first = clock.now()
    assert 5 <= first < 6
    assert clock.now() >= first


def test_samples_what_lives_and_skips_what_does_not() -> None:
    sampler = Sampler(Clock(time.monotonic()))
    me = {"worker-0": os.getpid(), "worker-1": 2**22 + 1}
    peer = Traffic("server-0", 10, 20, 1, 2)
    (before,) = sampler.sample(me, {"worker-0": Said(10, 20, (peer,), Own(1, 2, 3))})
    spin_until = time.process_time() + 0.05
    while time.process_time() < spin_until:
        pass
    (after,) = sampler.sample(me, {})
    assert (before.role, before.sent, before.received) == ("worker-0", 10, 20)
    assert before.traffic == (peer,)
    assert (after.sent, after.received, after.traffic) == (0, 0, ())
    assert (before.voluntary, before.involuntary, before.peak_bytes) == (1, 2, 3)
    assert after.involuntary is None
    assert after.cpu_seconds >= before.cpu_seconds + 0.03
    assert before.memory_bytes > 1_000_000
    assert after.time > before.time


def test_a_role_that_ends_is_skipped() -> None:
    sampler = Sampler(Clock(0.0))
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert len(sampler.sample({"worker-0": process.pid}, {})) == 1
        process.kill()
    assert sampler.sample({"worker-0": process.pid}, {}) == []


def test_descriptors_of_roles_that_are_gone_are_closed() -> None:
    sampler = Sampler(Clock(0.0))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    sampler.sample({"worker-0": os.getpid()}, {})
    assert len(os.listdir("/proc/self/fd")) > before  # noqa: PTH208
    sampler.sample({}, {})
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    sampler.close()


def test_the_host_is_this_one() -> None:
    sampler = Sampler(Clock(0.0))
    one, two = sampler.host(), sampler.host()
    assert one.host == platform.node()
    assert len(two.cores) >= len(my_cores())
    assert all(b >= a for a, b in zip(one.cores, two.cores, strict=True) if a and b)
    assert HostResources.of(json.loads(json.dumps(record(two)))) == two


def test_two_roles_may_share_a_process() -> None:
    sampler = Sampler(Clock(0.0))
    both = sampler.sample({"worker-0": os.getpid(), "server-0": os.getpid()}, {})
    assert [sample.role for sample in both] == ["worker-0", "server-0"]


def test_still_runs_knows_a_process_by_pid_and_start() -> None:
    created = Process(os.getpid()).created
    assert still_runs(os.getpid(), created)
    assert not still_runs(os.getpid(), created - 60)
    with pytest.raises(ProcessLookupError):
        Process(2**22 + 1)


def test_sampling_is_cheap() -> None:
    """Told, not asserted: this machine is shared. `bench.sampling` does it properly."""
    sampler = Sampler(Clock(0.0))
    pids = {f"worker-{i}": os.getpid() for i in range(8)}
    sampler.sample(pids, {})
    begin = time.perf_counter()
    for _ in range(50):
        sampler.sample(pids, {})
    print(f"sampling: {1e6 * (time.perf_counter() - begin) / 400:.0f} us a role")  # noqa: T201

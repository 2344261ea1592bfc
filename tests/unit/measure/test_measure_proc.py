"""What is read from /proc: from texts as Linux writes them, and from this very process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.measure.host import HostMeter
from paceline.measure.meter import Meter
from paceline.measure.own import own
from paceline.measure.proc import (
    PAGE,
    TICK,
    ProcFile,
    Spare,
    cpu_in,
    disks_in,
    nics_in,
    number_after,
    opened,
    stalls_in,
    stat_in,
)

STAT = b"""cpu  100 10 50 1000 20 5 5 30 0 0
cpu0 60 0 30 500 10 5 5 20 0 0
cpu2 40 10 20 500 10 0 0 10 7 0
intr 12345 0 1
ctxt 99
procs_running 3
procs_blocked 0
"""
NET = b"""Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:    3193      29    0    0    0     0          0         0     3193      29    0
  ifb0:       0       0    0    0    0     0          0         0        0       0    0
eth0:1:540063324   11190    0    0    0     0          0         0   582575    7775    0
"""
DISKS = b"""   7       0 loop0 9 0 9 0 9 0 9 0 0 9 9 0 0 0 0 0 0
 259       0 nvme0n1 9824 4993 2000 23617 5547 55762 4000 33672 0 15144 59284 0 0 0 0 0 0
 259       1 nvme0n1p1 9824 4993 1999 23617 5547 55762 3999 33672 0 15144 59284 0 0 0 0 0 0
   8       0 sda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   8      16 sdb 1 0 2 0 0 0 0 0 0 500 0 0 0 0 0 0 0
   8      17 sdb1 1 0 2 0 0 0 0 0 0 500 0 0 0 0 0 0 0
 253       0 dm-0 1 0 2000 0 0 0 4000 0 0 500 0 0 0 0 0 0 0
"""
MEMORY = b"""MemTotal:       32000000 kB
MemAvailable:       1000 kB
SwapCached:            7 kB
SwapTotal:           500 kB
SwapFree:            100 kB
"""


def test_a_process_whose_name_looks_like_more_fields() -> None:
    rest = " ".join(str(n) for n in range(1, 50))
    found = stat_in(f"77 (a) b (c) T {rest}\n".encode())
    assert found.state == "T"
    assert found.major_faults == 9
    assert found.cpu_seconds == pytest.approx((11 + 12) * TICK)
    assert (found.threads, found.memory_bytes) == (17, 21 * PAGE)


def test_cores_by_their_numbers_without_what_was_stolen_or_idle() -> None:
    cpu = cpu_in(STAT)
    assert cpu.cores == pytest.approx((100 * TICK, None, 70 * TICK))
    assert (cpu.iowait, cpu.steal) == pytest.approx((20 * TICK, 30 * TICK))
    assert cpu.running == 3
    assert cpu_in(b"").cores == ()


def test_interfaces_that_had_anything() -> None:
    assert list(nics_in(NET)) == [("lo", 3193, 3193), ("eth0:1", 582575, 540063324)]


def test_disks_and_not_their_parts() -> None:
    assert list(disks_in(DISKS)) == [
        ("nvme0n1", 2000 * 512, 4000 * 512, 15.144),
        ("sdb", 1024, 0, 0.5),
    ]


def test_stalls_and_numbers_by_name() -> None:
    some = b"some avg10=0.17 avg60=0.95 avg300=1.28 total=12376141\nfull avg10=0.00 total=5\n"
    assert list(stalls_in(some)) == [("some", 12.376141), ("full", 5e-6)]
    assert number_after(b"SwapFree:", MEMORY) == 100
    assert number_after(b"nothing:", MEMORY) is None


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for name, content in {
        "proc/stat": STAT,
        "proc/net/dev": NET,
        "proc/diskstats": DISKS,
        "proc/meminfo": MEMORY,
        "proc/vmstat": b"nr_free_pages 1\npswpin 3\npswpout 4\n",
        "proc/loadavg": b"1.60 0.5 0.1 3/200 77\n",
        "proc/pressure/memory": b"some avg10=0 total=2000000\nfull avg10=0 total=1000000\n",
        "sys/class/net/lo/speed": b"-1\n",
        "sys/class/net/eth0:1/speed": b"10000\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_a_host_from_its_files(proc: Path) -> None:
    meter = HostMeter(Spare(), proc / "proc", proc / "sys")
    meter.read(1.0)
    with (proc / "proc/vmstat").open("r+b") as file:
        file.write(b"nr_free_pages 1\npswpin 5")
    host = meter.read(1.5)
    assert host.time == 1.5
    assert host.memory_available == 1000 * 1024
    assert host.swap_used == 400 * 1024
    assert (host.swapped_in, host.swapped_out) == (5 * PAGE, 4 * PAGE)
    assert (host.load, host.running) == (1.6, 3)
    assert host.nics["eth0:1"].received == 540063324
    assert host.speeds == {"eth0:1": 10000}
    assert host.disks["sdb"].busy == 0.5
    assert host.pressure == {"memory": 2.0, "memory_full": 1.0}


def test_what_a_host_does_not_tell_is_not_known(tmp_path: Path) -> None:
    host = HostMeter(Spare(), tmp_path, tmp_path).read(0.0)
    assert host.cores == ()
    assert (host.steal_seconds, host.load, host.memory_available, host.swap_used) == (None,) * 4
    assert (host.nics, host.disks, host.pressure) == ({}, {}, {})


def test_files_are_read_as_they_are_now_and_close(tmp_path: Path) -> None:
    path, spare = tmp_path / "file", Spare(1)
    path.write_bytes(b"x" * 5000)
    kept, anew = ProcFile(path, spare), ProcFile(path, spare)
    assert spare.left == 0
    assert kept.read() == anew.read() == b"x" * 5000
    with path.open("r+b") as file:
        file.write(b"y")
    assert kept.read()[:2] == anew.read()[:2] == b"yx"
    kept.close()
    anew.close()
    assert spare.left == 1
    assert opened(tmp_path / "none", spare) is None


def test_what_threads_waited_for_cores_stays_when_they_end(
    eventually: Callable[..., Any],
) -> None:
    spare = Spare()
    meter = Meter(os.getpid(), spare)
    here, over = threading.Event(), threading.Event()

    def turns() -> None:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:  # two of these take turns, by Python's own lock
            pass
        here.set()
        over.wait(10)

    before = meter.read()
    threads = [threading.Thread(target=turns) for _ in range(2)]
    for thread in threads:
        thread.start()
    here.wait(10)
    during = meter.read()
    over.set()
    for thread in threads:
        thread.join()
    paths = [Path(f"/proc/self/task/{thread.native_id}") for thread in threads]
    eventually(lambda: not any(path.exists() for path in paths), 5)  # a little later
    after = meter.read()
    told = [found for found in (before, during, after) if found is not None]
    assert [found.threads - told[0].threads for found in told] == [0, 2, 0]
    delays = [found.delay_seconds or 0.0 for found in told]
    assert delays == sorted(delays)
    held = spare.left
    meter.close()
    assert spare.left > held


def test_a_process_knows_its_own_switches_and_its_most_memory() -> None:
    before = own()
    for _ in range(20):
        time.sleep(0.001)
    after = own()
    assert before.voluntary is not None
    assert after.voluntary is not None
    assert after.voluntary >= before.voluntary + 20
    assert before.involuntary is not None
    assert after.peak_bytes is not None
    assert after.peak_bytes > 1_000_000


def test_what_a_process_writes_is_seen_from_outside(tmp_path: Path) -> None:
    write = (
        "import os, sys\n"
        f"fd = os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_WRONLY)\n"
        "os.write(fd, bytes(1 << 20)); os.fsync(fd); print('written', flush=True); input()"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", write], stdin=pipe, stdout=pipe) as process:
        meter = Meter(process.pid, Spare())
        assert process.stdout is not None
        process.stdout.readline()
        found = meter.read()
        process.kill()
    assert found is not None
    assert found.memory_bytes > 1_000_000
    # None of it, where the folder is in memory.
    assert not found.written_bytes or found.written_bytes >= 1 << 20
    assert meter.read() is None
    meter.close()

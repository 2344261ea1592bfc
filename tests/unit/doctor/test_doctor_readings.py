"""What the kernel tells, from folders that look like its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paceline.doctor import processor, system
from paceline.doctor.disk import existing, filesystem
from paceline.doctor.gpus import signs
from paceline.doctor.load import Ticks, steal, ticks
from paceline.measure.cgroup import granted
from paceline.measure.text import listed


def written(root: Path, files: dict[str, str]) -> Path:
    for name, body in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
    return root


V2 = {
    "proc/self/cgroup": "0::/user/job\n",
    "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/user/job/cpu.max": "max 100000\n",
    "sys/fs/cgroup/user/job/cpu.stat": "nr_periods 10\nnr_throttled 7\n",
    "sys/fs/cgroup/user/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/user/job/memory.max": "max\n",
    "sys/fs/cgroup/user/memory.max": "4000000000\n",
}
V1 = {
    "proc/self/cgroup": "4:memory:/docker/abc\n1:cpu,cpuacct:/docker/abc\n",
    "proc/self/mountinfo": (
        "32 31 0:29 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    ),
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000000\n",
}


def test_the_least_grant_on_the_way_up_counts(tmp_path: Path) -> None:
    found = granted(written(tmp_path, V2))
    assert (found.cores, found.memory, found.throttled) == (1.5, 4_000_000_000, 7)


def test_the_older_groups_and_a_container_that_is_its_own_top(tmp_path: Path) -> None:
    found = granted(written(tmp_path, V1))
    assert (found.cores, found.memory) == (0.5, 2_000_000_000)


def test_no_grant_is_no_limit(tmp_path: Path) -> None:
    unlimited = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    found = granted(written(tmp_path, V1 | unlimited))
    assert (found.cores, found.memory) == (None, None)


@pytest.mark.parametrize("group", ["0::/../elsewhere\n", "", "nonsense\n"])
def test_groups_that_are_not_to_be_found_grant_everything(tmp_path: Path, group: str) -> None:
    tree = V2 | {"proc/self/cgroup": group}
    if group == "nonsense\n":
        with pytest.raises(ValueError, match="unpack"):
            granted(written(tmp_path, tree))
    else:
        assert granted(written(tmp_path, tree)).cores is None


def cpu(number: int, core: int, shared: str) -> dict[str, str]:
    base = f"sys/devices/system/cpu/cpu{number}"
    return {
        f"{base}/topology/physical_package_id": "0\n",
        f"{base}/topology/core_id": f"{core}\n",
        f"{base}/cache/index0/level": "1\n",
        f"{base}/cache/index0/type": "Data\n",
        f"{base}/cache/index0/size": "32K\n",
        f"{base}/cache/index0/shared_cpu_list": f"{shared}\n",
        f"{base}/cache/index3/level": "3\n",
        f"{base}/cache/index3/type": "Unified\n",
        f"{base}/cache/index3/size": "16384K\n",
        f"{base}/cache/index3/shared_cpu_list": "0-3\n",
    }


HALVES = {
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "acpi-cpufreq\n",
    **cpu(0, 0, "0,2"),
    **cpu(1, 1, "1,3"),
    **cpu(2, 0, "0,2"),
    **cpu(3, 1, "1,3"),
}


def test_two_halves_of_a_core_are_one(tmp_path: Path) -> None:
    found = processor.cores(written(tmp_path, HALVES), mine=[0, 1])
    assert (found.logical, found.physical, found.sockets, found.nodes) == (4, 2, 1, 1)
    assert (found.mine, found.governor, found.driver) == ((0, 1), "powersave", "acpi-cpufreq")


def test_a_shared_cache_is_counted_once(tmp_path: Path) -> None:
    first, last = processor.caches(written(tmp_path, HALVES))
    assert (first.level, first.kind, first.size, first.shared_by, first.count) == (
        *(1, "data", 32768),
        *(2, 2),
    )
    assert (last.size, last.shared_by, last.count) == (16 << 20, 4, 1)
    assert processor.last_level([first, last]) == 16 << 20


def test_a_kernel_that_tells_nothing_is_no_fault(tmp_path: Path) -> None:
    found = processor.cores(tmp_path, mine=[0, 1, 2])
    assert (found.logical, found.physical, found.quota) == (3, None, None)
    assert processor.caches(tmp_path) == []
    assert processor.last_level([]) > 0
    assert system.pages(tmp_path).enabled is None
    assert system.host(tmp_path).cpu
    assert ticks(tmp_path) is None
    assert steal(None, None) is None


MEMINFO = "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 100 kB\nSwapFree: 30 kB\n"


def test_memory_and_swap(tmp_path: Path) -> None:
    tree = {"proc/meminfo": MEMINFO, "proc/vmstat": "pswpin 40\npswpout 2\n"}
    found = system.memory(written(tmp_path, tree), swapped=40)
    assert (found.total, found.available) == (1000 * 1024, 600 * 1024)
    assert (found.swap_used, found.swapped) == (70 * 1024, 2)


def test_a_limit_beyond_the_memory_is_none(tmp_path: Path) -> None:
    assert system.memory(written(tmp_path, V2 | {"proc/meminfo": MEMINFO})).limit is None


def test_pages(tmp_path: Path) -> None:
    tree = {
        "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
        "sys/kernel/mm/transparent_hugepage/shmem_enabled": "always [advise] never\n",
        "proc/meminfo": "HugePages_Total: 4\nHugepagesize: 2048 kB\n",
    }
    found = system.pages(written(tmp_path, tree))
    assert (found.enabled, found.shared, found.reserved) == ("never", "advise", 8 << 20)


def test_steal_is_a_share_of_the_time_that_was_wanted(tmp_path: Path) -> None:
    # user nice system idle iowait irq softirq steal guest guest_nice
    before = ticks(written(tmp_path, {"proc/stat": "cpu  100 0 0 1000 0 0 0 10 0 0\n"}))
    after = ticks(written(tmp_path, {"proc/stat": "cpu  190 0 0 5000 0 0 0 20 0 0\n"}))
    assert before == Ticks(1110, 100, 10)
    assert steal(before, after) == pytest.approx(10 / 100)


def test_the_file_system_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = (
        f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 8:2 / {tmp_path}/a rw - xfs /dev/b rw\n"
        f"3 1 8:3 / {tmp_path}/a/b\\040c rw - nfs4 h:/x rw\n"
    )
    root = written(tmp_path / "root", {"proc/self/mountinfo": mounts})
    (tmp_path / "a" / "b c" / "runs").mkdir(parents=True)
    assert filesystem(tmp_path / "a" / "b c" / "runs", root) == "nfs4"
    assert filesystem(tmp_path / "a", root) == "xfs"
    assert filesystem(tmp_path, root) == "ext4"


def test_a_folder_that_is_not_there_is_measured_where_it_would_be(tmp_path: Path) -> None:
    assert existing(tmp_path / "not" / "yet") == tmp_path
    assert not (tmp_path / "not").exists()


def test_lists_of_cores() -> None:
    assert listed("0-2,8,10-11") == [0, 1, 2, 8, 10, 11]
    assert listed("") == []


def test_signs_of_a_gpu(tmp_path: Path) -> None:
    assert not signs(tmp_path)
    assert signs(written(tmp_path, {"dev/nvidia0": ""}))


def test_this_machine_tells_something() -> None:
    assert system.limits().files != 0
    assert system.versions().torch
    assert json.dumps(system.versions().python)
    assert system.host().clock_ns

"""From facts to warnings: what is wrong with this machine, and what to do about it.

A warning is told only of what was measured or read. Those that make other figures doubtful come
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paceline.diagnose.doctor.equality import slow
from paceline.diagnose.doctor.facts import Equality, Facts
from paceline.diagnose.doctor.finding import Finding
from paceline.diagnose.doctor.gpus import gpu_warnings

BUSY = 0.1  # of the cores, by others
STEAL = 0.05
UNSTEADY = 0.05  # half the interval of a core's own speed, as a part of it
SWAP = 100e6  # bytes; what lies there since the machine started does no harm
LITTLE_SHM = 1e9
LITTLE_MEMORY = 1e9
LITTLE_DISK = 2e9
SLOW_DISK = 50e6
SLOW_LINK = 300e6
FEW_FILES = 1024
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
# With these, powersave goes up to full speed under load; what counts is the preference.
EAGER_DRIVERS = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")
MODEL = 20e6 * 4  # bytes of a model of 20 million parameters, to say what a rate means
GB, MB = 1e9, 1e6

Found = Iterator[Finding]


def warnings(facts: Facts) -> list[Finding]:
    """Everything that is wrong, as far as is known."""
    return [found for look in LOOKS for found in look(facts)]


def _busy(facts: Facts) -> Found:
    busy, cores = facts.load.busy_cores, facts.cores
    if busy is None or cores is None or busy <= BUSY * cores.logical:
        return
    yield Finding(
        kind="busy",
        sentence=f"other work kept {busy:.1f} of {cores.logical} cores busy before anything was "
        "measured, so the figures are lower and less steady than the machine's own",
        advice="end it, or measure again when the machine is quiet (see top)",
    )


def _steal(facts: Facts) -> Found:
    steal = facts.load.steal
    if steal is not None and steal > STEAL:
        yield Finding(
            kind="steal",
            sentence=f"the hypervisor gave {100 * steal:.0f} % of the cores' time to other guests",
            advice="rent dedicated cores, or another machine; time lost so is lost to every worker",
        )


def _noise(facts: Facts) -> Found:
    cores = next((found for found in facts.equality if not found.gpus), None)
    if cores is None:
        return
    worst = max((device.speed.relative or 0.0 for device in cores.devices), default=0.0)
    if worst > UNSTEADY:
        yield Finding(
            kind="noise",
            sentence=f"one and the same core was up to {100 * worst:.0f} % faster or slower from "
            "one moment to the next",
            advice="take small differences between runs for noise; repeat, and compare intervals",
        )


def _quota(facts: Facts) -> Found:
    cores = facts.cores
    if cores is None or cores.quota is None or cores.quota >= len(cores.mine):
        return
    fit = max(1, int(cores.quota))
    yield Finding(
        kind="quota",
        sentence=f"the cgroup grants the time of {cores.quota:g} cores, and {len(cores.mine)} are "
        "in sight: whatever uses more is stopped for a part of every tenth of a second",
        advice=f"raise the quota (docker --cpus, resources.limits.cpu), or use at most {fit} "
        "workers times --threads",
    )


def _affinity(facts: Facts) -> Found:
    cores = facts.cores
    if cores is not None and len(cores.mine) < cores.logical:
        yield Finding(
            kind="affinity",
            sentence=f"this process may run on {len(cores.mine)} of {cores.logical} cores",
            advice="if that is not on purpose, see taskset -p or the container's cpuset",
        )


def _governor(facts: Facts) -> Found:
    cores = facts.cores
    if cores is None or cores.governor is None:
        return
    eager = cores.driver in EAGER_DRIVERS
    saves = cores.governor == "powersave" and not eager
    if saves or (eager and cores.preference in ("power", "balance_power")):
        what = f"governor {cores.governor}" if saves else f"preference {cores.preference}"
        yield Finding(
            kind="governor",
            sentence=f"the cores save power ({what}) and stay below their full speed",
            advice="sudo cpupower frequency-set -g performance",
        )


def _apart(facts: Facts) -> Found:
    for found in facts.equality:
        if found.verdict == "apart":
            yield _told_apart(found)
        elif found.verdict == "unsure":
            yield Finding(
                kind="unsure",
                sentence=f"whether the {_called(found)} are equally fast cannot be told: they "
                "differ, and not by more than they vary",
                advice="measure again when the machine is quiet, without --quick",
            )


def _told_apart(found: Equality) -> Finding:
    last, *more = slow(found)
    others = f", and {len(more)} more beyond 5 %" if more else ""
    gap = last.against
    sentence = (
        f"the {_called(found)} are not equal: {last.name} takes {gap.value:.2f} times "
        f"({gap.low:.2f}–{gap.high:.2f}) as long as the fastest{others}"
    )
    if not found.gpus:
        advice = "use --balance, or keep workers off the slow ones (taskset -c)"
    else:
        advice = "compare clocks, power limits and cooling above; use --balance meanwhile"
    return Finding(kind="apart", sentence=sentence, advice=advice)


def _called(found: Equality) -> str:
    return "cores" if not found.gpus else f"GPUs ({found.kind})"


def _threads(facts: Facts) -> Found:
    threads, torch, cores = facts.threads, facts.torch, facts.cores
    if threads is None:
        return
    # What torch takes by itself, and what a lone worker of ours is given.
    usual = {torch.threads if torch else None, len(cores.mine) if cores else None}
    for count in sorted(n for n in usual if n and n > 1):
        found = threads.of(count)
        if found is None or found.against_one.high is None or found.against_one.high >= 1:
            continue
        yield Finding(
            kind="threads",
            sentence=f"{count} torch threads, the default for one worker, are "
            f"{found.against_one.value:.2f} times as fast as one for {threads.task}",
            advice=f"use --threads {threads.best}; in scripts torch.set_num_threads("
            f"{threads.best}) or OMP_NUM_THREADS={threads.best}",
        )


def _torch(facts: Facts) -> Found:
    torch = facts.torch
    if torch is not None and not (torch.onednn or torch.mkl):
        yield Finding(
            kind="torch",
            sentence="torch was built without oneDNN and without MKL: convolutions and products "
            "are slow on CPUs",
            advice="install a wheel from pytorch.org",
        )
    if torch is not None and torch.cuda is None and facts.gpus and facts.gpus.devices:
        yield Finding(
            kind="torch",
            sentence="there is a GPU, and torch was built without CUDA: it will not be used",
            advice="install torch with CUDA from pytorch.org",
        )


def _memory(facts: Facts) -> Found:
    memory = facts.memory
    if memory is None:
        return
    if memory.swapped or memory.swap_used > SWAP:
        now = f"; {memory.swapped:,} pages moved while this was measured" if memory.swapped else ""
        yield Finding(
            kind="swap",
            sentence=f"{memory.swap_used / GB:.1f} GB lie in swap{now}",
            advice="end what is not needed, or use fewer workers: a step that needs what lies "
            "there waits for the disk",
        )
    room = min(memory.available, memory.limit or memory.available)
    if room < LITTLE_MEMORY:
        yield Finding(
            kind="memory",
            sentence=f"{room / GB:.1f} GB of memory are available",
            advice="a worker with torch takes about 0.3 GB besides its model and data",
        )


def _pages(facts: Facts) -> Found:
    if facts.pages is not None and facts.pages.enabled == "never":
        yield Finding(
            kind="pages",
            sentence="large pages are switched off: large models and tables are found more slowly",
            advice="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )


def _limits(facts: Facts) -> Found:
    limits = facts.limits
    if limits is None:
        return
    if limits.shm_size is not None and limits.shm_size < LITTLE_SHM:
        yield Finding(
            kind="shm",
            sentence=f"/dev/shm has {limits.shm_size / MB:,.0f} MB: a DataLoader with workers ends "
            "with a bus error once it is full (Paceline's own segments are not there)",
            advice="docker run --shm-size 2g, or mount a larger tmpfs on /dev/shm",
        )
    if limits.files is not None and limits.files < FEW_FILES:
        yield Finding(
            kind="files",
            sentence=f"a process may open {limits.files} files, and many workers need more",
            advice="ulimit -n 4096",
        )


def _clock(facts: Facts) -> Found:
    host = facts.host
    if host is not None and host.clock in SLOW_CLOCKS:
        cost = f", {host.clock_ns / 1000:.1f} µs a look" if host.clock_ns else ""
        yield Finding(
            kind="clock",
            sentence=f"the kernel reads the time from {host.clock}{cost}: timing every phase of "
            "every step costs more than it should",
            advice="see why the kernel gave up tsc (dmesg | grep -i clocksource)",
        )


def _disk(facts: Facts) -> Found:
    disk = facts.disk
    if disk is None:
        return
    if disk.free < LITTLE_DISK:
        yield Finding(
            kind="space",
            sentence=f"{disk.free / GB:.1f} GB are free where runs are recorded ({disk.folder})",
            advice="make room, or record elsewhere with --out or PACELINE_RUNS",
        )
    if disk.write.value < SLOW_DISK:
        yield Finding(
            kind="disk",
            sentence=f"runs are recorded at {disk.write.value / MB:.0f} MB/s ({disk.folder}), "
            "so checkpoints of large models take long",
            advice="record on a local disk with --out or PACELINE_RUNS, or raise "
            "--checkpoint-every",
        )


def _peer(facts: Facts) -> Found:
    peer = facts.peer
    if peer is None:
        return
    least = min(peer.push.value, peer.pull.value)
    if least < SLOW_LINK:
        yield Finding(
            kind="link",
            sentence=f"{peer.address} is reached at {least / MB:,.0f} MB/s: the gradient of 20 "
            f"million parameters takes {MODEL / least:.1f} s",
            advice="send less often (--strategy local-sgd, --accumulate) or less (--codec)",
        )


LOOKS: tuple[Callable[[Facts], Found], ...] = (
    *(_busy, _steal, _noise, _quota, _affinity, _governor, _apart, _threads, _torch),
    *(_memory, _pages, _limits, _clock, _disk, _peer, gpu_warnings),
)

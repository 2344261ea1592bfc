"""What doctor found, for a person and for a program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from paceline.diagnose.doctor.facts import Cache, Cores, Equality, Facts, Link, Memory, Threads
from paceline.diagnose.doctor.finding import Finding
from paceline.diagnose.doctor.verdict import verdict
from paceline.diagnose.doctor.warnings import warnings
from paceline.measure.spread import Spread
from paceline.report.doctor_gpus import gpus_table
from paceline.report.layout import Column, stacked, table
from paceline.report.words import NONE, between, duration, many, number

MANY = 8  # devices; of more, only the slowest are shown
GB, MB, US, MS = 1e9, 1e6, 1e-6, 1e-3


def as_object(facts: Facts) -> dict[str, Any]:
    """One object: every fact, the warnings, and what the machine is good for."""
    return {
        **asdict(facts),
        "warnings": [asdict(found) for found in warnings(facts)],
        "verdict": verdict(facts),
    }


def report(facts: Facts) -> RenderableType:
    """Everything that is known, then what is wrong, then what the machine is good for."""
    told = verdict(facts)
    return stacked(
        _header(facts),
        _described(facts),
        _measured(facts),
        _threads(facts.threads) if facts.threads else None,
        *(_devices(found) for found in facts.equality if len(found.devices) > 1 or found.gpus),
        gpus_table(facts.gpus) if facts.gpus and facts.gpus.devices else None,
        _warnings(warnings(facts)),
        _unmeasured(facts),
        Text(told, style="bold") if told else None,
    )


def _header(facts: Facts) -> Text:
    """`host · processor · 2 cores · 25.3 GB · no GPU · 27.0 s`"""
    parts = []
    if facts.host:
        parts.append(facts.host.cpu + (" (virtual)" if facts.host.virtual else ""))
    if facts.cores:
        parts.append(many(facts.cores.logical, "core"))
    if facts.memory:
        parts.append(_size(facts.memory.total))
    if facts.gpus:
        parts.append(many(len(facts.gpus.devices), "GPU") if facts.gpus.devices else "no GPU")
    ended = f"measured in {duration(facts.seconds)}"
    parts.append(ended if facts.complete else f"interrupted after {duration(facts.seconds)}")
    name = facts.host.name if facts.host else "this machine"
    return Text.assemble((name, "bold"), *(f" · {part}" for part in parts))


def _described(facts: Facts) -> RenderableType | None:
    """What the system tells, a line a subject; long ones wrap."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column()
    for subject, told in _subjects(facts):
        grid.add_row(subject, Text(told))
    return grid if grid.row_count else None


def _subjects(facts: Facts) -> Iterator[tuple[str, str]]:
    if facts.cores:
        yield "cores", _cores(facts.cores)
    if facts.load.busy_cores is not None and facts.cores:
        stolen = facts.load.steal
        others = (
            f"{facts.load.busy_cores:.1f} of {many(facts.cores.logical, 'core')} busy beforehand"
        )
        yield "others", others + ("" if stolen is None else f", {100 * stolen:.1f} % stolen")
    if facts.caches:
        yield "caches", ", ".join(_cache(cache) for cache in facts.caches)
    if facts.memory:
        yield "memory", _memory(facts.memory)
    if facts.pages and facts.pages.enabled:
        shared = f", of shared memory {facts.pages.shared}" if facts.pages.shared else ""
        reserved = f", {facts.pages.reserved / GB:.1f} GB reserved" if facts.pages.reserved else ""
        yield "large pages", facts.pages.enabled + shared + reserved
    if facts.limits:
        files = "any number of" if facts.limits.files is None else f"{facts.limits.files:,}"
        shm = f", /dev/shm {_size(facts.limits.shm_size)}" if facts.limits.shm_size else ""
        yield "limits", f"{files} open files{shm}"
    if facts.disk:
        kind = f" ({facts.disk.filesystem})" if facts.disk.filesystem else ""
        yield "runs", f"{_size(facts.disk.free)} free for {facts.disk.folder}{kind}"
    if facts.host and facts.host.clock:
        yield "clock", f"{facts.host.clock}, {facts.host.clock_ns:.0f} ns a look"
    if facts.versions:
        yield "software", _software(facts)


def _cores(cores: Cores) -> str:
    parts = [f"{cores.logical}"]
    if cores.physical is not None and cores.sockets is not None:
        parts[0] += f" ({cores.physical} physical, {many(cores.sockets, 'socket')})"
    few = len(cores.mine) < cores.logical
    parts.append(f"{len(cores.mine)} of them ours" if few else "all of them ours")
    parts.append("no quota" if cores.quota is None else f"a quota of {cores.quota:g}")
    if cores.throttled:
        parts.append(f"throttled {cores.throttled:,} times")
    if cores.nodes and cores.nodes > 1:
        parts.append(f"{cores.nodes} memory nodes")
    if cores.governor:
        parts.append(f"governor {cores.governor}")
    return ", ".join(parts)


def _cache(cache: Cache) -> str:
    """`L3 33.6 MB for 2 cores`"""
    kind = {"data": "d", "instruction": "i"}.get(cache.kind, "")
    whose = "a core" if cache.shared_by == 1 else f"for {many(cache.shared_by, 'core')}"
    return f"L{cache.level}{kind} {_binary(cache.size)} {whose}"


def _memory(memory: Memory) -> str:
    parts = [f"{_size(memory.total)}", f"{_size(memory.available)} available"]
    if memory.limit is not None:
        parts.append(f"limited to {_size(memory.limit)}")
    swap = f"{_size(memory.swap_used)} of {_size(memory.swap_total)} swap in use"
    parts.append(swap if memory.swap_total else "no swap")
    return ", ".join(parts)


def _software(facts: Facts) -> str:
    assert facts.versions is not None
    told = f"Python {facts.versions.python}, torch {facts.versions.torch or 'missing'}"
    if facts.torch:
        built = [("MKL", facts.torch.mkl), ("oneDNN", facts.torch.onednn)]
        built.append(("OpenMP", facts.torch.openmp))
        with_ = [name for name, there in built if there] + [facts.torch.instructions]
        with_ += [f"CUDA {facts.torch.cuda}"] if facts.torch.cuda else []
        told += f" ({', '.join(with_)})"
    return f"{told}, numpy {facts.versions.numpy}, Paceline {facts.versions.paceline}"


def _measured(facts: Facts) -> RenderableType | None:
    rows = list(_figures(facts))
    if not rows:
        return None
    whats, values, units, spreads = zip(*rows, strict=True)
    return table(
        [
            Column(title="measured", cells=whats, words=True, style="cyan"),
            Column(title="", cells=values),
            Column(title="", cells=units, words=True),
            Column(title="between", cells=spreads),
        ]
    )


def _figures(facts: Facts) -> Iterator[tuple[str, str, str, str]]:
    """What was measured, how much, of what, between which bounds."""
    if found := facts.bandwidth:
        yield _row("memory, one core", found.one, GB, "GB/s copied")
        if found.cores > 1:
            yield _row(f"memory, {found.cores} cores", found.all, GB, "GB/s copied")
    if facts.shared:
        yield _row("shared memory", facts.shared.latency, US, "µs there and back")
    if facts.loopback:
        yield from _link("loopback", facts.loopback)
    if facts.peer:
        yield from _link(facts.peer.address, facts.peer)
    if disk := facts.disk:
        yield _row("disk, write", disk.write, MB, "MB/s until it is there")
        yield _row("disk, read", disk.read, MB, "MB/s")
        yield _row("disk, a record", disk.sync, MS, "ms until it is there")


def _link(name: str, link: Link) -> Iterator[tuple[str, str, str, str]]:
    yield _row(name, link.latency, US, "µs there and back")
    yield _row(f"{name}, push", link.push, MB, "MB/s")
    yield _row(f"{name}, pull", link.pull, MB, "MB/s")


def _row(what: str, found: Spread, unit: float, called: str) -> tuple[str, str, str, str]:
    digits = _digits(found.value / unit)
    return what, number(found.value / unit, digits), called, _bounds(found, unit, digits)


def _bounds(found: Spread, unit: float, digits: int) -> str:
    if found.low is None or found.high is None:
        return NONE
    return between(found.low / unit, found.high / unit, digits)


def _digits(value: float) -> int:
    return 0 if value >= 100 else 1 if value >= 10 else 2


def _threads(threads: Threads) -> RenderableType:
    counts = threads.counts
    gains = [
        f"{n.against_one.value:.2f}x" + _in_brackets(n.against_one) if n.threads > 1 else ""
        for n in counts
    ]
    marks = ["use this" if n.threads == threads.best else "" for n in counts]
    rates = [n.rate for n in counts]
    spreads = [_bounds(rate, 1, 0) for rate in rates]
    return stacked(
        table(
            [
                Column(
                    title=f"one worker of {threads.task} [{threads.batch}]", cells=marks, words=True
                ),
                Column(title="threads", cells=[number(n.threads) for n in counts]),
                Column(title="samples/s", cells=[number(rate.value) for rate in rates]),
                Column(title="between", cells=spreads),
                Column(title="against one", cells=gains),
            ]
        ),
        Text(threads.sentence),
    )


def _in_brackets(found: Spread) -> str:
    return "" if found.low is None else f" ({found.low:.2f}–{found.high:.2f})"


def _devices(found: Equality) -> RenderableType:
    """Each device; of very many those that are the slowest."""
    devices = sorted(found.devices, key=lambda device: -device.against.value)
    shown = devices[:MANY] if len(devices) > MANY else list(found.devices)
    clocks = [number(device.clock) for device in shown]
    taken = [NONE if d.taken is None else f"{100 * d.taken:.0f}" for d in shown]
    unit, scale = ("TFLOP/s", 1e12) if found.unit == "FLOP/s" else ("M exp/s", MB)
    speeds = [number(device.speed.value / scale, 1) for device in shown]
    gaps = [f"{d.against.value:.3f}x" + _in_brackets(d.against) for d in shown]
    more = len(devices) - len(shown)
    verdicts = {
        "equal": "equal: none is more than 5 % slower than the fastest",
        "apart": "not equal: some are more than 5 % slower than the fastest",
        "unsure": "equal or not: they vary too much to tell",
    }
    rest = f"; {more} faster ones are not shown" if more else ""
    return stacked(
        table(
            [
                Column(title="device", cells=[d.name for d in shown], words=True, style="cyan"),
                Column(title="speed", unit=unit, cells=speeds),
                Column(title="the fastest is", unit="times as fast", cells=gaps),
                Column(title="others", unit="% of its time", cells=taken),
                Column(title="clock", unit="MHz", cells=clocks),
            ]
        ),
        Text(f"{found.kind}: {verdicts[found.verdict]}{rest}."),
    )


def _warnings(found: list[Finding]) -> RenderableType | None:
    if not found:
        return Text("no warnings", style="green")
    lines: list[RenderableType] = []
    for each in found:
        lines.append(Text(f"{each.kind}: {each.sentence}.", style="yellow"))
        advice = Table.grid()
        advice.add_row(Text("  · "), Text(each.advice))
        lines.append(advice)
    return Group(*lines)


def _unmeasured(facts: Facts) -> RenderableType | None:
    reasons: dict[str, list[str]] = {}
    for each in facts.unmeasured:
        reasons.setdefault(each.reason, []).append(each.probe)
    lines = [
        Text(f"not measured: {', '.join(probes)}: {reason}", style="dim")
        for reason, probes in reasons.items()
    ]
    return Group(*lines) if lines else None


def _size(count: float) -> str:
    if count >= 1000 * GB:
        return f"{count / GB / 1000:.1f} TB"
    return f"{count / GB:.1f} GB" if count >= GB else f"{count / MB:.0f} MB"


def _binary(count: int) -> str:
    """Caches are told in powers of two everywhere."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"

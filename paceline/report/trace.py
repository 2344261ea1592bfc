"""A run as a Chrome trace, which ui.perfetto.dev draws: who was at what, when.

    hosts are processes ─► roles are threads ─► steps ─► phases
    run events are instants, counters are tracks

Events come in the order of time from a merge of sorted sources, so nothing but the counters of a
run is ever in memory. Times are microseconds since the run began. No arrow leads from a push to
the update it went into: what a server does is recorded by the millisecond, not by the push.
"""

from __future__ import annotations

import gzip
import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from paceline.errors import RequestError
from paceline.files import replacing
from paceline.report.timeline import Before, Edges, lay_out, lay_spans
from paceline.store.faults import cannot_write
from paceline.store.folder import RunFolder
from paceline.store.text import to_json
from paceline.types import PARTS, HostResources, Resources

MOST = 1_000_000  # events: more than this no viewer likes
TOLD = 10_000  # events between two words on how far it is
SUPERVISOR = "supervisor"
OF = {part: phase for phase, parts in PARTS.items() for part in parts}


class Item(NamedTuple):
    """An event at its place: of those that begin together, the longest comes first."""

    at: int  # nanoseconds
    shorter: int
    event: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a trace holds. `left_out` says that it ends early, since there was more than MOST."""

    events: int
    roles: int
    begin: float
    end: float
    left_out: bool


class Window(NamedTuple):
    """Seconds of the run that are wanted."""

    begin: float = 0.0
    end: float = math.inf

    def __str__(self) -> str:
        until = "its end" if math.isinf(self.end) else f"{self.end:g} s"
        return f"between {self.begin:g} s and {until}"

    def takes(self, begin: float, end: float) -> bool:
        return end >= self.begin and begin <= self.end


def write_trace(
    folder: RunFolder,
    path: Path,
    window: Window = Window(),  # noqa: B008 - as fixed as a number
    most: int = MOST,
    told: Callable[[float], None] = lambda seconds: None,
) -> Written:
    """Write the trace of a run, ended or not, compressed if the name ends in .gz.

    RequestError if nothing was recorded in that window; then no file is left.
    """
    roles = [role for role in folder.read_live()["roles"] if not role.get("inside")]
    hosts = list(dict.fromkeys(str(role.get("host") or "host") for role in roles)) or ["host"]
    places = {SUPERVISOR: (1, 1)}
    for number, role in enumerate(roles):
        places[role["role"]] = hosts.index(str(role.get("host") or "host")) + 1, number + 2
    sources = [_role(folder, name, place, window) for name, place in places.items()]
    sources.append(_events(folder, places, window))
    sources.append(_counters(folder, places, window))
    sources.append(_host_counters(folder, hosts, window))
    count, first, last, more = 0, math.inf, 0.0, False
    try:
        with _opened(path) as file:
            file.write(b'{"displayTimeUnit":"ms","otherData":')
            file.write(to_json({"run": folder.name}).encode().rstrip() + b',"traceEvents":[\n')
            named = [to_json(event).rstrip() for event in _names(hosts, places)]
            file.write(",\n".join(named).encode())
            for at, _, event in heapq.merge(*sources, key=_order):
                if count >= most:
                    more = True
                    break
                file.write(b",\n" + to_json(event).rstrip().encode())
                count += 1
                first, last = min(first, at / 1e9), at / 1e9
                if not count % TOLD:
                    told(last)
            file.write(b"\n]}\n")
            if not count:
                raise RequestError(f"'{folder.name}' has recorded nothing {window}.")
    except OSError as wrong:
        raise cannot_write(path, wrong) from wrong
    return Written(events=count, roles=len(roles), begin=first, end=last, left_out=more)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    with replacing(path) as file:
        if path.suffix == ".gz":
            with gzip.open(file, "wb", compresslevel=3) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield file


Place = tuple[int, int]  # process and thread


def _names(hosts: Sequence[str], places: dict[str, Place]) -> Iterator[dict[str, Any]]:
    for number, host in enumerate(hosts):
        said = {"ph": "M", "pid": number + 1, "ts": 0}
        yield {**said, "name": "process_name", "args": {"name": host}}
    for role, (pid, tid) in places.items():
        said = {"ph": "M", "pid": pid, "tid": tid, "ts": 0}
        yield {**said, "name": "thread_name", "args": {"name": role}}
        yield {**said, "name": "thread_sort_index", "args": {"sort_index": tid}}


def _span(place: Place, name: str, kind: str, begin: int, end: int) -> Item:
    event = {"ph": "X", "name": name, "cat": kind, "pid": place[0], "tid": place[1]}
    event |= {"ts": begin / 1000, "dur": (end - begin) / 1000}
    return Item(begin, begin - end, event)


def _order(item: Item) -> tuple[int, int]:
    return item.at, item.shorter


def _role(folder: RunFolder, role: str, place: Place, window: Window) -> Iterator[Item]:
    """All spans of a role, each beside the others or inside of one: a nanosecond that rounding has
    moved over an edge is cut off."""
    ends: list[int] = []  # of those that are open
    steps, spans = (read(folder, role, place, window) for read in (_steps, _spans))
    for item in heapq.merge(steps, spans, key=_order):
        while ends and ends[-1] <= item.at:
            ends.pop()
        end = min([item.at - item.shorter, *ends[-1:]])
        ends.append(end)
        item.event["dur"] = (end - item.at) / 1000
        yield item


def _steps(folder: RunFolder, role: str, place: Place, window: Window) -> Iterator[Item]:
    before = Before()
    for steps in folder.step_chunks(role):
        names, edges, before = lay_out(steps, before)
        if not window.takes(edges[0, 0] / 1e9, edges[-1, -1] / 1e9):
            continue
        both_at_once = steps["forward"] == 0  # this task does not tell them apart
        for row, edge in enumerate(edges.tolist()):
            if not window.takes(edge[0] / 1e9, edge[-1] / 1e9):
                continue
            step = steps[row]
            item = _span(place, "step", "step", edge[0], edge[-1])
            item.event["args"] = {
                "step": int(step["step"]),
                "samples": int(step["samples"]),
                "loss": float(step["loss"]),
                "epoch": int(step["epoch"]),
                "version": int(step["version"]),
                "staleness": int(step["staleness"]),
            }
            yield item
            for name, begin, end in zip(names, edge[:-1], edge[1:], strict=True):
                if end > begin:
                    told = "compute" if name == "backward" and both_at_once[row] else name
                    told = "data (next batch)" if name == "ahead" else told
                    yield _span(place, told, OF.get(name, name), begin, end)


def _spans(folder: RunFolder, role: str, place: Place, window: Window) -> Iterator[Item]:
    """Pauses of workers; what servers were at, a few milliseconds taken together."""
    spans = folder.spans(role)
    if spans is None or not len(spans):
        return
    names, edges = lay_spans(spans)
    yield from _drawn(names, edges, place, window)


def _drawn(names: Sequence[str], edges: Edges, place: Place, window: Window) -> Iterator[Item]:
    wanted = (edges[:, -1] >= window.begin * 1e9) & (edges[:, 0] <= window.end * 1e9)
    for edge in edges[wanted].tolist():
        for name, begin, end in zip(names, edge[:-1], edge[1:], strict=True):
            if end > begin and name != "idle":  # which is where nothing is drawn
                yield _span(place, name, "span", begin, end)


def _events(folder: RunFolder, places: dict[str, Place], window: Window) -> Iterator[Item]:
    for event in sorted(folder.events(), key=lambda event: event.time):
        if not window.takes(event.time, event.time):
            continue
        at, known = round(event.time * 1e9), event.role in places
        pid, tid = places.get(event.role, places[SUPERVISOR])
        said: dict[str, Any] = {"ph": "i", "s": "t" if known and event.role != SUPERVISOR else "g"}
        said |= {"name": event.kind, "cat": "event", "pid": pid, "tid": tid, "ts": at / 1000}
        yield Item(at, 0, {**said, "args": {"role": event.role, "detail": event.detail}})


def _counter(pid: int, at: int, name: str, values: dict[str, float]) -> Item:
    event = {"ph": "C", "name": name, "cat": "counter", "pid": pid, "ts": at / 1000}
    return Item(at, 0, {**event, "args": values})


def _counters(folder: RunFolder, places: dict[str, Place], window: Window) -> Iterator[Item]:
    """Of roles: cores used, memory, bytes a second; between two samples as much as at the next."""
    before: dict[str, Resources] = {}
    for sample in sorted(folder.resources(), key=lambda sample: sample.time):
        last, before[sample.role] = before.get(sample.role), sample
        if sample.role not in places or not window.takes(sample.time, sample.time):
            continue
        pid, at = places[sample.role][0], round(sample.time * 1e9)
        memory = {"resident": sample.memory_bytes / 1e6}
        yield _counter(pid, at, f"{sample.role} memory, MB", memory)
        # A role that was started again counts from nothing.
        if last is None or sample.time <= last.time or sample.cpu_seconds < last.cpu_seconds:
            continue
        passed = sample.time - last.time
        cores = (sample.cpu_seconds - last.cpu_seconds) / passed
        yield _counter(pid, at, f"{sample.role} CPU, % of a core", {"used": 100 * cores})
        moved = {
            "sent": max(0, sample.sent - last.sent) / passed / 1e6,
            "received": max(0, sample.received - last.received) / passed / 1e6,
        }
        yield _counter(pid, at, f"{sample.role} traffic, MB/s", moved)


def _host_counters(folder: RunFolder, hosts: Sequence[str], window: Window) -> Iterator[Item]:
    before: dict[str, HostResources] = {}
    for sample in sorted(folder.hosts(), key=lambda sample: sample.time):
        last, before[sample.host] = before.get(sample.host), sample
        if sample.host not in hosts or not window.takes(sample.time, sample.time):
            continue
        pid, at = hosts.index(sample.host) + 1, round(sample.time * 1e9)
        if sample.memory_available is not None:
            free = {"available": sample.memory_available / 1e6}
            yield _counter(pid, at, "memory, MB", free)
        if last is None or sample.time <= last.time:
            continue
        passed = sample.time - last.time
        pairs = zip(sample.cores, last.cores, strict=False)
        busy = [now - then for now, then in pairs if now is not None and then is not None]
        yield _counter(pid, at, "cores in use", {"busy": sum(busy) / passed})

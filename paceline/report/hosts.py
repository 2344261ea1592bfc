"""What hosts were doing while a run trained, and who sent how much to whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from paceline.report.layout import Column, Fitting, named, stacked, table
from paceline.report.words import NONE, Summary, number

SUPERVISOR = "supervisor"


def hosts_table(summary: Summary) -> RenderableType | None:
    """One row a host, another for each of its GPUs; nothing for runs that did not record it."""
    hosts = list(summary.get("hosts") or ())
    if not hosts:
        return None
    gpus = [gpu for host in hosts for gpu in host["gpus"]]
    return stacked(_hosts(hosts), _gpus(gpus) if gpus else None)


def host_columns(summary: Summary) -> list[Column]:
    """Everything that is told of hosts, however wide; none where that was not recorded."""
    hosts = list(summary.get("hosts") or ())
    return _columns(hosts) if hosts else []


def _hosts(hosts: Sequence[Summary]) -> RenderableType:
    columns = _columns(hosts)
    return Fitting(table(columns), table(columns[:-2]), table(columns[:3]))


def _columns(hosts: Sequence[Summary]) -> list[Column]:
    name = Column(title="host", cells=[h["host"] for h in hosts], words=True, style="cyan")
    busy = Column(title="cores", unit="% busy", cells=[number(_busy(h)) for h in hosts])
    stolen = Column(title="stolen", unit="%", cells=[number(_mean(h["steal_pct"])) for h in hosts])
    waits = [
        Column(
            title=title,
            unit="% of time",
            cells=[number(_mean(h["pressure_pct"].get(what))) for h in hosts],
        )
        for title, what in (("core waits", "cpu"), ("memory waits", "memory"), ("disk waits", "io"))
    ]
    swapped = Column(title="swapped", unit="MB/s", cells=[number(_swapped(h), 1) for h in hosts])
    network = Column(
        title="network",
        unit="MB/s",
        cells=[_most(h["nics"], "sent_mb_s", "received_mb_s") for h in hosts],
    )
    disk = Column(
        title="disk",
        unit="MB/s",
        cells=[_most(h["disks"], "read_mb_s", "written_mb_s") for h in hosts],
    )
    return [name, busy, stolen, *waits, swapped, network, disk]


def _busy(host: Summary) -> float | None:
    """The mean of those that the run may use."""
    mine = host["usable"]
    cores = [core["mean"] for core in host["cores"] if mine is None or core["core"] in mine]
    return sum(cores) / len(cores) if cores else None


def _swapped(host: Summary) -> float | None:
    found = [_mean(host[key]) for key in ("swapped_in_mb_s", "swapped_out_mb_s")]
    known = [value for value in found if value is not None]
    return sum(known) if known else None


def _most(things: Sequence[Summary], *keys: str) -> str:
    """`210.3 lo`: the one with most traffic, both ways together."""
    sums = {thing["name"]: sum(_mean(thing[key]) or 0.0 for key in keys) for thing in things}
    if not sums:
        return NONE
    name = max(sums, key=sums.__getitem__)
    return f"{number(sums[name], 1)} {name}"


def _gpus(gpus: Sequence[Summary]) -> RenderableType:
    def cells(key: str) -> list[str]:
        return [number(_mean(gpu[key])) for gpu in gpus]

    def parts(key: str) -> list[str]:
        return [number(gpu[key]) for gpu in gpus]

    name = Column(title="GPU", cells=[f"{g['index']} {g['name']}" for g in gpus], words=True)
    short = Column(title="GPU", cells=[str(g["index"]) for g in gpus])
    roles = Column(title="roles", cells=[", ".join(g["roles"]) or NONE for g in gpus], words=True)
    numbers = [
        Column(title="busy", unit="%", cells=cells("utilisation_pct")),
        Column(title="memory", unit="MB", cells=parts("memory_mb")),
        Column(title="clock", unit="% of most", cells=parts("sm_clock_pct")),
        Column(title="memory clock", unit="% of most", cells=parts("memory_clock_pct")),
        Column(title="power", unit="W", cells=cells("power_w")),
    ]
    whys = [", ".join(g["slowed_pct"]) for g in gpus]
    slowed = [Column(title="slowed by", cells=whys, words=True)] if any(whys) else []
    return Fitting(
        table([name, roles, *numbers, *slowed]),
        table([short, roles, *numbers, *slowed]),
        table([short, *numbers]),
    )


def _mean(rate: Mapping[str, float] | None) -> float | None:
    return None if rate is None else rate["mean"]


def traffic_table(summary: Summary) -> RenderableType | None:
    """Megabytes that went from each role to each peer, where workers have several and it is told
    nowhere else; too wide a one is left out."""
    roles = [role for role in summary["roles"] if _peers(role)]
    inside = any(role.get("inside") for role in roles)
    if inside or not any(len(_peers(r)) > 1 for r in roles if r["role"].startswith("worker-")):
        return None
    names = [role["role"] for role in roles]
    peers = dict.fromkeys(peer for role in roles for peer in _peers(role))
    order = sorted(peers, key=lambda peer: names.index(peer) if peer in names else len(names))
    columns = [Column(title="MB sent", cells=[named(r) for r in roles], words=True, style="cyan")]
    for peer in order:
        sent = [_peers(role).get(peer, {}).get("sent_mb") for role in roles]
        columns.append(Column(title=f"to {peer}", cells=[number(mb, 1) for mb in sent]))
    return Fitting(table(columns), Text("who sent what to whom is too wide to show: see --json"))


def _peers(role: Summary) -> dict[str, Mapping[str, Any]]:
    return {t["peer"]: t for t in role.get("traffic") or () if t["peer"] != SUPERVISOR}

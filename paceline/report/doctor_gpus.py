"""GPUs as doctor shows them: one row each, and how they reach each other."""

from __future__ import annotations

from rich.console import RenderableType

from paceline.diagnose.doctor.facts import Gpu, Gpus
from paceline.report.layout import Column, Fitting, stacked, table
from paceline.report.words import NONE, number

SAME = "·"


def gpus_table(gpus: Gpus) -> RenderableType:
    devices = gpus.devices
    name = [
        Column(title="GPU", cells=[str(gpu.index) for gpu in devices], words=True, style="cyan"),
        Column(title="name", cells=[gpu.name for gpu in devices], words=True),
    ]
    memory = Column(title="memory", unit="GB", cells=[_gb(gpu.memory) for gpu in devices])
    clock = Column(
        title="clock", unit="MHz of", cells=[_of(gpu.clock, gpu.clock_most) for gpu in devices]
    )
    rest = [
        Column(
            title="memory clock",
            unit="MHz of",
            cells=[_of(gpu.memory_clock, gpu.memory_clock_most) for gpu in devices],
        ),
        Column(
            title="power", unit="W of", cells=[_of(gpu.power, gpu.power_limit) for gpu in devices]
        ),
        Column(title="heat", unit="°C", cells=[number(gpu.temperature) for gpu in devices]),
        Column(title="PCIe", cells=[gpu.pcie or NONE for gpu in devices], words=True),
    ]
    first = table([*name, memory, clock])
    second = table([name[0], *rest])
    whole = Fitting(table([*name, memory, clock, *rest]), stacked(first, second))
    return stacked(whole, _links(gpus) if gpus.links else None)


def _links(gpus: Gpus) -> RenderableType:
    """Every GPU against every other."""
    ways = {(link.a, link.b): link.way for link in gpus.links}
    ways |= {(b, a): way for (a, b), way in ways.items()}
    names = [str(gpu.index) for gpu in gpus.devices]

    def row(gpu: Gpu) -> list[str]:
        return [
            SAME if other is gpu else ways.get((gpu.index, other.index), NONE)
            for other in gpus.devices
        ]

    rows = [row(gpu) for gpu in gpus.devices]
    columns = [Column(title="GPU to", cells=names, words=True, style="cyan")]
    columns += [
        Column(title=names[i], cells=[each[i] for each in rows], words=True)
        for i in range(len(names))
    ]
    pairs = list(ways.items())
    pairs = [((a, b), way) for (a, b), way in pairs if a < b]
    listed = [
        Column(title="GPUs", cells=[f"{a} – {b}" for (a, b), _ in pairs], words=True, style="cyan"),
        Column(title="reach each other by", cells=[way for _, way in pairs], words=True),
    ]
    return Fitting(table(columns), table(listed))


def _gb(count: int | None) -> str:
    return number(None if count is None else count / 1e9, 1)


def _of(now: float | None, most: float | None) -> str:
    """`1,395 of 1,410`"""
    if now is None and most is None:
        return NONE
    return f"{number(now)} of {number(most)}"

"""The GPUs there are, as NVML describes them, and how they reach each other. None is no fault."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from paceline.diagnose.doctor.facts import Gpu, GpuLink, Gpus
from paceline.doctor.asked import Asked
from paceline.measure.nvml import (
    CELSIUS,
    MEMORY,
    SM,
    NoNvml,
    Nvml,
    ask,
    found,
    opened,
    slowed_by,
    text,
    watts,
)

SIGNS = ("proc/driver/nvidia/gpus", "dev/nvidia0", "dev/dxg")  # that there is one all the same

# Why clocks are low, by bit. That a GPU is idle, or does what it was told, is nothing to tell.
HELD_BACK = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
# How two GPUs reach each other, by the level at which their ways meet.
WAYS = {
    0: "same board",
    10: "one PCIe switch",
    20: "several PCIe switches",
    30: "a host bridge",
    40: "one socket",
    50: "across sockets",
}
LINKS = 18  # NVLinks of one GPU, at most


def measure(asked: Asked, seconds: float) -> Gpus:
    try:
        with opened() as nvml:
            return gpus(nvml)
    except NoNvml:
        if signs():
            raise
        return Gpus(driver=None, devices=())


def signs(root: Path = Path("/")) -> bool:
    """Whether the kernel knows a GPU, whatever NVML says."""
    return any((root / sign).exists() for sign in SIGNS)


def gpus(nvml: Nvml) -> Gpus:
    """Every GPU, and how they reach each other."""
    handles = found(nvml)
    devices = [_gpu(nvml, index, handle) for index, handle in handles.items()]
    return Gpus(
        driver=ask(nvml, "nvmlSystemGetDriverVersion"),
        devices=tuple(devices),
        links=tuple(_links(nvml, handles, devices)),
    )


def _gpu(nvml: Nvml, index: int, handle: Any) -> Gpu:
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    reasons = slowed_by(nvml, handle)
    processes = ask(nvml, "nvmlDeviceGetComputeRunningProcesses", handle)
    return Gpu(
        index=index,
        name=ask(nvml, "nvmlDeviceGetName", handle) or "a GPU without a name",
        uuid=ask(nvml, "nvmlDeviceGetUUID", handle),
        bus=_bus(ask(nvml, "nvmlDeviceGetPciInfo", handle)),
        memory=getattr(memory, "total", None),
        memory_used=getattr(memory, "used", None),
        clock=ask(nvml, "nvmlDeviceGetClockInfo", handle, SM),
        clock_most=ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, SM),
        memory_clock=ask(nvml, "nvmlDeviceGetClockInfo", handle, MEMORY),
        memory_clock_most=ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, MEMORY),
        power=watts(ask(nvml, "nvmlDeviceGetPowerUsage", handle)),
        power_limit=watts(ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        power_usual=watts(ask(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)),
        temperature=ask(nvml, "nvmlDeviceGetTemperature", handle, CELSIUS),
        pcie=_pcie(nvml, handle, "Curr"),
        pcie_most=_pcie(nvml, handle, "Max"),
        held_back=tuple(why for bit, why in HELD_BACK.items() if reasons & bit),
        processes=None if processes is None else len(processes),
    )


def _pcie(nvml: Nvml, handle: Any, which: str) -> str | None:
    """`gen 4 x16`"""
    generation = ask(nvml, f"nvmlDeviceGet{which}PcieLinkGeneration", handle)
    width = ask(nvml, f"nvmlDeviceGet{which}PcieLinkWidth", handle)
    return f"gen {generation} x{width}" if generation and width else None


def _bus(info: Any) -> str | None:
    """An address on the bus, as it is written everywhere: without leading zeros of its domain."""
    told = text(getattr(info, "busId", None))
    return None if told is None else told.lower()[-12:]


def _links(nvml: Nvml, handles: dict[int, Any], devices: list[Gpu]) -> Iterator[GpuLink]:
    """NVLinks go from GPU to GPU, or to a switch, behind which all others are."""
    by_bus: dict[str | None, int] = {gpu.bus: gpu.index for gpu in devices if gpu.bus}
    ends = {index: _far_ends(nvml, handle) for index, handle in handles.items()}
    switched = {i: sum(bus not in by_bus for bus in far) for i, far in ends.items()}
    for a, b in combinations(handles, 2):
        direct = sum(by_bus.get(bus) == b for bus in ends[a])
        count = direct or min(switched[a], switched[b])
        level = ask(nvml, "nvmlDeviceGetTopologyCommonAncestor", handles[a], handles[b])
        way = f"{count} NVLinks" if count else WAYS.get(level, "unknown")
        yield GpuLink(a=a, b=b, way="1 NVLink" if count == 1 else way, nvlinks=count)


def _far_ends(nvml: Nvml, handle: Any) -> list[str | None]:
    """The address at the other end of every NVLink that is up."""
    return [
        _bus(ask(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link))
        for link in range(LINKS)
        if ask(nvml, "nvmlDeviceGetNvLinkState", handle, link)
    ]

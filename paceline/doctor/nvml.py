"""GPUs as NVML describes them: the one door to the driver's library.

Any call may fail: a card may not have the sensor, a container may not be allowed to ask. What
fails is not known, and the rest still is. `FakeNvml` beside this stands for the library in tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from paceline.diagnose.doctor.facts import Gpu, GpuLink, Gpus

Nvml = Any  # the module pynvml, or what has its functions

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
SM, MEMORY = 1, 2  # clocks
CELSIUS = 0
LINKS = 18  # NVLinks of one GPU, at most


class NoNvml(Exception):
    """There is no way to ask; the message says why."""


@contextmanager
def opened() -> Iterator[Nvml]:
    """The library, for as long as it is needed."""
    try:
        import pynvml
    except ImportError:
        raise NoNvml(
            "the module pynvml is missing: install it with pip install 'paceline[gpu]'"
        ) from None
    try:
        pynvml.nvmlInit()
    except Exception as wrong:  # noqa: BLE001 - no driver, no rights, another version: all the same
        raise NoNvml(f"NVML cannot be used: {wrong}") from None
    try:
        yield pynvml
    finally:
        known(pynvml.nvmlShutdown)


def known(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call says, or None if it fails."""
    try:
        found = call(*arguments)
    except Exception:  # noqa: BLE001 - every kind of failure means that it is not known
        return None
    return found.decode(errors="replace") if isinstance(found, bytes) else found


def gpus(nvml: Nvml) -> Gpus:
    """Every GPU, and how they reach each other."""
    handles = {}
    for index in range(known(nvml.nvmlDeviceGetCount) or 0):
        handle = known(nvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None:
            handles[index] = handle
    devices = [_gpu(nvml, index, handle) for index, handle in handles.items()]
    return Gpus(
        driver=known(nvml.nvmlSystemGetDriverVersion),
        devices=tuple(devices),
        links=tuple(_links(nvml, handles, devices)),
    )


def _gpu(nvml: Nvml, index: int, handle: Any) -> Gpu:
    memory = known(nvml.nvmlDeviceGetMemoryInfo, handle)
    reasons = known(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) or 0
    processes = known(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    return Gpu(
        index=index,
        name=known(nvml.nvmlDeviceGetName, handle) or "a GPU without a name",
        uuid=known(nvml.nvmlDeviceGetUUID, handle),
        bus=_bus(known(nvml.nvmlDeviceGetPciInfo, handle)),
        memory=getattr(memory, "total", None),
        memory_used=getattr(memory, "used", None),
        clock=clock(nvml, handle),
        clock_most=known(nvml.nvmlDeviceGetMaxClockInfo, handle, SM),
        memory_clock=known(nvml.nvmlDeviceGetClockInfo, handle, MEMORY),
        memory_clock_most=known(nvml.nvmlDeviceGetMaxClockInfo, handle, MEMORY),
        power=_watts(known(nvml.nvmlDeviceGetPowerUsage, handle)),
        power_limit=_watts(known(nvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
        power_usual=_watts(known(nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)),
        temperature=known(nvml.nvmlDeviceGetTemperature, handle, CELSIUS),
        pcie=_pcie(nvml, handle, "Curr"),
        pcie_most=_pcie(nvml, handle, "Max"),
        held_back=tuple(why for bit, why in HELD_BACK.items() if reasons & bit),
        processes=None if processes is None else len(processes),
    )


def clock(nvml: Nvml, handle: Any) -> float | None:
    """MHz of the multiprocessors, now."""
    found: float | None = known(nvml.nvmlDeviceGetClockInfo, handle, SM)
    return found


def _watts(milliwatts: float | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _pcie(nvml: Nvml, handle: Any, which: str) -> str | None:
    """`gen 4 x16`"""
    generation = known(getattr(nvml, f"nvmlDeviceGet{which}PcieLinkGeneration"), handle)
    width = known(getattr(nvml, f"nvmlDeviceGet{which}PcieLinkWidth"), handle)
    return f"gen {generation} x{width}" if generation and width else None


def _bus(info: Any) -> str | None:
    """An address on the bus, as it is written everywhere: without leading zeros of its domain."""
    found = getattr(info, "busId", None)
    if isinstance(found, bytes):
        found = found.decode(errors="replace")
    return None if found is None else found.lower()[-12:]


def _links(nvml: Nvml, handles: dict[int, Any], devices: list[Gpu]) -> Iterator[GpuLink]:
    """NVLinks go from GPU to GPU, or to a switch, behind which all others are."""
    by_bus: dict[str | None, int] = {gpu.bus: gpu.index for gpu in devices if gpu.bus}
    ends = {index: _far_ends(nvml, handle) for index, handle in handles.items()}
    switched = {i: sum(bus not in by_bus for bus in found) for i, found in ends.items()}
    for a, b in combinations(handles, 2):
        direct = sum(by_bus.get(bus) == b for bus in ends[a])
        count = direct or min(switched[a], switched[b])
        level = known(nvml.nvmlDeviceGetTopologyCommonAncestor, handles[a], handles[b])
        way = f"{count} NVLinks" if count else WAYS.get(level, "unknown")
        yield GpuLink(a=a, b=b, way="1 NVLink" if count == 1 else way, nvlinks=count)


def _far_ends(nvml: Nvml, handle: Any) -> list[str | None]:
    """The address at the other end of every NVLink that is up."""
    return [
        _bus(known(nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link))
        for link in range(LINKS)
        if known(nvml.nvmlDeviceGetNvLinkState, handle, link)
    ]

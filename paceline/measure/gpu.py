"""What NVML tells of the GPUs of this host, again and again.

It is asked in a thread of its own. Where a driver sleeps or a GPU has fallen off its bus, an answer
may take seconds, or never come; whoever samples goes on with what was told last.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

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
    watts,
)
from paceline.types import Gpu

EVERY = 0.5  # seconds

# Why clocks may be below what they could be, by NVML's bits; that nothing is to be done is no why.
SLOWED = {
    0x0002: "clocks set",
    0x0004: "power",
    0x0008: "hardware",
    0x0010: "sync boost",
    0x0020: "heat",
    0x0040: "heat, hardware",
    0x0080: "power, hardware",
    0x0100: "display clocks",
}


class Gpus:
    """All GPUs that NVML finds. `door` is the way to it."""

    def __init__(
        self, door: Callable[[], AbstractContextManager[Nvml]] = opened, every: float = EVERY
    ) -> None:
        self._door = door
        self._every = every
        self._last: tuple[Gpu, ...] = ()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paceline-gpus", daemon=True)
        self._thread.start()

    def now(self) -> tuple[Gpu, ...]:
        """As they were last told, a moment ago; none before that."""
        return self._last

    def close(self) -> None:
        """Nobody waits for an answer that is still out."""
        self._closing.set()

    def _run(self) -> None:
        try:
            with self._door() as nvml:
                self._look(nvml)
        except NoNvml:  # then none are known
            return

    def _look(self, nvml: Nvml) -> None:
        handles = found(nvml)
        while handles and not self._closing.is_set():
            self._last = tuple(read(nvml, index, handle) for index, handle in handles.items())
            self._closing.wait(self._every)


def open_gpus() -> Gpus | None:
    """None where the bindings (nvidia-ml-py, `pip install 'paceline[gpu]'`) are not installed."""
    if importlib.util.find_spec("pynvml") is None:
        return None
    return Gpus()


def read(nvml: Nvml, index: int, handle: Any) -> Gpu:
    """One GPU, as far as it tells."""
    busy = ask(nvml, "nvmlDeviceGetUtilizationRates", handle)
    memory = ask(nvml, "nvmlDeviceGetMemoryInfo", handle)
    bits = slowed_by(nvml, handle)
    return Gpu(
        index=index,
        uuid=ask(nvml, "nvmlDeviceGetUUID", handle) or "",
        name=ask(nvml, "nvmlDeviceGetName", handle) or "",
        utilisation=None if busy is None else float(busy.gpu),
        memory_used=None if memory is None else int(memory.used),
        memory_total=None if memory is None else int(memory.total),
        sm_clock=ask(nvml, "nvmlDeviceGetClockInfo", handle, SM),
        sm_clock_max=ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, SM),
        memory_clock=ask(nvml, "nvmlDeviceGetClockInfo", handle, MEMORY),
        memory_clock_max=ask(nvml, "nvmlDeviceGetMaxClockInfo", handle, MEMORY),
        power=watts(ask(nvml, "nvmlDeviceGetPowerUsage", handle)),
        power_limit=watts(ask(nvml, "nvmlDeviceGetEnforcedPowerLimit", handle)),
        temperature=ask(nvml, "nvmlDeviceGetTemperature", handle, CELSIUS),
        slowed=tuple(word for bit, word in SLOWED.items() if bits & bit),
    )

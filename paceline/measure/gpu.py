"""What NVML tells of the GPUs of this host: the one door to it.

It is asked in a thread of its own. Where a driver sleeps or a GPU has fallen off its bus, an answer
may take seconds, or never come; whoever samples goes on with what was told last.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

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
    """All GPUs that NVML finds. `nvml` gives the module pynvml, or something with its functions."""

    def __init__(self, nvml: Callable[[], Any], every: float = EVERY) -> None:
        self._nvml = nvml
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
            nvml = self._nvml()
            nvml.nvmlInit()
            handles = [
                (index, nvml.nvmlDeviceGetHandleByIndex(index))
                for index in range(nvml.nvmlDeviceGetCount())
            ]
        except Exception:  # noqa: BLE001 - no driver, no GPU, bindings that do not fit: none known
            return
        while handles and not self._closing.is_set():
            self._last = tuple(read(nvml, index, handle) for index, handle in handles)
            self._closing.wait(self._every)


def open_gpus() -> Gpus | None:
    """None where the bindings (nvidia-ml-py, `pip install 'paceline[gpu]'`) are not installed."""
    if importlib.util.find_spec("pynvml") is None:
        return None
    return Gpus(lambda: importlib.import_module("pynvml"))


def read(nvml: Any, index: int, handle: Any) -> Gpu:
    """One GPU. Each question may be one that it, or its driver, has no answer to."""

    def ask(question: str, *more: Any) -> Any:
        try:
            return getattr(nvml, question)(handle, *more)
        except Exception:  # noqa: BLE001 - bindings raise much beside their own error
            return None

    def clock(question: str, kind: str) -> int | None:
        number = getattr(nvml, kind, None)
        return None if number is None else ask(question, number)

    busy = ask("nvmlDeviceGetUtilizationRates")
    memory = ask("nvmlDeviceGetMemoryInfo")
    power, limit = ask("nvmlDeviceGetPowerUsage"), ask("nvmlDeviceGetEnforcedPowerLimit")
    bits = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if bits is None:  # as it was called before
        bits = ask("nvmlDeviceGetCurrentClocksThrottleReasons") or 0
    return Gpu(
        index=index,
        uuid=_text(ask("nvmlDeviceGetUUID")),
        name=_text(ask("nvmlDeviceGetName")),
        utilisation=None if busy is None else float(busy.gpu),
        memory_used=None if memory is None else int(memory.used),
        memory_total=None if memory is None else int(memory.total),
        sm_clock=clock("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
        sm_clock_max=clock("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
        memory_clock=clock("nvmlDeviceGetClockInfo", "NVML_CLOCK_MEM"),
        memory_clock_max=clock("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_MEM"),
        power=None if power is None else power / 1000,
        power_limit=None if limit is None else limit / 1000,
        temperature=ask("nvmlDeviceGetTemperature", 0),
        slowed=tuple(word for bit, word in SLOWED.items() if bits & bit),
    )


def _text(told: str | bytes | None) -> str:
    return told.decode(errors="replace") if isinstance(told, bytes) else told or ""


class FakeNvml:
    """Stands for pynvml, with as many GPUs as there are `gpus`: of each what functions answer, by
    their names. What is not there fails, as it does where a GPU does not know it."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    def __init__(self, *gpus: dict[str, Any]) -> None:
        self._gpus = gpus

    def nvmlInit(self) -> None:
        if not self._gpus:
            raise RuntimeError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:
        return len(self._gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self._gpus[index]

    def __getattr__(self, question: str) -> Callable[..., Any]:
        def answer(gpu: dict[str, Any], *more: Any) -> Any:
            found = gpu[question]
            return found[more[0]] if isinstance(found, dict) else found

        if question.startswith("nvmlDeviceGet"):
            return answer
        raise AttributeError(question)

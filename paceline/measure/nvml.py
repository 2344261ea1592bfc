"""The one door to NVML, the library of NVIDIA's driver.

Any question may fail: a card may not have the sensor, a container may not be allowed to ask, older
bindings may not know it. What fails is not known, and the rest still is. `nvml_fake.py` beside this
stands for the library in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

Nvml = Any  # the module pynvml, or what has its functions

SM, MEMORY = 1, 2  # clocks
CELSIUS = 0


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
        ask(pynvml, "nvmlShutdown")


def ask(nvml: Nvml, question: str, *arguments: Any) -> Any:
    """What it answers, or None if that is not known."""
    try:
        return text(getattr(nvml, question)(*arguments))
    except (nvml.NVMLError, AttributeError):  # it cannot tell, or is too old to be asked
        return None


def text(told: Any) -> Any:
    """Some versions of the library say bytes where others say text."""
    return told.decode(errors="replace") if isinstance(told, bytes) else told


def found(nvml: Nvml) -> dict[int, Any]:
    """What to ask each GPU by, by its number; those that have fallen off the bus are left out."""
    count = ask(nvml, "nvmlDeviceGetCount") or 0
    handles = {n: ask(nvml, "nvmlDeviceGetHandleByIndex", n) for n in range(count)}
    return {number: handle for number, handle in handles.items() if handle is not None}


def watts(milliwatts: float | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def slowed_by(nvml: Nvml, handle: Any) -> int:
    """Why clocks are below what they could be, a bit each; nothing if that is not known."""
    bits = ask(nvml, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    if bits is None:  # as it was called before
        bits = ask(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    return bits or 0

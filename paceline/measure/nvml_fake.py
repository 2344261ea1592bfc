"""A library like NVML with GPUs that are made up, so that what reads it needs none."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeGpu:
    name: str = "NVIDIA A100-SXM4-80GB"
    bus: str = "00000000:07:00.0"
    memory: int = 80 << 30
    used: int = 0
    busy: int = 0  # percent
    clock: int = 1410
    clock_most: int = 1410
    memory_clock: int = 1593
    memory_clock_most: int = 1593
    power: int = 60_000  # milliwatts
    power_limit: int = 400_000
    power_usual: int = 400_000
    temperature: int = 35
    generation: int = 4
    width: int = 16
    width_most: int = 16
    held_back: int = 0  # bits
    processes: int = 0
    nvlinks: Sequence[str] = ()  # the bus at the far end of each


class FakeError(Exception):
    """What NVML raises where it cannot tell."""


@dataclass(slots=True)
class FakeNvml:
    """`levels` says where two GPUs meet, by their numbers; `failing` names functions that fail."""

    NVMLError: ClassVar = FakeError

    devices: Sequence[FakeGpu]
    levels: Mapping[tuple[int, int], int] = field(default_factory=dict)
    failing: Collection[str] = ()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            if name in self.failing:
                raise FakeError("Not Supported")
            return self._answer(name, *arguments)

        return call

    def _answer(self, name: str, *arguments: Any) -> Any:
        match name:
            case "nvmlInit" | "nvmlShutdown":
                return None
            case "nvmlSystemGetDriverVersion":
                return "570.86.15"
            case "nvmlDeviceGetCount":
                return len(self.devices)
            case "nvmlDeviceGetHandleByIndex":
                return arguments[0]
            case "nvmlDeviceGetTopologyCommonAncestor":
                if arguments not in self.levels:
                    raise FakeError("Not Supported")
                return self.levels[arguments[0], arguments[1]]
        return _of(self.devices[arguments[0]], name, *arguments)


def _of(gpu: FakeGpu, name: str, index: int, which: int = 0) -> Any:
    """What a function says of one GPU; those of clocks and links are told which."""
    answers: dict[str, Callable[[], Any]] = {
        "nvmlDeviceGetName": gpu.name.encode,  # some versions of the library say bytes
        "nvmlDeviceGetUUID": lambda: f"GPU-{index}",
        "nvmlDeviceGetPciInfo": lambda: SimpleNamespace(busId=gpu.bus.encode()),
        "nvmlDeviceGetMemoryInfo": lambda: SimpleNamespace(total=gpu.memory, used=gpu.used),
        "nvmlDeviceGetClockInfo": lambda: (gpu.clock, gpu.memory_clock)[which - 1],
        "nvmlDeviceGetMaxClockInfo": lambda: (gpu.clock_most, gpu.memory_clock_most)[which - 1],
        "nvmlDeviceGetPowerUsage": lambda: gpu.power,
        "nvmlDeviceGetEnforcedPowerLimit": lambda: gpu.power_limit,
        "nvmlDeviceGetPowerManagementDefaultLimit": lambda: gpu.power_usual,
        "nvmlDeviceGetTemperature": lambda: gpu.temperature,
        "nvmlDeviceGetCurrPcieLinkGeneration": lambda: gpu.generation,
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda: gpu.generation,
        "nvmlDeviceGetCurrPcieLinkWidth": lambda: gpu.width,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda: gpu.width_most,
        "nvmlDeviceGetCurrentClocksEventReasons": lambda: gpu.held_back,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda: gpu.held_back,  # its name before
        "nvmlDeviceGetUtilizationRates": lambda: SimpleNamespace(gpu=gpu.busy),
        "nvmlDeviceGetComputeRunningProcesses": lambda: [object()] * gpu.processes,
        "nvmlDeviceGetNvLinkState": lambda: int(which < len(gpu.nvlinks)),
        "nvmlDeviceGetNvLinkRemotePciInfo": lambda: SimpleNamespace(
            busId=gpu.nvlinks[which].encode()
        ),
    }
    return answers[name]()

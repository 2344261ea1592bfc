"""How fast each GPU is: the same short product of matrices on one after the other, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paceline.diagnose.doctor.equality import compare
from paceline.diagnose.doctor.facts import Equality
from paceline.doctor.asked import Asked
from paceline.measure.nvml import SM, NoNvml, Nvml, ask, opened

if TYPE_CHECKING:
    import torch

ROUNDS = 12
SIDE = 4096  # of the matrices
WARM = 3

Clock = Callable[[str | None], float | None]  # MHz of the GPU with this uuid, now


def measure(asked: Asked, seconds: float) -> tuple[Equality, ...]:
    """Of each kind of GPU by itself; none where torch sees none."""
    import torch

    if not torch.cuda.is_available():
        return ()
    kinds: dict[str, list[int]] = {}
    for n in range(torch.cuda.device_count()):
        kinds.setdefault(torch.cuda.get_device_name(n), []).append(n)
    with _clocks() as clock_of:
        return tuple(
            compared(
                name,
                [f"GPU {n}" for n in numbers],
                [torch.device("cuda", n) for n in numbers],
                seconds / len(kinds),
                clock_of,
            )
            for name, numbers in kinds.items()
        )


def compared(
    kind: str,
    names: Sequence[str],
    devices: Sequence[torch.device],
    seconds: float,
    clock_of: Clock = lambda _: None,
    side: int = SIDE,
) -> Equality:
    """Each device in every round, for about so long in all."""
    products = [Product(device, side) for device in devices]
    turn = seconds / (ROUNDS * len(devices))
    counts = [product.fitting(turn) for product in products]
    rounds: list[list[float]] = []
    clocks: list[list[float | None]] = []
    for _ in range(ROUNDS):
        found = [
            product.rate(count, clock_of) for product, count in zip(products, counts, strict=True)
        ]
        rounds.append([rate for rate, _ in found])
        clocks.append([mhz for _, mhz in found])
    under_load = [_median(column) for column in zip(*clocks, strict=True)]
    return compare(kind, "FLOP/s", names, rounds, clocks=under_load)


class Product:
    """Matrices on one device."""

    def __init__(self, device: torch.device, side: int) -> None:
        import torch

        self._device, self._side = device, side
        self._a = torch.randn(side, side, device=device)
        self._out = torch.empty_like(self._a)
        self._uuid: str | None = None
        if device.type == "cuda":
            self._uuid = str(getattr(torch.cuda.get_device_properties(device), "uuid", "")) or None

    def fitting(self, seconds: float) -> int:
        """How many products take about so long."""
        self._take(WARM)
        self._wait()
        began = time.perf_counter()
        self._take(WARM)
        self._wait()
        return max(1, round(seconds * WARM / (time.perf_counter() - began)))

    def rate(self, count: int, clock_of: Clock) -> tuple[float, float | None]:
        """Operations a second, and the clock while it was at it."""
        began = time.perf_counter()
        self._take(count)
        mhz = clock_of(self._uuid)
        self._wait()
        return count * 2 * self._side**3 / (time.perf_counter() - began), mhz

    def _take(self, count: int) -> None:
        import torch

        for _ in range(count):
            torch.mm(self._a, self._a, out=self._out)

    def _wait(self) -> None:
        import torch

        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)


@contextmanager
def _clocks() -> Iterator[Clock]:
    """NVML counts GPUs otherwise than torch does: both know them by their uuid."""
    try:
        with opened() as nvml:
            yield lambda uuid: _clock(nvml, uuid)
    except NoNvml:
        yield lambda _: None


def _clock(nvml: Nvml, uuid: str | None) -> float | None:
    if uuid is None:
        return None
    spelled = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    handle = ask(nvml, "nvmlDeviceGetHandleByUUID", spelled)
    told: float | None = ask(nvml, "nvmlDeviceGetClockInfo", handle, SM)
    return told


def _median(values: Sequence[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return statistics.median(told) if told else None

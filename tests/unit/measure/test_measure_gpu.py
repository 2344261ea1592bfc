"""What NVML tells of GPUs, by a stand-in for it: it may fail at every question."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from paceline.measure.clock import Clock
from paceline.measure.gpu import FakeNvml, Gpus, open_gpus, read
from paceline.measure.resources import Sampler
from paceline.types import Gpu

A_GPU: dict[str, Any] = {
    "nvmlDeviceGetUUID": "GPU-1",
    "nvmlDeviceGetName": b"a GPU",
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=85, memory=20),
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=3, total=16),
    "nvmlDeviceGetClockInfo": {1: 1110, 2: 850},
    "nvmlDeviceGetMaxClockInfo": {1: 1380, 2: 877},
    "nvmlDeviceGetPowerUsage": 151_500,
    "nvmlDeviceGetEnforcedPowerLimit": 300_000,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 0x0004 | 0x0001,
}


def test_all_that_it_tells() -> None:
    assert read(FakeNvml(A_GPU), 0, A_GPU) == Gpu(
        index=0,
        uuid="GPU-1",
        name="a GPU",
        utilisation=85.0,
        memory_used=3,
        memory_total=16,
        sm_clock=1110,
        sm_clock_max=1380,
        memory_clock=850,
        memory_clock_max=877,
        power=151.5,
        power_limit=300.0,
        temperature=61,
        slowed=("power",),
    )


@pytest.mark.parametrize("question", A_GPU)
def test_every_question_may_fail_alone(question: str) -> None:
    gpu = {name: answer for name, answer in A_GPU.items() if name != question}
    whole, found = read(FakeNvml(A_GPU), 1, A_GPU), read(FakeNvml(gpu), 1, gpu)
    assert found != whole
    assert found.index == 1


def test_one_that_answers_nothing_is_still_there() -> None:
    assert read(FakeNvml({}), 3, {}) == Gpu(index=3)
    assert read(object(), 3, {}) == Gpu(index=3)  # bindings that lack everything


def test_they_are_read_beside_whoever_samples(eventually: Callable[..., None]) -> None:
    gpus = Gpus(lambda: FakeNvml(A_GPU, {}), every=0.01)
    sampler = Sampler(Clock(0.0), gpus)
    eventually(lambda: len(sampler.host().gpus) == 2, 5)
    assert [gpu.utilisation for gpu in sampler.host().gpus] == [85.0, None]
    sampler.close()


def test_nobody_waits_for_a_driver_that_does_not_answer() -> None:
    answers = threading.Event()

    def stuck() -> Any:
        answers.wait(20)
        return FakeNvml()

    gpus = Gpus(stuck)
    assert gpus.now() == ()
    gpus.close()
    answers.set()


def test_no_driver_no_gpus(eventually: Callable[..., None]) -> None:
    gpus = Gpus(FakeNvml)
    eventually(lambda: not gpus._thread.is_alive(), 5)
    assert gpus.now() == ()


def test_without_bindings_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert open_gpus() is None

"""What NVML tells of GPUs, by a stand-in for it: it may fail at every question."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from paceline.measure.clock import Clock
from paceline.measure.gpu import Gpus, open_gpus, read
from paceline.measure.nvml import ask
from paceline.measure.nvml_fake import FakeError, FakeGpu, FakeNvml
from paceline.measure.resources import Sampler
from paceline.types import Gpu

A_GPU = FakeGpu(
    name="a GPU",
    memory=16,
    used=3,
    busy=85,
    clock=1110,
    clock_most=1380,
    memory_clock=850,
    memory_clock_most=877,
    power=151_500,
    power_limit=300_000,
    temperature=61,
    held_back=0x0004 | 0x0001,
)
REASONS = "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
QUESTIONS = [
    *("UUID", "Name", "UtilizationRates", "MemoryInfo", "ClockInfo", "MaxClockInfo", "PowerUsage"),
    *("EnforcedPowerLimit", "Temperature"),
]


def told(*failing: str) -> Gpu:
    return read(FakeNvml([A_GPU], failing=failing), 0, 0)


def test_all_that_it_tells() -> None:
    assert told() == Gpu(
        index=0,
        uuid="GPU-0",
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


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_may_fail_alone(question: str) -> None:
    assert told(f"nvmlDeviceGet{question}") != told()


def test_why_it_is_slow_had_another_name_before() -> None:
    assert told(REASONS[0]) == told()
    assert told(*REASONS).slowed == ()


def test_one_that_answers_nothing_is_still_there() -> None:
    lacking = SimpleNamespace(NVMLError=FakeError)  # bindings without any function
    assert read(lacking, 3, 3) == Gpu(index=3)


def test_a_mistake_of_ours_is_not_taken_for_an_answer() -> None:
    with pytest.raises(TypeError):
        ask(FakeNvml([A_GPU]), "nvmlDeviceGetName", 0, 1, 2, 3)


def test_they_are_read_beside_whoever_samples(eventually: Callable[..., None]) -> None:
    gpus = Gpus(lambda: nullcontext(FakeNvml([A_GPU, FakeGpu(busy=5)])), every=0.01)
    sampler = Sampler(Clock(0.0), gpus)
    eventually(lambda: len(sampler.host().gpus) == 2, 5)
    assert [gpu.utilisation for gpu in sampler.host().gpus] == [85.0, 5.0]
    sampler.close()


def test_nobody_waits_for_a_driver_that_does_not_answer() -> None:
    answers = threading.Event()

    def stuck() -> AbstractContextManager[Any]:
        answers.wait(20)
        return nullcontext(FakeNvml([]))

    gpus = Gpus(stuck)
    assert gpus.now() == ()
    gpus.close()
    answers.set()


def test_no_driver_no_gpus(
    eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml = FakeNvml([A_GPU], failing={"nvmlInit"})
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    gpus = Gpus()
    eventually(lambda: not gpus._thread.is_alive(), 5)
    assert gpus.now() == ()


def test_without_bindings_there_is_nothing_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert open_gpus() is None

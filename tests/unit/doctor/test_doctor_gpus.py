"""GPUs as NVML tells of them, and what is left when it will not."""

from __future__ import annotations

import sys
from dataclasses import asdict

import pytest

from paceline.doctor.asked import Asked
from paceline.doctor.gpus import gpus, measure
from paceline.measure.nvml import NoNvml, opened
from paceline.measure.nvml_fake import FakeError, FakeGpu, FakeNvml

FIRST, SECOND, THIRD = "00000000:07:00.0", "00000000:0F:00.0", "00000000:47:00.0"

# Every function that is asked about one GPU, or about two.
FUNCTIONS = [
    "nvmlSystemGetDriverVersion",
    *(
        f"nvmlDeviceGet{what}"
        for what in (
            *("Name", "UUID", "PciInfo", "MemoryInfo", "ClockInfo", "MaxClockInfo", "PowerUsage"),
            *("EnforcedPowerLimit", "PowerManagementDefaultLimit", "Temperature"),
            *("CurrPcieLinkGeneration", "MaxPcieLinkWidth", "CurrentClocksEventReasons"),
            *("ComputeRunningProcesses", "NvLinkState", "NvLinkRemotePciInfo"),
            "TopologyCommonAncestor",
        )
    ),
]


def pair(**second: object) -> FakeNvml:
    devices = [
        FakeGpu(bus=FIRST, nvlinks=[SECOND] * 4),
        FakeGpu(bus=SECOND, nvlinks=[FIRST] * 4, **second),  # type: ignore[arg-type]
    ]
    return FakeNvml(devices, levels={(0, 1): 40})


def test_a_gpu_is_described() -> None:
    found = gpus(pair(clock=1200, power=250_000, held_back=0x60, width=8, processes=2))
    first, second = found.devices
    assert (found.driver, first.name, first.uuid) == ("570.86.15", "NVIDIA A100-SXM4-80GB", "GPU-0")
    assert (first.bus, first.pcie, first.held_back) == ("0000:07:00.0", "gen 4 x16", ())
    assert (second.clock, second.clock_most, second.memory_clock) == (1200, 1410, 1593)
    assert (second.power, second.power_limit) == (250.0, 400.0)
    assert (second.pcie, second.pcie_most, second.processes) == ("gen 4 x8", "gen 4 x16", 2)
    assert second.held_back == ("thermal slowdown", "hardware thermal slowdown")


def test_links_from_gpu_to_gpu() -> None:
    (link,) = gpus(pair()).links
    assert (link.a, link.b, link.way, link.nvlinks) == (0, 1, "4 NVLinks", 4)


def test_links_through_a_switch_reach_every_gpu() -> None:
    switches = [f"00000000:C{n}:00.0" for n in range(6)] * 2
    nvml = FakeNvml([FakeGpu(bus=bus, nvlinks=switches) for bus in (FIRST, SECOND, THIRD)])
    assert {link.way for link in gpus(nvml).links} == {"12 NVLinks"}


def test_without_nvlinks_it_is_told_where_the_ways_meet() -> None:
    nvml = FakeNvml(
        [FakeGpu(bus=bus) for bus in (FIRST, SECOND, THIRD)],
        levels={(0, 1): 10, (0, 2): 50},  # of the third pair nothing is known
    )
    assert [link.way for link in gpus(nvml).links] == [
        *("one PCIe switch", "across sockets", "unknown")
    ]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_fails_is_not_known_and_the_rest_is(function: str) -> None:
    whole, nvml = gpus(pair()), pair()
    nvml.failing = {function}
    found = gpus(nvml)
    assert len(found.devices) == 2
    assert len(found.links) == 1
    before, after = asdict(whole.devices[0]), asdict(found.devices[0])
    lost = [name for name in before if before[name] != after[name]]
    assert len(lost) <= 2
    assert all(after[name] in (None, "a GPU without a name") for name in lost)


def test_a_gpu_that_fell_off_the_bus_is_left_out() -> None:
    nvml = pair()
    nvml.failing = {"nvmlDeviceGetHandleByIndex"}
    assert gpus(nvml).devices == ()


def test_the_library_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pair()
    nvml.failing = {"nvmlShutdown"}  # and that is no fault either
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    with opened() as found:
        assert found is nvml


def test_a_driver_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pair()
    nvml.failing = {"nvmlInit"}
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]
    monkeypatch.setattr("paceline.doctor.gpus.signs", lambda: True)
    with pytest.raises(NoNvml, match="cannot be used: Not Supported"):
        measure(Asked(folder="."), 0)


def test_no_library_and_no_gpu_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr("paceline.doctor.gpus.signs", lambda: False)
    assert measure(Asked(folder="."), 0).devices == ()
    monkeypatch.setattr("paceline.doctor.gpus.signs", lambda: True)
    with pytest.raises(NoNvml, match=r"paceline\[gpu\]"):
        measure(Asked(folder="."), 0)


def test_the_fake_has_nothing_that_nvml_has_not() -> None:
    with pytest.raises(KeyError):
        pair().nvmlDeviceGetNonsense(0)
    with pytest.raises(AttributeError):
        _ = pair().other
    assert issubclass(FakeError, Exception)

"""What is wrong with GPUs, as their driver describes them."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.diagnose.doctor.facts import Facts, Gpu
from paceline.diagnose.doctor.finding import Finding

HARMFUL = ("thermal", "hardware", "power brake")  # reasons why clocks are low; idle is none
LIMITED = 0.95  # of the power it was built for
USED = 0.05  # of its memory, before anything of ours runs


def gpu_warnings(facts: Facts) -> Iterator[Finding]:
    for gpu in facts.gpus.devices if facts.gpus else ():
        yield from _of(gpu)


def _of(gpu: Gpu) -> Iterator[Finding]:
    called = f"GPU {gpu.index} ({gpu.name})"
    if held := [why for why in gpu.held_back if any(word in why for word in HARMFUL)]:
        at = f" at {gpu.temperature:.0f} °C" if gpu.temperature is not None else ""
        yield Finding(
            kind="gpu-clock",
            sentence=f"{called} is held back{at}: {', '.join(held)}",
            advice="look at its fans, its neighbours' heat and its power supply",
        )
    if gpu.pcie and gpu.pcie_most and _lanes(gpu.pcie) < _lanes(gpu.pcie_most):
        yield Finding(
            kind="gpu-pcie",
            sentence=f"{called} has PCIe {gpu.pcie} of {gpu.pcie_most}: copies to and from it take "
            "longer",
            advice="see whether another slot, or its riser, has more lanes",
        )
    if gpu.power_limit and gpu.power_usual and gpu.power_limit < LIMITED * gpu.power_usual:
        yield Finding(
            kind="gpu-power",
            sentence=f"{called} is limited to {gpu.power_limit:.0f} W of {gpu.power_usual:.0f} W",
            advice=f"sudo nvidia-smi -i {gpu.index} -pl {gpu.power_usual:.0f}",
        )
    if gpu.memory and gpu.memory_used and gpu.processes and gpu.memory_used > USED * gpu.memory:
        yield Finding(
            kind="gpu-busy",
            sentence=f"{called} is in use: {gpu.memory_used / 1e9:.1f} GB by "
            f"{gpu.processes} other process{'' if gpu.processes == 1 else 'es'}",
            advice="choose others with CUDA_VISIBLE_DEVICES, or wait",
        )


def _lanes(pcie: str) -> int:
    """The width alone: an idle GPU lowers its generation to save power, and raises it again."""
    return int(pcie.rpartition("x")[2] or 0)

"""What published tables say about scaling, beyond what they print."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from paceline.diagnose.alike import slower
from paceline.diagnose.scaling import efficiency, more_than_added, strong_speedup, weak_speedup
from paceline.report.published_cnns import (
    BATCHES,
    CIFAR,
    CLOCKS,
    IMAGENET,
    batch_speedups,
    cifar_models,
    clocked_gpus,
    imagenet_rates,
)
from paceline.report.published_sentiment import PREPARATIONS, preparations

# Speedups by number of devices.
Curve = Mapping[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of the ImageNet table that ran on one GPU and on more."""

    model: str
    implementation: str
    machine: str
    parameters_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """A preparation with as much data a machine as another had, on more machines."""

    share_a_machine_pct: float
    few: int
    many: int
    speedup: float  # in units of one machine of the few, as all speedups are
    efficiency: float


def batch_curves() -> dict[int, Curve]:
    """By batch size, as printed."""
    curves: dict[int, dict[int, float]] = defaultdict(dict)
    for row in batch_speedups():
        curves[row.batch][row.gpus] = row.speedup.value
    return dict(curves)


def imagenet_curves() -> dict[Program, Curve]:
    """Speedups over the same program on one GPU.

    One GPU has its parameters at home, so its row is what both places of the parameter server are
    compared with.
    """
    rows = imagenet_rates()
    alone = {
        (row.model, row.implementation, row.machine): row.images_per_second.value
        for row in rows
        if row.gpus == 1
    }
    curves: dict[Program, dict[int, float]] = defaultdict(lambda: {1: 1.0})
    for row in rows:
        if row.gpus > 1:
            program = Program(
                model=row.model,
                implementation=row.implementation,
                machine=row.machine,
                parameters_on=row.parameters_on,
            )
            one = alone[row.model, row.implementation, row.machine]
            # Rates turned into the seconds of one image.
            curves[program][row.gpus] = strong_speedup(1 / one, 1 / row.images_per_second.value)
    return dict(curves)


def preparation_curves() -> dict[int, Curve]:
    """By share of the data, in units of the fewest machines that held out: S(n) = n there."""
    taken = _minutes()
    curves: dict[int, Curve] = {}
    for share in sorted({share for share, _ in taken}):
        times = {machines: minutes for (own, machines), minutes in taken.items() if own == share}
        few = min(times)
        curves[share] = {n: few * strong_speedup(times[few], times[n]) for n in sorted(times)}
    return curves


def grown_preparations() -> list[Grown]:
    """Every two that had as much data a machine: weak scaling."""
    taken = _minutes()
    found = []
    for (small, few), one in taken.items():
        for (large, many), time in taken.items():
            if few < many and small * many == large * few:
                gain = weak_speedup(one, time, large / small)
                found.append(
                    Grown(
                        share_a_machine_pct=small / few,
                        few=few,
                        many=many,
                        speedup=gain,
                        efficiency=efficiency(gain, many / few),
                    )
                )
    return found


def surprises() -> list[str]:
    """Figures that follow from their columns and still make one wonder, a sentence each."""
    curves: dict[str, Curve] = {
        f"{BATCHES}, batch {batch}": curve for batch, curve in batch_curves().items()
    }
    for row in cifar_models():
        curves[f"{CIFAR}, {row.model}"] = {1: 1.0, 2: row.speedup_2_gpus.value}
    for program, curve in imagenet_curves().items():
        name = f"{program.model} by {program.implementation} on {program.machine}"
        curves[f"{IMAGENET}, {name}, parameters on the {program.parameters_on}"] = curve
    for share, curve in preparation_curves().items():
        curves[f"{PREPARATIONS}, {share} % of the data"] = curve
    told = [
        f"{name}: from {few} to {many} the speedup goes from {curve[few]:.2f} to {curve[many]:.2f}"
        ", which is more than was added."
        for name, curve in curves.items()
        for few, many in more_than_added(curve)
    ]
    return told + _unequal()


def _unequal() -> list[str]:
    """GPUs of one kind that differ, and whether the clock that was blamed can be all of it."""
    gpus = {str(gpu.gpu): gpu for gpu in clocked_gpus()}
    lag = slower({name: gpu.images_per_second for name, gpu in gpus.items()})
    fastest = max(gpu.memory_clock_ghz for gpu in gpus.values())
    return [
        f"{CLOCKS}, GPU {name}: {100 * share:.1f} % slower than the fastest of its kind, with a "
        f"memory clock that is {100 * (1 - gpus[name].memory_clock_ghz / fastest):.1f} % lower."
        for name, share in lag.items()
    ]


def _minutes() -> dict[tuple[int, int], float]:
    return {
        (row.share_of_data_pct, row.machines): row.minutes.value
        for row in preparations()
        if row.minutes
    }

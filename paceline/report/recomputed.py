"""Published figures, computed again from the columns beside them.

A figure agrees if rounding alone can explain the difference, also that of what it is made from.
What does not agree is an inconsistency, told in a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.diagnose.cost import price, rent
from paceline.diagnose.scaling import efficiency, strong_speedup
from paceline.report.printed import Printed
from paceline.report.published_cnns import (
    BATCHES,
    CIFAR,
    BatchSpeedup,
    CifarModel,
    batch_speedups,
    cifar_models,
)
from paceline.report.published_sentiment import (
    COSTS,
    SHAPES,
    Epoch,
    RentedRun,
    Shape,
    epochs,
    machine_prices,
    rented_runs,
    shapes,
)

NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4}

# Machines and GPUs in each, and the rented run that was.
SAME_RUNS = {
    (1, 4): "one g3.16xlarge",
    (2, 2): "two g3.16xlarge with 2 GPUs each",
    (4, 1): "four g3.4xlarge",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """A printed figure, what its neighbours make it, and how. `why` tells what is wrong, if so."""

    file: str
    row: str
    column: str
    printed: Printed
    found: float
    how: str
    agrees: bool
    why: str = ""

    @property
    def sentence(self) -> str:
        told = f"{self.file}, {self.row}: {self.column} is printed as {self.printed.text}"
        found = f"{self.found:.{self.printed.digits}f}"
        if self.agrees:
            return f"{told}, which is {self.how}."
        return f"{told}, but {self.why or f'{self.how} is {found}'}."


def recomputed() -> list[Recomputed]:
    """Every published figure that follows from others."""
    runs = rented_runs()
    return [
        *check_batches(batch_speedups()),
        *check_cifar(cifar_models()),
        *check_shapes(shapes(), epochs(), runs),
        *check_costs(runs, machine_prices()),
    ]


def inconsistencies() -> list[Recomputed]:
    """Those published figures that do not follow from what stands beside them."""
    return [figure for figure in recomputed() if not figure.agrees]


def check_batches(rows: Sequence[BatchSpeedup]) -> list[Recomputed]:
    """One GPU is as fast as one GPU."""
    return [
        _check(
            (BATCHES, f"batch {row.batch}", "the speedup of 1 GPU"),
            row.speedup,
            lambda: 1.0,
            how="one GPU over itself",
        )
        for row in rows
        if row.gpus == 1
    ]


def check_cifar(rows: Sequence[CifarModel]) -> list[Recomputed]:
    return [
        _check(
            (CIFAR, row.model, "efficiency_pct"),
            row.efficiency_pct,
            lambda speedup: 100 * efficiency(speedup, 2),
            row.speedup_2_gpus,
            how="half the speedup",
        )
        for row in rows
    ]


def check_shapes(
    rows: Sequence[Shape], alone: Sequence[Epoch], runs: Sequence[RentedRun]
) -> list[Recomputed]:
    """Speedups over one GPU's mean epoch, and minutes from the seconds of all ten."""
    seconds = {run.experiment: run.seconds for run in runs}
    single = [epoch.seconds for epoch in alone]
    found = []
    for row in rows:
        name = f"{row.machines} x {row.gpus_per_machine} GPUs"
        found.append(
            _check(
                (SHAPES, name, "speedup"),
                row.speedup,
                lambda minutes, *each: strong_speedup(sum(each) / len(each) / 60, minutes),
                *(row.minutes_per_epoch, *single),
                how="one GPU's mean epoch over minutes_per_epoch",
            )
        )
        found.append(
            _check(
                (SHAPES, name, "minutes_per_epoch"),
                row.minutes_per_epoch,
                lambda total: total / len(single) / 60,
                seconds[SAME_RUNS[row.machines, row.gpus_per_machine]],
                how=f"a tenth of that run's seconds in {COSTS}",
            )
        )
    return found


def check_costs(rows: Sequence[RentedRun], prices: Mapping[str, float]) -> list[Recomputed]:
    """Hours from seconds; prices from those hours and the machines that ran."""
    return [
        figure
        for run in rows
        for figure in (
            _check(
                (COSTS, _called(run), "hours"),
                run.hours,
                lambda seconds: seconds / 3600,
                run.seconds,
                how="seconds / 3600",
            ),
            _check_price(run, prices),
        )
    ]


def machines_that_ran(experiment: str) -> dict[str, int]:
    """`three g3.4xlarge and one p2.xlarge`: what an experiment's name says."""
    told = re.findall(rf"\b({'|'.join(NUMBERS)}) (\w+\.\w+)", experiment)
    return {kind: NUMBERS[number] for number, kind in told}


def _check_price(run: RentedRun, prices: Mapping[str, float]) -> Recomputed:
    ran = machines_that_ran(run.experiment)

    def formula(hours: float) -> float:
        return price(rent(ran, prices, hours))

    found, why = formula(run.hours.value), ""
    wrong = [kind for kind in prices if run.counted.get(kind, 0) != ran.get(kind, 0)]
    if wrong:
        counts = [
            f"{run.counted.get(kind, 0)} {kind} where {ran.get(kind, 0)} ran" for kind in wrong
        ]
        why = f"it counts {' and '.join(counts)}; the price of what ran is {found:.2f}"
    return Recomputed(
        file=COSTS,
        row=_called(run),
        column="usd",
        printed=run.usd,
        found=found,
        how="hours times the prices of the machines that ran",
        agrees=not wrong and run.usd.follows(formula, run.hours),
        why=why,
    )


def _called(run: RentedRun) -> str:
    return f"{run.experiment}, balanced" if run.balanced else run.experiment


def _check(
    where: tuple[str, str, str],
    printed: Printed,
    formula: Callable[..., float],
    *given: Printed,
    how: str,
) -> Recomputed:
    file, row, column = where
    return Recomputed(
        file=file,
        row=row,
        column=column,
        printed=printed,
        found=formula(*(one.value for one in given)),
        how=how,
        agrees=printed.follows(formula, *given),
    )

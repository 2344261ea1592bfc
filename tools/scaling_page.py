"""The tables at the end of docs/SCALING.md, made from the published files. The text is kept.

python -m tools.scaling_page
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from pathlib import Path

from paceline.diagnose.amdahl import karp_flatt
from paceline.diagnose.scaling import efficiency
from paceline.diagnose.target import Reached, Scored, to_target
from paceline.diagnose.usl import fit_usl
from paceline.report import published_cnns as cnns
from paceline.report import published_sentiment as sentiment
from paceline.report.published import source_of
from paceline.report.recomputed import inconsistencies, recomputed
from paceline.report.rescaled import (
    Curve,
    batch_curves,
    grown_preparations,
    imagenet_curves,
    surprises,
)
from paceline.store.atomic import write_atomic

PAGE = Path(__file__).parents[1] / "docs" / "SCALING.md"
MARK = "<!-- What follows is written by `python -m tools.scaling_page`. -->\n"
TARGETS = (84.0, 84.5, 86.0)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int] = (0,)
) -> list[str]:
    """In Markdown; these columns are words, the others numbers."""
    rule = ["---" if i in words else "---:" for i in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)] + [""]


def section(title: str, *files: str) -> list[str]:
    return [f"### {title}", "", *(f"`{file}`: {source_of(file)}" for file in files), ""]


def batches() -> list[str]:
    curves = batch_curves()
    heads = ["GPUs", *(f"{what}, batch {batch}" for batch in curves for what in ("S", "E %", "f"))]
    counts = list(next(iter(curves.values())))
    rows = [
        [str(n), *(cell for curve in curves.values() for cell in _scaled(curve, n))] for n in counts
    ]
    laws = []
    for batch, curve in curves.items():
        law = fit_usl(list(curve), list(curve.values()))
        assert law is not None
        told = "; ".join(law.caveats) or "nothing"
        most = f"{_count(law.peak)} ({_count(law.low)} to {_count(law.high)})"
        laws.append([str(batch), f"{law.sigma:.3f}", f"{law.kappa:.3f}", most, told])
    return [
        *section("A small CNN on one to six GPUs", cnns.BATCHES),
        "Efficiency E and the serial fraction f are ours.",
        "",
        *table(heads, rows),
        "The Universal Scalability Law of each batch:",
        "",
        *table(["batch", "σ", "κ", "slower beyond", "what speaks against it"], laws, words=(0, 4)),
    ]


def _scaled(curve: Curve, n: int) -> list[str]:
    gain = curve[n]
    serial = f"{karp_flatt(gain, n):.2f}" if n > 1 else "–"
    return [f"{gain:.2f}", f"{100 * efficiency(gain, n):.0f}", serial]


def _count(peak: float) -> str:
    return "never" if math.isinf(peak) else f"{peak:.1f}"


def imagenet() -> list[str]:
    curves = imagenet_curves()
    counts = sorted({n for curve in curves.values() for n in curve} - {1})
    rows = [
        [
            *(program.model, program.implementation, program.machine, program.parameters_on),
            *(
                f"{curve[n]:.2f} ({100 * efficiency(curve[n], n):.0f} %)" if n in curve else ""
                for n in counts
            ),
        ]
        for program, curve in curves.items()
    ]
    heads = ["model", "program", "machine", "parameters on", *(f"{n} GPUs" for n in counts)]
    return [
        *section("Synthetic ImageNet", cnns.IMAGENET),
        "Speedups and efficiencies are ours, over the same program on one GPU.",
        "",
        *table(heads, rows, words=range(4)),
    ]


def figures(title: str, *files: str) -> list[str]:
    """Every figure of these files that can be computed again."""
    rows = [
        [
            *(figure.row, figure.column, figure.how),
            *(figure.printed.text, f"{figure.found:.{figure.printed.digits}f}"),
            "yes" if figure.agrees else "**no**",
        ]
        for figure in recomputed()
        if figure.file in files
    ]
    heads = ["row", "figure", "is", "published", "computed", "agrees"]
    return [*section(title, *files), *table(heads, rows, words=(0, 1, 2, 5))]


def targets() -> list[str]:
    """Seconds add up over epochs; samples are counted in epochs, since the file does not say."""
    rows = sentiment.epochs()
    spent = accumulate(row.seconds.value for row in rows)
    curve = [
        Scored(seconds=seconds, samples=row.epoch, value=row.test_accuracy_pct)
        for row, seconds in zip(rows, spent, strict=True)
    ]
    lines = []
    for target in TARGETS:
        found = to_target(curve, target)
        if isinstance(found, Reached):
            between = f"{found.earliest:,.0f} – {found.latest:,.0f}"
            stayed = "yes" if found.stayed else "no"
            lines.append(
                [f"{target:.1f}", f"{found.seconds:,.0f}", between, f"{found.samples:.1f}", stayed]
            )
        else:
            best = f"not reached; {found.best:.2f} was the best"
            lines.append(
                [
                    f"{target:.1f}",
                    best,
                    f"more than {found.seconds:,.0f}",
                    f"{found.samples:.0f}",
                    "–",
                ]
            )
    heads = ["accuracy %", "seconds", "certainly between", "epochs", "stayed there"]
    return [*section("Time to an accuracy", sentiment.EPOCHS), *table(heads, lines)]


def weak() -> list[str]:
    rows = [
        [
            *(f"{one.share_a_machine_pct:g}", f"{one.few} to {one.many}"),
            *(f"{one.speedup:.2f}", f"{100 * one.efficiency:.0f}"),
        ]
        for one in grown_preparations()
    ]
    heads = ["data a machine, %", "machines", "weak speedup", "efficiency %"]
    return [*section("More data on more machines", sentiment.PREPARATIONS), *table(heads, rows)]


def tables() -> str:
    wrong = [f"- {figure.sentence}" for figure in inconsistencies()]
    lines = [
        "## The published tables, computed again",
        "",
        "A figure agrees if rounding can explain the difference: its own, and that of what it is "
        "computed from.",
        "",
        *("### What does not follow", "", *wrong, ""),
        *("### What makes one wonder", "", *(f"- {told}" for told in surprises()), ""),
        *batches(),
        *figures("CIFAR-10 on two GPUs", cnns.CIFAR),
        *imagenet(),
        *figures("Four GPUs, arranged differently", sentiment.SHAPES),
        *figures("What it cost", sentiment.COSTS),
        *targets(),
        *weak(),
    ]
    return "\n".join(lines)


def page() -> str:
    """The page's text as it is, with the tables anew."""
    text, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    assert mark, f"{PAGE.name} has lost the line after which its tables go"
    return f"{text}{MARK}\n{tables()}"


if __name__ == "__main__":
    write_atomic(PAGE, page())

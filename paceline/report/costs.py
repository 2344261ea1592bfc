"""What runs, sweeps and a published table cost: per run, per epoch and to a target; and which
choices nobody should take."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from paceline.diagnose.pareto import Choice, beaten
from paceline.diagnose.swept import Target, seconds_to
from paceline.diagnose.target import Reached
from paceline.report.answer import aim
from paceline.report.layout import Column, Fitting, stacked, table
from paceline.report.prices import PriceBook
from paceline.report.printed import Printed
from paceline.report.published_sentiment import rented_runs
from paceline.report.recomputed import check_costs, machines_that_ran
from paceline.report.words import NONE, Summary, number
from paceline.store.sweeps import Trial

HOUR = 3600.0
PUBLISHED = "sentiment-2019"
SPANS = {"run": "a run", "epoch": "an epoch", "to_target": "to the target"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A choice: the machines it needs, and seconds of each span by block.

    `printed` is the price that was published for its run.
    """

    name: str
    machines: Mapping[str, int]
    seconds: Mapping[str, Mapping[Hashable, float]]
    printed: Printed | None = None

    def choice(self, span: str, book: PriceBook) -> Choice:
        return Choice(
            name=self.name, seconds=self.seconds[span], price_a_second=an_hour(self, book) / HOUR
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """What machines a run here stands for: the kind, and how many workers have one together.

    Without a number, a run takes as many machines as it had hosts.
    """

    machine: str
    workers_each: int | None = None

    def machines(self, workers: int, hosts: int) -> dict[str, int]:
        each = self.workers_each
        return {self.machine: hosts if each is None else math.ceil(workers / each)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Choices that are held against one another, by the span that all of them have."""

    choices: tuple[Priced, ...]
    book: PriceBook
    target: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = field(default=())

    @property
    def span(self) -> str:
        """The most telling one that every choice has: to the target, else an epoch, else a run."""
        spans = ("to_target", "epoch", "run")
        return next((s for s in spans if all(c.seconds.get(s) for c in self.choices)), "run")

    @property
    def known(self) -> list[Choice]:
        return [c.choice(self.span, self.book) for c in self.choices if c.seconds.get(self.span)]

    @property
    def beaten(self) -> dict[str, str]:
        """Those that nobody should take, beyond the noise, and by what each is beaten."""
        return beaten(self.known)

    @property
    def behind(self) -> dict[str, str]:
        """Those that are behind by their figures alone: the noise does not tell."""
        plain = [replace(choice, seconds={"": choice.typical}) for choice in self.known]
        return {name: by for name, by in beaten(plain).items() if name not in self.beaten}


def an_hour(priced: Priced, book: PriceBook) -> float:
    return sum(n * book.machine(kind).price_an_hour for kind, n in priced.machines.items())


def price_run(summary: Summary, figures: Mapping[str, float | None], stand: Stand) -> Priced:
    """One run, by its summary and what `trials.figures` makes of it."""
    seconds = {
        "run": figures["total_seconds"],
        "epoch": figures["epoch_seconds"],
        "to_target": summary["seconds"].get("to_target"),
    }
    return Priced(
        name=summary["run"],
        machines=stand.machines(summary["spec"]["workers"], int(figures["hosts"] or 1)),
        seconds={span: {summary["run"]: s} for span, s in seconds.items() if s},
    )


def price_sweep(summary: Summary, stand: Stand) -> list[Priced]:
    """Every cell of a sweep that has a finished run."""
    target = Target(**summary["target"]) if summary["target"] else None
    found = []
    for cell in summary["cells"]:
        done = [Trial(**trial) for trial in cell["trials"] if not trial["fault"]]
        if done:
            hosts = int(max(trial.figures.get("hosts") or 1 for trial in done))
            found.append(
                Priced(
                    name=cell["cell"],
                    machines=stand.machines(cell["spec"]["workers"], hosts),
                    seconds=_by_block(summary["sweep"], done, target),
                )
            )
    return found


def price_published(book: PriceBook) -> Costs:
    """An LSTM on rented machines, 2019: from the hours and the prices, beside what was printed."""
    runs = rented_runs()
    prices = {kind: machine.price_an_hour for kind, machine in book.machines.items()}
    choices = [
        Priced(
            name=run.experiment + (", balanced" if run.balanced else ""),
            machines=machines_that_ran(run.experiment),
            seconds={"run": {"published": run.hours.value * HOUR}},
            printed=run.usd,
        )
        for run in runs
    ]
    wrong = [f for f in check_costs(runs, prices) if f.column == "usd" and not f.agrees]
    return Costs(choices=tuple(choices), book=book, remarks=tuple(f.sentence for f in wrong))


def as_object(costs: Costs) -> dict[str, Any]:
    """What `paceline cost --json` prints."""
    lost, behind = costs.beaten, costs.behind
    front = {c.name for c in costs.known} - set(lost) - set(behind)
    return {
        "currency": costs.book.currency,
        "span": costs.span,
        "target": costs.target,
        "choices": [
            {
                "choice": each.name,
                "machines": dict(each.machines),
                "price_an_hour": an_hour(each, costs.book),
                **{span: _spent(each, span, costs.book) for span in SPANS},
                "published": each.printed.value if each.printed else None,
                "front": each.name in front,
                "beaten_by": lost.get(each.name),
            }
            for each in costs.choices
        ],
        "sentences": sentences(costs),
    }


def sentences(costs: Costs) -> list[str]:
    """Which choices are worth having, fastest first, and which nobody should take."""
    lost, behind = costs.beaten, costs.behind
    known = [c for c in costs.choices if c.seconds.get(costs.span)]
    front = [c for c in known if c.name not in lost and c.name not in behind]
    front.sort(key=lambda c: _seconds(c, costs.span))
    told = []
    if len(known) > 1:
        words = [
            f"{c.name} ({_money(c, costs)} in {_time(_seconds(c, costs.span))})" for c in front
        ]
        what = "the target" if costs.target is None else aim(costs.target)
        what = {"run": "a run", "epoch": "an epoch"}.get(costs.span, what)
        if len(front) == 1:
            told.append(f"For {what}, {words[0]} is the fastest and the cheapest.")
        else:
            told.append(f"For {what}, less time is more money among these: {'; '.join(words)}.")
    if behind:
        pairs = [f"{name} (by {by})" for name, by in behind.items()]
        told.append(f"Behind by less than the noise: {'; '.join(pairs)}.")
    if lost:
        pairs = [f"{name} (beaten by {by})" for name, by in lost.items()]
        told.append(f"Nobody should take: {'; '.join(pairs)}.")
    return [*told, *costs.remarks]


def costs_table(costs: Costs) -> RenderableType:
    """One row a choice: machines, price an hour, and time and money of each span."""
    choices = list(costs.choices)
    lost = costs.beaten

    def each(title: str, unit: str, read: Callable[[Priced], str], style: str = "") -> Column:
        return Column(title=title, unit=unit, cells=[read(c) for c in choices], style=style)

    name = Column(title="choice", cells=[c.name for c in choices], words=True, style="cyan")
    coin = costs.book.currency
    spans: list[Column] = []
    for span, title in SPANS.items():
        spent = [_spent(c, span, costs.book) for c in choices]
        spans += [
            Column(title=title, cells=[_time(each["seconds"]) for each in spent]),
            Column(title="price", unit=coin, cells=[_price(each["money"]) for each in spent]),
        ]
    hour = each("an hour", coin, lambda c: number(an_hour(c, costs.book), 2))
    printed = each("2019", coin, lambda c: c.printed.text if c.printed else NONE, style="dim")
    note = Column(title="beaten by", cells=[lost.get(c.name, "") for c in choices], words=True)
    machines = Column(title="machines", cells=[_machines(c) for c in choices], words=True)
    full = [name, machines, hour, *spans, printed, note]
    return stacked(
        Fitting(table(full), table([name, hour, *spans, printed]), table([name, *spans, printed])),
        *(Text(sentence) for sentence in sentences(costs)),
    )


def _by_block(
    sweep: str, trials: Sequence[Trial], target: Target | None
) -> dict[str, dict[Hashable, float]]:
    found: dict[str, dict[Hashable, float]] = {"run": {}, "epoch": {}, "to_target": {}}
    for trial in trials:
        block = (sweep, trial.repeat)
        for span, figure in (("run", "total_seconds"), ("epoch", "epoch_seconds")):
            if seconds := trial.figures.get(figure):
                found[span][block] = seconds
        met = seconds_to(trial, target) if target and trial.curve else None
        if isinstance(met, Reached) and met.seconds > 0:
            found["to_target"][block] = met.seconds
    if len(found["to_target"]) < len(trials):  # the price of the lucky is no price
        found["to_target"] = {}
    return {span: blocks for span, blocks in found.items() if blocks}


def _seconds(priced: Priced, span: str) -> float:
    return statistics.median(priced.seconds[span].values())


def _spent(priced: Priced, span: str, book: PriceBook) -> dict[str, float | None]:
    if not priced.seconds.get(span):
        return {"seconds": None, "money": None}
    seconds = _seconds(priced, span)
    return {"seconds": seconds, "money": seconds / HOUR * an_hour(priced, book)}


def _money(priced: Priced, costs: Costs) -> str:
    return f"{_price(_spent(priced, costs.span, costs.book)['money'])} {costs.book.currency}"


def _price(money: float | None) -> str:
    """Cents, or as many digits as a small sum needs."""
    if money is None:
        return NONE
    digits = 2 if money >= 1 or money == 0 else min(8, 2 - math.floor(math.log10(money)))
    return f"{money:,.{digits}f}"


def _time(seconds: float | None) -> str:
    """`3.65 h`, `12.1 min`, `7.42 s`"""
    if seconds is None:
        return NONE
    for unit, size in (("h", HOUR), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds:.2f} s"


def _machines(priced: Priced) -> str:
    return " + ".join(f"{count} {kind}" for kind, count in priced.machines.items())

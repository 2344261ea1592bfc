"""Loss and accuracy against seconds, samples and epochs; runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paceline.report.charts.chart import Chart, Figure, plain
from paceline.report.charts.theme import Style, axis, faint, figure, of_runs
from paceline.report.charts.thin import POINTS, Array, Thinned, thin
from paceline.report.layout import Column
from paceline.report.words import number
from paceline.store.steps import Steps
from paceline.types import Score

AGAINST = {
    "seconds": "seconds of training",
    "samples": "samples",
    "epochs": "epochs",
}
BANDS = 3  # runs whose lowest and highest losses are drawn too; more would hide one another


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one run had spent at moments of its training, and how good it was by then.

    `spent` has an array for each of AGAINST; one that is empty is not known.
    """

    spent: dict[str, Array]
    values: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A run, or a cell's typical one. `trained` are losses of batches, all workers' together;
    `scored` are scores on the test samples, by metric."""

    name: str
    strategy: str
    trained: Course | None = None
    scored: dict[str, Course] = field(default_factory=dict)


def learner(
    name: str,
    strategy: str,
    steps: Sequence[Steps],
    scores: Sequence[Score],
    begin: float,
    samples: int | None,
) -> Learner:
    """From a run's records; `begin` is the second in which training began, `samples` those of an
    epoch."""
    scored = {
        metric: _scored(scores, metric, begin, samples)
        for metric in ("accuracy", "loss")
        if any(metric in score.values for score in scores)
    }
    trained = _trained(steps, begin, samples) if steps else None
    return Learner(name=name, strategy=strategy, trained=trained, scored=scored)


def accuracy(learners: Sequence[Learner]) -> Chart | None:
    """On the test samples."""
    return _chart(learners, "accuracy", "Accuracy", "accuracy on test samples, %", 100.0)


def scored_loss(learners: Sequence[Learner]) -> Chart | None:
    """On the test samples."""
    return _chart(learners, "loss", "Loss on test samples", "loss on test samples", 1.0)


def training_loss(learners: Sequence[Learner], points: int = POINTS) -> Chart | None:
    """Of batches as they were trained on: means of pieces, with lowest and highest."""
    known = [each for each in learners if each.trained and len(each.trained.values)]
    if not known:
        return None
    views, each = {}, 1.0
    for against, unit in AGAINST.items():
        thinned = {
            one.name: thin(one.trained.spent[against], one.trained.values, points)
            for one in known
            if one.trained and len(one.trained.spent[against])
        }
        if thinned:
            views[against] = _bands(known, thinned, unit)
            each = max(each, *(found.each for found in thinned.values()))
    ends = [(one.name, _end(one.trained.values)) for one in known if one.trained]
    note = f"Each point is the mean of about {each:,.0f} batches." if each > 1 else ""
    if each > 1 and len(known) <= BANDS:
        note += " The band is from their lowest to their highest."
    return Chart(
        name="training-loss",
        title="Training loss",
        says=f"Over its last tenth the mean loss of batches is {_ends(ends, 4)}.",
        views=views,
        table=_table(known, [one.trained for one in known if one.trained], 4, 1.0),
        note=note,
    )


def _chart(
    learners: Sequence[Learner], metric: str, title: str, label: str, times: float
) -> Chart | None:
    known = [each for each in learners if metric in each.scored and len(each.scored[metric].values)]
    if not known:
        return None
    styles = of_runs({each.name: each.strategy for each in known})
    digits = 2 if times == 100 else 4
    views = {}
    for against, unit in AGAINST.items():
        lines = [
            _scores(each, each.scored[metric], against, styles[each.name], times)
            for each in known
            if len(each.scored[metric].spent[against])
        ]
        if lines:
            views[against] = figure(
                lines,
                axis(unit, rangemode="tozero"),
                axis(label, **({} if times == 100 else {"rangemode": "tozero"})),
                showlegend=len(lines) > 1,
            )
    ends = [(each.name, times * float(each.scored[metric].values[-1])) for each in known]
    unit = " %" if times == 100 else ""
    return Chart(
        name=f"test-{metric}" if metric == "loss" else metric,
        title=title,
        says=f"The last {metric} is {_ends(ends, digits, unit)}.",
        views=views,
        table=_table(known, [each.scored[metric] for each in known], digits, times),
    )


def _scores(
    one: Learner, course: Course, against: str, style: Style, times: float
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": one.name,
        "x": plain(course.spent[against]),
        "y": plain(times * course.values),
        "line": style.line,
        "marker": style.marker,
        "hovertemplate": "%{y:.4g} at %{x:.4g}",
    }


def _bands(known: Sequence[Learner], thinned: dict[str, Thinned], unit: str) -> Figure:
    styles = of_runs({each.name: each.strategy for each in known})
    lines: list[dict[str, Any]] = []
    for name, found in thinned.items():
        style = styles[name]
        common = {"type": "scatter", "mode": "lines", "x": plain(found.x), "legendgroup": name}
        if found.each > 1 and len(thinned) <= BANDS:
            edge = {"width": 0, "color": style.colour}
            quiet = {"showlegend": False, "hoverinfo": "skip", "line": edge}
            fill = {"fill": "tonexty", "fillcolor": faint(style.colour)}
            lines.append({**common, **quiet, "y": plain(found.low)})
            lines.append({**common, **quiet, **fill, "y": plain(found.high)})
        lines.append(
            {
                **{**common, "name": name, "y": plain(found.mean), "line": style.line},
                "hovertemplate": "%{y:.4g} at %{x:.4g}",
            }
        )
    return figure(lines, axis(unit, rangemode="tozero"), axis("loss"), showlegend=len(thinned) > 1)


def _trained(steps: Sequence[Steps], begin: float, samples: int | None) -> Course:
    """All workers' steps, in the order in which they ended."""
    times = np.concatenate([rows["time"] for rows in steps])
    order = np.argsort(times, kind="stable")
    taken = np.concatenate([rows["samples"] for rows in steps])[order]
    losses = np.concatenate([rows["loss"] for rows in steps])[order].astype(np.float64)
    so_far = np.cumsum(taken, dtype=np.float64)
    return Course(spent=_spent(times[order] - begin, so_far, samples), values=losses)


def _scored(scores: Sequence[Score], metric: str, begin: float, samples: int | None) -> Course:
    known = sorted((s for s in scores if metric in s.values), key=lambda score: score.time)
    seconds = np.array([score.time - begin for score in known])
    epochs = np.array([score.epoch for score in known], dtype=np.float64)
    spent = {
        "seconds": np.maximum(seconds, 0.0),
        "samples": epochs * samples if samples else np.empty(0),
        "epochs": epochs,
    }
    return Course(spent=spent, values=np.array([score.values[metric] for score in known]))


def _spent(seconds: Array, so_far: Array, samples: int | None) -> dict[str, Array]:
    epochs = so_far / samples if samples else np.empty(0)
    return {"seconds": seconds, "samples": so_far, "epochs": epochs}


def _end(values: Array) -> float:
    """The mean of the last tenth."""
    last = values[-max(1, len(values) // 10) :]
    return float(last.mean())


def _ends(ends: Sequence[tuple[str, float]], digits: int, unit: str = "") -> str:
    if len(ends) == 1:
        return f"{number(ends[0][1], digits)}{unit}"
    low, high = (pick(ends, key=lambda end: end[1]) for pick in (min, max))
    told = (f"{number(value, digits)}{unit} ({name})" for name, value in (low, high))
    return "between " + " and ".join(told)


def _table(
    known: Sequence[Learner], courses: Sequence[Course], digits: int, times: float
) -> list[Column]:
    values = [times * course.values for course in courses]
    return [
        Column(title="run", cells=[each.name for each in known], words=True),
        Column(title="first", cells=[number(v[0], digits) for v in values]),
        Column(title="lowest", cells=[number(v.min(), digits) for v in values]),
        Column(title="highest", cells=[number(v.max(), digits) for v in values]),
        Column(title="last", cells=[number(v[-1], digits) for v in values]),
        Column(title="points", cells=[number(len(v)) for v in values]),
    ]

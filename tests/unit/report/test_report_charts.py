"""Charts from records: bounded, honest, and never broken by what is in a name."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paceline.report.charts import learning, scaling
from paceline.report.charts.chart import plain
from paceline.report.charts.faults import faults
from paceline.report.charts.pareto import pareto
from paceline.report.charts.phases import phases, spent_by
from paceline.report.charts.resources import resources
from paceline.report.charts.staleness import staleness
from paceline.report.charts.theme import axis, figure, literal, of_role, of_runs
from paceline.report.charts.thin import POINTS, thin
from paceline.report.charts.throughput import Rate, over_time, side_by_side
from paceline.report.charts.traffic import traffic
from paceline.store.steps import STEP, Steps
from paceline.types import Resources, Score

numbers = st.floats(-1e6, 1e6, allow_nan=False)


def steps(count: int, begin: float = 0.0, each: float = 0.01) -> Steps:
    rows = np.zeros(count, dtype=STEP)
    rows["time"] = begin + each * np.arange(1, count + 1)
    rows["samples"] = 10
    rows["compute"] = each
    rows["loss"] = 1.0 / np.arange(1, count + 1)
    return rows


# Thinning.


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=300), st.integers(1, 50))
def test_thinned_lines_keep_extremes_and_order(pairs: list[tuple[float, float]], most: int) -> None:
    x, y = np.array(sorted(a for a, _ in pairs)), np.array([b for _, b in pairs])
    found = thin(x, y, most)
    assert len(found.x) <= max(most, 1)
    assert found.low.min() == y.min()
    assert found.high.max() == y.max()
    assert (found.low <= found.mean + 1e-6).all()
    assert (found.mean <= found.high + 1e-6).all()
    assert (np.diff(found.x) >= 0).all()


def test_what_is_no_number_is_in_no_mean() -> None:
    found = thin([0, 1, 2, 3], [1.0, np.nan, np.inf, 3.0], 1)
    assert found.mean.tolist() == [2.0]


def test_a_million_steps_are_a_thousand_points() -> None:
    rows = {"worker-0": steps(1_000_000, each=1e-3), "worker-1": steps(1_000_000, each=1e-3)}
    one = learning.learner("a", "ps-sync", list(rows.values()), [], 0.0, 60_000)
    for chart in (over_time(rows), learning.training_loss([one])):
        assert chart is not None
        for view in chart.views.values():
            assert max(len(trace["x"]) for trace in view["data"]) <= POINTS
    loss = learning.training_loss([one])
    assert loss is not None
    assert "about 2,000 batches" in loss.note


@given(st.lists(st.floats(width=64), max_size=20))
def test_figures_hold_nothing_that_json_cannot(values: list[float]) -> None:
    json.dumps(plain(values), allow_nan=False)


# Each chart.


def test_throughput_is_that_of_all_workers_together() -> None:
    chart = over_time({"worker-0": steps(400), "worker-1": steps(400)})
    assert chart is not None
    total, first, second = chart.figure["data"]
    assert np.allclose(total["y"], 2000)
    assert np.allclose(first["y"], 1000)
    assert np.allclose(second["y"], 1000)
    assert "2 workers made 2,000 samples/s" in chart.says


def test_a_run_that_has_hardly_begun_has_no_chart() -> None:
    assert over_time({}) is None
    assert over_time({"worker-0": steps(3)}) is None
    assert learning.accuracy([]) is None
    assert resources([]) is None
    assert traffic([]) is None
    assert staleness([]) is None
    assert faults([], None) is None
    assert phases({}) is None
    assert side_by_side([]) is None


def cell(workers: int, gain: float | None, strategy: str = "ps-sync") -> dict[str, object]:
    told = {"value": gain, "low": None, "high": None}
    return {
        "cell": "single" if gain is None else f"{strategy}, {workers} workers",
        "base": "single",
        "spec": {"workers": workers, "strategy": "single" if gain is None else strategy},
        "gain": None if gain is None else {"throughput": told},
    }


def test_speedup_has_the_ideal_and_the_law() -> None:
    law = {n: n / (1 + 0.1 * (n - 1)) for n in (2, 4, 8)}
    found = scaling.curves([cell(1, None), *(cell(n, gain) for n, gain in law.items())])
    chart, part = scaling.speedup(found), scaling.efficiency(found)
    assert chart is not None
    assert part is not None
    names = [trace["name"] for trace in chart.figure["data"]]
    assert names == ["ideal", "ps-sync, USL fit", "ps-sync"]
    assert chart.figure["data"][0]["y"][-1] == 8
    assert "σ 0.100" in chart.says
    assert "ps-sync and 8 workers 59 %" in part.says


def test_cells_of_another_baseline_are_not_put_on_the_line() -> None:
    other = cell(2, 1.5) | {"base": "elsewhere"}
    assert scaling.curves([cell(1, None), other]) == []


def test_scores_are_drawn_against_seconds_samples_and_epochs() -> None:
    scores = [
        Score(time=5.0 + n, role="worker-0", step=n, epoch=n, final=False, values={"accuracy": a})
        for n, a in ((1, 0.5), (2, 0.75))
    ]
    one = learning.learner("a", "single", [steps(10)], scores, 5.0, 100)
    chart = learning.accuracy([one])
    assert chart is not None
    assert {k: v["data"][0]["x"] for k, v in chart.views.items()} == {
        "seconds": [1, 2],
        "samples": [100, 200],
        "epochs": [1, 2],
    }
    assert chart.figure["data"][0]["y"] == [50, 75]
    assert chart.says == "The last accuracy is 75.00 %."


@given(st.dictionaries(st.sampled_from(["data", "forward", "wait"]), st.floats(0.01, 100)))
def test_shares_of_phases_sum_to_all(spent: dict[str, float]) -> None:
    chart = phases({"worker-0": spent})
    assert (chart is None) == (not spent)
    if chart:
        assert abs(sum(trace["x"][0] for trace in chart.figure["data"]) - 100) < 0.1


def test_runs_that_recorded_no_fine_phases_have_the_coarse_ones() -> None:
    fine = {"data": 1.0, "forward": None, "backward": None, "evaluate": 2.0}
    role = {"role": "worker-0", "spans": fine, "phases": {"data": 1.0, "compute": 3.0}}
    assert spent_by([role]) == {"worker-0": {"data": 1.0, "compute": 3.0, "evaluate": 2.0}}


def test_a_counter_that_begins_anew_is_never_below_nothing() -> None:
    samples = [
        Resources(time=t, role="worker-0", cpu_seconds=c, memory_bytes=1, sent=0, received=0)
        for t, c in ((0, 0.0), (1, 0.5), (2, 0.25), (3, 1.25))
    ]
    chart = resources(samples)
    assert chart is not None
    assert chart.figure["data"][0]["y"] == [50, 25, 100]
    assert list(chart.views) == ["CPU", "memory"]


def test_traffic_is_a_matrix_without_the_supervisor() -> None:
    def peer(name: str, sent: float, got: float) -> dict[str, object]:
        return {"peer": name, "sent_mb": sent, "received_mb": got}

    roles = [
        {"role": "worker-0", "traffic": [peer("server-0", 3.0, 2.0), peer("supervisor", 9.0, 9.0)]},
        {"role": "server-0", "traffic": [peer("worker-0", 2.0, 3.0)]},
    ]
    chart = traffic(roles)
    assert chart is not None
    (heat,) = chart.figure["data"]
    assert heat["z"] == [[3, None], [None, 2]]
    assert chart.says.startswith("5.0 MB were sent in all")


def test_staleness_beyond_the_last_bar_is_in_it() -> None:
    told = {"mean": 20.0, "max": 90, "histogram": {"0": 1, "40": 1, "90": 2}}
    chart = staleness([{"role": "worker-0", "staleness": told}])
    assert chart is not None
    (bars,) = chart.figure["data"]
    assert bars["x"][-1] == "40+"
    assert bars["y"][-1] == 75


def test_the_front_is_told_from_what_is_behind_it() -> None:
    def choice(name: str, seconds: float, money: float, front: bool) -> dict[str, object]:
        spent = {"seconds": seconds, "money": money}
        by = None if front else "a"
        return {"choice": name, "run": spent, "price_an_hour": 1, "front": front, "beaten_by": by}

    told = [choice("a", 1, 1, True), choice("b", 2, 2, False)]
    chart = pareto({"span": "run", "currency": "USD", "choices": told, "sentences": ["Take a."]})
    assert chart is not None
    assert [trace["customdata"] for trace in chart.figure["data"]] == [["a"], ["b"]]
    assert chart.says == "Take a."


def test_a_fault_that_was_never_over_lasts_to_the_end() -> None:
    told = {"time": 2.0, "role": "worker-0", "what": "died", "injected": True, "seconds": None}
    chart = faults([told], 10.0)
    assert chart is not None
    assert chart.figure["data"][0]["x"] == [8]
    assert "never was" in chart.says


# The look.


def test_names_are_shown_as_they_are() -> None:
    evil = '<a href="http://example.com">x</a>'
    chart = side_by_side([Rate(name=evil, strategy="single", value=1.0)])
    assert chart is not None
    assert evil not in json.dumps(chart.views)
    assert literal({"name": "<b>", "hovertemplate": "<extra>"}) == {
        "name": "&lt;b>",
        "hovertemplate": "<extra>",
    }


def test_a_role_has_one_colour_everywhere_and_runs_differ_in_more_than_colour() -> None:
    assert of_role("worker-3") == of_role("worker-3")
    assert of_role("server-0") != of_role("worker-0")
    found = of_runs({"a": "ps-sync", "b": "ps-sync", "c": "ps-async"})
    assert found["a"].colour == found["b"].colour != found["c"].colour
    assert found["a"].dash != found["b"].dash


def test_the_page_decides_the_background() -> None:
    layout = figure([], axis("x"), axis("y"))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"

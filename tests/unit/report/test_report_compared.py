"""Two runs beside each other: what of their difference is any."""

from __future__ import annotations

import pytest

from paceline.report.compare_tables import compare_report
from paceline.report.compared import Side, compare
from paceline.report.layout import render
from paceline.store.sweeps import Trial


def run(name: str, rate: float, *, spread: float = 0.01, batch: int = 10) -> Side:
    figures = {
        "samples_per_second": rate,
        "low": rate * (1 - spread),
        "high": rate * (1 + spread),
        "accuracy": 0.9,
    }
    trial = Trial(cell=name, repeat=0, run=name, seconds=1.0, figures=dict(figures))
    host = {"name": "here", "cores": 2}
    return Side(
        kind="run",
        name=name,
        about={"paceline": "1", "host": host},
        spec={"batch": batch, "workers": 2},
        trials={name: [trial]},
    )


def test_one_run_of_each_does_not_tell_what_is_noise() -> None:
    found = compare(run("a", 100.0), run("b", 90.0, batch=20))
    assert found["spec"] == {"batch": {"a": 10, "b": 20}}
    assert found["origin"] == {}
    change = found["cells"][0]["throughput"]["change"]
    assert (change["value"], change["low"], change["different"]) == (pytest.approx(0.9), None, None)
    assert "one run of each does not tell how much of that is noise" in found["sentence"]
    told = render(compare_report(found), width=80)
    assert "cannot be told" in told
    assert "Where it ran: the same." in told


def test_what_their_own_steps_explain_is_said_to_be() -> None:
    found = compare(run("a", 100.0, spread=0.05), run("b", 97.0, spread=0.05))
    assert "which their own steps' noise explains" in found["sentence"]


def test_runs_that_measured_nothing_have_nothing_to_compare() -> None:
    empty = run("b", 1.0)
    empty.trials["b"][0].figures.clear()
    assert "is not known of both" in compare(run("a", 100.0), empty)["sentence"]

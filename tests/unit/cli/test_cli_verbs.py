from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.types import Silent


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text("print('training')\n")
    return str(path)


def test_runs_lists_what_there_is(paceline: Callable[..., Any], api: Any) -> None:
    empty = paceline("runs")
    assert (empty.code, empty.out) == (0, "")
    assert "no runs in" in empty.err
    paceline("run")
    paceline("run", "--strategy", "ps-sync", "-n", "2")
    told = paceline("runs").out
    assert told.index("ps-sync-2w") < told.index("single-1w")
    first, second = json.loads(paceline("runs", "--json").out)
    assert (first["strategy"], second["samples_per_second"]) == ("ps-sync", 30_000.0)
    assert Path(first["path"]).name == first["name"]


def test_runs_as_json_is_a_list_even_where_there_are_none(paceline: Callable[..., Any]) -> None:
    assert json.loads(paceline("runs", "--json").out) == []


def test_show_reads_the_run_again(paceline: Callable[..., Any], api: Any) -> None:
    paceline("run", "--quiet", "--epochs", "3")
    told = paceline("show", "last")
    assert told.code == 0
    assert "softmax on mnist · single · 1 worker" in told.out
    assert json.loads(paceline("show", "single", "--json").out)["spec"]["epochs"] == 3


@pytest.mark.parametrize(
    ("flags", "strategy", "workers"),
    [("", "single", 1), ("-n 4", "allreduce", 4), ("-n 2 --strategy ps-async", "ps-async", 2)],
)
def test_launch_chooses_a_strategy_unless_told(
    paceline: Callable[..., Any], api: Any, script: str, flags: str, strategy: str, workers: int
) -> None:
    assert paceline("launch", *flags.split(), script).code == 0
    assert (api.specs[0].strategy, api.specs[0].workers) == (strategy, workers)


def test_all_after_the_script_is_the_scripts_own(
    paceline: Callable[..., Any], api: Any, script: str
) -> None:
    told = paceline("launch", "-n", "2", script, "--json", "-n", "7", "--epochs", "3", "--help")
    assert api.asked["arguments"] == ["--json", "-n", "7", "--epochs", "3", "--help"]
    assert api.asked["script"] == Path(script)
    assert "train.py · allreduce · 2 workers" in told.out


def test_with_json_the_script_does_not_speak_on_standard_output(
    paceline: Callable[..., Any], api: Any, script: str
) -> None:
    paceline("launch", script)
    assert api.asked["echo"] == 1
    told = paceline("launch", "--json", script)
    assert api.asked["echo"] == 2
    assert json.loads(told.out)["status"] == "done"


def test_the_demo_trains_three_ways_and_says_what_paid(
    paceline: Callable[..., Any], api: Any
) -> None:
    told = paceline("demo")
    assert told.code == 0
    assert [(spec.strategy, spec.workers) for spec in api.specs] == [
        ("single", 1),
        ("ps-sync", 3),
        ("ps-async", 3),
    ]
    assert {(s.task, s.data, s.batch, s.lr, s.epochs) for s in api.specs} == {
        ("softmax", "mnist", 200, 0.5, 50)
    }
    assert "121.1" in told.out  # published, beside ours
    assert "1.73x (1.71–1.76)" in told.out
    assert "Synchronous training with 3 workers was 1.73x" in told.out.replace("\n", " ")
    assert max(map(len, told.out.splitlines())) <= 80


def test_the_demo_as_json(paceline: Callable[..., Any], api: Any) -> None:
    told = json.loads(paceline("demo", "--epochs", "5", "--json").out)
    assert [run["spec"]["epochs"] for run in told["runs"]] == [5, 5, 5]
    assert told["sentence"].endswith(".")


def test_an_interrupted_demo_ends_there(paceline: Callable[..., Any], api: Any) -> None:
    api.status = "stopped"
    told = paceline("demo")
    assert (told.code, told.out, len(api.specs)) == (130, "", 1)
    assert "stopped; what was done so far lies in" in told.err
    assert not isinstance(api.asked["observer"], Silent)

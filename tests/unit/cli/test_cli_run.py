from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.spec import RunSpec
from paceline.types import Silent


@pytest.mark.parametrize(
    ("flags", "field", "value"),
    [
        ("--task lenet", "task", "lenet"),
        ("--data fashion-mnist", "data", "fashion-mnist"),
        ("--data-dir /data", "data_dir", "/data"),
        ("--strategy allreduce", "strategy", "allreduce"),
        ("--strategy independent --workers 3", "workers", 3),
        ("--strategy independent -n 3", "workers", 3),
        ("--strategy ps-sync --servers 2", "servers", 2),
        ("--strategy ps-sync --transport tcp", "transport", "tcp"),
        ("--batch 200", "batch", 200),
        ("--epochs 5", "epochs", 5),
        ("--steps 5", "steps", 5),
        ("--lr 0.5", "lr", 0.5),
        ("--lr 1", "lr", 1.0),
        ("--optimizer adam", "optimizer", "adam"),
        ("--momentum 0.5", "momentum", 0.5),
        ("--weight-decay 1e-4", "weight_decay", 1e-4),
        ("--seed 7", "seed", 7),
        ("--device cpu", "device", "cpu"),
        ("--threads 2", "threads", 2),
        ("--evaluate end", "evaluate", "end"),
        ("--evaluator", "evaluator", True),
        ("--no-evaluator", "evaluator", False),
        ("--target-accuracy 0.9", "target_accuracy", 0.9),
        ("--host 0.0.0.0", "host", "0.0.0.0"),
        ("--strategy ps-sync --transport tcp --port 7000", "port", 7000),
    ],
)
def test_each_flag_reaches_the_spec(
    paceline: Callable[..., Any], api: Any, flags: str, field: str, value: object
) -> None:
    assert paceline("run", *flags.split()).code == 0
    assert getattr(api.specs[0], field) == value


def test_only_what_was_given_differs_from_the_defaults(
    paceline: Callable[..., Any], api: Any
) -> None:
    paceline("run")
    assert api.specs == [RunSpec()]


def test_every_fault_is_told_at_once(paceline: Callable[..., Any], api: Any) -> None:
    told = paceline(
        *("run", "--workers", "two", "--batch", "0", "--epochs", "1.5", "--lr", "nan"),
        *("--strategy", "ps-asink", "--task", "sotfmax", "--data", "nmist", "--optimizer", "sdg"),
        *("--transport", "udp", "--device", "tpu", "--seed", "-1", "--momentum", "1"),
        *("--target-accuracy", "92", "--evaluate", "often", "--port", "70000", "--threads", "x"),
    )
    assert (told.code, told.out, api.specs) == (2, "", [])
    lines = told.err.splitlines()
    assert all(line.startswith("paceline: ") for line in lines)
    for named in (
        *("--workers 'two'", "--batch 0", "--epochs '1.5'", "--lr nan", "'ps-async'", "'softmax'"),
        *("'mnist'", "'sgd'", "--transport 'udp'", "--device 'tpu'", "--seed -1", "--momentum 1"),
        *("--target-accuracy 92", "--evaluate 'often'", "--port 70000", "--threads 'x'"),
    ):
        assert sum(named in line for line in lines) == 1, named


def test_flags_override_the_file(paceline: Callable[..., Any], api: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[run]\ntask = 'lenet'\nlr = 0.1\nevaluator = true\n")
    paceline("run", "--spec", str(file), "--lr", "0.2", "--no-evaluator")
    assert api.specs == [RunSpec(task="lenet", lr=0.2, evaluator=False)]


def test_json_is_all_that_standard_output_has(paceline: Callable[..., Any], api: Any) -> None:
    told = paceline("run", "--json")
    assert json.loads(told.out)["status"] == "done"
    assert json.loads(told.out)["spec"]["task"] == "softmax"


def test_a_run_ends_with_its_tables_and_where_it_lies(
    paceline: Callable[..., Any], api: Any, tmp_path: Path
) -> None:
    told = paceline("run", "--out", str(tmp_path / "mine"))
    assert api.asked["out"] == tmp_path / "mine"
    for text in ("softmax on mnist", "worker-0", "30,000 samples/s", "compute: it computes."):
        assert text in told.out
    assert str(next((tmp_path / "mine").iterdir())) in told.out.replace("\n", "")
    assert "Against" not in told.out


def test_a_run_is_held_against_a_comparable_run_of_one_worker(
    paceline: Callable[..., Any], api: Any
) -> None:
    paceline("run")
    told = paceline("run", "--strategy", "ps-sync", "-n", "4")
    assert "2.00x (1.97–2.03)" in told.out
    assert "50 (49–51)" in told.out


def test_quiet_says_nothing(paceline: Callable[..., Any], api: Any) -> None:
    told = paceline("run", "--quiet")
    assert (told.code, told.out, told.err) == (0, "", "")
    assert isinstance(api.asked["observer"], Silent)


def test_an_interrupted_run_is_still_shown(paceline: Callable[..., Any], api: Any) -> None:
    api.status = "stopped"
    told = paceline("run")
    assert told.code == 130
    assert "; stopped" in told.out

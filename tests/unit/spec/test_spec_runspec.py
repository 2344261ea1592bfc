"""RunSpec: frozen, keyword-only, and whoever gets it wrong is told everything at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from paceline.errors import RequestError, SpecError
from paceline.exchange.catalog import STRATEGIES
from paceline.spec import RunSpec, read_toml


def faults(**fields: Any) -> tuple[str, ...]:
    with pytest.raises(SpecError) as wrong:
        RunSpec(**fields)
    return wrong.value.faults


def test_nothing_given_is_a_spec() -> None:
    spec = RunSpec()
    assert (spec.task, spec.strategy, spec.workers) == ("softmax", "single", 1)


def test_frozen() -> None:
    spec = RunSpec()
    with pytest.raises(ValidationError):
        spec.workers = 2  # type: ignore[misc]


def test_keyword_only() -> None:
    with pytest.raises(TypeError):
        RunSpec("softmax")  # type: ignore[call-arg]


def test_every_fault_at_once() -> None:
    told = faults(
        task="softmx",
        data="mnst",
        strategy="single",
        workers=0,
        servers=2,
        batch=-1,
        epochs=1,
        steps=1,
        lr=float("nan"),
        optimizer="adm",
        momentum=1.0,
        device="tpu",
        evaluate="sometimes",
        port=70000,
        wrkers=3,
    )
    for word in (
        "'softmx': did you mean 'softmax'?",
        "'mnst': did you mean 'mnist'?",
        "--workers 0: must be at least 1",
        "--servers 2: strategy 'single' has no servers",
        "--batch -1: must be at least 1",
        "--epochs and --steps: give one of them",
        "--lr nan: must be a finite number",
        "'adm': did you mean 'adam'?",
        "--momentum 1.0: must be less than 1",
        "--device 'tpu': must be one of auto, cpu, cuda",
        "--evaluate 'sometimes': must be one of epoch, end or never",
        "--port 70000: must be at most 65535",
        "unknown spec field 'wrkers': did you mean 'workers'?",
    ):
        assert any(word in fault for fault in told), (word, told)
    assert len(told) == 13
    assert all(fault.endswith(".") and "\n" not in fault for fault in told)


def test_options_of_other_strategies_are_told_at_once() -> None:
    told = faults(
        strategy="allreduce",
        workers=2,
        servers=2,
        transport="shm",
        codec="zip",
        bound=3,
        backup=2,
        sync_every=4,
        outer_lr=0.7,
        outer_momentum=0.9,
        damp_stale=True,
        port=7000,
        tls=True,
    )
    for word in (
        *("no servers;", "no servers that listen", "no codec", "no TLS", "no bound"),
        *("no backup workers", "no staleness", "no averaging", "--outer-lr 0.7", "--outer-mom"),
        *("unknown codec 'zip'", "has no choice of it"),
    ):
        assert any(word in fault for fault in told), (word, told)
    assert len(told) == 12


FAULTY: list[tuple[dict[str, Any], str]] = [
    ({"task": "lenet", "features": 100}, "task 'lenet' has no such choice; sparse-logreg has"),
    ({"task": "sparse-logreg", "features": 2**31 + 1}, "must be at most 2147483648"),
    ({"optimizer": "adam", "l1": 0.1}, "rule 'adam' has no such penalty; use --optimizer ftrl"),
    ({"optimizer": "ftrl", "decay": "linear"}, "rule 'ftrl' needs one rate throughout"),
    ({"optimizer": "ftrl", "warmup": 1.0}, "use --warmup 0"),
    ({"data": "clicks:many"}, "write clicks:ROWS or clicks:ROWSxFEATURES"),
    ({"data": "clicks:10x5"}, "200 to 2,147,483,648 features"),
    ({"data": "shards:here"}, "'shards'"),
    ({"strategy": "ps-asink"}, "did you mean 'ps-async'? Known: allreduce, hogwild"),
    ({"strategy": "single", "workers": 2}, "strategy 'single' has one worker"),
    ({"strategy": "allreduce", "workers": 2, "servers": 1}, "'allreduce' has no servers"),
    ({"strategy": "single", "transport": "tcp"}, "has no choice of it"),
    ({"strategy": "ps-sync", "transport": "rdma"}, "must be one of auto, shm or tcp"),
    ({"strategy": "ps-sync", "transport": "shm", "port": 5000}, "use --transport tcp"),
    ({"strategy": "allreduce", "port": 5000}, "'allreduce' has no servers that listen"),
    ({"strategy": "ps-async", "servers": 2, "optimizer": "lars"}, "use --servers 1"),
    ({"strategy": "ps-sync", "bound": 2}, "'ps-sync' has no bound; only 'ssp' has."),
    ({"strategy": "ps-async", "backup": 1}, "no backup workers; only 'ps-sync' has."),
    ({"strategy": "allreduce", "damp_stale": True}, "--damp-stale: strategy 'allreduce' has no st"),
    ({"strategy": "ps-async", "balance": True}, "share; these have: allreduce, ps-sync."),
    ({"strategy": "local-sgd", "balance": True}, "--balance: strategy 'local-sgd' has no batch"),
    ({"workers": 3, "backup": 1, "balance": True}, "--balance with --backup 1: a round"),
    ({"strategy": "ssp", "sync_every": 2}, "no averaging; only 'local-sgd' has."),
    ({"strategy": "single", "outer_lr": 0.7}, "--outer-lr 0.7: strategy 'single' has no outer st"),
    ({"strategy": "hogwild", "outer_momentum": 0.9}, "no outer step; only 'local-sgd' has."),
    ({"strategy": "local-sgd", "codec": "bf16"}, "codec; these have: ps-sync, ps-async, ssp."),
    ({"strategy": "hogwild", "servers": 2}, "'hogwild' has no servers"),
    ({"strategy": "hogwild", "transport": "tcp"}, "'hogwild' goes over shm only"),
    ({"strategy": "ssp", "transport": "shm", "codec": "int8"}, "use --transport tcp"),
    (
        {"strategy": "ssp", "transport": "shm", "replicas": 1},
        "have no standby; use --transport tcp",
    ),
    ({"strategy": "ps-sync", "replicas": 2}, "must be at most 1"),
    ({"strategy": "allreduce", "workers": 2, "replicas": 1}, "has no servers to stand by for"),
    ({"strategy": "ps-sync", "replicas": 1, "max_restarts": 0}, "allow at least 1"),
    ({"strategy": "ssp", "bound": 0}, "--bound 0: must be at least 1"),
    ({"strategy": "local-sgd", "sync_every": 0}, "--sync-every 0: must be at least 1"),
    ({"strategy": "local-sgd", "outer_momentum": 1.0}, "must be less than 1"),
    ({"strategy": "ps-sync", "workers": 2, "backup": 2}, "use at most --backup 1."),
    ({"strategy": "ps-sync", "codec": "topk"}, "--codec topk: say topk:RATIO"),
    ({"strategy": "ps-sync", "codec": "topk:2"}, "--codec topk:2: say topk:RATIO"),
    ({"strategy": "ps-sync", "codec": "topk:nan"}, "say topk:RATIO"),
    ({"strategy": "ps-sync", "codec": "zip"}, "unknown codec 'zip'"),
    (
        {"strategy": "ps-sync", "workers": 3, "backup": 1, "servers": 2, "transport": "shm"},
        "use --servers 1 or --transport tcp.",
    ),
    (
        {"strategy": "ps-sync", "servers": 2, "transport": "tcp", "optimizer": "lamb"},
        "whole layers",
    ),
    ({"target_accuracy": 0.9, "evaluate": "end"}, "--target-accuracy needs scores"),
    ({"checkpoint_every": 0.0, "keep_checkpoints": 5}, "--checkpoint-every 0 makes none"),
    ({"checkpoint_every": -1.0}, "--checkpoint-every -1.0: must be at least 0"),
    ({"keep_checkpoints": 0}, "--keep-checkpoints 0: must be at least 1"),
    ({"target_accuracy": 1.5}, "--target-accuracy 1.5: must be at most 1"),
    ({"workers": "2"}, "--workers '2': must be a whole number"),
    ({"workers": 2.0}, "--workers 2.0: must be a whole number"),
    ({"workers": True}, "--workers True: must be a whole number"),
    ({"lr": "fast"}, "--lr 'fast': must be a finite number"),
    ({"lr": 0}, "--lr 0: must be more than 0"),
    ({"lr": float("inf")}, "--lr inf: must be a finite number"),
    ({"evaluator": "yes"}, "--evaluator 'yes': must be true or false"),
    ({"task": ""}, "--task '': must not be empty"),
    ({"task": "no_such_file.py:Task"}, "there is no file 'no_such_file.py'"),
    ({"task": "no_such_module:Task"}, "there is no module 'no_such_module'"),
    ({"seed": -1}, "--seed -1: must be at least 0"),
    ({"seed": 2**32}, "must be less than 4294967296"),
]


@pytest.mark.parametrize(("fields", "text"), FAULTY, ids=str)
def test_a_fault_alone_is_one_sentence(fields: dict[str, Any], text: str) -> None:
    (told,) = faults(**fields)
    assert text in told


@pytest.mark.parametrize(
    "fields",
    [{"strategy": name, "workers": 3 if kind.many else 1} for name, kind in STRATEGIES.items()]
    + [
        {"strategy": "ps-sync", "workers": 2, "servers": 3, "transport": "tcp", "port": 7000},
        {"target_accuracy": 0.9, "evaluate": "end", "evaluator": True},
        {"lr": 1},
        {"checkpoint_every": 0},
        {"checkpoint_every": 0.5, "keep_checkpoints": 1},
        {"data": "synthetic:100x3:2"},
        {"strategy": "ps-async", "workers": 1},
        {"strategy": "ps-sync", "workers": 3, "backup": 2, "servers": 2},
        {"strategy": "ssp", "workers": 2, "bound": 1, "codec": "topk:1", "damp_stale": True},
        {"strategy": "local-sgd", "sync_every": 1, "outer_lr": 0.7, "outer_momentum": 0.9},
        {"strategy": "ps-sync", "workers": 2, "port": 7000},
        {"strategy": "ps-sync", "workers": 2, "balance": True, "codec": "int8"},
        {"strategy": "allreduce", "workers": 2, "balance": True},
        {"strategy": "ps-sync", "workers": 2, "servers": 2, "optimizer": "lars"},
    ],
    ids=str,
)
def test_what_makes_sense_is_taken(fields: dict[str, Any]) -> None:
    spec = RunSpec(**fields)
    assert RunSpec(**spec.model_dump()) == spec


def test_with_changes_some_and_checks_again() -> None:
    spec = RunSpec(strategy="ps-sync", workers=2)
    assert spec.with_(workers=3).workers == 3
    assert spec.workers == 2
    with pytest.raises(SpecError, match="has one worker"):
        spec.with_(strategy="single")
    with pytest.raises(SpecError, match="did you mean 'batch'"):
        spec.with_(batches=3)


def test_absolute_holds_from_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my.py").write_text("")
    monkeypatch.chdir(tmp_path)
    spec = RunSpec(task="my.py:Task", data_dir="data").absolute()
    assert spec.task == f"{tmp_path}/my.py:Task"
    assert spec.data_dir == f"{tmp_path}/data"
    assert spec.absolute() == spec
    assert RunSpec().absolute() == RunSpec()


# From a file.


def toml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("head", ["", "[run]\n"])
def test_a_file_is_a_spec(head: str, tmp_path: Path) -> None:
    path = toml(
        tmp_path,
        f'{head}task = "lenet"\nstrategy = "ps-async"\nworkers = 2\nlr = 0.1\n'
        "weight-decay = 0.01\nevaluator = true\n",
    )
    spec = RunSpec(**read_toml(path))
    assert spec == RunSpec(
        task="lenet",
        strategy="ps-async",
        workers=2,
        lr=0.1,
        weight_decay=0.01,
        evaluator=True,
    )


def test_every_fault_of_a_file_at_once(tmp_path: Path) -> None:
    path = toml(tmp_path, 'strategy = "ps-asink"\nworkers = 0\nlr = "fast"\nbtch = 3\n')
    assert len(faults(**read_toml(path))) == 4


def test_a_file_that_is_not_there_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"none\.toml': no such file"):
        read_toml(tmp_path / "none.toml")
    with pytest.raises(RequestError, match=r"spec\.toml' is not valid TOML"):
        read_toml(toml(tmp_path, "workers = = 2"))
    with pytest.raises(RequestError, match="'run' must be a table"):
        read_toml(toml(tmp_path, "run = 3"))
    (tmp_path / "spec.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(RequestError, match="not UTF-8"):
        read_toml(tmp_path / "spec.toml")

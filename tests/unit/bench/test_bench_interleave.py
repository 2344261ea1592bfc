from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench import catalog, interleave
from bench.catalog import MODELS, PEERS, Contender, Model
from bench.contenders import rate
from bench.interleave import interleaved, main, turned

NAMES = [contender.name for contender in PEERS.contenders]
LENET = MODELS["lenet"]


def named(model: Model, contender: Contender) -> float:
    return float(1 + NAMES.index(contender.name))


def test_order_turns() -> None:
    three = PEERS.contenders[:3]
    orders = [[c.name for c in turned(three, repeat)] for repeat in range(4)]
    assert all(sorted(order) == sorted(orders[0]) for order in orders)
    assert [order[0] for order in orders] == [three[turn].name for turn in (0, 1, 2, 0)]


def test_every_contender_once_a_repeat() -> None:
    taken: list[str] = []

    def measure(model: Model, contender: Contender) -> float:
        taken.append(contender.name)
        return named(model, contender)

    rates = interleaved([LENET], PEERS.contenders, 3, measure)
    assert rates == {"lenet": {name: [1.0 + i] * 3 for i, name in enumerate(NAMES)}}
    for repeat in range(3):
        assert sorted(taken[repeat * len(NAMES) :][: len(NAMES)]) == sorted(NAMES)


@pytest.mark.parametrize(
    ("flags", "saved"),
    [
        ([], True),
        (["--no-save"], False),
        (["--repeats", "4"], False),
        (["--models", "mlp"], False),
        (["--contenders", "raw DDP,independent"], False),
    ],
)
def test_only_a_whole_bench_is_saved(
    flags: list[str], saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "RESULTS", tmp_path)
    monkeypatch.setattr(interleave, "write_page", lambda: None)
    monkeypatch.setattr(sys, "argv", ["bench", *flags])
    main(PEERS, "What it does.", named, lambda: {"ray": "2.0"})
    assert PEERS.results.is_file() == saved
    if saved:
        record = json.loads(PEERS.results.read_text())
        assert record["repeats"] == 5
        assert record["machine"]["versions"]["ray"] == "2.0"
        assert record["samples_per_second"]["mlp"]["raw DDP"] == [3.0] * 5


def test_an_unknown_name_lists_the_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "--models", "softmacks"])
    with pytest.raises(SystemExit) as ended:
        main(PEERS, "What it does.", named)
    assert ended.value.code == 2
    assert "unknown: softmacks; known: softmax, lenet, mlp" in capsys.readouterr().err


def test_rate_is_of_all_workers_together() -> None:
    ends = [[step * 0.1 for step in range(1, 101)] for _ in range(2)]
    assert rate(ends, batch=8) == pytest.approx(160.0)

"""Codecs end to end: fewer bytes, told how many and at what loss, and it trains all the same."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from contract_tasks import Net

import paceline

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]

# How many times fewer bytes at least, on a model of 163 parameters; the largest relative error.
CODECS = {
    "bf16": (2, 0.01),
    "fp16": (2, 0.01),
    "int8": (3, 0.1),
    "topk:0.2": (2.4, 0.95),
    "onebit": (6, 0.95),
}


def trained(runs: Path, **how: Any) -> paceline.Run:
    return paceline.fit(
        Net(803), transport="tcp", workers=2, batch=8, epochs=4, lr=0.3, seed=3, out=runs, **how
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("plain")
    return cache(lambda strategy: trained(out, strategy=strategy))


@pytest.mark.matrix(5)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("strategy", ["ps-sync", "ps-async", "ssp"])
def test_smaller_gradients_train_as_well(strategy: str, codec: str, plain: Any, runs: Path) -> None:
    run, whole = trained(runs, strategy=strategy, codec=codec), plain(strategy)
    assert run.quality["accuracy"] == pytest.approx(whole.quality["accuracy"], abs=0.13)
    ratio, error = CODECS[codec]
    sent = {}
    for role in run.roles:
        if role["role"].startswith("worker-"):
            assert role["coding"]["ratio"] >= ratio
            assert 0 < role["coding"]["error"] < error
            sent[role["role"]] = role["sent_mb"] / role["steps"]
    for role in whole.roles:
        assert role["coding"] is None
        if role["role"] in sent:
            assert sent[role["role"]] < role["sent_mb"] / role["steps"]


@pytest.mark.parametrize("more", [{"servers": 2}, {"backup": 1}, {"replicas": 1}], ids=str)
def test_with_empty_slices(more: dict[str, Any], runs: Path) -> None:
    """Of 193 samples one is left for the last round: most have nothing to encode."""
    run = paceline.fit(
        Net(193), strategy="ps-sync", workers=3, batch=8, epochs=3, codec="int8", out=runs, **more
    )
    assert run.summary["spec"]["transport"] == "tcp"
    assert run.status == "done"


def test_no_codec_is_none(plain: Any, runs: Path) -> None:
    one = plain("ps-sync").parameters()
    two = trained(runs, strategy="ps-sync", codec="none").parameters()
    assert all(torch.equal(value, two[name]) for name, value in one.items())

"""TensorBoard finds in its files what the run recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paceline
from paceline.types import FINE

pytest.importorskip("tensorboard")
pytestmark = pytest.mark.parallel


def test_scalars_graph_and_profile_are_what_tensorboard_reads(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = paceline.fit(
        "lenet",
        **{"strategy": "ps-sync", "workers": 2, "steps": 30, "batch": 32, "out": tmp_path},
        **{"tensorboard": str(tmp_path / "board"), "profile_steps": "5:6"},
    )
    assert run.status == "done"
    board = tmp_path / "board" / run.folder.name

    def read(name: str) -> EventAccumulator:
        found = EventAccumulator(str(board / name))
        found.Reload()
        return found

    for role in ("worker-0", "worker-1"):
        events, steps = read(role), run.folder.steps(role)
        tags = set(events.Tags()["scalars"])
        assert tags >= {"loss", "samples per second", "memory, MB"}
        assert tags >= {f"phases/{name}" for name in FINE}
        losses = events.Scalars("loss")
        assert losses[-1].step == steps["step"][-1]
        assert min(steps["loss"]) <= losses[-1].value <= max(steps["loss"])
        shares = [events.Scalars(f"phases/{name}")[-1].value for name in FINE]
        assert 0 < sum(shares) <= 1.01
        (profile,) = (board / role).glob("*.pt.trace.json")
        names = {event.get("name") for event in json.loads(profile.read_text())["traceEvents"]}
        assert "aten::conv2d" in names
    scored = read("test").Scalars("test/accuracy")
    assert scored[-1].value == pytest.approx(run.quality["accuracy"])
    assert b"conv" in read("graph").Graph().SerializeToString()

"""What real runs record: phases that add up, servers whose time is whole, clocks that are apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import paceline
from paceline.launch import starter
from paceline.measure.rates import durations
from paceline.types import FINE, PAUSES, SERVING

pytestmark = pytest.mark.parallel


def test_phases_and_servers_time_over_tcp_on_clocks_that_may_be_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starter, "clock_id", lambda: "another host's")
    run = paceline.fit(
        *("softmax",),
        **{"strategy": "ps-sync", "workers": 2, "transport": "tcp", "codec": "int8"},
        **{"epochs": 1, "checkpoint_every": 0.2, "out": tmp_path},
    )
    roles = {role["role"]: role for role in run.summary["roles"]}
    for name in ("worker-0", "worker-1"):
        told, steps = roles[name], run.folder.steps(name)
        assert list(told["spans"]) == [*FINE, *PAUSES]
        for part in ("data", "forward", "backward", "encode", "push", "pull", "wait", "evaluate"):
            assert told["spans"][part] > 0, part
        fine = sum(steps[part] for part in FINE)
        assert fine == pytest.approx(durations(steps), rel=1e-4)
        assert (np.diff(steps["time"]) > 0).all()
        wall = steps["time"][-1] - steps["time"][0] + durations(steps)[0]
        assert fine.sum() <= wall * 1.001
    server = roles["server-0"]
    assert list(server["spans"]) == list(SERVING)
    assert sum(server["spans"].values()) == pytest.approx(server["seconds"], rel=0.1, abs=0.2)
    assert min(server["spans"][part] for part in ("receive", "decode", "apply", "send")) > 0
    for role in run.folder.read_live()["roles"]:  # it is the same clock in truth
        ((_, seconds, error),) = role["offsets"]
        assert abs(seconds) <= error

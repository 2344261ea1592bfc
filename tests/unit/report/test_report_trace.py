"""A trace has the shape that Perfetto needs, and tells what was recorded, whatever that is."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.cli.main import main
from paceline.measure.clock import Clock
from paceline.report.timeline import Before, lay_out
from paceline.report.trace import Window, write_trace
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.spans import SpanWriter, spans_path
from paceline.store.steps import FIRST, STEP, StepWriter, read_steps, step_chunks
from paceline.types import FINE, PAUSES, SERVING, Event, HostResources, Resources

seconds = st.floats(0, 0.5)
steps = st.lists(st.tuples(*[seconds] * len(FINE), st.booleans()), min_size=1, max_size=20)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Two workers and a server, a second of it; worker-0 scores in between."""
    made = RunFolder.create(tmp_path, RunSpec(strategy="ps-sync", workers=2))
    roles = [{"role": name, "host": "here"} for name in ("worker-0", "worker-1", "server-0")]
    roles.append({"role": "server-1", "host": "here", "inside": "worker-0"})
    made.write_live("done", os.getpid(), roles)
    for role in ("worker-0", "worker-1"):
        writer = StepWriter(made.steps_path(role))
        for n in range(10):
            end = 0.1 * (n + 1) + (0.02 if n >= 5 and role == "worker-0" else 0.0)
            phases = (0.01, 0, 0.02, 0.03, 0, 0.01, 0.005, 0.004, 0.001)
            writer.append(end, n + 1, 0, 64, np.nan, *phases, end - 0.02, n + 1, 0)
        writer.close()
    pauses = SpanWriter(spans_path(made.path, "worker-0"), PAUSES, Clock(0.0))
    pauses.append(0.5, [0.02, 0, 0])
    pauses.close()
    serving = SpanWriter(spans_path(made.path, "server-0"), SERVING, Clock(0.0))
    for n in range(100):
        serving.append(0.01 * n, [0.002, 0, 0.001, 0.001, 0, 0.003, 0.003])
    serving.close()
    made.append_event(Event(time=0.3, role="worker-1", kind="stalled", detail="somewhere"))
    made.append_event(Event(time=0.9, role="supervisor", kind="done"))
    used = {"role": "worker-0", "memory_bytes": 10**8, "received": 0}
    for at in (0.2, 0.7):
        made.append_resources([Resources(time=at, cpu_seconds=at, sent=int(4e6 * at), **used)])
        made.append_host(HostResources(time=at, host="here", cores=(at, at / 2)))
    made.close()
    return made


def read(path: Path) -> list[dict[str, Any]]:
    events = json.loads((gzip.open if path.suffix == ".gz" else open)(path).read())["traceEvents"]
    assert all({"ph", "name", "pid", "ts"} <= event.keys() for event in events)
    drawn = [event for event in events if event["ph"] != "M"]
    assert [e["ts"] for e in drawn] == sorted(e["ts"] for e in drawn)
    assert all(isinstance(e["pid"], int) and e["ts"] >= 0 for e in events)
    open_: dict[int, list[int]] = {}
    for event in [e for e in drawn if e["ph"] == "X"]:
        begin, end = (round(1000 * at) for at in (event["ts"], event["ts"] + event["dur"]))
        ends = open_.setdefault(event["tid"], [])
        while ends and ends[-1] <= begin:
            ends.pop()
        assert begin <= end <= min([end, *ends]), "beside others, or inside of one"
        ends.append(end)
    return events


def test_a_trace_tells_what_was_recorded(folder: RunFolder, tmp_path: Path) -> None:
    told = write_trace(folder, tmp_path / "t.json")
    events = read(tmp_path / "t.json")
    threads = {e["args"]["name"]: e["tid"] for e in events if e["name"] == "thread_name"}
    assert list(threads) == ["supervisor", "worker-0", "worker-1", "server-0"]
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["here"]
    assert told.events == len([e for e in events if e["ph"] != "M"])
    assert not told.left_out

    def spent(role: str) -> dict[str, float]:
        names: dict[str, float] = {}
        for event in events:
            if event["ph"] == "X" and event["tid"] == threads[role]:
                names[event["name"]] = names.get(event["name"], 0.0) + event["dur"] / 1e6
        return names

    assert spent("worker-0") == pytest.approx(
        {
            **{"step": 0.8, "data": 0.1, "forward": 0.2, "backward": 0.3, "push": 0.1},
            **{"wait": 0.04, "pull": 0.05, "update": 0.01, "evaluate": 0.02},
        }
    )
    expected = {"receive": 0.2, "apply": 0.1, "send": 0.1, "gate": 0.3}
    assert spent("server-0") == pytest.approx(expected, rel=1e-4)
    first = next(e for e in events if e["name"] == "step")
    assert first["args"] == {
        **{"step": 1, "samples": 64, "loss": None, "epoch": 0, "version": 1, "staleness": 0}
    }
    instants = {e["name"]: (e["s"], e["tid"]) for e in events if e["ph"] == "i"}
    assert instants == {"stalled": ("t", threads["worker-1"]), "done": ("g", 1)}
    counters = {e["name"]: e["args"] for e in events if e["ph"] == "C"}
    assert counters["worker-0 CPU, % of a core"] == {"used": pytest.approx(100)}
    assert counters["worker-0 traffic, MB/s"]["sent"] == pytest.approx(4)
    assert counters["cores in use"] == {"busy": pytest.approx(1.5)}


def test_a_part_of_it_compressed_and_no_more_than_asked_for(
    folder: RunFolder, tmp_path: Path
) -> None:
    write_trace(folder, tmp_path / "t.json.gz", Window(0.45, 0.55))
    spans = [e for e in read(tmp_path / "t.json.gz") if e["ph"] == "X"]
    assert {e["name"] for e in spans} >= {"step", "evaluate", "apply"}
    assert all(e["ts"] <= 0.65e6 and e["ts"] + e["dur"] >= 0.3e6 for e in spans)
    told = write_trace(folder, tmp_path / "t.json", most=100)
    assert told.left_out
    assert told.events == 100
    assert told.end < 0.5
    read(tmp_path / "t.json")


@settings(max_examples=80, deadline=None)
@given(taken=steps, overlap=seconds)
def test_steps_are_laid_out_in_order_and_in_full(taken: list[Any], overlap: float) -> None:
    """Whether the next batch was made meanwhile, or backward overlapped the exchange."""
    rows = np.zeros(len(taken), dtype=STEP)
    now = 1.0
    for row, (*phases, ahead) in zip(rows, taken, strict=True):
        for name, spent in zip(FINE, phases, strict=True):
            row[name] = spent
        computed, exchanged = float(sum(phases[:4])), float(sum(phases[4:]))
        row["arrival"] = now + computed + (0.0 if ahead else overlap)
        row["time"] = now = now + computed + exchanged + (overlap if ahead else 0.0)
    names, edges, before = lay_out(rows, Before())
    assert (np.diff(edges, axis=1) >= 0).all()
    assert (edges[1:, 0] >= edges[:-1, -1]).all()
    assert before.end == rows["time"][-1]
    assert (edges[:, -1] == np.rint(rows["time"] * 1e9)).all()
    at = names.index("encode")
    for number, name in enumerate(names[at:], at):
        if name != "ahead":
            drawn = (edges[:, number + 1] - edges[:, number]) / 1e9
            assert drawn == pytest.approx(rows[name], abs=1e-6)


def test_chunks_are_the_whole_and_older_files_have_coarser_phases(
    folder: RunFolder, tmp_path: Path
) -> None:
    path = folder.steps_path("worker-0")
    parts = np.concatenate(list(step_chunks(path, 3)))
    assert parts.tobytes() == read_steps(path).tobytes()
    old = [
        (0.1 * n, n, 0, 64, 0.5, 0.01, 0.05, 0.01, 0.02, 0.01, 0.1 * n - 0.04, n, 0) for n in (1, 2)
    ]
    path.write_bytes(FIRST.header + np.array(old, dtype=FIRST.row).tobytes())
    write_trace(folder, tmp_path / "t.json")
    spans = [e for e in read(tmp_path / "t.json") if e["ph"] == "X" and e["tid"] == 2]
    told = {"step", "data", "compute", "exchange", "wait", "update", "evaluate"}
    assert {e["name"] for e in spans} == told


def test_the_verb(folder: RunFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--out", str(folder.path.parent)]
    target = tmp_path / "out.json"
    assert main(["trace", "last", "-o", str(target), *where]) == 0
    assert "ui.perfetto.dev" in capsys.readouterr().out
    assert main(["trace", "last", "-o", str(target), "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["roles"] == 3
    for wrong, said in (
        (["--from", "5", "--to", "5"], "nothing lies between"),
        (["--from", "-1"], "nothing lies between"),
        (["-o", str(tmp_path)], "is a folder"),
        (["-o", str(tmp_path / "none" / "t.json")], "there is no folder"),
        (["--from", "99"], "recorded nothing between 99 s and its end"),
    ):
        assert main(["trace", "last", *where, "-o", str(target), *wrong]) == 2
        assert said in capsys.readouterr().err

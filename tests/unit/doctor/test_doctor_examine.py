"""The round goes on whatever a probe does, and loses nothing when it is broken off."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from paceline.diagnose.doctor.facts import Facts, Gpus
from paceline.doctor import examine as room
from paceline.doctor import probes
from paceline.doctor.asked import Asked
from paceline.doctor.child import Child, NotMeasured
from paceline.doctor.probes import BY_NAME, PROBES, Probe
from paceline.report.doctor import as_object
from paceline.store.text import to_json

GPUS = Gpus(driver=None, devices=())
ASKED = Asked(folder=".", quick=True)


class FakeChild:
    """Finds GPUs, and otherwise does as `does` says."""

    does: Callable[[Probe], Any]
    started: list[list[str]]
    closed: int

    def __init__(self, probes: Sequence[Probe], asked: Asked) -> None:
        type(self).started.append([probe.name for probe in probes])

    def next(self, probe: Probe) -> Any:
        return type(self).does(probe)

    def close(self) -> None:
        type(self).closed += 1


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> type[FakeChild]:
    def finds_nothing(probe: Probe) -> Any:
        if probe.name == "gpus":
            return GPUS
        raise NotMeasured("it is only a test.", over=False)

    class Own(FakeChild):
        does = staticmethod(finds_nothing)
        started: list[list[str]] = []  # noqa: RUF012 - of this test alone
        closed = 0

    monkeypatch.setattr(room, "Child", Own)
    return Own


def test_what_is_not_measured_is_told_with_the_reason(child: type[FakeChild]) -> None:
    told: list[tuple[str, float]] = []
    facts = room.examine(ASKED, lambda what, done: told.append((what, done)))
    assert facts.complete
    assert facts.gpus == GPUS
    assert {u.probe for u in facts.unmeasured} == {p.name for p in PROBES} - {"gpus", "peer"}
    assert {u.reason for u in facts.unmeasured} == {"it is only a test"}
    assert [done for _, done in told] == sorted(done for _, done in told)
    assert told[-1][1] <= 1
    assert (len(child.started), child.closed) == (2, 2)
    assert facts.cores
    assert facts.memory
    assert facts.host


def test_a_child_that_dies_of_a_probe_takes_no_other_with_it(child: type[FakeChild]) -> None:
    def dies(probe: Probe) -> Any:
        raise NotMeasured("its process ended", over=probe.name in ("bandwidth", "disk"))

    child.does = staticmethod(dies)
    room.examine(ASKED)
    assert [names[0] for names in child.started] == ["core_speed", "shared", "gpus", "torch"]
    assert child.closed == 4


def test_the_other_host_is_measured_only_where_there_is_one(child: type[FakeChild]) -> None:
    room.examine(Asked(folder=".", quick=True, peer="h:1"))
    assert "peer" in child.started[0]
    child.started.clear()
    room.examine(ASKED)
    assert "peer" not in child.started[0]


def test_an_interrupt_keeps_what_is_known(child: type[FakeChild]) -> None:
    def interrupts(probe: Probe) -> Any:
        if probe.name == "gpus":
            return GPUS
        if probe.torch:
            raise KeyboardInterrupt
        raise NotMeasured("it is only a test", over=False)

    child.does = staticmethod(interrupts)
    facts = room.examine(ASKED)
    assert not facts.complete
    assert facts.gpus == GPUS
    assert facts.memory is not None
    late = [u.probe for u in facts.unmeasured if u.reason == "interrupted"]
    assert late == ["torch", "threads", "gpu_speed"]
    assert child.closed == 2


def test_a_reading_that_fails_is_no_end(
    child: type[FakeChild], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise KeyError("MemTotal")

    monkeypatch.setattr(room.processor, "cores", broken)
    facts = room.examine(ASKED)
    assert facts.cores is None
    assert "cores" in [u.probe for u in facts.unmeasured]
    assert json.loads(to_json(as_object(facts)))["cores"] is None


# Real children.


@pytest.fixture
def mute() -> Any:
    """An address where somebody listens and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield f"127.0.0.1:{sock.getsockname()[1]}"


def test_a_probe_that_takes_too_long_is_given_up(
    mute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "GRACE", -3.5)
    peer = BY_NAME["peer"]
    child = Child([peer], Asked(folder=".", quick=True, peer=mute, secret="00" * 32))
    try:
        with pytest.raises(NotMeasured, match="it took longer than 1 s") as wrong:
            child.next(peer)
        assert wrong.value.over
    finally:
        child.close()
    assert _gone(child)


def test_a_child_that_dies_is_told_by_its_signal(mute: str) -> None:
    peer = BY_NAME["peer"]
    child = Child([peer], Asked(folder=".", peer=mute, secret="00" * 32))
    try:
        os.kill(child._process.pid, signal.SIGSEGV)
        with pytest.raises(NotMeasured, match="its process ended with signal 11") as wrong:
            child.next(peer)
        assert wrong.value.over
    finally:
        child.close()


def test_a_probe_that_fails_is_told_and_the_next_one_goes_on() -> None:
    pair = [BY_NAME["peer"], BY_NAME["gpus"]]
    child = Child(pair, Asked(folder=".", peer="127.0.0.1:1", secret="00" * 32))
    try:
        with pytest.raises(NotMeasured, match=r"cannot reach 127.0.0.1:1 .*: Connection refused$"):
            child.next(pair[0])
        assert isinstance(child.next(pair[1]), Gpus)
    finally:
        child.close()


def _gone(child: Child) -> bool:
    try:
        os.killpg(child._process.pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_facts_of_nothing_are_facts() -> None:
    assert as_object(Facts())["warnings"] == []

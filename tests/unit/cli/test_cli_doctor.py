from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paceline.diagnose.doctor.facts import Facts, Link
from paceline.doctor.asked import Asked
from paceline.doctor.secrets import key_of
from paceline.measure.spread import Spread

ONE = Spread(value=1.0)
LINK = Link(address="h:5", latency=ONE, slowest=1, push=ONE, pull=ONE)


class FakeDoctor:
    """Stands for the measuring: finds what it is told to."""

    facts = Facts(peer=LINK)

    def __init__(self) -> None:
        self.asked: list[Asked] = []

    def examine(self, asked: Asked, told: Callable[[str, float], None]) -> Facts:
        told("the disk", 0.5)
        self.asked.append(asked)
        return self.facts


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> FakeDoctor:
    fake = FakeDoctor()
    monkeypatch.setattr("paceline.doctor.examine.examine", fake.examine)
    monkeypatch.delenv("PACELINE_SECRET", raising=False)
    return fake


def test_it_tells_tables_and_says_meanwhile_what_it_measures(
    paceline: Callable[..., Any], doctor: FakeDoctor
) -> None:
    told = paceline("doctor")
    assert (told.code, told.err) == (0, "measuring the disk\n")
    assert "h:5, push" in told.out
    (asked,) = doctor.asked
    assert (asked.spec["task"], asked.quick, asked.peer) == ("lenet", False, None)
    assert asked.folder.endswith("runs")


def test_a_task_and_its_batch_are_those_of_a_run(
    paceline: Callable[..., Any], doctor: FakeDoctor, tmp_path: Path
) -> None:
    flags = ["--task", "mlp", "--batch", "32", "--quick", "--out", str(tmp_path)]
    told = paceline("doctor", *flags, "--json")
    assert json.loads(told.out)["complete"] is True
    (asked,) = doctor.asked
    assert (asked.spec["task"], asked.spec["batch"], asked.quick) == ("mlp", 32, True)
    assert asked.folder == str(tmp_path)


def test_the_other_host_needs_a_secret_that_is_not_on_the_command_line(
    paceline: Callable[..., Any], doctor: FakeDoctor, tmp_path: Path
) -> None:
    told = paceline("doctor", "--peer", "h:5")
    assert (told.code, doctor.asked) == (2, [])
    assert "set PACELINE_SECRET, or give --secret-file" in told.err
    file = tmp_path / "secret"
    file.write_text("0123456789abcdef\n")
    assert paceline("doctor", "--peer", "h:5", "--secret-file", str(file)).code == 0
    assert doctor.asked[0].secret == key_of("0123456789abcdef")
    assert doctor.asked[0].secret not in repr(doctor.asked[0])


def test_the_other_host_that_was_not_reached_fails_and_the_rest_is_told(
    paceline: Callable[..., Any], doctor: FakeDoctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_SECRET", "0123456789abcdef")
    doctor.facts = Facts()
    told = paceline("doctor", "--peer", "h:5", "--json")
    assert told.code == 1
    assert json.loads(told.out)["peer"] is None


def test_an_interrupt_tells_what_is_known(paceline: Callable[..., Any], doctor: FakeDoctor) -> None:
    doctor.facts = Facts(complete=False)
    told = paceline("doctor", "--json")
    assert told.code == 130
    assert json.loads(told.out)["complete"] is False


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--task lennet", "did you mean 'lenet'?"),
        ("--batch 0", "--batch 0: must be at least 1"),
        ("--peer h", "--peer 'h': give HOST:PORT"),
        ("--listen x", "--listen 'x': give [ADDRESS:]PORT"),
        ("--listen 5 --peer h:5 --json", "--json does not go with --listen"),
        ("--listen 5 --task mlp", "--task does not go with --listen"),
        ("--listen 0 --secret-file nowhere", "'nowhere': no such file"),
    ],
)
def test_a_wrong_request_is_told_in_a_sentence(
    paceline: Callable[..., Any], doctor: FakeDoctor, flags: str, words: str
) -> None:
    told = paceline("doctor", *flags.split())
    assert (told.code, told.out, doctor.asked) == (2, "", [])
    assert words in told.err


def test_a_listener_shows_its_secret_once(
    paceline: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PACELINE_SECRET", raising=False)
    monkeypatch.setattr("paceline.doctor.listening.serve", lambda sock, *_: sock.close())
    told = paceline("doctor", "--listen", "0")
    assert told.code == 0
    assert told.out.startswith("listening on 127.0.0.1:")
    assert told.out.count("secret, shown this once: ") == 1
    monkeypatch.setenv("PACELINE_SECRET", "0123456789abcdef")
    assert "secret" not in paceline("doctor", "--listen", "0").out

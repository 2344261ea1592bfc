"""Doctor on a real machine, broken off in the middle: what it knows is told, nothing is left."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.parallel, pytest.mark.timeout(60, method="signal")]


def test_an_interrupt_ends_it_with_what_is_known(
    cli: Any, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    command = cli.start("doctor", "--json", "--quick")
    eventually(lambda: "measuring the loopback" in command.stderr, 30, "the loopback")
    command.process.send_signal(signal.SIGINT)
    assert command.wait(10) == 130
    found = json.loads(command.stdout)
    assert found["complete"] is False
    assert found["cores"]["logical"] >= 1
    assert found["bandwidth"]["one"]["value"] > 0
    assert {"probe": "threads", "reason": "interrupted"} in found["unmeasured"]
    assert found["verdict"].startswith("Good for up to")
    assert not (tmp_path / "runs").exists()


@pytest.mark.thorough
def test_its_death_takes_all_that_it_started_with_it(
    cli: Any, eventually: Callable[..., Any]
) -> None:
    """By the signal that nobody can catch; the fixture sees whether something remains."""
    command = cli.start("doctor", "--quick")
    eventually(lambda: "measuring the loopback" in command.stderr, 30, "the loopback")
    command.process.kill()
    assert command.wait(10) == -signal.SIGKILL

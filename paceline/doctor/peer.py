"""This host to another, where `paceline doctor --listen` waits."""

from __future__ import annotations

from paceline.diagnose.doctor.facts import Link
from paceline.doctor.asked import Asked
from paceline.doctor.link import measure_link


def measure(asked: Asked, seconds: float) -> Link:
    assert asked.peer is not None
    return measure_link(asked.peer, bytes.fromhex(asked.secret), seconds)

"""What a server did, for the run's table."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    dropped: int = 0
    sent: int = 0
    received: int = 0
    phases: dict[str, float] = field(
        default_factory=lambda: {"exchange": 0.0, "wait": 0.0, "update": 0.0}
    )

    def begin(self) -> None:
        """From nothing again, in another role."""
        self.dropped = self.sent = self.received = 0
        self.phases.update(dict.fromkeys(self.phases, 0.0))

"""The roles of one run as the supervisor sees them."""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass, field
from typing import Any

from paceline.launch.placement import Place
from paceline.transport.control import Control
from paceline.types import Facts, Progress

LOG_LINES = 12


@dataclass(slots=True)
class Member:
    """One role. `state` is what it last said; `code` is set once its process is gone."""

    role: str
    kind: str
    index: int
    place: Place
    control: Control
    pid: int = 0
    state: str = "starting"  # starting, ready, running, trained, done
    code: int | None = None
    device: str = ""
    address: str = ""
    facts: Facts | None = None
    progress: Progress = field(default_factory=Progress)
    failure: tuple[str, str] | None = None  # kind and sentence of the error it reported
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def gone(self) -> bool:
        return self.code is not None

    @property
    def failed(self) -> bool:
        return self.failure is not None or (self.gone and self.state != "done")

    def live(self) -> dict[str, Any]:
        """This role in the run's live file."""
        state = self.state
        if self.failed:
            state = "failed"
        elif self.gone:
            state = "ended"
        return {
            "role": self.role,
            "pid": self.pid,
            "host": socket.gethostname(),
            "device": self.device,
            "state": state,
            "threads": self.place.threads,
            "cores": list(self.place.cores) if self.place.cores else None,
            "inside": None,
            "report": self.report,
        }

    def end_in_words(self) -> str:
        """How this role ended, for a sentence that begins with its name."""
        if self.code is not None and self.code < 0:
            name = signal.Signals(-self.code).name
            hint = ", by hand or by the system for want of memory" if name == "SIGKILL" else ""
            return f"was killed by signal {-self.code} ({name}{hint})"
        if self.failure is not None:
            kind, sentence = self.failure
            return f"failed with {kind}: {sentence}"
        return f"ended with exit code {self.code} before it was done"

    def blame(self) -> int:
        """How likely this failure is the cause of the others: lower comes first.

        A role that lost a peer only tells that something else went before.
        """
        if self.code is not None and self.code < 0:
            return 0
        if self.failure is not None:
            return 3 if self.failure[0] == "PeerLost" else 1
        return 2


def hosted(workers: list[Member], servers: int) -> list[dict[str, Any]]:
    """Servers that live inside workers, as the live file lists them: server s in worker s mod W."""
    roles = []
    for server in range(servers):
        host = workers[server % len(workers)]
        told: dict[str, Any] = next(
            (h for h in host.report.get("hosted", ()) if h["server"] == server), {}
        )
        report: dict[str, Any] = {
            key: told[key] for key in ("applied", "sent", "received") if key in told
        }
        if told:
            report["phases"] = {"update": told["update"]}
        inside = {"role": f"server-{server}", "inside": host.role, "report": report}
        roles.append(host.live() | inside)
    return roles

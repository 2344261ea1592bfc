"""The roles of one run as the supervisor sees them."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from paceline.launch.placement import Place
from paceline.measure.offset import Offset
from paceline.transport.control import Control
from paceline.transport.slate import Slate
from paceline.types import Facts, Progress

# How far a role is, by its own word; `gone` is the nursery's word.
ORDER = ("starting", "ready", "trained", "left", "done", "gone")


@dataclass(slots=True)
class Member:
    """One role. `state` is what it last said; `code` is set once its process is gone."""

    role: str
    kind: str
    index: int
    place: Place
    control: Control
    slate: Slate = field(default_factory=Slate)  # what it is at
    life: int = 0  # how often it was started before
    born: int = 0  # the first life since it came: what was before, it has left
    early: int = 0  # how often it was started again before it met anybody, which counts no lives
    pid: int = 0
    state: str = "starting"
    code: int | None = None
    device: str = ""
    gpu: str = ""  # the number that is this GPU's alone, where it has one
    address: str = ""
    facts: Facts | None = None
    progress: Progress = field(default_factory=Progress)
    at_it: bool = False  # takes part with the others: in later lives it says so
    frozen_at: float | None = None  # since when it is stopped
    meanwhile: str = ""  # what it was at then and who waited for it, once that was too long
    awaits: tuple[int, tuple[int, ...]] = (0, ())  # of a server: the round, and for whom it waits
    leasing: bool = False  # has asked for samples in this life
    in_step: bool = False  # a standby that may take over
    leaving: bool = False  # a worker that was asked to go while the others go on
    astray: str = ""  # why a standby follows nobody, as it said last
    absent: bool = False  # a worker that is not heard by all servers
    heard: set[int] = field(default_factory=set)  # by these it is again
    # Of the supervisor's clock against this role's, as found so far; none where it is the same.
    offsets: list[Offset] = field(default_factory=list)
    # Of a worker that has lost a server, or is through: up to which version each has answered it.
    answered: tuple[int, ...] = ()
    failure: tuple[str, str] | None = None  # kind and sentence of the error it reported
    report: dict[str, Any] = field(default_factory=dict)
    log: str = ""  # the role whose log it writes, where that is another
    memory: str = ""  # what a server or standby writes to, by name, where that outlives it
    kept: str = ""  # the memory with everything that a server has answered, by name

    @property
    def gone(self) -> bool:
        return self.code is not None

    @property
    def failed(self) -> bool:
        return self.failure is not None or (self.gone and self.state not in ("left", "done"))

    @property
    def left(self) -> bool:
        """Whether it went while the others went on."""
        return self.state == "left"

    @property
    def restarts(self) -> int:
        return self.early + self.life - self.born

    @property
    def killed(self) -> bool:
        """Whether it was ended from outside, by a signal; one that it heeds it ends with 0."""
        return self.failed and self.failure is None and self.code is not None and self.code <= 0

    @property
    def lost_a_peer(self) -> bool:
        """Whether it failed only because another role was gone for too long."""
        return self.gone and self.failure is not None and self.failure[0] == "PeerLost"

    def reached(self, state: str) -> bool:
        if state == "in step":
            return self.in_step
        return self.gone if state == "gone" else ORDER.index(self.state) >= ORDER.index(state)

    def live(self) -> dict[str, Any]:
        """This role in the run's live file."""
        ended = self.gone and not self.left
        state = "failed" if self.failed else "ended" if ended else self.state
        return {
            "role": self.role,
            "pid": self.pid,
            "host": socket.gethostname(),
            "device": self.device,
            "gpu": self.gpu or None,
            "state": state,
            "threads": self.place.threads,
            "cores": list(self.place.cores) if self.place.cores else None,
            "inside": None,
            "restarts": self.restarts,
            "offsets": self.offsets,
            "report": self.report,
        }

    def close(self) -> None:
        """Let go of what the supervisor holds of it."""
        self.control.close()
        self.slate.close()

    def end_in_words(self) -> str:
        """How this role ended, for a sentence that begins with its name."""
        if self.frozen_at is not None:
            return f"was frozen and did not go on in time{self.meanwhile}"
        if self.code is not None and self.code < 0:
            name = signal.Signals(-self.code).name
            hint = ", by hand or by the system for want of memory" if name == "SIGKILL" else ""
            return f"was killed by signal {-self.code} ({name}{hint})"
        if self.failure is not None:
            kind, sentence = self.failure
            return f"failed with {kind}: {sentence}"
        if self.code == 0:
            return "was told to end, by SIGTERM or by code that ends its process"
        return f"ended with exit code {self.code} before it was done"

    def blame(self) -> int:
        """How likely this failure is the cause of the others: lower comes first.

        A role that lost a peer only tells that something else went before.
        """
        if self.code is not None and (self.code < 0 or self.killed):
            return 0
        if self.failure is not None:
            return 3 if self.failure[0] == "PeerLost" else 1
        return 2


def say(members: Iterable[Member], kind: str, **fields: Any) -> None:
    """The same to all of them."""
    for member in members:
        member.control.send(kind, **fields)


class Crew:
    """All members of a run, by role."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self.shards = 0  # how many servers live inside workers
        self.hosts: tuple[int, ...] = (0,)  # in which: those of the start, one after another
        self.leader = "worker-0"  # the worker that speaks for all where one is enough

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def __getitem__(self, role: str) -> Member:
        return self._members[role]

    def add(self, member: Member) -> None:
        """In place of whoever had its role, and has left."""
        if (before := self._members.get(member.role)) is not None:
            before.slate.close()
            member.offsets[:0] = before.offsets  # its records go on in the same files
        self._members[member.role] = member

    def get(self, role: str) -> Member | None:
        return self._members.get(role)

    def workers(self) -> list[Member]:
        """Those that have not left."""
        return [m for m in self.everybody() if not m.left]

    def everybody(self) -> list[Member]:
        """All workers there ever were, in the order of their numbers."""
        return sorted((m for m in self if m.kind == "worker"), key=lambda m: m.index)

    def worker(self, index: int) -> Member:
        return self[f"worker-{index}"]

    def servers(self) -> list[Member]:
        """Those that have not left, in the order of their numbers."""
        found = [m for m in self if m.kind == "server" and not m.left]
        return sorted(found, key=lambda m: m.index)

    def standbys(self) -> list[Member]:
        return [m for m in self if m.kind == "standby"]

    def standby_of(self, server: Member) -> Member:
        return self[f"standby-{server.index}"]

    def promote(self, server: Member) -> Member:
        """The standby of this server, in its place. There is no standby then."""
        standby = self._members.pop(f"standby-{server.index}")
        standby.log = standby.log or standby.role
        standby.role, standby.kind, standby.life = server.role, "server", server.life + 1
        standby.state = "starting"
        standby.kept = server.kept  # until it serves
        self._members[server.role] = standby
        return standby

    def everyone(self) -> list[Member]:
        return list(self)

    def left(self) -> list[Member]:
        return [m for m in self if not m.gone]

    def culprit(self) -> Member | None:
        """The failed member that most likely made the others fail."""
        return min((m for m in self if m.failed), key=Member.blame, default=None)

    def live(self) -> list[dict[str, Any]]:
        """The run's live file lists every role, those inside others too."""
        roles = [m.live() for m in self]
        for server in range(self.shards):
            roles.append(self._hosted(server))
        return roles

    def inside(self, host: Member) -> list[str]:
        """The servers that live inside this member."""
        return [f"server-{s}" for s in range(self.shards) if self.host(s) is host]

    def host(self, server: int) -> Member:
        """The worker that a server lives in."""
        return self.worker(self.hosts[server % len(self.hosts)])

    def _hosted(self, server: int) -> dict[str, Any]:
        """Its report came with that worker's."""
        host = self.host(server)
        told: dict[str, Any] = next(
            (h for h in host.report.get("hosted", ()) if h["server"] == server), {}
        )
        report: dict[str, Any] = {
            k: told[k] for k in ("holds", "applied", "sent", "received") if k in told
        }
        if told:
            report["phases"] = {"update": told["update"]}
        return host.live() | {"role": f"server-{server}", "inside": host.role, "report": report}

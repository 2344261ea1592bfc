"""Standbys as the supervisor sees them: which is in step, and who takes a dead server's place.

standby ─FOLLOW─► server ─in-step─► supervisor       from now on it may take over
                  server ─alone──► supervisor        not any more
                  server ◄─alone── supervisor        and now the server may go on without it
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.launch.crew import Crew, Member
from paceline.launch.starter import Starter
from paceline.spec import RunSpec
from paceline.transport.control import Message
from paceline.types import Facts


class Succession:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(self, crew: Crew, starter: Starter, tell: Callable[[str, str, str], None]) -> None:
        self._crew = crew
        self._starter = starter
        self._tell = tell
        self.ending = False  # all workers are done: what becomes of servers is of no interest

    def hear(self, member: Member, message: Message) -> bool:
        """Whether this was for here."""
        match message["kind"]:
            case "in-step":
                self._on_in_step(member, message["life"])
            case "alone":
                self._on_alone(member, message["number"], message["life"])
            case "absent":
                self._on_absent(member, self._crew.worker(message["worker"]))
            case "present":
                self._on_present(member, self._crew.worker(message["worker"]))
            case _:
                return False
        return True

    def promote(self, spec: RunSpec, facts: Facts, gone: Member) -> Member:
        """The standby serves from now on, and gets one of its own where the server was."""
        life = self._crew.standby_of(gone).life + 1
        server = self._crew.promote(gone)
        server.control.send("promote", **self._starter.standing())
        # Before somebody else listens where the server did.
        for worker in self._crew.workers():
            worker.control.send("moved", server=server.index, address=server.address)
        self._starter.standby(spec, facts, server, gone.address, life)
        return server

    def again(self, spec: RunSpec, facts: Facts, gone: Member) -> None:
        """Another standby in place of one that is gone."""
        server = self._crew[f"server-{gone.index}"]
        self._starter.standby(spec, facts, server, gone.address, gone.life + 1)

    def _on_in_step(self, server: Member, life: int) -> None:
        """By its server's word: this life of its standby has all that was answered."""
        standby = self._crew.standby_of(server)
        if standby.life == life:
            standby.in_step = True
            if life:
                self._tell(standby.role, "back", f"in step with {server.role}")

    def _on_alone(self, server: Member, number: int, life: int) -> None:
        """The server has lost its standby, and goes on without it once it has this answer."""
        standby = self._crew.standby_of(server)
        if standby.life == life:
            standby.in_step = False
        if not self.ending:
            self._tell(server.role, "alone", "lost its standby, and goes on without it")
        server.control.send("alone", number=number)

    # Workers that live and are not heard.

    def _on_absent(self, server: Member, worker: Member) -> None:
        """A worker has had no connection to this server for longer than its lease."""
        if not (worker.absent or worker.gone or worker.reached("trained")):
            worker.absent = True
            self._tell(worker.role, "absent", f"{server.role} cannot hear it; nobody waits for it")
            for other in self._crew.servers():
                other.control.send("absent", worker=worker.index)

    def _on_present(self, server: Member, worker: Member) -> None:
        if worker.absent:
            worker.absent = False
            self._tell(worker.role, "back", f"{server.role} hears it again")

"""Standbys as the supervisor sees them: which is in step, and who takes a dead server's place.

standby ─FOLLOW─► server ─in-step─► supervisor       from now on it may take over
                  server ─alone──► supervisor        not any more
                  server ◄─alone── supervisor        and now the server may go on without it
"""

from __future__ import annotations

from collections.abc import Callable

from paceline.errors import RunFailed
from paceline.launch.crew import Crew, Member
from paceline.launch.starter import Starter
from paceline.spec import RunSpec
from paceline.transport.control import Message
from paceline.types import Facts

IN_STEP_WITHIN = 15.0  # seconds from when standbys are up: there is nothing yet to catch up with


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
            case "astray":
                member.astray = message["why"]
            case "alone":
                self._on_alone(member, message["number"], message["life"])
            case "answered":
                member.answered = tuple(message["versions"])
            case "absent":
                self._on_absent(member, self._crew.worker(message["worker"]))
            case "present":
                self._on_present(member, self._crew.worker(message["worker"]))
            case _:
                return False
        return True

    def check_begun(self, seconds: float) -> None:
        """RunFailed if a standby is not in step so long after all are up, with what it said."""
        late = [standby for standby in self._crew.standbys() if not standby.in_step]
        if late and seconds > IN_STEP_WITHIN:
            why = late[0].astray.rstrip(".") or f"server-{late[0].index} has not heard of it"
            raise RunFailed(
                f"{late[0].role} is not in step after {seconds:.0f} s: {why}; mend that, or go "
                "without --replicas."
            )

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
        self._starter.forget(gone)
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
        if worker.gone or worker.reached("trained"):
            return
        told = [server] if worker.absent else self._crew.servers()
        if not worker.absent:
            worker.absent = True
            self._tell(worker.role, "absent", f"{server.role} cannot hear it; nobody waits for it")
        for other in told:
            self._miss(other, worker)

    def _on_present(self, server: Member, worker: Member) -> None:
        """It counts again at all servers or at none: whoever waits for it must be heard by all."""
        worker.heard.add(server.index)
        servers = self._crew.servers()
        through = worker.gone or worker.reached("trained")
        if worker.absent and not through and worker.heard >= {other.index for other in servers}:
            worker.absent = False
            self._tell(worker.role, "back", "all servers hear it again")
            for other in servers:
                other.control.send("present", worker=worker.index)

    def brief(self, server: Member) -> None:
        """Tell one that begins to serve whom nobody waits for."""
        for worker in self._crew.workers():
            if worker.absent:
                self._miss(server, worker)

    def _miss(self, server: Member, worker: Member) -> None:
        """A server is not to wait for this worker, and says so when it hears it."""
        worker.heard.discard(server.index)
        server.control.send("absent", worker=worker.index)

"""The parameters are cut anew, for another number of servers, while a run goes on.

    tell workers the cut ─► servers stop, between two updates ─► others take over their memory
                         ─► tell workers where ─► they connect, and say again what was not answered

A block that a server holds is whole at any moment, with the names of the pushes in it, and workers
have to connect again to servers that were killed in any case: so nothing else has to stop for it.
"""

from __future__ import annotations

import contextlib
import os
import signal

from paceline.launch.crew import Crew, Member
from paceline.launch.policy import keeps_memory
from paceline.launch.starter import Starter
from paceline.measure.clock import Clock
from paceline.server.catalog import LAYERWISE
from paceline.spec import RunSpec
from paceline.types import Facts

GRACE = 1.0  # seconds a server has to end by itself


def refusal(spec: RunSpec, servers: int, blocks: int, parameters: int) -> str | None:
    """Why a run of this spec, as resolved, cannot have so many servers; None if it can."""
    most = min(256, parameters if spec.codec == "none" else blocks)
    inside = "over shared memory servers live inside the workers, and whoever has time serves for "
    reasons = (
        (not spec.kind.served, f"strategy '{spec.strategy}' has no servers"),
        (spec.transport == "shm", f"{inside}those that are gone; scale --workers instead"),
        (spec.replicas > 0, "servers that have standbys stay as many as they are"),
        (not keeps_memory(spec), "with --max-restarts 0 a server leaves nothing to take over"),
        (spec.optimizer in LAYERWISE, f"'{spec.optimizer}' needs whole layers, hence one server"),
        (servers < 1, "at least one has to stay"),
        (servers > most, f"this run can have {most} at most"),
    )
    return next((f"--servers {servers}: {why}" for wrong, why in reasons if wrong), None)


class Recutting:
    """One at a time: `begin`, then `turn` until it is `done`."""

    def __init__(self, crew: Crew, starter: Starter, clock: Clock) -> None:
        self._crew = crew
        self._starter = starter
        self._clock = clock
        self._began = 0.0
        self._ending: list[Member] = []
        self._killed = False
        self._servers = 0  # that are to be; 0: nothing is under way
        self.seconds = 0.0  # that the last one took

    @property
    def done(self) -> bool:
        return not self._servers

    def begin(self, spec: RunSpec, facts: Facts, servers: int) -> None:
        self._spec, self._facts, self._servers = spec, facts, servers
        self._began, self._killed = self._clock.now(), False
        self._starter.recut(spec, servers)
        self._tell_workers([])  # before any of them finds its server gone
        self._ending = self._crew.servers()
        for server in self._ending:
            server.leaving = True
            server.control.send("stop")

    def turn(self) -> None:
        if self._ending:
            if all(server.gone for server in self._ending):
                self._start()
            elif self._clock.now() > self._began + GRACE and not self._killed:
                self._kill()
        elif self._servers and all(self._is_up(s) for s in self._crew.servers()):
            self._starter.recut_done()
            self._tell_workers([server.address for server in self._crew.servers()])
            self._servers, self.seconds = 0, self._clock.now() - self._began

    def _is_up(self, server: Member) -> bool:
        return server.reached("ready") and not server.gone

    def _kill(self) -> None:
        """What a server holds is whole, whatever it is at."""
        self._killed = True
        for server in self._ending:
            if not server.gone and server.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, signal.SIGKILL)

    def _start(self) -> None:
        for server in self._ending:
            server.state = "left"
        self._ending = []
        for index in range(self._servers):
            known = self._crew.get(f"server-{index}")
            life = known.life + 1 if known is not None else 1
            address = self._starter.address(self._spec, index)
            self._starter.server(self._spec, self._facts, index, address, life, born=life)

    def _tell_workers(self, addresses: list[str]) -> None:
        for worker in self._crew.workers():
            worker.control.send("servers", spans=self._starter.cut, addresses=addresses)

"""Starting roles: what each is told and handed, and where it is put."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.errors import RunFailed
from paceline.exchange.layout import layout
from paceline.launch.burying import Burying
from paceline.launch.crew import Crew, Member
from paceline.launch.nursery import Nursery
from paceline.launch.placement import Place, place_evaluator, place_server, place_worker
from paceline.launch.policy import keeps_memory
from paceline.launch.segments import SHARED, Segments
from paceline.measure.clock import Clock
from paceline.server.catalog import LAYERWISE, STATES
from paceline.server.shards import BLOCK, Sizes, cut
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.transport import auth, memory
from paceline.transport.control import Control, pair
from paceline.transport.tls import Identity, new_identity
from paceline.types import Facts
from paceline.worker.recipe import beta2

SPIN = 0.001  # seconds a worker with a core to itself looks for the others before it sleeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the workers run besides a task named in the spec."""

    task: bytes | None = None  # a task object by value
    script: Path | None = None
    arguments: tuple[str, ...] = ()
    echo: int | None = None  # where to show what worker-0's script prints


class Starter:
    """Forks the roles of one run and tells workers where to meet."""

    def __init__(
        self, nursery: Nursery, folder: RunFolder, crew: Crew, clock: Clock, cores: list[int]
    ) -> None:
        self._nursery = nursery
        self._folder = folder
        self._crew = crew
        self._clock = clock
        self._cores = cores
        self._secret = auth.new_secret()
        self._identity: Identity | None = None
        self._segments = Segments()
        self.burying = Burying(self._segments)
        self._shards: list[tuple[int, int]] = []
        self._lent: list[str] = []  # segments that workers are handed

    def workers(self, spec: RunSpec, work: Work) -> None:
        """The workers, and the evaluator if there is to be one."""
        names: list[str] = []
        if spec.kind.transports and spec.transport != "tcp" and memory.available():
            names += SHARED
        if spec.evaluator:
            names.append("snapshot")
        if work.task is not None:
            self._segments.write("task", work.task)
            names.append("task")
        self._lent = names
        for index in range(spec.workers):
            self.worker(spec, work, index)
        if spec.evaluator:
            self.evaluator(spec)

    def evaluator(self, spec: RunSpec, life: int = 0) -> None:
        lent = [name for name in self._lent if name in ("snapshot", "task")]
        fds = {name: self._segments.fd(name) for name in lent}
        self._fork("evaluator", None, place_evaluator(), fds, {"spec": spec.model_dump()}, life)

    def worker(self, spec: RunSpec, work: Work, index: int, life: int = 0) -> None:
        """One worker; `spec` is the one that was asked for."""
        place = place_worker(index, spec.workers, spec.threads, self._cores)
        fds = {name: self._segments.fd(name) for name in self._lent}
        if index == 0 and work.echo is not None:
            fds["stdout"] = work.echo
        more: dict[str, Any] = {"spec": spec.model_dump()}
        if work.script is not None:
            more |= {"kind": "script", "script": str(work.script), "arguments": work.arguments}
        self._fork("worker", index, place, fds, more, life)

    def servers(
        self, spec: RunSpec, facts: Facts, source: Callable[[str], dict[str, Any] | None]
    ) -> None:
        """The servers over TCP; over shared memory they live inside the workers.

        `source` is what a role goes on from.
        """
        if not spec.kind.transports:
            return
        self._shards = cut(facts.parameters, spec.servers or spec.workers)
        if spec.transport == "shm":
            need = layout(spec, facts.parameters, len(self._shards), len(facts.layers))
            self._segments.size(need, facts.parameters)
            self._crew.shards = len(self._shards) if spec.kind.served else 0
        if spec.transport == "shm" or not spec.kind.served:
            return
        if spec.tls:
            self._identity = new_identity()
        for index in range(len(self._shards)):
            checkpoint = source(f"server-{index}")
            self.server(spec, facts, index, _address(spec, index), checkpoint=checkpoint)

    def server(
        self,
        spec: RunSpec,
        facts: Facts,
        index: int,
        address: str,
        life: int = 0,
        checkpoint: dict[str, Any] | None = None,
    ) -> None:
        """One server; in a later life it takes over what the one before has left."""
        more = self._serving(spec, facts, index) | self.standing()
        more |= {"address": address, "checkpoint": checkpoint}
        name = f"server-{index}"
        if (gone := self._crew.get(name)) is not None:
            name = gone.kept
            if gone.memory != gone.kept:  # it was to take over, and had not begun
                self._segments.drop(gone.memory)
        fds = self._keep(spec, more, name, life)
        self._fork("server", index, place_server(), fds, more, life)
        member = self._crew[f"server-{index}"]
        member.memory = member.kept = name if fds else ""
        if life:  # it will be where it was: workers may be told before it is up
            member.address = address

    def standbys(self, spec: RunSpec, facts: Facts) -> None:
        """One for each server that is up, if there are to be any."""
        for server in self._crew.servers() if spec.replicas else ():
            address = _address(spec, len(self._shards) + server.index)
            self.standby(spec, facts, server, address)

    def standby(
        self, spec: RunSpec, facts: Facts, server: Member, address: str, life: int = 0
    ) -> None:
        """A standby for this server, which will listen at an address of its own."""
        more = {"address": address, "follows": server.address}
        more |= self._serving(spec, facts, server.index)
        name = f"standby-{server.index}-{life}"
        fds = self._keep(spec, more, name, life)
        self._fork("standby", server.index, place_server(), fds, more, life)
        member = self._crew.standby_of(server)
        member.address, member.memory = address, name if fds else ""

    def served(self, server: Member) -> None:
        """A server serves: its own memory is the one to go on from."""
        if server.kept != server.memory:
            self._segments.drop(server.kept)
            server.kept = server.memory

    def forget(self, standby: Member) -> None:
        """Nobody goes on from what a standby had."""
        self._segments.drop(standby.memory)

    def _keep(self, spec: RunSpec, more: dict[str, Any], name: str, life: int) -> dict[str, int]:
        """Memory for what a server holds, where that may outlive it."""
        if not keeps_memory(spec):
            return {}
        states = STATES[spec.optimizer or "sgd"]
        sizes = Sizes.of(more["stop"] - more["start"], more["block"], states, spec.workers)
        return self._segments.keep(name, sizes, check=not life)

    def standing(self) -> dict[str, Any]:
        """How things stand with the workers, for whoever begins to serve."""
        workers = self._crew.workers()
        return {
            "lives": [m.life for m in workers],
            "left": [m.index for m in workers if m.reached("trained")],
        }

    def _serving(self, spec: RunSpec, facts: Facts, index: int) -> dict[str, Any]:
        """What a server and its standby both need to know."""
        start, stop = self._shards[index]
        return {
            "identity": asdict(self._identity) if self._identity else None,
            "start": start,
            "stop": stop,
            "workers": spec.workers,
            "gate": spec.kind.gate,
            "bound": spec.bound or 0,
            "backup": spec.backup,
            "whole": spec.step_samples * spec.workers,
            "balance": spec.balance,
            "damp_stale": spec.damp_stale,
            "codec": spec.codec,
            "rule": spec.optimizer,
            "block": self._block(spec, facts),
            "layers": facts.layers if spec.optimizer in LAYERWISE else (),
            "hyper": _hyper(spec, facts),
            "replicas": spec.replicas,
            "lease": spec.lease,
        }

    def roster(
        self, spec: RunSpec, facts: Facts, member: Member, checkpoint: dict[str, Any] | None
    ) -> None:
        """Tell a worker the spec as resolved, where the others are, and what to go on from."""
        meeting = next((m.facts.rendezvous for m in self._crew.workers() if m.facts), "")
        alone = spec.workers <= len(self._cores)
        member.control.send(
            "roster",
            spec=spec.model_dump(),
            shards=self._shards,
            addresses=[m.address for m in self._crew.servers()],
            block=self._block(spec, facts),
            secret=self._secret.hex(),
            certificate=self._identity.certificate if self._identity else "",
            meeting=meeting,
            hyper=_hyper(spec, facts),
            cores=self._cores,
            spin=SPIN if alone else 0.0,
            checkpoint=checkpoint,
        )

    def _block(self, spec: RunSpec, facts: Facts) -> int:
        """Floats a frame: a layer-wise rule needs whole layers before it can apply anything."""
        return facts.parameters if spec.optimizer in LAYERWISE else BLOCK

    def _fork(
        self,
        kind: str,
        index: int | None,
        place: Place,
        fds: dict[str, int],
        more: dict[str, Any],
        life: int = 0,
    ) -> None:
        role = kind if index is None else f"{kind}-{index}"
        ours, theirs = pair()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        log = os.open(self._folder.log_path(role), flags, 0o644)
        self._crew.add(Member(role, kind, index or 0, place, Control(ours), life))
        assignment = {
            "role": role,
            "kind": kind,
            "index": index or 0,
            "life": life,
            "folder": str(self._folder.path.resolve()),
            "t0": self._clock.t0,
            "secret": self._secret.hex(),
            "threads": place.threads,
            "cores": place.cores,
            "nice": place.nice,
            "cwd": str(Path.cwd()),
            "path": sys.path,
        }
        try:
            self._nursery.fork(assignment | more, {"control": theirs.fileno(), "log": log} | fds)
        except OSError as wrong:
            raise RunFailed(f"cannot start {role}: {wrong.strerror or wrong}.") from None
        finally:
            theirs.close()
            os.close(log)

    def close(self) -> None:
        self._segments.close()


def _address(spec: RunSpec, number: int) -> str:
    """Where the server or standby of this number is to listen."""
    return f"{spec.host}:{spec.port + number if spec.port else 0}"


def _hyper(spec: RunSpec, facts: Facts) -> dict[str, float]:
    """What the update rule needs: from the spec, or from the optimizer of a user's loop."""
    spec_own = spec.model_dump(include={"momentum", "weight_decay"})
    return {**spec_own, "beta2": beta2(spec, facts), **facts.hyper}

"""Starting roles: what each is told and handed, and where it is put."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from paceline.errors import RunFailed
from paceline.exchange.layout import READY, layout
from paceline.exchange.stripes import table_layout
from paceline.launch.burying import Burying
from paceline.launch.crew import Crew, Member
from paceline.launch.nursery import Nursery
from paceline.launch.placement import (
    Place,
    place_evaluator,
    place_server,
    place_worker,
    room_for,
)
from paceline.launch.policy import keeps_memory
from paceline.launch.resolve import check_memory
from paceline.launch.segments import SHARED, TABLES, Segments
from paceline.measure.clock import Clock
from paceline.measure.offset import clock_id
from paceline.server.catalog import LAYERWISE, STATES
from paceline.server.shards import BLOCK, Cut, Sizes, Span, cut, in_blocks, recut
from paceline.server.striping import Size, share_of
from paceline.spec import RunSpec
from paceline.spec.inject import line_limits
from paceline.store.folder import RunFolder
from paceline.tasks.catalog import FEATURED
from paceline.transport import auth, memory
from paceline.transport.control import Control, pair
from paceline.transport.slate import Slate
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
        self,
        nursery: Nursery,
        folder: RunFolder,
        crew: Crew,
        clock: Clock,
        cores: list[int],
        granted: int,
    ) -> None:
        """`granted` is how many of the `cores` the run may use in full."""
        self._nursery = nursery
        self._folder = folder
        self._crew = crew
        self._clock = clock
        self._cores, self._granted = cores, granted
        self._secret = auth.new_secret()
        self._identity: Identity | None = None
        self._segments = Segments()
        self.burying = Burying(self._segments)
        self._cut: Cut = []  # by server, its blocks
        self._cuts = 0  # how often they were cut anew
        # What servers of the cut before have left, with its name, as long as others take it over.
        self._before: list[tuple[Sequence[Span], str]] = []
        self._lent: list[str] = []  # segments that workers are handed
        self._hands: tuple[int, ...] = ()  # the workers of the start
        self._loops = False  # whether roles run loops over sparse tables, as far as is known
        self._places = 1  # of the start: theirs, and those of the spec that have left
        self.room = 1  # how many workers there may be at most
        self.faults: Sequence[str] = ()  # that are done on purpose

    def workers(self, spec: RunSpec, work: Work, crew: tuple[int, ...]) -> None:
        """The workers of these numbers, and the evaluator if there is to be one."""
        names: list[str] = []
        if spec.kind.transports and spec.transport != "tcp" and memory.available():
            names += [*SHARED, *TABLES]
        if spec.evaluator:
            names.append("snapshot")
        if work.task is not None:
            self._segments.write("task", work.task)
            names.append("task")
        self._lent = names
        self._loops = spec.task in FEATURED
        self._hands, self._crew.leader = crew, f"worker-{crew[0]}"
        self._places = max(spec.workers, crew[-1] + 1)
        self.room = room_for(self._places, self._granted)
        for index in crew:
            self.worker(spec, work, index)
        if spec.evaluator:
            self.evaluator(spec)

    def evaluator(self, spec: RunSpec, life: int = 0) -> None:
        lent = [name for name in self._lent if name in ("snapshot", "task")]
        fds = {name: self._segments.fd(name) for name in lent}
        self._fork("evaluator", None, place_evaluator(), fds, {"spec": spec.model_dump()}, life)

    def worker(self, spec: RunSpec, work: Work, index: int, life: int = 0, born: int = 0) -> None:
        """One worker; `spec` is the one that was asked for, `born` its first life since it came."""
        sizes = spec.workers, spec.threads
        place = place_worker(index, *sizes, self._cores, self._granted)
        fds = {name: self._segments.fd(name) for name in self._lent}
        if index == 0 and work.echo is not None:
            fds["stdout"] = work.echo
        more: dict[str, Any] = {"spec": spec.model_dump()}
        if work.script is not None:
            more |= {"kind": "script", "script": str(work.script), "arguments": work.arguments}
        self._fork("worker", index, place, fds, more, life)
        self._crew.worker(index).born = born

    def servers(
        self,
        spec: RunSpec,
        facts: Facts,
        source: Callable[[str], dict[str, Any] | None],
        kept: Cut | None,
    ) -> None:
        """The servers over TCP; over shared memory they live inside the workers.

        `source` is what a role goes on from, `kept` how the parameters were cut then.
        """
        self._loops = bool(facts.tables)
        if not spec.kind.transports:
            return
        shards = cut(facts.parameters, spec.servers or spec.workers)
        self._cut = kept or in_blocks(shards, self._block(spec, facts))
        if spec.transport == "shm":
            sizes = spec, facts.parameters, len(shards), len(facts.layers)
            check_memory(layout(*sizes).copies * facts.parameters)
            self._segments.size(layout(*sizes, self.room), facts.parameters)
            tables = [Size(*size) for size in facts.tables]
            self._segments.size_tables(table_layout(spec, tables, self.room), self.room)
            self._crew.shards = len(shards) if spec.kind.served else 0
            self._crew.hosts = self._hands
            self.burying.begin(spec, self._hands, self.room)
        if spec.transport == "shm" or not spec.kind.served:
            return
        if spec.tls:
            self._identity = new_identity()
        for index in range(len(self._cut)):
            checkpoint = source(f"server-{index}")
            self.server(spec, facts, index, _address(spec, index), checkpoint=checkpoint)

    def server(
        self,
        spec: RunSpec,
        facts: Facts,
        index: int,
        address: str,
        life: int = 0,
        born: int = 0,
        checkpoint: dict[str, Any] | None = None,
    ) -> None:
        """One server; in a later life than its first it takes over what the one before has left."""
        more = self._serving(spec, facts, index) | self.standing()
        more |= {"address": address, "checkpoint": checkpoint}
        name = f"server-{index}-{self._cuts}"
        if life > born:
            gone = self._crew[f"server-{index}"]
            name = gone.kept
            if gone.memory != gone.kept:  # it was to take over, and had not begun
                self._segments.drop(gone.memory)
        fds = self._keep(spec, self._cut[index], name, life)
        more["sources"] = self._sources(spec, index, fds)
        if fds and facts.tables:
            states = STATES[spec.optimizer or "sgd"]
            shares = [share_of(Size(*s), index, len(self._cut)) for s in facts.tables]
            fds |= self._segments.keep_rows(name, shares, states)
        self._fork("server", index, place_server(), fds, more, life)
        member = self._crew[f"server-{index}"]
        member.memory = member.kept = name if fds else ""
        member.born = born
        if life > born:  # it will be where it was: workers may be told before it is up
            member.address = address

    def _sources(self, spec: RunSpec, index: int, fds: dict[str, int]) -> list[Sequence[Span]]:
        """Blocks of former servers that this one takes over from; their memory goes to `fds`."""
        first, last = self._cut[index][0][0], self._cut[index][-1][1]
        found: list[Sequence[Span]] = []
        for spans, name in self._before:
            if spans[0][0] < last and first < spans[-1][1]:
                left = self._keep(spec, spans, name, 1)
                fds |= {f"{what}-{len(found)}": fd for what, fd in left.items()}
                found.append(spans)
        return found

    def recut(self, spec: RunSpec, servers: int) -> None:
        """From now on so many servers have the parameters; none of them is started yet."""
        plain = spec.codec == "none"  # what is coded cannot be split any more
        left = [server.kept for server in self._crew.servers()]
        self._before = list(zip(self._cut, left, strict=True))
        self._cut = recut(self._cut, servers, split=plain)
        self._cuts += 1

    def recut_done(self) -> None:
        """All have taken over what they hold now."""
        before, self._before = self._before, []
        for _, name in before:
            self._segments.drop(name)

    @property
    def cut(self) -> Cut:
        """By server, its blocks."""
        return self._cut

    def served_cut(self) -> Cut | None:
        """The same, where servers have processes of their own."""
        return self._cut if self._crew.servers() else None

    def address(self, spec: RunSpec, index: int) -> str:
        """Where a server is to listen."""
        return _address(spec, index)

    def standbys(self, spec: RunSpec, facts: Facts) -> None:
        """One for each server that is up, if there are to be any."""
        for server in self._crew.servers() if spec.replicas else ():
            address = _address(spec, len(self._cut) + server.index)
            self.standby(spec, facts, server, address)

    def standby(
        self, spec: RunSpec, facts: Facts, server: Member, address: str, life: int = 0
    ) -> None:
        """A standby for this server, which will listen at an address of its own."""
        more = {"address": address, "follows": server.address}
        more |= self._serving(spec, facts, server.index)
        name = f"standby-{server.index}-{life}"
        fds = self._keep(spec, self._cut[server.index], name, life)
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

    def _keep(self, spec: RunSpec, spans: Sequence[Span], name: str, life: int) -> dict[str, int]:
        """Memory for what a server holds, where that may outlive it."""
        if not keeps_memory(spec):
            return {}
        size, states = spans[-1][1] - spans[0][0], STATES[spec.optimizer or "sgd"]
        sizes = Sizes.cut(size, len(spans), states, self.room)
        return self._segments.keep(name, sizes, check=not life)

    def standing(self) -> dict[str, Any]:
        """How things stand with the workers, for whoever begins to serve."""
        workers = {m.index: m for m in self._crew.everybody()}
        places = range(max(self._places, *(n + 1 for n in workers)))
        return {
            "lives": [workers[n].life if n in workers else 0 for n in places],
            "left": [n for n in places if n not in workers or workers[n].reached("trained")],
        }

    def _serving(self, spec: RunSpec, facts: Facts, index: int) -> dict[str, Any]:
        """What a server and its standby both need to know."""
        return {
            "identity": asdict(self._identity) if self._identity else None,
            "spans": self._cut[index],
            "workers": spec.workers,
            "room": self.room,
            "gate": spec.kind.gate,
            "bound": spec.bound or 0,
            "backup": spec.backup,
            "whole": spec.step_samples * spec.workers,
            "balance": spec.balance,
            "damp_stale": spec.damp_stale,
            "codec": spec.codec,
            "rule": spec.optimizer,
            "layers": facts.layers if spec.optimizer in LAYERWISE else (),
            "hyper": _hyper(spec, facts),
            "replicas": spec.replicas,
            "lease": spec.lease,
            "limits": {w: rate for (w, s), rate in self._limits(spec).items() if s == index},
            "tables": [share_of(Size(*s), index, len(self._cut)) for s in facts.tables],
        }

    def _limits(self, spec: RunSpec) -> dict[tuple[int, int], float]:
        """Bytes a second of connections that are slowed on purpose."""
        return line_limits(self.faults, spec.workers, len(self._cut))

    def roster(
        self, spec: RunSpec, facts: Facts, member: Member, checkpoint: dict[str, Any] | None
    ) -> None:
        """Tell a worker the spec as resolved, where the others are, and what to go on from."""
        alone = max(spec.workers, len(self._crew.workers())) <= self._granted
        member.control.send(
            "roster",
            spec=spec.model_dump(),
            room=self.room,
            crew=self._hands,
            leads=member.role == self._crew.leader,
            spans=self._cut,
            addresses=[m.address for m in self._crew.servers()],
            secret=self._secret.hex(),
            certificate=self._identity.certificate if self._identity else "",
            limits={s: rate for (w, s), rate in self._limits(spec).items() if w == member.index},
            hyper=_hyper(spec, facts),
            cores=self._cores,
            spin=SPIN if alone else 0.0,
            checkpoint=checkpoint,
        )

    def put_back(self, spec: RunSpec) -> bool:
        """Of a run that was taken up: whether all parts are in the memory that workers share.

        They wait for all of them, and a part that is missing cannot be made up for.
        """
        shared = bool(spec.kind.transports) and spec.transport == "shm"
        return not shared or self._segments.board().words[READY] > len(self._hands)

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
        slate = Slate.new()
        assert slate.fd is not None
        control = Control(ours, slate.ring)
        self._crew.add(Member(role, kind, index or 0, place, control, slate, life))
        own = {"control": theirs.fileno(), "log": log, "slate": slate.fd}
        assignment = {
            "role": role,
            "kind": kind,
            "index": index or 0,
            "life": life,
            "folder": str(self._folder.path.resolve()),
            "t0": self._clock.t0,
            "clock": clock_id(),
            "secret": self._secret.hex(),
            "threads": place.threads,
            "cores": place.cores,
            "nice": place.nice,
            "cwd": str(Path.cwd()),
            "path": sys.path,
            "loops": self._loops,
        }
        try:
            self._nursery.fork(assignment | more, own | fds)
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
    spec_own = spec.model_dump(include={"momentum", "weight_decay", "l1"})
    return {**spec_own, "beta2": beta2(spec, facts), **facts.hyper}

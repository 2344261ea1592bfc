"""The supervisor: starts the roles of one run, hears them, and alone decides what happens.

    workers ─ready─► resolve the spec ─► servers ─ready─► roster to workers
            ─trained─► part ─done─► servers and evaluator stop ─► all gone

One role that ends before it is done ends the run: the others are told to end, then made to.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.errors import Interrupted, PacelineError, RequestError, RoleDied, RunFailed, revive
from paceline.exchange.layout import layout
from paceline.launch.crew import LOG_LINES, Member, hosted
from paceline.launch.leases import LeaseBook
from paceline.launch.nursery import Nursery
from paceline.launch.placement import (
    Place,
    place_evaluator,
    place_server,
    place_worker,
)
from paceline.launch.resolve import check_memory, resolve
from paceline.launch.scores import ScoreBook
from paceline.launch.stopping import Stopping
from paceline.measure.clock import Clock
from paceline.measure.cores import my_cores
from paceline.measure.resources import Sampler
from paceline.server.shards import cut
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.transport import auth, memory
from paceline.transport.board import size_board
from paceline.transport.control import Control, Message, pair
from paceline.types import Event, Facts, Observer, Progress

SAMPLE_SECONDS = 0.5
GRACE = 1.0  # seconds a role has to end by itself
SHARED = ("board", "params", "grads", "state")
SPIN = 0.0002  # seconds a worker with a core to itself looks for the others before it sleeps
ECHO = 0.25  # seconds in which other roles may still show a better cause of a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the workers run besides a task named in the spec."""

    task: bytes | None = None  # a task object by value
    script: Path | None = None
    arguments: tuple[str, ...] = ()
    echo: int | None = None  # where to show what worker-0's script prints


class Supervisor:
    def __init__(
        self, spec: RunSpec, folder: RunFolder, observer: Observer, nursery: Nursery, work: Work
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._observer = observer
        self._nursery = nursery
        self._work = work
        self._clock = Clock(time.monotonic())
        self._sampler = Sampler(self._clock)
        self._secret = auth.new_secret()
        self._cores = my_cores()
        self._crew: dict[str, Member] = {}
        self._segments: dict[str, int] = {}
        self._scores = ScoreBook()
        self._leases: LeaseBook | None = None
        self._shards: list[tuple[int, int]] = []
        self._selector = selectors.DefaultSelector()
        self._state = "starting"
        self._next_sample = 0.0
        self._stopping = Stopping()
        self._told_to_stop = False

    def run(self) -> str:
        """Run to the end: `done` or `stopped`. Whatever went wrong is raised; no role remains."""
        self._selector.register(self._nursery, selectors.EVENT_READ)
        status = "failed"
        try:
            with self._stopping.caught():
                self._go()
                status = "stopped" if self._stopping.asked else "done"
        except PacelineError as wrong:
            with contextlib.suppress(PacelineError):  # the first failure is the one to tell
                self._tell("supervisor", "failed", str(wrong))
            raise
        finally:
            self._end_all()
            self._close(status)
        return status

    def _go(self) -> None:
        spec = self._spec
        for index in range(spec.workers):
            place = place_worker(index, spec.workers, spec.threads, self._cores)
            self._fork(f"worker-{index}", "worker", index, place, self._worker_segments())
        if spec.evaluator:
            self._fork("evaluator", "evaluator", 0, place_evaluator(), ("snapshot",))
        if not self._until(self._workers, "ready"):
            return
        spec = self._resolve()
        self._start_servers()
        if not self._until(self._servers, "ready"):
            return
        self._send_roster()
        self._state = "running"
        self._write_live()
        self._until(self._workers, "trained", stoppable=False)
        self._say(self._workers(), "part")
        self._until(self._workers, "done", stoppable=False)
        self._say([m for m in self._crew.values() if m.kind != "worker"], "stop")
        self._until(self._everyone, "gone", stoppable=False)

    # Who is there.

    def _everyone(self) -> list[Member]:
        return list(self._crew.values())

    def _workers(self) -> list[Member]:
        return [m for m in self._crew.values() if m.kind == "worker"]

    def _servers(self) -> list[Member]:
        return [m for m in self._crew.values() if m.kind == "server"]

    # Starting.

    def _worker_segments(self) -> tuple[str, ...]:
        served = self._spec.kind.served and self._spec.transport != "tcp" and memory.available()
        return (
            *(SHARED if served else ()),
            *(("snapshot",) if self._spec.evaluator else ()),
            *(("task",) if self._work.task is not None else ()),
        )

    def _segment(self, name: str) -> int:
        """A segment by name; it stays open here so that it can be handed out again."""
        if name not in self._segments:
            self._segments[name] = memory.new_segment(name)
            if name == "task":
                os.pwrite(self._segments[name], self._work.task or b"", 0)
        return self._segments[name]

    def _fork(
        self,
        role: str,
        kind: str,
        index: int,
        place: Place,
        segments: tuple[str, ...],
        **more: Any,
    ) -> None:
        ours, theirs = pair()
        log = os.open(
            self._folder.log_path(role),
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC,
            0o644,
        )
        member = Member(role, kind, index, place, Control(ours))
        self._crew[role] = member
        self._selector.register(member.control, selectors.EVENT_READ, member)
        scripted = kind == "worker" and self._work.script is not None
        assignment = {
            "role": role,
            "kind": "script" if scripted else kind,
            "index": index,
            "spec": self._spec.model_dump(),
            "folder": str(self._folder.path.resolve()),
            "t0": self._clock.t0,
            "secret": self._secret.hex(),
            "threads": place.threads,
            "cores": list(place.cores) if place.cores else None,
            "nice": place.nice,
            "cwd": str(Path.cwd()),
            "path": sys.path,
            "script": str(self._work.script) if scripted else None,
            "arguments": list(self._work.arguments),
            **more,
        }
        fds = {"control": theirs.fileno(), "log": log}
        fds |= {name: self._segment(name) for name in segments}
        if role == "worker-0" and self._work.echo is not None:
            fds["stdout"] = self._work.echo
        try:
            self._nursery.fork(assignment, fds)
        except OSError as wrong:
            raise RunFailed(f"cannot start {role}: {wrong.strerror or wrong}.") from None
        finally:
            theirs.close()
            os.close(log)

    def _resolve(self) -> RunSpec:
        facts = [m.facts for m in self._workers() if m.facts is not None]
        self._facts: Facts = facts[0]
        own_loop = self._work.script is not None
        self._spec = spec = resolve(self._spec, facts, len(self._cores), own_loop)
        self._folder.write_resolved(spec, self._facts)
        if spec.kind.samples == "leases" and not own_loop:
            batches = spec.steps * spec.workers if spec.steps else None
            self._leases = LeaseBook(
                self._facts.samples, spec.batch or 1, spec.workers, spec.epochs, batches
            )
        return spec

    def _start_servers(self) -> None:
        spec, size = self._spec, self._facts.parameters
        if not spec.kind.served:
            return
        self._shards = cut(size, spec.servers or 1)
        if spec.transport == "shm":
            self._share(size)
            return
        for index, (start, stop) in enumerate(self._shards):
            port = spec.port + index if spec.port else 0
            self._fork(
                f"server-{index}",
                "server",
                index,
                place_server(),
                (),
                start=start,
                stop=stop,
                workers=spec.workers,
                gate=spec.kind.gate,
                rule=spec.optimizer,
                hyper=self._hyper(),
                address=f"{spec.host}:{port}",
            )

    def _share(self, size: int) -> None:
        """Give the segments their sizes: over shared memory the workers are the servers."""
        spec = self._spec
        need = layout(spec.kind, spec.workers, len(self._shards), spec.optimizer or "sgd")
        check_memory(need.copies * size)
        memory.size_segment(self._segment("params"), need.params * size)
        memory.size_segment(self._segment("grads"), need.grads * size)
        memory.size_segment(self._segment("state"), need.state * size)
        size_board(self._segment("board"), need.board)

    def _hyper(self) -> dict[str, float]:
        """What the update rule needs: from the spec, or from the optimizer of a user's loop."""
        return self._spec.model_dump(include={"momentum", "weight_decay"}) | self._facts.hyper

    def _send_roster(self) -> None:
        spec = self._spec
        meeting = next((m.facts.rendezvous for m in self._workers() if m.facts), "")
        alone = spec.workers <= len(self._cores)
        for member in self._workers():
            member.control.send(
                "roster",
                spec=spec.model_dump(),
                shards=self._shards,
                addresses=[m.address for m in self._servers()],
                secret=self._secret.hex(),
                meeting=meeting,
                hyper=self._hyper(),
                spin=SPIN if alone else 0.0,
            )

    # Hearing.

    def _until(self, whom: Callable[[], list[Member]], state: str, stoppable: bool = True) -> bool:
        """Turn until all of them are that far; False if the run was asked to stop before."""
        order = ("starting", "ready", "trained", "done", "gone")

        def reached(member: Member) -> bool:
            if state == "gone":
                return member.gone
            return order.index(member.state) >= order.index(state)

        while not all(reached(m) for m in whom()):
            if stoppable and self._stopping.asked:
                return False
            self._turn()
            self._check()
        return True

    def _turn(self, seconds: float = 0.1) -> None:
        """Hear everything that is said now; sample; pass on a request to stop."""
        for key, _ in self._selector.select(seconds):
            if key.data is not None:
                self._hear(key.data)
        reports = self._nursery.messages()
        if reports is None:
            raise RunFailed("the process that starts roles is gone, and the roles with it.")
        for report in reports:
            self._hear_nursery(report)
        if self._stopping.asked and not self._told_to_stop:
            self._told_to_stop = True
            self._tell("supervisor", "stopping", "asked to stop; workers finish their step")
            self._say(self._workers(), "stop")
        if self._clock.now() >= self._next_sample:
            self._next_sample = self._clock.now() + SAMPLE_SECONDS
            self._sample()

    def _hear_nursery(self, report: dict[str, Any]) -> None:
        if report["kind"] == "born":
            if report["role"] in self._crew:
                self._crew[report["role"]].pid = report["pid"]
                self._write_live()
            return
        for member in self._crew.values():
            if member.pid == report["pid"] and not member.gone:
                self._hear(member)  # its last words came before its end
                member.code = report["code"]
                self._write_live()

    def _hear(self, member: Member) -> None:
        for message in member.control.poll():
            self._on(member, message)
        if member.control.ended and member.control in self._registered():
            self._selector.unregister(member.control)

    def _registered(self) -> Iterator[Any]:
        return (key.fileobj for key in self._selector.get_map().values())

    def _on(self, member: Member, message: Message) -> None:
        kind = message.pop("kind")
        match kind:
            case "ready":
                member.state = "ready"
                member.device = message.get("device", "")
                member.address = message.get("address", "")
                if "facts" in message:
                    member.facts = Facts(**message["facts"])
            case "progress":
                member.progress = Progress(**message)
                self._observer.progress(member.role, member.progress)
            case "score":
                self._on_score(member, message)
            case "lease":
                self._on_lease(member)
            case "snapshot":
                self._on_snapshot(member, message)
            case "trained":
                member.state = "trained"
            case "done":
                member.state = "done"
                member.report |= message
            case "failed":
                member.failure = (message["error"], message["message"])

    def _on_lease(self, member: Member) -> None:
        lease = None
        if self._leases is not None and not self._stopping.asked:
            self._leases.confirm(member.index)
            lease = self._leases.take(member.index)
        epoch, start, stop = lease or (None, 0, 0)
        member.control.send("lease", epoch=epoch, start=start, stop=stop)

    def _on_snapshot(self, member: Member, message: Message) -> None:
        """The evaluator's wish goes to worker-0, its answer comes back the same way."""
        other = "evaluator" if member.kind == "worker" else "worker-0"
        self._say([self._crew[other]], "snapshot", **message)

    def _on_score(self, member: Member, message: Message) -> None:
        score = self._scores.add(member.role, message)
        if score is None:
            return
        self._folder.append_score(score)
        self._observer.score(score)
        target = self._spec.target_accuracy
        if target is not None and not self._told_to_stop:
            accuracy = score.values.get("accuracy")
            if accuracy is not None and accuracy >= target:
                self._told_to_stop = True
                self._tell(member.role, "target", f"accuracy {accuracy:.4f} reached {target}")
                self._say(self._workers(), "stop")

    # Telling.

    def _say(self, members: list[Member], kind: str, **fields: Any) -> None:
        for member in members:
            member.control.send(kind, **fields)

    def _tell(self, role: str, kind: str, detail: str) -> None:
        event = Event(time=self._clock.now(), role=role, kind=kind, detail=detail)
        self._observer.event(event)
        self._folder.append_event(event)

    def _sample(self) -> None:
        living = {m.role: m.pid for m in self._crew.values() if m.pid and not m.gone}
        traffic = {
            role: (self._crew[role].progress.sent, self._crew[role].progress.received)
            for role in living
        }
        self._folder.append_resources(self._sampler.sample(living, traffic))

    def _write_live(self) -> None:
        roles = [m.live() for m in self._crew.values()]
        if self._shards and not self._servers():
            roles += hosted(self._workers(), len(self._shards))
        self._folder.write_live(self._state, os.getpid(), roles)

    # Ending.

    def _check(self) -> None:
        """Raise if a role has failed, after a moment in which a better cause may show."""
        if self._stopping.insisted:
            raise Interrupted("ended at once, by a second interrupt.")
        if not any(m.failed for m in self._crew.values()):
            return
        deadline = self._clock.now() + ECHO
        while self._clock.now() < deadline:
            self._turn(0.02)
        culprit = min((m for m in self._crew.values() if m.failed), key=Member.blame)
        if culprit.failure is not None:
            error = revive(*culprit.failure)
            if isinstance(error, RequestError):
                raise error
            if error is not None and culprit.failure[0] != "PeerLost":
                raise RunFailed(f"{culprit.role}: {error}")
        raise RoleDied(culprit.role, culprit.end_in_words() + ".", self._log_tail(culprit))

    def _log_tail(self, member: Member) -> list[str]:
        try:
            text = self._folder.log_path(member.role).read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-LOG_LINES:]

    def _end_all(self) -> None:
        """End every role that is left: ask, wait a little, then kill."""
        for number, grace in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 5.0)):
            left = [m for m in self._crew.values() if not m.gone]
            for member in left:
                if member.pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(member.pid, number)
            deadline = time.monotonic() + grace
            while any(not m.gone for m in left) and time.monotonic() < deadline:
                self._selector.select(0.02)
                reports = self._nursery.messages()
                if reports is None:
                    return
                for report in reports:
                    with contextlib.suppress(
                        PacelineError
                    ):  # a full disk does not keep roles alive
                        self._hear_nursery(report)

    def _close(self, status: str) -> None:
        self._state = status
        try:
            with contextlib.suppress(PacelineError):  # told already, where it matters
                self._write_live()
            self._folder.close()
        finally:
            for member in self._crew.values():
                member.control.close()
            for fd in self._segments.values():
                os.close(fd)
            self._selector.close()
            self._observer.close()

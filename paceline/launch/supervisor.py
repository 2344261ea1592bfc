"""The supervisor: starts the roles of one run, hears them, and alone decides what happens.

    workers ─ready─► resolve the spec ─► servers ─ready─► roster to workers
            ─trained─► part ─done─► servers and evaluator stop ─► all gone

A role that ends before it is done is started again where the others can take it back; otherwise
it ends the run: the others are told to end, then made to.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Callable
from typing import Any

from paceline.errors import Interrupted, PacelineError, RequestError, RoleDied, RunFailed, revive
from paceline.launch.crew import Crew, Member
from paceline.launch.harm import Harm
from paceline.launch.keeping import GoingOn, Keeping
from paceline.launch.leases import LeaseBook
from paceline.launch.leasing import Leasing
from paceline.launch.nursery import Nursery
from paceline.launch.policy import Answer, Policy, lost_with
from paceline.launch.regrouping import Regrouping
from paceline.launch.resizing import Resizing
from paceline.launch.resolve import resolve
from paceline.launch.scores import ScoreBook
from paceline.launch.starter import Starter, Work
from paceline.launch.stopping import Stopping
from paceline.launch.succession import Succession
from paceline.measure.clock import Clock
from paceline.measure.cores import my_cores
from paceline.measure.resources import Sampler
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.requests import Requests
from paceline.transport.control import Message
from paceline.types import Event, Facts, Observer, Progress, record
from paceline.worker.recipe import Recipe

SAMPLE_SECONDS = 0.5
GRACE = 1.0  # seconds a role has to end by itself
ECHO = 0.25  # seconds in which other roles may still show a better cause of a failure
LOG_LINES = 12
AGAIN = "start the run again, or take it up with paceline resume if it has a checkpoint"


class Supervisor:
    def __init__(
        self,
        spec: RunSpec,
        folder: RunFolder,
        observer: Observer,
        nursery: Nursery,
        work: Work,
        stopping: Stopping,
        going_on: GoingOn | None = None,
    ) -> None:
        self._spec = spec
        self._folder = folder
        self._observer = observer
        self._nursery = nursery
        self._work = work
        self._going_on = going_on
        self._clock = Clock(time.monotonic() - (going_on.seconds if going_on else 0.0))
        self._cores = my_cores()
        self._crew = Crew()
        self._starter = Starter(nursery, folder, self._crew, self._clock, self._cores)
        self._succession = Succession(self._crew, self._starter, self._tell)
        self._keeping = Keeping(
            folder.checkpoints(), folder.id, self._crew, self._clock, self._tell
        )
        self._regrouping = Regrouping(self._crew, self._tell)
        self._leasing = Leasing(self._crew)
        self._resizing = Resizing(
            Requests(folder.path),
            self._crew,
            self._starter,
            self._regrouping,
            self._leasing,
            self._keeping,
            stopping,
            self._clock,
            self._tell,
        )
        self._sampler = Sampler(self._clock)
        self._scores = ScoreBook()
        self._selector = selectors.DefaultSelector()
        self._heard: set[tuple[str, int]] = set()  # roles, and lives of theirs, listened to
        self._policy = Policy(spec.max_restarts, own_loop=work.script is not None)
        # A run that is taken up has had its faults.
        faults = spec.inject if going_on is None else ()
        self._harm = Harm(faults, self._crew, folder.path, self._tell)
        self._asked = spec
        self._facts: Facts | None = None
        self._places: dict[str, int] = {}  # of the workers that part, among them
        self._state = "starting"
        self._next_sample = 0.0
        self._stopping = stopping
        self._told_to_stop = False
        self._snapshot_wanted = False  # by the evaluator, from the worker that leads

    def run(self) -> str:
        """Run to the end: `done` or `stopped`. Whatever went wrong is raised; no role remains."""
        self._selector.register(self._nursery, selectors.EVENT_READ)
        status = "failed"
        try:
            self._go()
            status = "stopped" if self._stopping.asked else "done"
        except PacelineError as wrong:
            if isinstance(wrong, Interrupted):
                status = "stopped"
            with contextlib.suppress(PacelineError):  # the first failure is the one to tell
                self._tell("supervisor", status, str(wrong))
            raise
        finally:
            self._end_all()
            self._close(status)
        return status

    def _go(self) -> None:
        crew = self._crew
        if self._going_on is not None:
            self._tell_going_on(self._going_on)
        self._starter.workers(self._spec, self._work)
        if not self._until(crew.workers, "ready"):
            return
        spec, facts = self._resolve()
        self._starter.servers(spec, facts)
        if not self._until(crew.servers, "ready"):
            return
        self._starter.standbys(spec, facts)
        if not self._until(crew.standbys, "in step"):
            return
        self._harm.begin(Clock(time.monotonic()))
        for worker in crew.workers():
            self._harm.brief(worker)
            self._starter.roster(spec, facts, worker, self._source(worker))
        self._facts = facts
        own_loop = self._work.script is not None
        self._keeping.start(spec, facts.parameters, own_loop=own_loop)
        self._regrouping.start(spec, own_loop)
        self._resizing.start(self._asked, spec, facts, self._work)
        self._state = "running"
        self._write_live()
        self._until(crew.workers, "trained", stoppable=False)
        self._resizing.end("the run came to its end")
        self._places = {m.role: place for place, m in enumerate(crew.workers())}
        for worker in crew.workers():
            self._part(worker)
        self._until(crew.workers, "done", stoppable=False)
        self._regrouping.end()
        self._succession.ending = True
        self._say([m for m in crew if m.kind != "worker"], "stop")
        self._until(crew.everyone, "gone", stoppable=False)

    def _resolve(self) -> tuple[RunSpec, Facts]:
        facts = [m.facts for m in self._crew.workers() if m.facts is not None]
        own_loop = self._work.script is not None
        self._spec = spec = resolve(self._spec, facts, len(self._cores), own_loop)
        recipe = None if own_loop else record(Recipe.of(spec, facts[0]))
        self._folder.write_resolved(spec, facts[0], self._clock.t0, recipe)
        if spec.kind.samples == "leases" and not own_loop:
            batches = spec.steps * spec.workers if spec.steps else None
            of = facts[0].samples, spec.step_samples, spec.workers
            self._leasing.start(LeaseBook(*of, spec.epochs, batches))
        return spec, facts[0]

    # Hearing.

    def _until(self, whom: Callable[[], list[Member]], state: str, stoppable: bool = True) -> bool:
        """Turn until all of them are that far; False if the run was asked to stop before."""
        while not all(m.reached(state) for m in whom()):
            if stoppable and self._stopping.asked:
                return False
            self._turn()
            self._check()
        return True

    def _turn(self, seconds: float = 0.1) -> None:
        """Hear everything that is said now; sample; pass on a request to stop."""
        self._listen()
        for key, _ in self._selector.select(seconds):
            if key.data is not None:
                self._hear(key.data)
        reports = self._nursery.messages()
        if reports is None:
            raise RunFailed("the process that starts roles is gone, and the roles with it.")
        for report in reports:
            self._hear_nursery(report)
        self._harm.turn()
        if self._stopping.asked and not self._told_to_stop:
            self._stop_leasing()
            self._tell("supervisor", "stopping", "asked to stop; workers finish their step")
            self._keeping.at_stop()
            self._say(self._crew.workers(), "stop")
        self._regrouping.turn()
        self._resizing.turn()
        self._leasing.turn()
        self._starter.burying.turn()
        self._keeping.turn()
        if self._clock.now() >= self._next_sample:
            self._next_sample = self._clock.now() + SAMPLE_SECONDS
            self._sample()

    def _listen(self) -> None:
        """Listen to roles that were started since."""
        for member in self._crew:
            if (member.role, member.life) not in self._heard:
                self._heard.add((member.role, member.life))
                self._selector.register(member.control, selectors.EVENT_READ, member)

    def _hear_nursery(self, report: dict[str, Any]) -> None:
        if report["run"] != str(self._folder.path.resolve()):
            return  # of an earlier run, told late
        if report["kind"] == "born":
            member = self._crew.get(report["role"])
            if member is not None:
                member.pid = report["pid"]
                self._write_live()
            return
        for member in self._crew.left():
            if member.pid == report["pid"]:
                self._hear(member)  # its last words came before its end
                member.code = report["code"]
                self._regrouping.gone(member)
                self._write_live()

    def _hear(self, member: Member) -> None:
        for message in member.control.poll():
            if not (self._succession.hear(member, message) or self._resizing.hear(member, message)):
                self._on(member, message)
        if member.control.ended:
            self._forget(member)

    def _forget(self, member: Member) -> None:
        with contextlib.suppress(KeyError):  # done when its end was first read
            self._selector.unregister(member.control)

    def _on(self, member: Member, message: Message) -> None:
        match message.pop("kind"):
            case "ready":
                self._on_ready(member, message)
            case "progress":
                member.progress = Progress(**message)
                self._observer.progress(member.role, member.progress)
            case "score":
                self._on_score(member, message)
            case "lease":
                self._leasing.ask(member, message["done"])
            case "snapshot":
                self._on_snapshot(member, message)
            case "kept" | "unkept":
                self._keeping.hear(member, message)
            case "parked":
                self._regrouping.hear(member, message)
            case "trained":
                self._on_trained(member)
            case "injected":
                self._harm.did(message["number"])
            case "done":
                member.state = "done"
                member.report |= message
            case "failed":
                member.failure = (message["error"], message["message"])

    def _on_ready(self, member: Member, message: Message) -> None:
        member.state = "ready"
        member.device = message.get("device", "")
        member.address = message.get("address", "")
        if "facts" in message:
            member.facts = Facts(**message["facts"])
        if member.life:
            self._welcome(member)

    def _on_trained(self, member: Member) -> None:
        member.state = "trained"
        self._regrouping.rests(member)
        # The server that it told so itself may be gone since.
        self._say(self._crew.servers(), "left", worker=member.index)
        if self._places:  # it was started again meanwhile
            self._part(member)

    def _part(self, member: Member) -> None:
        place, of = self._places[member.role], len(self._places)
        member.control.send("part", place=place, of=of)

    def _on_snapshot(self, member: Member, message: Message) -> None:
        """The evaluator's wish goes to the worker that leads, its answer comes back that way."""
        self._snapshot_wanted = member.kind == "evaluator"
        other = self._crew.leader if self._snapshot_wanted else "evaluator"
        self._say([self._crew[other]], "snapshot", **message)

    def _on_score(self, member: Member, message: Message) -> None:
        score = self._scores.add(member.role, message)
        if score is None:
            return
        self._folder.append_score(score)
        self._observer.score(score)
        target, accuracy = self._spec.target_accuracy, score.values.get("accuracy")
        if target is None or accuracy is None or score.final or self._told_to_stop:
            return
        if accuracy >= target:
            self._stop_leasing()
            self._tell(member.role, "target", f"accuracy {accuracy:.4f} reached {target}")
            self._say(self._crew.workers(), "stop")

    def _stop_leasing(self) -> None:
        self._told_to_stop = True
        self._leasing.stop()

    # Telling.

    def _say(self, members: list[Member], kind: str, **fields: Any) -> None:
        for member in members:
            member.control.send(kind, **fields)

    def _tell(self, role: str, kind: str, detail: str) -> None:
        event = Event(time=self._clock.now(), role=role, kind=kind, detail=detail)
        self._observer.event(event)
        self._folder.append_event(event)

    def _tell_going_on(self, going_on: GoingOn) -> None:
        for wrong in going_on.damaged:
            self._tell("supervisor", "damaged", wrong)
        checkpoint = going_on.checkpoint
        self._tell(
            "supervisor", "resumed", f"from checkpoint {checkpoint.number}, step {checkpoint.step}"
        )

    def _sample(self) -> None:
        living = [m for m in self._crew.left() if m.pid]
        traffic = {m.role: (m.progress.sent, m.progress.received) for m in living}
        pids = {m.role: m.pid for m in living}
        self._folder.append_resources(self._sampler.sample(pids, traffic))
        for member in living:
            self._look_whether_frozen(member)

    def _look_whether_frozen(self, member: Member) -> None:
        """A role that stands still for longer than its lease is ended: it might wake at any time
        and go on writing where others are by then."""
        now, lease = self._clock.now(), self._spec.lease
        if not self._sampler.frozen(member.pid):
            if member.frozen_at is not None:
                self._tell(member.role, "thawed", f"after {now - member.frozen_at:.1f} s")
            member.frozen_at = None
        elif member.frozen_at is None:
            member.frozen_at = now
            self._tell(member.role, "frozen", "its process was stopped")
        elif lease and now - member.frozen_at >= lease:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)

    def _write_live(self) -> None:
        self._folder.write_live(self._state, os.getpid(), self._crew.live())

    # Ending.

    def _check(self) -> None:
        """Raise if a role has failed, after a moment in which a better cause may show."""
        if self._stopping.insisted:
            raise Interrupted("ended at once, by a second interrupt.")
        for member in self._crew:
            if member.failed and self._recovered(member):
                return
        if self._crew.culprit() is None:
            return
        deadline = self._clock.now() + ECHO
        while self._clock.now() < deadline:
            self._turn(0.02)
        culprit = self._crew.culprit()
        assert culprit is not None
        if culprit.failure is not None and culprit.blame() == 1:
            error = revive(*culprit.failure)
            if isinstance(error, RequestError):
                raise error
            if error is not None:
                raise RunFailed(f"{culprit.role}: {error}")
        lost = lost_with(self._spec, culprit) if self._facts is not None else ""
        raise self._death(culprit, f"{culprit.end_in_words()}{lost}.")

    def _death(self, member: Member, how: str) -> RoleDied:
        inside = self._crew.inside(member)
        also = f" with {' and '.join(inside)} inside it" if inside else ""
        return RoleDied(member.role + also, how, self._log_tail(member))

    # Going on.

    def _recovered(self, member: Member) -> bool:
        """Whether the run goes on although this role is gone."""
        if self._facts is None:
            return False
        if self._succession.ending and member.kind in ("server", "standby"):
            member.state = "done"  # nobody needs it any more
            return True
        if member.kind == "evaluator" and self._places and member.killed:
            self._tell(member.role, "died", f"{member.end_in_words()}; nothing is left to score")
            member.state = "done"
            return True
        answer = self._policy.on_loss(self._spec, member, self._crew)
        if self._resizing.does_without(member, answer):
            return True
        if answer is Answer.GIVE_UP:
            return False
        if member.kind == "worker" and not self._starter.burying.lost(self._spec, member):
            how = f"{member.end_in_words()}, and no other worker had the parameters; {AGAIN}."
            raise self._death(member, how)
        again = f"started again ({member.restarts + 1} of {self._spec.max_restarts})"
        if answer is Answer.PROMOTE:
            again = "its standby takes its place"
        self._tell(member.role, "died", f"{member.end_in_words()}; {again}")
        self._forget(member)
        member.control.close()
        if answer is Answer.PROMOTE:
            server = self._succession.promote(self._spec, self._facts, member)
            self._heard.add((server.role, server.life))  # as what it was
        elif member.kind == "standby":
            self._succession.again(self._spec, self._facts, member)
        elif member.kind == "server":
            where = member.address or self._starter.address(self._spec, member.index)
            lives = member.life + 1, member.born
            self._starter.server(self._spec, self._facts, member.index, where, *lives)
        elif member.kind == "evaluator":
            self._starter.evaluator(self._asked, member.life + 1)
        else:
            self._say(self._crew.servers(), "lost", worker=member.index, life=member.life)
            self._keeping.lost(member)
            life = member.life + 1
            self._starter.worker(self._asked, self._work, member.index, life, member.born)
            self._crew[member.role].leaving = member.leaving
        return True

    def _welcome(self, member: Member) -> None:
        """A role in another life is up: it goes on where the others are."""
        assert self._facts is not None
        if member.kind == "worker":
            self._starter.burying.back(member)
            self._harm.brief(member)
            self._starter.roster(self._spec, self._facts, member, self._source(member))
            self._keeping.welcome(member)
            self._resizing.welcome(member)
            if self._told_to_stop:
                self._say([member], "stop")
            if self._snapshot_wanted and member.role == self._crew.leader:
                self._say([member], "snapshot")
        elif member.kind == "server":
            self._harm.brief(member)
        if member.kind != "standby" and member.restarts:  # those are told when they take part
            self._tell(member.role, "back", "up again")

    def _source(self, member: Member) -> dict[str, Any] | None:
        """What a worker goes on from, if it does not begin at the beginning."""
        if member.life and self._spec.kind.alone:
            return self._keeping.source(member.role)
        if member.life or self._going_on is None:
            return None
        kept = self._going_on.checkpoint
        part = self._keeping.part(kept, member.role)
        if part is None and not self._spec.kind.alone:  # fewer were there: all had the same
            part = self._keeping.part(kept, kept.parts[0].role)
        return part

    def _log_tail(self, member: Member) -> list[str]:
        try:
            text = self._folder.log_path(member.log or member.role).read_text(errors="replace")
        except OSError:
            return []
        return text.splitlines()[-LOG_LINES:]

    def _end_all(self) -> None:
        """End every role that is left: ask, wait a little, then kill."""
        for number, grace in ((signal.SIGHUP, GRACE), (signal.SIGKILL, 5.0)):
            deadline = time.monotonic() + grace
            asked: set[str] = set()
            while self._crew.left() and time.monotonic() < deadline:
                for member in self._crew.left():
                    if member.pid and member.role not in asked:
                        asked.add(member.role)
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(member.pid, number)
                self._selector.select(0.02)
                reports = self._nursery.messages()
                if reports is None:
                    return
                for report in reports:
                    with contextlib.suppress(PacelineError):  # a full disk keeps no role alive
                        self._hear_nursery(report)

    def _close(self, status: str) -> None:
        self._state = status
        try:
            self._keeping.close()
            with contextlib.suppress(PacelineError):  # told already, where it matters
                self._resizing.end("the run is over")
                self._harm.close()
                self._write_live()
            self._folder.close()
        finally:
            for member in self._crew:
                member.control.close()
            self._starter.close()
            self._selector.close()
            self._observer.close()

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

from paceline.errors import Interrupted, PacelineError, RunFailed
from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member, say
from paceline.launch.harm import Harm
from paceline.launch.hearing import Hearing
from paceline.launch.keeping import GoingOn, Keeping
from paceline.launch.leases import LeaseBook
from paceline.launch.leasing import Leasing
from paceline.launch.losses import Losses
from paceline.launch.nursery import Nursery
from paceline.launch.regrouping import Regrouping
from paceline.launch.resizing import Resizing
from paceline.launch.resolve import resolve
from paceline.launch.sampling import Sampling
from paceline.launch.starter import Starter, Work
from paceline.launch.stopping import Stopping
from paceline.launch.succession import Succession
from paceline.launch.watching import Watch
from paceline.measure.clock import Clock
from paceline.measure.cores import granted_cores, my_cores
from paceline.measure.process import Processes
from paceline.spec import RunSpec
from paceline.store.folder import RunFolder
from paceline.store.requests import Requests
from paceline.transport.control import Control
from paceline.types import Event, Facts, Observer, record
from paceline.worker.recipe import Recipe

TURN = 0.25  # seconds, at the most: each costs a worker its core for a while
GRACE = 1.0  # seconds a role has to end by itself
ECHO = 0.25  # seconds in which other roles may still show a better cause of a failure
TELLING = 2.0  # seconds in which workers say what a server that is lost had answered them


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
        self._course = course = Course(asked=spec, spec=spec, work=work)
        self._folder = folder
        self._observer = observer
        self._nursery = nursery
        self._stopping = stopping
        self._going_on = going_on
        self._clock = Clock(time.monotonic() - (going_on.seconds if going_on else 0.0))
        self._granted = granted_cores()
        self._crew = crew = Crew()
        self._starter = Starter(nursery, folder, crew, self._clock, my_cores(), self._granted)
        self._succession = Succession(crew, self._starter, self._tell)
        self._leasing = Leasing(crew)
        self._keeping = Keeping(
            folder.checkpoints(), folder.id, crew, self._clock, self._tell, going_on
        )
        self._regrouping = Regrouping(crew, self._tell)
        self._resizing = Resizing(
            course,
            Requests(folder.path),
            crew,
            self._starter,
            self._regrouping,
            self._leasing,
            self._keeping,
            stopping,
            self._clock,
            self._tell,
        )
        # A run that is taken up has had its faults.
        faults = spec.inject if going_on is None else ()
        self._starter.faults = faults
        self._harm = Harm(faults, crew, folder.path, self._tell)
        self._losses = Losses(
            course,
            crew,
            folder,
            self._starter,
            self._succession,
            self._keeping,
            self._resizing,
            self._harm,
            self._tell,
            self._forget,
        )
        self._hearing = Hearing(
            course,
            crew,
            folder,
            observer,
            self._leasing,
            self._keeping,
            self._regrouping,
            self._succession,
            self._resizing,
            self._losses,
            self._harm,
            self._clock,
            self._tell,
        )
        self._sampling = Sampling(crew, folder, self._clock)
        self._watch = Watch(
            course, crew, folder, nursery, self._leasing, Processes(), self._clock, self._tell
        )
        self._selector = selectors.DefaultSelector()
        self._heard: set[Control] = set()  # whoever is listened to, or was
        self._state = "starting"

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
        course, crew = self._course, self._crew
        if self._going_on is not None:
            self._tell_going_on(self._going_on)
        self._starter.workers(course.asked, course.work, self._crew_of_start())
        if not self._until(crew.workers, "ready"):
            return
        spec, facts = self._resolve()
        course.facts = facts
        self._starter.servers(spec, facts, self._keeping.first, self._keeping.cut())
        if not self._until(crew.servers, "ready"):
            return
        self._starter.standbys(spec, facts)
        if not self._until(crew.standbys, "ready") or not self._until(crew.standbys, "in step"):
            return
        self._harm.begin(Clock(time.monotonic()))
        for worker in crew.workers():
            self._harm.brief(worker)
            self._starter.roster(spec, facts, worker, self._keeping.source(spec, worker))
        course.begun = True
        self._keeping.start(spec, self._leasing.book, course.own_loop, self._starter.served_cut)
        self._regrouping.start(spec, course.own_loop)
        self._resizing.start()
        self._state = "running"
        self._write_live()
        self._sampling.sample()  # at both ends of training: a short one may fit between two others
        self._until(crew.workers, "trained", stoppable=False)
        self._sampling.sample()
        self._resizing.end("the run came to its end")
        course.places = {worker.role: place for place, worker in enumerate(crew.workers())}
        for worker in crew.workers():
            self._hearing.part(worker)
        self._until(crew.workers, "done", stoppable=False)
        self._regrouping.end()
        self._succession.ending = True
        say([m for m in crew if m.kind != "worker"], "stop")
        self._until(crew.everyone, "gone", stoppable=False)

    def _crew_of_start(self) -> tuple[int, ...]:
        """The workers to begin with: all of the spec's, or those that were there when a run was
        kept that is taken up."""
        if self._going_on is not None:
            return self._going_on.checkpoint.crew
        return tuple(range(self._course.asked.workers))

    def _resolve(self) -> tuple[RunSpec, Facts]:
        course = self._course
        facts = [m.facts for m in self._crew.workers() if m.facts is not None]
        course.spec = spec = resolve(course.asked, facts, self._granted, course.own_loop)
        recipe = None if course.own_loop else record(Recipe.of(spec, facts[0]))
        self._folder.write_resolved(spec, facts[0], self._clock.t0, recipe)
        if spec.kind.samples == "leases" and not course.own_loop:
            batches = spec.steps * spec.workers if spec.steps else None
            of = facts[0].samples, spec.step_samples, spec.workers
            self._leasing.book = LeaseBook(*of, spec.epochs, batches)
            if self._going_on is not None and self._going_on.checkpoint.leases is not None:
                self._leasing.book.restore(self._going_on.checkpoint.leases)
            self._leasing.resize(len(self._crew.workers()))
        return spec, facts[0]

    # Hearing.

    def _until(self, whom: Callable[[], list[Member]], state: str, stoppable: bool = True) -> bool:
        """Turn until all of them are that far; False if the run was asked to stop before."""
        began = self._clock.now()
        self._watch.awaited = lambda: [m.role for m in whom() if not m.reached(state)]
        while not all(m.reached(state) for m in whom()):
            if stoppable and self._stopping.asked:
                return False
            self._turn()
            self._check()
            if state == "in step":
                self._succession.check_begun(self._clock.now() - began)
        return True

    def _turn(self, seconds: float = TURN) -> None:
        """Hear everything that is said now; sample; pass on a request to stop."""
        self._listen()
        for key, _ in self._selector.select(
            min(seconds, self._sampling.beat.due(), self._harm.due(), self._watch.due())
        ):
            if key.data is not None:
                self._hear(key.data)
        reports = self._nursery.messages()
        if reports is None:
            raise RunFailed("the process that starts roles is gone, and the roles with it.")
        for report in reports:
            self._hear_nursery(report)
        self._harm.turn()
        if self._stopping.asked and not self._course.told_to_stop:
            self._keeping.at_stop()
            self._hearing.stop("supervisor", "stopping", "asked to stop; workers finish their step")
        self._regrouping.turn()
        self._resizing.turn()
        self._leasing.turn()
        self._starter.burying.turn()
        self._keeping.turn()
        self._sampling.turn()
        self._watch.turn()

    def _listen(self) -> None:
        """Listen to roles that were started since."""
        for member in self._crew:
            if member.control not in self._heard:
                self._heard.add(member.control)
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
            self._hearing.hear(member, message)
        if member.control.ended:
            self._forget(member)

    def _forget(self, member: Member) -> None:
        with contextlib.suppress(KeyError):  # done when its end was first read
            self._selector.unregister(member.control)

    # Telling.

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

    def _write_live(self) -> None:
        self._folder.write_live(self._state, os.getpid(), self._crew.live())

    # Ending.

    def _check(self) -> None:
        """Raise if a role has failed, after a moment in which a better cause may show."""
        if self._stopping.insisted:
            raise Interrupted("ended at once, by a second interrupt.")
        for member in self._crew:
            if member.failed and self._losses.mended(member):
                return
        if self._crew.culprit() is None:
            return
        began = self._clock.now()
        while (waited := self._clock.now() - began) < ECHO or (
            waited < TELLING and self._losses.untold()
        ):
            self._turn(0.02)
        culprit = self._crew.culprit()
        assert culprit is not None
        raise self._losses.cause(culprit)

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
            self._sampling.close()
            self._keeping.close()
            with contextlib.suppress(PacelineError):  # told already, where it matters
                self._resizing.end("the run is over")
                self._harm.close()
                self._write_live()
            self._folder.close()
        finally:
            for member in self._crew:
                member.close()
            self._starter.close()
            self._selector.close()
            self._observer.close()

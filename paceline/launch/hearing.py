"""What roles say while a run goes on, and whom that concerns."""

from __future__ import annotations

from collections.abc import Callable

from paceline.launch.aligning import Clocks
from paceline.launch.course import Course
from paceline.launch.crew import Crew, Member, say
from paceline.launch.harm import Harm
from paceline.launch.keeping import Keeping
from paceline.launch.leasing import Leasing
from paceline.launch.losses import Losses
from paceline.launch.regrouping import Regrouping
from paceline.launch.resizing import Resizing
from paceline.launch.scores import ScoreBook
from paceline.launch.succession import Succession
from paceline.measure.clock import Clock
from paceline.measure.offset import aligned
from paceline.store.folder import RunFolder
from paceline.transport.control import Message
from paceline.types import Facts, Observer, Progress


class Hearing:
    """`tell` takes a role, what kind of event it is, and the detail."""

    def __init__(
        self,
        course: Course,
        crew: Crew,
        folder: RunFolder,
        observer: Observer,
        leasing: Leasing,
        keeping: Keeping,
        regrouping: Regrouping,
        succession: Succession,
        resizing: Resizing,
        losses: Losses,
        harm: Harm,
        clock: Clock,
        tell: Callable[[str, str, str], None],
    ) -> None:
        self._course = course
        self._crew = crew
        self._folder = folder
        self._observer = observer
        self._leasing = leasing
        self._keeping = keeping
        self._regrouping = regrouping
        self._succession = succession
        self._resizing = resizing
        self._losses = losses
        self._harm = harm
        self._clocks = Clocks(clock)
        self._tell = tell
        self._scores = ScoreBook()

    def hear(self, member: Member, message: Message) -> None:
        """Do what one message of a role asks for."""
        others = (self._clocks, self._succession, self._resizing, self._regrouping)
        if not any(other.hear(member, message) for other in others):
            self._on(member, message)

    def _on(self, member: Member, message: Message) -> None:
        match message.pop("kind"):
            case "ready":
                self._on_ready(member, message)
            case "progress":
                member.progress = Progress.of(message)
                self._observer.progress(member.role, member.progress)
            case "score":
                self._on_score(member, message)
            case "lease":
                self._leasing.ask(member, message["done"])
            case "snapshot":
                self._on_snapshot(member, message)
            case "forgot":
                self._keeping.forgot(member)
            case "keeping" | "kept" | "unkept":
                self._keeping.hear(member, message)
            case "awaits":
                member.awaits = message["round"], tuple(message["peers"])
            case "trained":
                self._on_trained(member)
            case "injected":
                self._harm.did(message["number"])
            case "done":
                member.state = "done"
                member.report |= message
            case "failed":
                member.failure = (message["error"], message["message"])

    def stop(self, role: str, kind: str, detail: str) -> None:
        """Workers are to end after their step, for a reason that this event tells."""
        self._course.told_to_stop = True
        self._leasing.stop()
        self._tell(role, kind, detail)
        say(self._crew.workers(), "stop")

    def _on_ready(self, member: Member, message: Message) -> None:
        member.state = "ready"
        member.device = message.get("device", "")
        member.gpu = message.get("gpu", "")
        member.address = message.get("address", "")
        if "facts" in message:
            member.facts = Facts(**message["facts"])
        if member.life:
            self._losses.welcome(member)

    def _on_trained(self, member: Member) -> None:
        member.state = "trained"
        # The server that it told so itself may be gone since.
        say(self._crew.servers(), "left", worker=member.index)
        if self._course.parting:  # it was started again meanwhile
            self.part(member)

    def part(self, member: Member) -> None:
        """All have trained: this one is one of so many that end."""
        places = self._course.places
        member.control.send("part", place=places[member.role], of=len(places))

    def _on_snapshot(self, member: Member, message: Message) -> None:
        """The evaluator's wish goes to the worker that leads, its answer comes back that way."""
        wish = self._course.snapshot_wanted = member.kind == "evaluator"
        self._crew[self._crew.leader if wish else "evaluator"].control.send("snapshot", **message)

    def _on_score(self, member: Member, message: Message) -> None:
        message["time"] = aligned(message["time"], member.offsets)
        score = self._scores.add(member.role, message)
        if score is None:
            return
        self._folder.append_score(score)
        self._observer.score(score)
        target, accuracy = self._course.spec.target_accuracy, score.values.get("accuracy")
        if target is None or accuracy is None or score.final or self._course.told_to_stop:
            return
        if accuracy >= target:
            self.stop(member.role, "target", f"accuracy {accuracy:.4f} reached {target}")

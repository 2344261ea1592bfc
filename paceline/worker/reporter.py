"""What a worker tells: a record a step to the run's folder, progress to the supervisor.

A step is noted, and no more: it has just driven everything else out of the cache. Ten times a
second, or after each step where they are longer, the worker looks up: makes rows of what it noted,
hears what the supervisor rang for, and tells when it is time to. Workers do so all at once: in
step, one that does holds up all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from paceline.data.sampler import Lot
from paceline.exchange.base import Exchange, Outcome
from paceline.measure.clock import Clock
from paceline.measure.own import own
from paceline.store.steps import Pack, StepWriter
from paceline.transport.control import Control, Message
from paceline.transport.slate import BELL, WRITE, Slate
from paceline.types import NOTHING, Progress, record
from paceline.worker.harm import Harm
from paceline.worker.keeping import Position
from paceline.worker.notice import Notice
from paceline.worker.profiling import Profile
from paceline.worker.scoring import Share

EVERY = 0.5  # seconds between two reports
LOOK = 0.1  # seconds between two looks
HEARD = ("stop", "leave", "lead", "harm", "keep", "regroup", "snapshot")  # in this order
BEGINNING = Position()


class Reporter:
    """Also hears: `stopping` is set once the supervisor asks this worker to end, and `parting` once
    it is to go while the others go on."""

    def __init__(
        self,
        *,
        control: Control,
        writer: StepWriter,
        clock: Clock,
        exchange: Exchange,
        harm: Harm,
        slate: Slate,
        steps: int,
        at_epoch_end: Callable[[int, int, Share], None],
        on_snapshot: Callable[[Message], None],
        on_keep: Callable[[Message, Position], None],
        position: Position = BEGINNING,
        notice: Notice | None = None,
        profile: Profile | None = None,
        on_lead: Callable[[], None] = lambda: None,
    ) -> None:
        self._control = control
        self._writer = writer
        self._notes = writer.notes(self._rows)
        self._t0 = clock.t0
        self._exchange = exchange
        self._slate = slate
        self._steps = steps
        self._at_epoch_end = at_epoch_end
        self._on_snapshot = on_snapshot
        self._on_keep = on_keep
        self._wish: Message | None = None  # for a checkpoint
        self._called = NOTHING  # the generation of the group that was last asked to part
        self._next = self._look = 0.0  # when to tell, and to look up
        self._words, self._rung = slate.words, slate.words[BELL]
        self._notice = notice
        self._on_lead = on_lead
        self._profile = profile
        self.stopping = False
        self.parting = False
        self._position = position
        self._lot: Lot | None = None  # of the last step, and what came of it
        self._outcome = Outcome()
        self.taken = position.taken
        self.samples = position.samples  # of the steps that are recorded
        self.dropped = 0
        self._told = position.epoch  # epochs whose end was told
        self.harm = harm
        self._between()

    def step(
        self,
        lot: Lot,
        count: int,
        loss: float,
        data: float,
        copy: float,
        forward: float,
        began: float,
        outcome: Outcome,
    ) -> None:
        """Record one step, which ends with this `outcome`, of `count` samples: it `began` to
        compute once it had made its batch and copied it."""
        now = outcome.ended
        self.taken += 1
        self._lot, self._outcome, epoch = lot, outcome, lot.epoch
        self._notes.append((epoch, count, loss, data, copy, forward, began, outcome))
        if now >= self._look or epoch + lot.last > self._told:
            self._look_up(now, loss)

    def _look_up(self, now: float, loss: float) -> None:
        """After a step that ended then: do whatever there is to do besides taking steps."""
        self._writer.settle()
        lot, outcome = self._lot, self._outcome
        assert lot is not None
        if now >= self._next:
            self.tell(loss)
            self._next = (now // EVERY + 1) * EVERY
        elif self._words[BELL] != self._rung:
            self._hear_all()
        if (done := lot.epoch + lot.last) > self._told:
            self._told = done
            self._at_epoch_end(self.taken, done, lot.share)
        if outcome.keep and self.asked[1]:  # not if the last one is wished for since
            self.keep()
        if self._busy:
            self._between()
        # A checkpoint, or a fault that is to be done, is for a certain step.
        always = self._busy or self._wish is not None
        self._look = 0.0 if always else (now // LOOK + 1) * LOOK

    def _between(self) -> None:
        """What is to be done between two steps, where there is such."""
        self.harm.between(self.taken)
        if self._profile is not None:
            self._profile.between(self.taken)
        self._busy = bool(self.harm.own) or self._profile is not None

    def _rows(self, noted: Sequence[tuple[Any, ...]], pack: Pack) -> list[bytes]:
        """Of steps that were noted, with their phases as they are recorded; counts them."""
        t0, rows, samples, dropped = self._t0, [], 0, 0
        taken = self.taken - len(noted)
        for (
            epoch, given, loss, data, copy, gone, began,
            (at, now, encode, push, pull, wait, update, version, stale, fetched, early, late,
             _, _, _, _, _),
        ) in noted:  # fmt: skip
            taken += 1
            count, fore, back = given, gone, at - began - gone
            if fetched or early:  # which are not this worker's computing
                fore = max(0.0, gone - fetched)
                back = max(0.0, at - began - fore - fetched - early)
            if late:
                dropped, count = dropped + 1, 0
            samples += count
            row = pack(
                now - t0, taken, epoch, count, loss, data, copy, fore, back,
                encode, push, pull, wait, update, at - t0, version, stale,
            )  # fmt: skip
            rows.append(row)
        self.samples += samples
        self.dropped += dropped
        return rows

    @property
    def asked(self) -> tuple[bool, bool, bool, bool]:
        """Whether to stop, to keep a checkpoint once all are asked to, to leave the group, to go.

        The last checkpoint is kept when all steps are taken.
        """
        keeping = self._wish is not None and not self._wish["last"]
        return self.stopping, keeping, self.leaving, self.parting

    @property
    def round(self) -> int:
        """The next, where there are rounds."""
        if self._lot is None:
            return self._position.round
        return self._lot.round + 1 + self._outcome.skipped

    @property
    def epoch(self) -> int:
        """How many are done, as far as this worker can tell."""
        if self._lot is None:
            return self._position.epoch
        return self._lot.epoch + self._lot.last

    @property
    def leaving(self) -> bool:
        return self._called == self._exchange.generation

    def wish(self, wish: Message) -> None:
        """Of the supervisor's, for a checkpoint; without a path it is one that was given up."""
        self._wish = wish if wish["path"] else None
        if self._wish is None:
            self._control.send("forgot")

    def keep(self) -> None:
        """Keep a checkpoint if one is wished for, or was and is not kept yet."""
        wish, self._wish = self._wish, None
        if wish is not None:
            self._writer.flush()
            position = Position(
                round=self.round, taken=self.taken, samples=self.samples, epoch=self.epoch
            )
            self._on_keep(wish, position)

    def tell(self, loss: float | None = None) -> None:
        """Flush records, report progress, hear what the supervisor says."""
        before = self._slate.at(WRITE)
        self._writer.flush()
        self._slate.back(before)
        progress = Progress(
            step=self.taken,
            steps=self._steps,
            epoch=self.epoch,
            samples=self.samples,
            loss=loss if loss is not None and math.isfinite(loss) else None,
            sent=self._exchange.sent,
            received=self._exchange.received,
            traffic=self._exchange.traffic(),
            own=own(),
        )
        self._control.send("progress", **record(progress))
        if self._notice is not None and self._notice.taken():
            self._control.send("notice")
        self._hear_all()

    def _hear_all(self) -> None:
        self._rung = self._words[BELL]
        for heard in sorted(self._control.heard(*HEARD), key=lambda it: HEARD.index(it["kind"])):
            self._hear(heard)
        if self._control.ended:
            self.stopping = True

    def _hear(self, heard: Message) -> None:
        match heard["kind"]:
            case "stop":
                self.stopping = True
            case "leave":
                self.parting = self.parting or not self.stopping  # else all go
            case "lead":
                self._on_lead()
            case "harm":
                self.harm.hear(heard)
                self._busy = True
            case "keep":
                self.wish(heard)
            case "regroup":
                self._called = heard["generation"]
            case "snapshot":
                self._on_snapshot(heard)

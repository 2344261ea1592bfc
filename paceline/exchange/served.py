"""Strategies with servers, over TCP: push the gradient, take the servers' parameters.

    backward ──block──► courier ──PUSH──► server applies ──STATE──► courier ──► next parameters

Of a large model, blocks leave while backward still makes the others, and parameters arrive in a
second buffer while the first is still read. Small ones go whole, after backward.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from paceline.errors import TaskError
from paceline.exchange.base import Among, Copied, Exchange, Gradient, Outcome, Post
from paceline.exchange.blocks import Progress, all_blocks, parts_of
from paceline.exchange.codecs.feedback import Feedback
from paceline.exchange.codecs.make import make_codec
from paceline.exchange.replica import Replica
from paceline.exchange.servers import Became, ByServer, Letter, Servers, told
from paceline.server.shards import Cut, in_blocks
from paceline.transport.counts import Counts
from paceline.transport.courier import Answer
from paceline.transport.frames import KEEP, LEAVE, STOP, Frame, Kind
from paceline.transport.memory import raw
from paceline.types import Traffic

LARGE = 1 << 20  # parameters from which on a courier pays


class Served(Exchange):
    """`in_rounds`: a push is for a round, which may find some blocks already past it."""

    def __init__(self, post: Post, in_rounds: bool, large: int = LARGE) -> None:
        self._post = post
        self._in_rounds = in_rounds
        self._large = large
        self._sequence = 0
        self._feedback: Feedback | None = None
        self._encoded = self._early = 0.0  # seconds in this step: of them while backward went on
        self._counts: ByServer = defaultdict(Counts)
        self._given: set[int] | None = None  # parameters given so far, while backward is expected
        # Of sparse tables: what goes before the first parameters, and before this step's push.
        self.first: list[Letter] = []
        self.along: Callable[[int], list[Letter]] | None = None
        self._late: list[tuple[int, Tensor]] = []  # first blocks, which go after it

    @property
    def sent(self) -> int:  # type: ignore[override]
        return sum(counts.sent for counts in self._counts.values())

    @property
    def received(self) -> int:  # type: ignore[override]
        return sum(counts.received for counts in self._counts.values())

    def traffic(self) -> tuple[Traffic, ...]:
        return told(self._counts)

    def start(self, replica: Replica) -> None:
        post = self._post
        self._replica = replica
        self._cut = post.held() if post.held is not None else in_blocks(post.shards, post.block)
        self._blocks = all_blocks(self._cut)
        self._progress = Progress(replica.spans, self._blocks)
        self._versions = {(block.server, block.number): 0 for block in self._blocks}
        self._grad = torch.empty(replica.size)
        if post.codec != "none":
            self._feedback = Feedback(make_codec(post.codec), replica.size)
            room = [self._feedback.codec.room(b.at.stop - b.at.start) for b in self._blocks]
            self._coded = [torch.empty(count, dtype=torch.uint8) for count in room]
        large = replica.size >= self._large
        here = replica.flat.cpu()  # the replica's own memory, unless that is on a GPU
        self._places = [here, torch.empty_like(here)] if large else [here]
        self._targets = [self._views(place) for place in self._places]
        self._overlaps = large and replica.on_host
        if self._overlaps:
            replica.on_gradient(self._made)
        self._servers = Servers(
            post,
            self._cut,
            self._counts,
            courier=large,
            targets=lambda: self._targets[-1],
            recut=self._recut,
            answered=self._answered,
        )
        first, self.first = self.first, []
        if post.first:  # in a later life too: the first may have ended before this
            for block in self._blocks:
                part = raw(here[block.at])
                frame = Frame(Kind.INIT, 0, block=block.number, length=len(part))
                first.append((block.server, frame, part))
        used = [answer.frame.sequence for answer in self._pull(first)]
        # A step that some blocks lack is taken again, unless its round is over by now: the blocks
        # that have it know it by its name.
        self._sequence = self.taken = min(used)
        self._own_round = self.share[0] if self.share else 0
        if self._in_rounds:  # otherwise versions count everybody's pushes, and say nothing of ours
            self.round = max(self._versions.values())
            # In step with the others also by number, whichever rounds went without this worker.
            self._sequence = self.taken = max(self.round, *used)

    def _views(self, place: Tensor) -> list[list[memoryview]]:
        views: list[list[memoryview]] = [[] for _ in self._cut]
        for block in self._blocks:
            views[block.server].append(raw(place[block.at]))
        return views

    def expect(self, gradient: Gradient) -> None:
        if self._overlaps:
            self._begin(gradient)
            self._given = set()

    def step(self, gradient: Gradient, meanwhile: Callable[[], float]) -> Outcome:
        began = time.monotonic()
        if self._given is not None:
            for parameter in range(len(self._replica.parameters)):
                if parameter not in self._given:
                    self._give(parameter)
            self._given = None
            self._send_along()
            for number, values in self._late:
                self._send(number, values)
            self._late.clear()
        else:
            self._begin(gradient)
            if gradient.weight:
                self._replica.gather(self._grad)
            self._send_along()
            for number, block in enumerate(self._blocks):
                self._send(number, self._grad[block.at])
        pushed = time.monotonic()
        meanwhile()
        asked = time.monotonic()
        answers = self._servers.collect()
        here = time.monotonic()
        self._take(answers)
        self.taken = self._sequence
        behind, self.round = self.round, max(self._versions.values())
        before, self.share = self.share, self._shared_out(answers)
        if not self._in_rounds:  # the others may have gone on without this one for a while
            self._own_round = max(self._own_round, self.share[0])
        late = sum(answer.frame.kind == Kind.LATE for answer in answers)
        told = [answer.frame.asked for answer in answers]
        stop = any(a & STOP for a in told) if self._in_rounds else gradient.stopping
        sending, pulling = self._servers.spent
        encoded, early, self._encoded, self._early = self._encoded, self._early, 0.0, 0.0
        ended = time.monotonic()
        return Outcome(
            began=began,
            ended=ended,
            encode=encoded,
            push=early + pushed - began - encoded + sending,
            pull=ended - here + pulling,
            wait=max(0.0, here - asked - sending - pulling),
            version=self.round,
            staleness=max(answer.frame.staleness for answer in answers),
            dropped=2 * late > len(answers),
            skipped=max(0, self.round - behind - 1) if self._in_rounds else 0,
            share=self.share if self._in_rounds and self.share != before else None,
            stop=gradient.parting or stop,
            keep=all(a & KEEP for a in told) if self._in_rounds else gradient.keeping,
            early=early,
        )

    def _begin(self, gradient: Gradient) -> None:
        self._sequence += 1
        self._own_round += 1
        self._gradient = gradient
        self._asked = STOP * gradient.stopping | KEEP * gradient.keeping | LEAVE * gradient.parting
        self._progress.begin()
        self._servers.begin()

    def _made(self, parameter: int) -> None:
        """Backward has made this parameter's gradient."""
        if self._given is None:
            return
        if parameter in self._given:  # what has left cannot be added to
            raise TaskError(
                "backward made a gradient twice in one step, as reentrant checkpoints do of layers "
                "used twice; make them with use_reentrant=False."
            )
        self._given.add(parameter)
        began = time.monotonic()
        self._give(parameter)
        self._early += time.monotonic() - began

    def _give(self, parameter: int) -> None:
        """Send the blocks that this parameter completes, from where backward left it if it can."""
        grad = self._replica.take(parameter)
        for part in self._progress.parts[parameter]:
            block = self._blocks[part.block]
            if grad is not None and self._progress.alone(part.block):
                self._send(part.block, grad[part.inside])
                continue
            if grad is None:  # a layer this batch did not use
                self._grad[part.at].zero_()
            else:
                self._grad[part.at].copy_(grad[part.inside])
            if self._progress.made(part.block):
                self._send(part.block, self._grad[block.at])

    def _send_along(self) -> None:
        if self.along is not None:
            for letter in self.along(self._sequence):
                self._servers.say(letter)

    def _send(self, number: int, values: Tensor) -> None:
        block, gradient = self._blocks[number], self._gradient
        if self._given is not None and not block.number and self._replica.tables:
            self._late.append((number, values))  # its rows are known after backward
            return
        payload = None
        if gradient.weight:
            payload = raw(values if self._feedback is None else self._encode(number, values))
        push = Frame(
            Kind.PUSH,
            self._post.index,
            self._sequence,
            self.round if self._in_rounds else self._versions[block.server, block.number],
            float(gradient.weight),
            gradient.lr,
            block=block.number,
            length=len(payload) if payload else 0,
            begin=self._own_round,
            seconds=gradient.spent(),
            asked=self._asked,
        )
        self._servers.say((block.server, push, payload))

    def _encode(self, number: int, values: Tensor) -> Tensor:
        assert self._feedback is not None
        coded, began = self._coded[number], time.monotonic()
        used = self._feedback.encode(values, self._blocks[number].at, coded)
        self._encoded += time.monotonic() - began
        return coded[:used]

    def _take(self, answers: list[Answer]) -> None:
        """Go on from the parameters that have come."""
        for server, frame in answers:
            self._versions[server, frame.block] = frame.version
        newest = self._places[-1]
        if not self._replica.on_host:
            self._replica.flat.copy_(newest)
        elif len(self._places) > 1:
            self._replica.bind(newest)
            self._places.reverse()
            self._targets.reverse()

    def _pull(self, first: Sequence[Letter] = ()) -> list[Answer]:
        self._servers.begin()
        pulls = Frame(Kind.PULL, self._post.index, self._post.life)
        for letter in (*first, *((s, pulls, None) for s in range(len(self._servers)))):
            self._servers.say(letter)
        answers = self._servers.collect()
        self._take(answers)
        self.share = self._shared_out(answers)
        return answers

    def _shared_out(self, answers: list[Answer]) -> tuple[int, int]:
        """This worker's share of the next round, by the word of one block for all."""
        first = next(a.frame for a in answers if a.server == 0 and a.frame.block == 0)
        return first.begin, first.end

    def _recut(self, cut: Cut) -> Became:
        """Other servers have the blocks now, or parts of them."""
        before, self._cut = self._blocks, cut
        self._blocks = all_blocks(cut)
        self._progress = Progress(self._replica.spans, self._blocks)
        self._targets = [self._views(place) for place in self._places]
        versions, self._versions = self._versions, {}
        became = {(b.server, b.number): parts_of(b, self._blocks) for b in before}
        for name, parts in became.items():
            for block, _ in parts:
                self._versions[block.server, block.number] = versions[name]
        return became

    def _answered(self) -> list[int]:
        """Updates in what each server has told this worker, as its first block counts them."""
        return [self._versions[server, 0] for server in range(len(self._cut))]

    def finish(self) -> None:
        self._servers.leave()

    def close(self) -> None:
        self._pull()
        self._servers.close()

    def keep(self, among: Among, copied: Copied) -> dict[str, Tensor]:
        """Servers keep the parameters. What a codec owes is of this round, where there are any."""
        owed = self._feedback.owed if self._feedback is not None and self._in_rounds else None
        return {} if owed is None else {"owed": copied("owed", owed)}

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Servers have told already where this worker goes on."""
        self.taken = self._sequence
        if self._in_rounds:
            self.round = max(self._versions.values())
        if self._feedback is not None and self._feedback.owed is not None and kept:
            self._feedback.owed.copy_(kept["owed"])

    def coding(self) -> dict[str, float] | None:
        if self._feedback is None:
            return None
        return {"ratio": self._feedback.ratio, "error": self._feedback.error}

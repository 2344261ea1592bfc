"""All servers as one worker reaches them. One that is gone may come back, or another in its place
with all that it had answered: what was said in this round is then said again.

    begin ─► say, say, … ─► collect        once a round
                              └─ gone ─► connect to all again, repeat what was said ─┘

What they know already they answer again and do not apply again. Meanwhile blocks may have moved to
other servers: what was said of a block is then said of the parts that it has become.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from paceline.errors import PeerLost
from paceline.exchange.base import Post
from paceline.exchange.blocks import Block
from paceline.server.shards import Cut
from paceline.transport import slate
from paceline.transport.counts import Counts
from paceline.transport.courier import Answer, Courier, Direct, Mail, Targets
from paceline.transport.frames import Frame, Kind
from paceline.transport.memory import FLOAT_BYTES
from paceline.transport.sockets import Line, limit, silent_for
from paceline.types import Traffic

RETURNS_WITHIN = 10.0  # seconds a server has to come back
AGAIN = 0.02  # seconds until one that cannot be reached is tried again

Letter = tuple[int, Frame, memoryview | None]  # to a server
Became = Mapping[tuple[int, int], list[tuple[Block, slice]]]  # of a server's block, its parts
ByServer = defaultdict[int, Counts]


class Servers:
    """`courier` says to send in a thread, `targets` where parameters go that come next. `recut`
    hears of another cut, and says what has become of each block; `answered` tells how many updates
    are in what each server has told this worker.
    """

    def __init__(
        self,
        post: Post,
        cut: Cut,
        counts: ByServer,
        courier: bool,
        targets: Callable[[], Targets],
        recut: Callable[[Cut], Became],
        answered: Callable[[], Sequence[int]],
    ) -> None:
        self._post = post
        self._cut = cut
        self._kind = Courier if courier else Direct
        self._targets = targets
        self._recut = recut
        self._answered = answered
        self._lines: list[Line] = []
        self._said: list[Letter] = []  # in this round
        self._counts = counts
        # A server may not know yet that the connection before is dead, and hold on to it.
        self._patience = RETURNS_WITHIN + silent_for(post.lease)
        self._connect(time.monotonic() + self._patience)

    def __len__(self) -> int:
        return len(self._cut)

    def begin(self) -> None:
        self._mail.begin(self._targets())

    def say(self, letter: Letter) -> None:
        """Send, and keep until the round is answered, in case it has to be said again."""
        self._said.append(letter)
        with suppress(PeerLost):  # it is noticed when the answers are collected
            self._mail.send(*letter)

    def collect(self) -> list[Answer]:
        """Every block's answer, once all are here."""
        deadline, told = 0.0, False
        while True:
            began = time.monotonic()
            try:
                answers = self._mail.collect()
                self._said.clear()
                if told:
                    self._tell(())
                return answers
            except PeerLost:
                if not told:
                    self._tell(self._answered())
                lost = time.monotonic()
                # As long as others were waited for nothing was lost; it may happen more than once.
                if not told or lost - began > self._patience:
                    deadline = lost + self._patience
                told = True
                if not self._post.returns or lost > deadline:
                    raise
                self.close()
                time.sleep(AGAIN)
                self._connect(deadline)
            self.begin()
            for letter in self._said:
                with suppress(PeerLost):  # as in `say`
                    self._mail.send(*letter)

    @property
    def spent(self) -> tuple[float, float]:
        """Seconds of the last `collect` in which something was on its way out, or in."""
        return self._mail.spent

    def leave(self) -> None:
        """No more of this worker. A server that is just being replaced hears of it from the
        supervisor."""
        self._tell(self._answered())
        for server in range(len(self._lines)):
            with suppress(PeerLost):
                self._mail.send(server, Frame(Kind.LEAVE, self._post.index))

    def close(self) -> None:
        self._mail.close()
        self._hang_up()

    def _connect(self, deadline: float) -> None:
        """To all of them."""
        post = self._post
        self._lines = []
        while len(self._lines) < len(self._cut):
            if post.held is not None and (now := post.held()) != self._cut:
                self._hang_up()
                self._lines = []
                self._cut = now
                self._readdress(self._recut(now))
            post.slate.waits(slate.server(len(self._lines)))
            try:
                self._lines.append(reach(post, len(self._lines), self._counts))
            except PeerLost:
                if not post.returns or time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN)
        self._mail: Mail = self._kind(self._lines, post.slate)

    def _readdress(self, became: Became) -> None:
        """Other servers have the blocks now, or parts of them."""
        said, self._said = self._said, []
        for server, frame, payload in said:
            if frame.kind != Kind.PULL:
                self._said += _split(frame, payload, became[server, frame.block])
        pulls = [frame for _, frame, _ in said if frame.kind == Kind.PULL][:1]
        self._said += [(server, frame, None) for frame in pulls for server in range(len(self))]

    def _hang_up(self) -> None:
        for line in self._lines:
            line.close()

    def _tell(self, versions: Sequence[int]) -> None:
        if self._post.answered is not None:
            self._post.answered(versions)


def reach(post: Post, server: int, counts: ByServer) -> Line:
    """A new connection to a server, which counts there."""
    name = f"server-{server}"
    now = post.addresses if post.where is None else post.where()
    if server >= len(now) or not now[server]:
        raise PeerLost(f"{name} is not up yet.")
    secrets = post.secret, post.certificate
    line = Line.connect(now[server], name, *secrets, post.lease, counts[server])
    if server in post.limits:
        limit(line.sock, post.limits[server])
    return line


def told(counts: Mapping[int, Counts]) -> tuple[Traffic, ...]:
    """A server's counts each."""
    return tuple(counts[server].with_peer(f"server-{server}") for server in sorted(counts))


def _split(
    frame: Frame, payload: memoryview | None, parts: list[tuple[Block, slice]]
) -> Iterator[Letter]:
    """What was said of a block, said of the parts that it has become."""
    for block, at in parts:
        rest = payload
        if payload is not None and len(parts) > 1:  # plain floats: what is coded is not split
            rest = payload[at.start * FLOAT_BYTES : at.stop * FLOAT_BYTES]
        length = len(rest) if rest is not None else 0
        yield block.server, frame._replace(block=block.number, length=length), rest

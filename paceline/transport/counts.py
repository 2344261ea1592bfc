"""What went each way on a connection."""

from __future__ import annotations

from collections.abc import Iterable

from paceline.types import Traffic


class Counts:
    """Bytes and messages of one end. What is sent and what is received has one writer each."""

    __slots__ = ("messages_received", "messages_sent", "received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = self.messages_sent = self.messages_received = 0

    def add(self, other: Counts) -> None:
        """What another counted is ours, too."""
        self.sent += other.sent
        self.received += other.received
        self.messages_sent += other.messages_sent
        self.messages_received += other.messages_received

    def with_peer(self, peer: str) -> Traffic:
        """As this end sees it."""
        return Traffic(peer, self.sent, self.received, self.messages_sent, self.messages_received)

    def from_peer(self, us: str) -> Traffic:
        """As the other end sees it."""
        return Traffic(us, self.received, self.sent, self.messages_received, self.messages_sent)


def together(counts: Iterable[Counts]) -> Counts:
    total = Counts()
    for each in counts:
        total.add(each)
    return total

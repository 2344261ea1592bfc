"""A worker's batches: taken one by one, and made before they are asked for where there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from paceline.data.base import Samples
from paceline.data.prefetch import Prefetch
from paceline.data.sampler import Lot, Slices
from paceline.transport.slate import AT, DATA, Slate

Made = tuple[Lot, Any]


class Batches:
    """`place` brings a batch to where the model is, if that is elsewhere."""

    def __init__(
        self,
        samples: Samples,
        lots: Iterator[Lot],
        slate: Slate,
        place: Callable[[Any], Any] | None = None,
    ) -> None:
        self._lots = lots
        self._slate = slate
        self._place = place
        self._fetched = Prefetch(samples, lots)
        self._next: Made | None = None
        self._prepared = False
        self._spent = self._copied = 0.0
        self.taken = 0.0  # when the last batch was

    def prepare(self) -> float:
        """Make the next batch unless it is made; the seconds that took."""
        if self._prepared:
            return 0.0
        began, slated = time.monotonic(), self._slate.words
        before, slated[AT] = slated[AT], DATA
        self._next = made = next(self._fetched, None)
        here = time.monotonic()
        self._spent += here - began
        if made is not None and self._place is not None:
            self._next = made[0], self._place(made[1])
            now = time.monotonic()
            self._copied += now - here
            here = now
        self._prepared = True
        self.taken = here
        slated[AT] = before
        return here - began

    def take(self) -> Made | None:
        """The next batch, or None after the last."""
        if self._prepared:
            self.taken = time.monotonic()
        else:
            self.prepare()
        made, self._next, self._prepared = self._next, None, False
        return made

    def go_on(self, round_: int, share: tuple[int, int] | None = None) -> None:
        """Go on from another round, or with another share: what was made ahead is dropped."""
        assert isinstance(self._lots, Slices)
        self._fetched.forget()
        self._lots.go_on(round_, share)
        self._next, self._prepared = None, False

    def spent(self) -> tuple[float, float]:
        """Seconds spent on making batches since last asked, and on bringing them to the model."""
        spent, self._spent, self._copied = (self._spent, self._copied), 0.0, 0.0
        return spent

    def close(self) -> None:
        self._fetched.close()

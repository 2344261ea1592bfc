"""Rows of a table as they were before they are changed where they lie.

    own the stripe ─► mend ─► note the rows ─► say so ─► change them ─► commit ─► say it is done

Whoever finds rows noted, and no commit, cannot know how many were changed: it puts all of them
back. After the commit all are changed, and others may have seen that. So of every push a stripe has
all or nothing, at whatever line somebody dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from torch import Tensor

from paceline.kernels import sparse
from paceline.kernels.arrays import Floats, Ids
from paceline.server.rowview import RowView
from paceline.server.striping import BEFORE, COUNTS, ID, NOTED, WORD, Size, undo_words
from paceline.transport.board import Board


class Places(NamedTuple):
    """One table's rows, and room to note some of them."""

    view: RowView
    ids: Ids  # [stripes, most]
    noted: Floats  # [stripes, most, (1 + states) · columns]

    @classmethod
    def of(cls, view: RowView, journal: Tensor, stripes: int) -> Places:
        """Without a journal nothing can be noted."""
        rows, columns = view.weights.shape
        most = Size(rows, columns).largest(stripes) if len(journal) else 0
        split, width = stripes * most * ID, (1 + view.state.shape[1]) * columns
        ids = journal[:split].numpy()
        noted = journal[split : split + stripes * most * width].numpy()
        return cls(
            view,
            ids.view(np.int64).reshape(stripes, most),
            noted.reshape(stripes, most, width),
        )


class Undo:
    """Called by a stripe's owner. On the board it has, from `first` on, as many words a stripe as
    `undo_words` says: one flag for all tables, so that they are put back together or not at all."""

    def __init__(
        self,
        board: Board,
        first: int,
        places: Sequence[Places],
        stripes: int,
        commits: memoryview | None = None,
    ) -> None:
        """Words that say what is done are on this board too, or among `commits`."""
        self._board = board
        self._commits = board.words if commits is None else commits
        self._places = places
        words = undo_words(len(places))
        self._at = [first + stripe * words for stripe in range(stripes)]

    def mend(self, stripe: int) -> None:
        """Put back what a former owner died over. Twice is as good as once."""
        words, at = self._board.words, self._at[stripe]
        if not words[at + NOTED]:
            return
        if self._commits[words[at + WORD]] == words[at + BEFORE]:
            for table, place in enumerate(self._places):
                count = words[at + COUNTS + table]
                sparse.unnote(*place.view[:2], place.ids[stripe][:count], place.noted[stripe])
        self._board.post(at + NOTED, 0)

    def begin(self, stripe: int, rows: Sequence[Ids], word: int) -> None:
        """These rows, a table each, are about to be changed; `word` will say so afterwards."""
        words, at = self._board.words, self._at[stripe]
        for table, (place, those) in enumerate(zip(self._places, rows, strict=True)):
            sparse.note(*place.view[:2], those, place.ids[stripe], place.noted[stripe])
            words[at + COUNTS + table] = len(those)
        words[at + WORD], words[at + BEFORE] = word, self._commits[word]
        self._board.post(at + NOTED, 1)

    def done(self, stripe: int) -> None:
        """They are changed, and the word says so."""
        self._board.post(self._at[stripe] + NOTED, 0)

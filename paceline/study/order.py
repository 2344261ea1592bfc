"""In which order runs are made: randomised complete blocks.

A repeat is a block: it takes every cell once, in an order of its own, drawn from the study's seed.
Whatever changes slowly on a machine (heat, a neighbour, a full page cache) then falls on all cells
of a block alike, and leaves their ratios alone; whatever changes within a block falls on each cell
equally often first and last. Where two cells do the same, which of them comes first is a fair coin,
so their difference is as likely to be up as down: that is what makes the intervals of
`diagnose/paired.py` hold, whatever the noise is like.
"""

from __future__ import annotations

import random


def blocks(cells: int, repeats: int, seed: int) -> list[tuple[int, int]]:
    """Every (repeat, cell), in the order in which they are to run.

    A block does not depend on how many follow it, so a study can be given more repeats later.
    """
    order: list[tuple[int, int]] = []
    for repeat in range(repeats):
        drawn = list(range(cells))
        random.Random(f"{seed}/{repeat}").shuffle(drawn)
        order += [(repeat, cell) for cell in drawn]
    return order

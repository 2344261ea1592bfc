"""What checkpoints cost: a model of 20 million parameters with one each 5 seconds, and without.

    python -m bench.checkpoint                     five repeats, about twenty minutes

With and without take turns, each for some 25 seconds; a ratio is that of two of the same repeat.
"""

from __future__ import annotations

from bench.catalog import CHECKPOINT
from bench.contenders import measure
from bench.interleave import main

if __name__ == "__main__":
    main(CHECKPOINT, __doc__, measure)

"""How fast gradients are exchanged: every strategy beside no exchange at all and beside raw DDP.

    python -m bench.exchange                       all models, five repeats, about twelve minutes
    python -m bench.exchange --models softmax --repeats 2

Everything is measured in one interleaved run: each repeat takes every contender once, in an order
that turns, so that the machine's moods fall on all alike. A ratio is that of two contenders of the
same repeat; the table shows its median and its range.
"""

from __future__ import annotations

from bench.catalog import EXCHANGE
from bench.contenders import measure
from bench.interleave import main

if __name__ == "__main__":
    main(EXCHANGE, __doc__, measure)

"""Where warm-up ends, found from the durations of the steps.

MSER (White, 1997): of n durations, drop the first d that make the mean of the rest best known,

    d* = argmin over 0 ≤ d ≤ n/3 of  MSER(d) = Σ_{i ≥ d} (x_i − x̄_d)² / (n − d)²

which is the squared standard error of that mean. Dropping slow first steps shrinks the sum more
than the divisor; dropping good steps does the opposite, so a steady series keeps nearly all. No
more than a third may go: a host that was busy for the first half of a run is not warm-up.

One pause late in the series would outweigh everything else in a sum of squares. So the series is
clipped first, to the median ± 5 median absolute deviations of its second half, which warm-up by
definition does not reach; and then averaged in batches, 200 or a few more, so that neighbours
that vary together (a busy host, a long file) do not pass for warm-up.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FEW = 10
BATCHES = 200
DEVIATIONS = 5.0


def warmup_steps(durations: npt.NDArray[np.floating]) -> int:
    """How many of the first steps to leave out: always the first, never more than a third.

    With fewer than ten steps there is nothing to detect and only the first is left out.
    """
    count = len(durations)
    if count < FEW:
        return min(1, count // 2)
    series = durations.astype(np.float64)
    low, high = _usual(series[count // 2 :])
    batch = max(1, count // BATCHES)
    whole = series[: count // batch * batch].clip(low, high)
    settled = _mser(whole.reshape(-1, batch).mean(axis=1)) * batch
    # A batch of many steps can hide two or three very slow ones at its start.
    slow = int(np.argmax(series <= high))
    return min(max(1, slow, settled), count // 3)


def _usual(steady: npt.NDArray[np.float64]) -> tuple[float, float]:
    middle = float(np.median(steady))
    deviation = float(np.median(np.abs(steady - middle)))
    # A clock can be too coarse to show any deviation; clipping to nothing would hide warm-up.
    reach = DEVIATIONS * max(deviation, middle / 100)
    return middle - reach, middle + reach


def _mser(means: npt.NDArray[np.float64]) -> int:
    # Sums from the end give every d at once; from near zero, so that squares lose no digits.
    centred = (means - np.median(means))[::-1]
    left = np.arange(1, len(means) + 1)
    squares = np.cumsum(centred**2) - np.cumsum(centred) ** 2 / left
    by_dropped = (squares / left.astype(np.float64) ** 2)[::-1]
    return int(np.argmin(by_dropped[: len(means) // 3 + 1]))

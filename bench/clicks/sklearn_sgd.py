"""scikit-learn's SGDClassifier, `partial_fit`: one core, rows in memory.

What was chosen to suit it:
- Rows are a CSR matrix in single precision with 32-bit indices, made beforehand. A pass is one call
  of `partial_fit`, which looks through all weights a few times; only those calls are timed.
- No penalty, which would cost it a pass over all weights now and then, and no averaging.
- A constant rate, the best of those tried on these rows.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier

from bench.clicks.rows import Rows, features, flags, log_loss, peak_mb, read, tell
from bench.processes import end_with_starter

RATE = 0.02


def matrix(rows: Rows, width: int) -> csr_matrix:
    count, fields = rows.ids.shape
    indptr = np.arange(count + 1, dtype=np.int32) * np.int32(fields)
    entries = np.ones(rows.ids.size, np.float32)
    return csr_matrix((entries, rows.ids.reshape(-1), indptr), shape=(count, width))


def main() -> None:
    asked = flags()
    end_with_starter()
    width = features(asked.shards)
    train = read(asked.shards, "train")
    rows = matrix(train, width)
    model = SGDClassifier(
        loss="log_loss", penalty=None, learning_rate="constant", eta0=RATE, shuffle=False
    )
    # The first call also makes the weights, which is not training.
    model.partial_fit(rows[:1], train.labels[:1], classes=[0, 1])
    began = time.perf_counter()
    for _ in range(asked.passes):
        model.partial_fit(rows, train.labels)
    seconds = time.perf_counter() - began
    taken = asked.passes * len(train.labels)
    memory = peak_mb()
    test = read(asked.shards, "test")
    scores = model.coef_[0][test.ids].sum(1) + model.intercept_[0]
    tell(taken, seconds, log_loss(scores, test.labels), memory)


if __name__ == "__main__":
    main()

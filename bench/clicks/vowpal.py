"""Vowpal Wabbit, from text.

What was chosen to suit it:
- Features are numbers, which it takes as they are: whoever wrote the text has hashed them. With
  names, which it has to hash, it reads what ours reads from text.
- It reads the file itself, in its own thread, while it learns; its table has 2²⁶ places, enough for
  every feature. Writing the model down is not timed.
- Its own defaults otherwise: adaptive, normalized, invariant updates, which are what it is for.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from vowpalwabbit import Workspace

from bench.clicks.rows import flags, log_loss, peak_mb, read, tell
from bench.processes import end_with_starter

BITS = 26


def main() -> None:
    asked = flags()
    end_with_starter()
    kind = "names.vw" if asked.names else "vw"
    common = f"--loss_function logistic -b {BITS} --quiet --no_stdin"
    with tempfile.TemporaryDirectory() as folder:
        kept, scores = Path(folder, "model"), Path(folder, "scores")
        passes = f"--passes {asked.passes} -c -k --holdout_off" if asked.passes > 1 else ""
        began = time.perf_counter()
        learned = Workspace(f"-d {asked.texts / f'train.{kind}'} {common} {passes} -f {kept}")
        seconds = time.perf_counter() - began
        learned.finish()
        memory = peak_mb()
        Workspace(f"-d {asked.texts / f'test.{kind}'} {common} -t -i {kept} -r {scores}").finish()
        test = read(asked.shards, "test")
        found = np.loadtxt(scores, dtype=np.float64)
    rows = asked.passes * len(read(asked.shards, "train").labels)
    tell(rows, seconds, log_loss(found, test.labels), memory)


if __name__ == "__main__":
    main()

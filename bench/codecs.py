"""LeNet on MNIST for six epochs with every codec: what it saves, and what it costs in accuracy.

    python -m bench.codecs [--seeds 0,1]

Two workers and a server over TCP, default settings. Wanted: within 0.3 points of `none`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import paceline
from bench.catalog import CODECS as CODECS_BENCH
from bench.findings import Findings, tell
from bench.tables import spread

CODECS = ("none", "bf16", "fp16", "int8", "topk:0.01", "onebit")
MOST = 0.3  # points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", default="0,1", help="by comma")
    parser.add_argument("--strategy", default="ps-sync")
    args = parser.parse_args()
    seeds = [int(seed) for seed in args.seeds.split(",")]
    found = Findings(("codec", "seed", "smaller", "error", "sent", "accuracy", "less than `none`"))
    lost: dict[str, list[float]] = {codec: [] for codec in CODECS[1:]}  # points, by seed
    with tempfile.TemporaryDirectory() as out:
        for seed in seeds:
            plain = 0.0
            for codec in CODECS:
                run = paceline.fit(
                    "lenet",
                    strategy=args.strategy,
                    workers=2,
                    transport="tcp",
                    codec=codec,
                    epochs=6,
                    seed=seed,
                    evaluate="end",
                    out=Path(out),
                )
                role, accuracy = run.roles[0], float(run.quality["accuracy"])
                plain = accuracy if codec == "none" else plain
                coding = role["coding"] or {"ratio": 1.0, "error": 0.0}
                ratio, error = f"{coding['ratio']:.1f}x", f"{100 * coding['error']:.2f} %"
                sent, right = f"{role['sent_mb']:.0f} MB", f"{100 * accuracy:.2f} %"
                less = 100 * (plain - accuracy)
                found.rows.append((codec, str(seed), ratio, error, sent, right, f"{less:+.2f}"))
                print(", ".join(found.rows[-1]), file=sys.stderr, flush=True)
                if codec != "none":
                    lost[codec].append(less)
    for codec, points in lost.items():
        asked = f"{codec}: at most {MOST} points less than `none`"
        found.want(asked, spread(points, "+.2f"), max(points) <= MOST)
    tell(CODECS_BENCH, found, len(seeds), whole=args.strategy == "ps-sync")


if __name__ == "__main__":
    main()

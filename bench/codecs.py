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

CODECS = ("none", "bf16", "fp16", "int8", "topk:0.01", "onebit")
MOST = 0.003


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--strategy", default="ps-sync")
    args = parser.parse_args()
    lines = ["| codec | seed | ratio | error | sent | accuracy | less than `none` | |"]
    lines += ["|---|---:|---:|---:|---:|---:|---:|---|"]
    with tempfile.TemporaryDirectory() as out:
        for seed in map(int, args.seeds.split(",")):
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
                met = "met" if plain - accuracy <= MOST else "not met"
                line = (
                    f"| {codec} | {seed} | {coding['ratio']:.1f}x | {100 * coding['error']:.2f} % "
                    f"| {role['sent_mb']:.0f} MB | {100 * accuracy:.2f} % "
                    f"| {100 * (plain - accuracy):+.2f} | {met} |"
                )
                lines.append(line)
                print(line, file=sys.stderr, flush=True)
    print("\n".join(lines))


if __name__ == "__main__":
    main()

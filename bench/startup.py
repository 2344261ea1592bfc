"""How long until four workers have taken their first step, against a bare `import torch`.

python -m bench.startup
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from paceline.store.folder import RunFolder
from paceline.store.steps import read_steps

WORKERS = 4


def import_torch() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    return time.monotonic() - began


def first_step(strategy: str, out: Path) -> float:
    """Seconds from typing the command until the last of the workers ended its first step."""
    command = [sys.executable, "-m", "paceline.cli", "run", "--strategy", strategy]
    command += ["--workers", str(WORKERS), "--steps", "20", "--quiet", "--out", str(out)]
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    folder = RunFolder.find(out, "last")
    firsts = [read_steps(folder.steps_path(f"worker-{w}"))["time"][0] for w in range(WORKERS)]
    return float(folder.read_spec()["t0"] + max(firsts) - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    bare: list[float] = []
    later: dict[str, list[float]] = {s: [] for s in ("independent", "ps-sync", "allreduce")}
    with tempfile.TemporaryDirectory() as out:
        for _ in range(args.repeats):
            bare.append(import_torch())
            for strategy, values in later.items():
                values.append(first_step(strategy, Path(out)) - bare[-1])
    print(f"import torch: {statistics.median(bare):.2f} s (worst {max(bare):.2f})")
    for strategy, values in later.items():
        print(
            f"{WORKERS} workers, {strategy}: first step {statistics.median(values):.2f} s later "
            f"(worst {max(values):.2f}); wanted: at most 1.5 s"
        )


if __name__ == "__main__":
    main()

"""What all contenders share: rows, texts made of them, log loss, memory. Needs numpy alone.

Peers import it in environments of their own, so it reads shards by itself: their format is plain
(`paceline/data/sparse/shards.py`).
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

PIECE = 100_000  # rows that are held or written at a time
COUNTS = 13  # fields that count something, the first
NAMES = [f"I{n}" for n in range(1, COUNTS + 1)] + [f"C{n}" for n in range(1, 27)]


class Rows(NamedTuple):
    """Labels, and the features of each row, all equally many."""

    labels: npt.NDArray[np.uint8]
    ids: npt.NDArray[np.int32]


def flags() -> argparse.Namespace:
    """What a peer is told."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=Path, required=True)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--names", action="store_true", help="features by field and value")
    return parser.parse_args()


def features(folder: Path) -> int:
    return int(json.loads((folder / "manifest.json").read_text())["features"])


def read(folder: Path, part: str) -> Rows:
    """All rows of a part, mapped where there is one shard, else in memory."""
    about = json.loads((folder / "manifest.json").read_text())
    names = [shard["name"] for shard in about["shards"] if shard["part"] == part]

    def column(name: str) -> npt.NDArray[np.int32]:
        return np.concatenate([np.load(folder / f"{n}.{name}.npy", mmap_mode="r") for n in names])

    return Rows(column("labels").astype(np.uint8), column("ids").reshape(-1, about["width"]))


def pieces(rows: Rows) -> Iterator[Rows]:
    for begin in range(0, len(rows.labels), PIECE):
        yield Rows(rows.labels[begin : begin + PIECE], rows.ids[begin : begin + PIECE])


def log_loss(scores: npt.NDArray[np.floating], labels: npt.NDArray[np.uint8]) -> float:
    """Of log-odds, mean."""
    z = scores.astype(np.float64)
    return float(np.mean(np.logaddexp(0, z) - labels * z))


def peak_mb() -> float:
    """Of this process, at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def tell(rows: int, seconds: float, loss: float, memory_mb: float) -> None:
    """What a peer prints."""
    print(json.dumps({"rows": rows, "seconds": seconds, "loss": loss, "memory_mb": memory_mb}))


def write_texts(shards: Path, texts: Path) -> None:
    """The same rows as Criteo's; and as Vowpal Wabbit's, with features as numbers, which it likes
    best, and as names, which say what Criteo's fields do."""
    texts.mkdir(parents=True, exist_ok=True)
    first = counts_of(read(shards, "train"), read(shards, "test"))
    for part in ("train", "test"):
        rows = read(shards, part)
        with (
            (texts / f"{part}.criteo").open("w") as criteo,
            (texts / f"{part}.vw").open("w") as numbers,
            (texts / f"{part}.names.vw").open("w") as named,
        ):
            for piece in pieces(rows):
                for label, ids in zip(piece.labels.tolist(), piece.ids.tolist(), strict=True):
                    counts = [str(first[id_]) for id_ in ids[:COUNTS]]
                    fields = counts + [f"{id_:08x}" for id_ in ids[COUNTS:]]
                    criteo.write(f"{label}\t" + "\t".join(fields) + "\n")
                    sign = 2 * label - 1
                    numbers.write(f"{sign} | {' '.join(map(str, ids))}\n")
                    names = map("_".join, zip(NAMES, fields, strict=True))
                    named.write(f"{sign} | {' '.join(names)}\n")


def counts_of(*parts: Rows) -> dict[int, int]:
    """A count for every value of the fields that are counts, none of which is taken for another."""
    found: dict[int, int] = {}
    for field in range(COUNTS):
        values = np.unique(np.concatenate([rows.ids[:, field] for rows in parts]))
        for place, id_ in enumerate(values.tolist()):
            found[id_] = count(place)
    return found


def count(place: int) -> int:
    """The least number in a place, counted from 0, of those told apart by three leading digits."""
    return place if place < 8 else (4 + place % 4) << (place // 4 - 1)

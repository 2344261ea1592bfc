"""Click-like rows of any number, `clicks:ROWS` or `clicks:ROWSxFEATURES`: made once, then kept."""

from __future__ import annotations

from pathlib import Path

from paceline import env
from paceline.data.base import Data
from paceline.data.shape import parse_clicks

TEST = 10  # of so many training rows, there is one test row more
SHARD = 1 << 18  # rows


def load(arguments: str, data_dir: str | None, seed: int) -> Data:
    from paceline.data.sparse.samples import open_shards

    return open_shards(_made(arguments, data_dir, seed))[0]


def check(arguments: str, data_dir: str | None, seed: int) -> int:
    _made(arguments, data_dir, seed)
    return parse_clicks(arguments)[0]


def _made(arguments: str, data_dir: str | None, seed: int) -> Path:
    """Where the shards are, once they are."""
    from paceline.data.sparse.generate import FIELDS, clicks
    from paceline.data.sparse.shards import (
        Manifest,
        Part,
        read_manifest,
        write_manifest,
        write_shard,
    )

    rows, features = parse_clicks(arguments)
    base = Path(data_dir) if data_dir else env.cache_dir()
    folder = base / "clicks" / f"{rows}x{features}-{seed}"
    made = {"generated": arguments, "seed": seed}
    found = read_manifest(folder)
    if found is not None and found.whole:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(features=features, width=FIELDS, valued=False, made=made)
    first = 0
    parts: list[tuple[Part, int]] = [("train", rows), ("test", max(1, rows // TEST))]
    for part, count in parts:
        for begin in range(0, count, SHARD):
            many = min(SHARD, count - begin)
            name = f"{len(manifest.shards):05d}"
            shard = write_shard(folder, name, part, [clicks(first, many, features, seed).rows])
            manifest = manifest.more([shard])
            first += many
    write_manifest(folder, manifest.more([], whole=True))
    return folder

"""Shards of sparse rows that `paceline convert` has made: `--data shards --data-dir FOLDER`."""

from __future__ import annotations

from pathlib import Path

from paceline.data.base import Data
from paceline.errors import DataError


def load(arguments: str, data_dir: str | None, seed: int) -> Data:
    from paceline.data.sparse.samples import open_shards

    return open_shards(_folder(data_dir))[0]


def check(arguments: str, data_dir: str | None, seed: int) -> int:
    from paceline.data.sparse.shards import open_shard, whole_manifest

    folder = _folder(data_dir)
    manifest = whole_manifest(folder)
    for shard in manifest.shards:
        open_shard(folder, manifest, shard)
    return manifest.rows("train")


def _folder(data_dir: str | None) -> Path:
    if not data_dir:
        raise DataError("data set 'shards' needs --data-dir: the folder that convert has made.")
    return Path(data_dir)

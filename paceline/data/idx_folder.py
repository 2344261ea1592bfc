"""Data sets laid out as MNIST is: four idx files in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from paceline.data.base import Array, Data
from paceline.data.cache import decoded
from paceline.data.idx import read_idx
from paceline.errors import DataError

CLASSES = 10
SIDE = 28
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
NAMES = [name for part in FILES.values() for name in part]


class Part(NamedTuple):
    images: Array
    labels: Array


def load_folder(folder: Path) -> Data:
    """The folder's samples: images as float32 from 0 to 1, labels as int64."""
    from paceline.data.arrays import Arrays  # brings torch, which check_folder must not

    train, test = (
        Arrays(*read_part(folder, part), scale=1 / 255, shape=(1, SIDE, SIDE)) for part in FILES
    )
    return Data(train=train, test=test, shape=(1, SIDE, SIDE), classes=CLASSES)


def check_folder(folder: Path) -> int:
    """How many training samples there are, once all four files are decoded and found right."""
    train, _ = (read_part(folder, part) for part in FILES)
    return len(train.labels)


def read_part(folder: Path, part: str) -> Part:
    images_file, labels_file = (_file(folder, name) for name in FILES[part])
    images, labels = decoded(images_file, read_idx), decoded(labels_file, read_idx)
    if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1:] != (SIDE, SIDE):
        raise DataError(
            f"'{images_file}' holds {images.dtype} values of shape {images.shape}; "
            f"images are uint8 of {SIDE}x{SIDE}: put the data set's own file there."
        )
    if labels.dtype != np.uint8 or labels.ndim != 1:
        raise DataError(
            f"'{labels_file}' holds {labels.dtype} values of shape {labels.shape}; "
            "labels are one uint8 a sample: put the data set's own file there."
        )
    if len(images) != len(labels):
        raise DataError(
            f"'{images_file}' has {len(images):,} images and '{labels_file}' {len(labels):,} "
            "labels: put files of the same data set there."
        )
    if not len(labels) or labels.max() >= CLASSES:
        raise DataError(
            f"'{labels_file}' must hold labels from 0 to {CLASSES - 1}: "
            "put the data set's own file there."
        )
    return Part(images, labels)


def missing(folder: Path) -> list[str]:
    """Which of the four files, by their published names, the folder lacks."""
    return [f"{name}.gz" for name in NAMES if _found(folder, name) is None]


def has_any(folder: Path) -> bool:
    return len(missing(folder)) < len(NAMES)


def _file(folder: Path, name: str) -> Path:
    found = _found(folder, name)
    if found is not None:
        return found
    if not folder.is_dir():
        raise DataError(f"there is no folder '{folder}' to read data from.")
    raise DataError(f"'{folder}' has no file {name}.gz: put it there, gzipped or not.")


def _found(folder: Path, name: str) -> Path | None:
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    return None

"""MNIST: 70,000 handwritten digits of 28x28 (LeCun, Cortes, Burges). Shipped with Paceline."""

from __future__ import annotations

from pathlib import Path

from paceline import env
from paceline.data.base import Data
from paceline.data.idx_folder import check_folder, has_any, load_folder

SHIPPED = Path(__file__).parent / "files"


def load(arguments: str, data_dir: str | None, seed: int) -> Data:
    return load_folder(_folder(data_dir))


def check(arguments: str, data_dir: str | None, seed: int) -> int:
    return check_folder(_folder(data_dir))


def _folder(data_dir: str | None) -> Path:
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if (base := env.data_dir()) is not None:
        for folder in (base / "mnist", base):
            if has_any(folder):
                return folder
    return SHIPPED

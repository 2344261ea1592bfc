"""Fashion-MNIST: 70,000 pieces of clothing of 28x28 (Zalando). Downloaded when first asked for."""

from __future__ import annotations

from pathlib import Path

from paceline import env
from paceline.data.base import Data
from paceline.data.download import fetch
from paceline.data.idx_folder import check_folder, has_any, load_folder, missing

URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
CHECKSUMS = {
    "train-images-idx3-ubyte.gz": "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
    "train-labels-idx1-ubyte.gz": "md5:25c81989df183df01b3e8a0aad5dffbe",
    "t10k-images-idx3-ubyte.gz": "md5:bef4ecab320f06d8554ea6380940ec79",
    "t10k-labels-idx1-ubyte.gz": "md5:bb300cfdad3c16e7a12a480ee83cd310",
}


def load(arguments: str, data_dir: str | None, seed: int) -> Data:
    return load_folder(_folder(data_dir))


def check(arguments: str, data_dir: str | None, seed: int) -> int:
    return check_folder(_folder(data_dir))


def _folder(data_dir: str | None) -> Path:
    if data_dir is not None:
        return Path(data_dir).expanduser()
    if (base := env.data_dir()) is not None and has_any(base / "fashion-mnist"):
        return base / "fashion-mnist"
    folder = env.cache_dir() / "fashion-mnist"
    for name in missing(folder):
        fetch(URL + name, folder / name, CHECKSUMS[name])
    return folder

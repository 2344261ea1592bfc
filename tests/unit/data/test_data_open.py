from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from paceline.data import fashion_mnist, idx_folder, mnist
from paceline.data.base import Data
from paceline.data.open import open_data, preflight
from paceline.errors import DataError

ROOT = Path(mnist.__file__).parents[2]


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def write_folder(folder: Path, train: int = 30, test: int = 10) -> Path:
    """A small data set laid out as MNIST, some files gzipped and some not."""
    folder.mkdir(parents=True)
    for part, count in (("train", train), ("t10k", test)):
        images, labels = np.full((count, 28, 28), 51), np.arange(count) % 10
        packed = gzip.compress(idx(images))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(packed)
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx(labels))
    return folder


def sizes(data: Data) -> tuple[int, int]:
    return len(data.train), len(data.test)


def test_mnist_is_shipped() -> None:
    data = open_data("mnist")
    assert sizes(data) == (60_000, 10_000)
    assert (data.shape, data.classes) == ((1, 28, 28), 10)
    x, y = data.train.batch(np.arange(1000))
    assert x.shape == (1000, 1, 28, 28)
    assert (x.dtype, y.dtype) == (torch.float32, torch.int64)
    assert (x.min(), x.max()) == (0, 1)
    assert y[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert data.test.batch(np.arange(5))[1].tolist() == [7, 2, 1, 0, 4]


def test_preflight_counts_and_imports_no_torch(tmp_path: Path) -> None:
    script = (
        "import sys; from paceline.data.open import preflight; "
        "print(preflight('mnist'), preflight('mnist', sys.argv[1]), "
        "preflight('synthetic:1000000x784'), 'torch' in sys.modules)"
    )
    folder = write_folder(tmp_path / "small")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["60000", "30", "1000000", "False"]


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_a_folder_of_ones_own_is_read_instead(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path / "own")
    data = open_data(name, str(folder))
    assert sizes(data) == (30, 10)
    assert preflight(name, str(folder)) == 30
    torch.testing.assert_close(data.test.batch(np.array([3]))[0], torch.full((1, 1, 28, 28), 0.2))


@pytest.mark.parametrize("below", ["", "mnist"])
def test_the_environment_may_name_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    write_folder(tmp_path / "data" / below)
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path / "data"))
    assert preflight("mnist") == 30


def test_an_environment_without_mnist_leaves_the_shipped_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path))
    assert preflight("mnist") == 60_000


def test_fashion_mnist_never_takes_mnist_files_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "data")
    write_folder(tmp_path / "data" / "fashion-mnist", train=20)
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path / "data"))
    assert preflight("fashion-mnist") == 20


def test_fashion_mnist_is_downloaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    small = write_folder(tmp_path / "small")
    site.mkdir()
    for name in idx_folder.NAMES:
        content = idx_folder._file(small, name).read_bytes()
        packed = content if content.startswith(b"\x1f\x8b") else gzip.compress(content)
        (site / f"{name}.gz").write_bytes(packed)
    sums = {p.name: f"md5:{hashlib.md5(p.read_bytes()).hexdigest()}" for p in site.iterdir()}
    monkeypatch.setattr(fashion_mnist, "URL", f"{site.as_uri()}/")
    monkeypatch.setattr(fashion_mnist, "CHECKSUMS", sums)
    monkeypatch.setenv("PACELINE_CACHE", str(tmp_path / "cache"))
    assert preflight("fashion-mnist") == 30
    shutil.rmtree(site)
    assert sizes(open_data("fashion-mnist")) == (30, 10)


def damaged(folder: Path, name: str, content: bytes) -> str:
    for path in (folder / name, folder / f"{name}.gz"):
        path.unlink(missing_ok=True)
    (folder / name).write_bytes(content)
    return str(folder)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("train-labels-idx1-ubyte", idx(np.zeros(29)), "30 images .* 29 labels"),
        ("train-labels-idx1-ubyte", idx(np.full(30, 10)), "labels from 0 to 9"),
        ("train-labels-idx1-ubyte", idx(np.zeros((30, 2))), "one uint8 a sample"),
        ("t10k-images-idx3-ubyte", idx(np.zeros((10, 27, 28))), "uint8 of 28x28"),
        ("t10k-images-idx3-ubyte", idx(np.zeros((10, 28, 28)))[:-5], "should hold"),
        ("t10k-images-idx3-ubyte", b"\x1f\x8b cut", "get the file again"),
    ],
)
def test_preflight_finds_what_training_would(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    folder = damaged(write_folder(tmp_path / "own"), name, content)
    for check in (preflight, open_data):
        with pytest.raises(DataError, match=why) as told:
            check("mnist", folder)
        assert name in str(told.value)


def test_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no folder '.*nowhere'"):
        preflight("mnist", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"has no file train-images-idx3-ubyte\.gz"):
        preflight("mnist", str(tmp_path))
    folder = write_folder(tmp_path / "own")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match=r"has no file t10k-labels-idx1-ubyte\.gz"):
        preflight("mnist", str(folder))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("mnits", "did you mean 'mnist'"),
        ("mnist:3", "takes no arguments"),
        ("synthetic:3", "for example"),
    ],
)
def test_names_that_are_not_data_sets_are_told(name: str, why: str) -> None:
    for verb in (preflight, open_data):
        with pytest.raises(DataError, match=why):
            verb(name)

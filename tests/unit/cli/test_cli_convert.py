"""`paceline convert`: what it is asked, what it says, and what is wrong with a request."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

CSV = "bought,site,hour,price\n" + "".join(
    f"{n % 2},s{n % 7},{n % 24},{n / 4}\n" for n in range(50)
)


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(CSV)
    return path


def test_a_csv_file(paceline: Callable[..., object], visits: Path, tmp_path: Path) -> None:
    asked = ("--format", "csv", "--label", "bought", "--numbers", "price", "--categories", "site")
    to = tmp_path / "to"
    told = paceline(
        "convert", str(visits), *asked, "--cross", "site:price", "--to", str(to), "--json"
    )
    assert told.code == 0, told.err
    found = json.loads(told.out)
    assert found["rows"] == {"train": 50, "test": 0}
    assert found["malformed"] == 0
    manifest = json.loads((to / "manifest.json").read_text())
    assert manifest["width"] == 3
    assert manifest["valued"] is True
    # Once more: nothing is left to do, and nothing is lost.
    again = paceline(
        "convert", str(visits), *asked, "--cross", "site:price", "--to", str(to), "--json"
    )
    assert json.loads(again.out)["rows"] == found["rows"]


def test_click_logs_with_some_malformed_lines(
    paceline: Callable[..., object], tmp_path: Path
) -> None:
    good = "1\t" + "\t".join(["3", ""] * 6) + "\t5\t" + "\t".join(["ab"] * 26)
    path = tmp_path / "day_0.gz"
    path.write_bytes(gzip.compress("\n".join([*[good] * 400, "no row", *[good] * 10]).encode()))
    asked = ("convert", str(path), "--format", "criteo", "--test-share", "0.25")
    told = paceline(*asked, "--to", str(tmp_path / "to"))
    assert told.code == 0, told.err
    assert "day_0.gz line 401: too few fields: 'no row'" in " ".join(told.err.split())
    assert "1 of 411 lines were malformed" in told.out
    strict = paceline(*asked, "--malformed", "0", "--to", str(tmp_path / "strict"))
    assert strict.code == 2
    assert "lines are malformed, more than the share of 0 that may be" in strict.err


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--format", "parquet"], "unknown format 'parquet'"),
        (["--format", "csv"], "--label: format 'csv' needs it"),
        (["--format", "csv", "--label", "sold"], "has no column 'sold'; it has: bought, site"),
        (["--format", "csv", "--label", "bought", "--counts", "sites"], "no column 'sites'"),
        (["--format", "csv", "--label", "bought", "--cross", "site"], "with a colon between"),
        (["--format", "csv", "--label", "bought", "--cross", "site:day"], "has no field 'day'"),
        (["--format", "libsvm", "--label", "bought"], "--label: format 'libsvm' has none"),
        (
            ["--format", "libsvm", "--features", "0"],
            "--features 0: must be from 1 to 2,147,483,648",
        ),
        (["--format", "libsvm", "--features", "many"], "invalid value for '--features'"),
        (["--format", "libsvm", "--test-share", "1"], "--test-share 1: must be"),
        (["--format", "libsvm", "--malformed", "-1"], "--malformed -1: must be"),
        (["--format", "json", "--label", "stars"], "--text: format 'json' needs it"),
        (
            ["--format", "csv", "--label", "bought", "--categories", "bought,site"],
            "column 'bought': name it once",
        ),
        (["--format", "criteo", "--above", "3"], "--above: format 'criteo' has none"),
    ],
)
def test_a_wrong_request_is_one_sentence(
    paceline: Callable[..., object], visits: Path, tmp_path: Path, flags: list[str], why: str
) -> None:
    told = paceline("convert", str(visits), *flags, "--to", str(tmp_path / "to"))
    assert told.code == 2
    assert why in " ".join(told.err.split())
    assert "Traceback" not in told.err
    assert not (tmp_path / "to").exists()


def test_a_file_that_is_not_there(paceline: Callable[..., object], tmp_path: Path) -> None:
    told = paceline("convert", "gone.csv", "--format", "libsvm", "--to", str(tmp_path / "to"))
    assert told.code == 2
    assert "there is no file 'gone.csv'" in told.err


def test_every_fault_of_a_request_at_once(paceline: Callable[..., object], visits: Path) -> None:
    told = paceline(
        *("convert", str(visits), "--format", "csv", "--features", "0", "--malformed", "2"),
        *("--hashed", "--to", "to"),
    )
    for fault in ("--features", "--malformed", "--hashed", "--label"):
        assert fault in told.err

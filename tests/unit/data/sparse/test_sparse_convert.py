"""Text to shards: whole, in bounded pieces, resumed where it was broken off, faults told."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard

from paceline.data.sparse import convert as converting
from paceline.data.sparse import sources
from paceline.data.sparse.convert import Progress, Request, convert
from paceline.data.sparse.libsvm import Libsvm
from paceline.data.sparse.samples import open_shards
from paceline.data.sparse.shards import Manifest
from paceline.data.sparse.sources import Position, pieces
from paceline.errors import DataError
from paceline.files import pretend_full

FEATURES = 1000


def line(number: int) -> str:
    entries = " ".join(f"{(number * 7 + k) % FEATURES}:{k + 1}" for k in range(number % 4))
    return f"{number % 2} {entries}\n"


def request(*train: Path, **more: Any) -> Request:
    how = {"features": FEATURES, "format": "libsvm"}
    return Request(
        parse=Libsvm(FEATURES),
        made=how | {"test_share": more.get("test_share", 0.0)},
        features=FEATURES,
        width=None,
        valued=True,
        train=train,
        **more,
    )


def write(path: Path, text: str) -> Path:
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content)
    elif path.suffix == ".zst":
        content = zstandard.compress(content)
    path.write_bytes(content)
    return path


def everything(folder: Path) -> list[tuple[float, list[int], list[float]]]:
    data, manifest = open_shards(folder)
    rows, labels = data.train.batch(np.arange(manifest.rows("train")))
    ends = rows.offsets.tolist()
    return [
        (y, rows.ids[a:b].tolist(), rows.values[a:b].tolist())
        for y, a, b in zip(labels.tolist(), ends[:-1], ends[1:], strict=True)
    ]


def expected(count: int) -> list[tuple[float, list[int], list[float]]]:
    return [
        (
            float(n % 2),
            [(n * 7 + k) % FEATURES for k in range(n % 4)],
            [float(k + 1) for k in range(n % 4)],
        )
        for n in range(count)
    ]


def silent(_: Progress) -> None:
    pass


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zst"])
def test_rows_come_out_as_they_went_in(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces far smaller than the file, and shards far smaller than that."""
    monkeypatch.setattr(sources, "PIECE", 256)
    monkeypatch.setattr(converting, "SHARD", 200)
    text = "".join(map(line, range(500)))
    told: list[Progress] = []
    source = write(tmp_path / f"rows{suffix}", text.rstrip("\n"))  # a last line without its end
    manifest = convert(request(source), tmp_path / "out", told.append)
    assert manifest.whole
    assert len(manifest.shards) > 3
    assert everything(tmp_path / "out") == expected(500)
    assert told[-1].rows == 500
    assert [t.rows for t in told] == sorted(t.rows for t in told)


def test_several_files_are_one_after_another(tmp_path: Path) -> None:
    one = write(tmp_path / "a.txt", "".join(map(line, range(30))))
    two = write(tmp_path / "b.gz", "".join(map(line, range(30, 50))))
    convert(request(one, two), tmp_path / "out", silent)
    assert everything(tmp_path / "out") == expected(50)


def test_what_is_broken_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE", 512)
    monkeypatch.setattr(converting, "SHARD", 150)
    source = write(tmp_path / "rows.gz", "".join(map(line, range(800))))
    begun: list[int] = []

    def until(progress: Progress) -> None:
        begun.append(progress.rows)
        if progress.rows > 300 + 100 * len(broken):
            raise KeyboardInterrupt

    broken: list[int] = []
    while len(broken) < 4:
        with pytest.raises(KeyboardInterrupt):
            convert(request(source), tmp_path / "out", until)
        with pytest.raises(DataError, match="not converted to the end"):
            open_shards(tmp_path / "out")
        broken.append(begun[-1])
    manifest = convert(request(source), tmp_path / "out", silent)
    assert everything(tmp_path / "out") == expected(800)
    assert manifest.lines == 800
    assert convert(request(source), tmp_path / "out", _never) == manifest


def _never(_: Progress) -> None:
    raise AssertionError("it is converted already")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "".join(map(line, range(20))))
    convert(request(source), tmp_path / "out", silent)
    with pytest.raises(DataError, match=r"made otherwise .test_share"):
        convert(request(source, test_share=0.5), tmp_path / "out", silent)
    assert everything(tmp_path / "out") == expected(20)


def test_a_share_of_rows_is_for_testing(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "".join(map(line, range(4000))))
    manifest = convert(request(source, test_share=0.25), tmp_path / "out", silent)
    assert manifest.rows("train") + manifest.rows("test") == 4000
    assert 900 < manifest.rows("test") < 1100
    data, _ = open_shards(tmp_path / "out")
    train = {tuple(ids) for _, ids, _ in everything(tmp_path / "out")}
    assert len(data.test) == manifest.rows("test")
    assert train


def test_too_many_malformed_lines_end_it_with_the_first_few(tmp_path: Path) -> None:
    lines = [line(n) if n % 50 else "oops\n" for n in range(3000)]
    source = write(tmp_path / "rows.txt", "".join(lines))
    with pytest.raises(DataError, match=r"malformed.*rows\.txt line 1: the label is not a number"):
        convert(request(source), tmp_path / "out", silent)
    manifest = convert(request(source, malformed=0.05), tmp_path / "other", silent)
    assert manifest.malformed == 60
    assert manifest.faults[1].startswith(f"{source} line 51: ")
    assert manifest.rows("train") == 2940


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_damaged_file_is_named(suffix: str, tmp_path: Path) -> None:
    source = write(tmp_path / f"rows{suffix}", "".join(map(line, range(3000))))
    source.write_bytes(source.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"rows\..*' is damaged"):
        convert(request(source), tmp_path / "out", silent)


def test_frames_of_a_packed_file_are_one_after_another(tmp_path: Path) -> None:
    one, two = ("".join(map(line, part)).encode() for part in (range(30), range(30, 50)))
    source = tmp_path / "rows.zst"
    source.write_bytes(zstandard.compress(one) + zstandard.compress(two))
    convert(request(source), tmp_path / "out", silent)
    assert everything(tmp_path / "out") == expected(50)


def test_two_at_once_do_not_write_each_others_shards(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "".join(map(line, range(20))))
    refused: list[str] = []

    def again(_: Progress) -> None:
        try:
            convert(request(source), tmp_path / "out", silent)
        except DataError as wrong:
            refused.append(str(wrong))

    convert(request(source), tmp_path / "out", again)
    assert refused
    assert all("another conversion is writing" in sentence for sentence in refused)
    assert everything(tmp_path / "out") == expected(20)


def test_a_full_disk_is_told_and_what_is_there_is_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE", 512)
    monkeypatch.setattr(converting, "SHARD", 150)
    source = write(tmp_path / "rows.txt", "".join(map(line, range(800))))
    out = tmp_path / "out"

    def fill(progress: Progress) -> None:
        pretend_full(out, progress.rows > 400)

    with pytest.raises(DataError, match=r"cannot write to .*No space left.* goes on where it was"):
        convert(request(source), out, fill)
    pretend_full(out, False)
    (out / ".00001.ids.npy.abc.part").write_bytes(b"of one that was killed")
    convert(request(source), out, silent)
    assert everything(out) == expected(800)
    assert not list(out.glob(".*.part"))


def test_a_share_for_testing_is_the_same_after_a_break(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE", 512)
    monkeypatch.setattr(converting, "SHARD", 150)
    source = write(tmp_path / "rows.gz", "".join(map(line, range(800))))

    def until(progress: Progress) -> None:
        if progress.rows > 400:
            raise KeyboardInterrupt

    asked = request(source, test_share=0.3)
    whole = convert(asked, tmp_path / "whole", silent)
    with pytest.raises(KeyboardInterrupt):
        convert(asked, tmp_path / "broken", until)
    again = convert(asked, tmp_path / "broken", silent)
    assert again.rows("test") == whole.rows("test")
    assert everything(tmp_path / "broken") == everything(tmp_path / "whole")


def test_nothing_to_convert(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "\n\n")
    with pytest.raises(DataError, match="no row"):
        convert(request(source), tmp_path / "out", silent)
    with pytest.raises(DataError, match="cannot read"):
        convert(request(tmp_path / "none.txt"), tmp_path / "out2", silent)


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "PIECE", 64)
    monkeypatch.setattr(sources, "LONGEST", 1024)
    source = write(tmp_path / "rows.txt", line(1) + "x" * 5000)
    with pytest.raises(DataError, match="a line of more than"):
        list(pieces([source]))


def test_pieces_begin_where_they_are_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PIECE", 100)
    for suffix in (".txt", ".gz", ".zst"):
        source = write(tmp_path / f"rows{suffix}", "".join(map(line, range(100))))
        found = list(pieces([source]))
        assert len(found) > 5
        lines = 0
        for piece, after in pairwise(found):
            assert piece.end == after.begin
            lines += int(np.count_nonzero(piece.load() == ord("\n")))
            again = list(pieces([source], Position(0, piece.end, lines)))
            assert again[0].line == lines
            rest = b"".join(p.load().tobytes() for p in again)
            assert rest == "".join(map(line, range(lines, 100))).encode()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_last_line_may_lack_its_end(tmp_path: Path, suffix: str) -> None:
    source = write(tmp_path / f"rows{suffix}", line(1) + line(2).rstrip("\n"))
    found = list(pieces([source]))
    assert b"".join(p.load().tobytes() for p in found) == (line(1) + line(2)).encode()
    assert found[-1].end == len(line(1) + line(2)) - 1


def test_a_source_that_is_cut_short_meanwhile_is_told(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "".join(map(line, range(100))))
    (piece,) = pieces([source])
    source.write_text(line(1))
    with pytest.raises(DataError, match="cut short"):
        piece.load()


def test_a_shard_that_is_not_what_it_was_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "rows.txt", "".join(map(line, range(20))))
    manifest: Manifest = convert(request(source), tmp_path / "out", silent)
    path = tmp_path / "out" / f"{manifest.shards[0].name}.ids.npy"
    np.save(path, np.zeros(3, np.int32))
    with pytest.raises(DataError, match="not what"):
        open_shards(tmp_path / "out")
    path.write_bytes(b"")
    with pytest.raises(DataError, match="cannot use"):
        open_shards(tmp_path / "out")

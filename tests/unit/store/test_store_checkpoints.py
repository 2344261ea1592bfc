"""Checkpoints: a good one is found whatever became of the others."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from paceline.errors import StoreError
from paceline.store.checkpoints import Checkpoint, Checkpoints, Part
from paceline.store.parts import KINDS, Seal, read_part, write_part

RUN = "a run"
ROLES = ("worker-0", "worker-1")

arrays = st.dictionaries(
    st.text(max_size=8),
    arrays_of.arrays(st.sampled_from(KINDS), arrays_of.array_shapes(min_dims=0, min_side=0)),
    max_size=4,
)
values = st.dictionaries(st.text(max_size=8), st.integers() | st.lists(st.integers()) | st.text())


@settings(max_examples=60, deadline=None)
@given(values=values, arrays=arrays)
def test_a_part_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    values: dict[str, object],
    arrays: dict[str, np.ndarray],
) -> None:
    path = tmp_path_factory.mktemp("parts") / "worker-0.part"
    seal = write_part(path, values, arrays)
    found, read = read_part(path, seal)
    assert found == values
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()
        assert read[name].flags.aligned


def test_a_part_takes_only_plain_numbers(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'it' is of object"):
        write_part(tmp_path / "a.part", {}, {"it": np.array([print])})
    assert not list(tmp_path.iterdir())


def test_a_part_of_a_lie_is_refused(tmp_path: Path) -> None:
    """Sealed as it is, and still not what a part looks like."""
    for content in (b"", b"paceline part 1\n", b"paceline part 1\n{}\n", b"\x80\x04pickle"):
        path = tmp_path / "a.part"
        path.write_bytes(content)
        seal = Seal(bytes=len(content), digest=xxhash.xxh3_128_hexdigest(content))
        with pytest.raises(StoreError):
            read_part(path, seal)


def keep(kept: Checkpoints, step: int, run: str = RUN) -> Checkpoint:
    number = kept.begin()
    parts = []
    for role in ROLES:
        path = kept.path(number, role)
        seal = write_part(path, {"step": step}, {"parameters": np.full(100, step, np.float32)})
        parts.append(Part(role=role, step=step, epoch=0, round=step, **asdict(seal)))
    checkpoint = Checkpoint(number=number, run=run, time=step / 10, parts=tuple(parts))
    kept.commit(checkpoint)
    return checkpoint


@pytest.fixture
def kept(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path, RUN)


def test_none_is_none(kept: Checkpoints) -> None:
    assert kept.last() == (None, [])


def test_the_newest_is_taken_and_the_oldest_go(kept: Checkpoints, tmp_path: Path) -> None:
    made = []
    for step in (3, 7, 9):
        made.append(keep(kept, step))
        kept.prune(2)
    assert kept.last() == (made[2], [])
    names = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    assert names == ["00000002", "00000003"]


def test_one_without_a_manifest_does_not_exist(kept: Checkpoints) -> None:
    good = keep(kept, 3)
    number = kept.begin()
    write_part(kept.path(number, "worker-0"), {}, {})
    assert kept.last() == (good, [])
    kept.prune(1)  # what is begun may still become one
    assert kept.path(number, "worker-0").exists()
    newer = keep(kept, 5)
    kept.prune(1)
    assert kept.last() == (newer, [])
    assert not kept.path(number, "worker-0").exists()


def test_a_manifest_of_another_run_is_named(kept: Checkpoints) -> None:
    good = keep(kept, 3)
    keep(kept, 5, run="another")
    found, wrongs = kept.last()
    assert found == good
    assert "another run" in wrongs[0]


def test_one_copied_to_another_number_is_named(kept: Checkpoints, tmp_path: Path) -> None:
    good = keep(kept, 3)
    root = tmp_path / "checkpoints"
    shutil.copytree(root / "00000001", root / "00000009")
    found, wrongs = kept.last()
    assert found == good
    assert "00000009" in wrongs[0]


def test_of_one_role_only_its_part_must_be_good(kept: Checkpoints) -> None:
    older, newer = keep(kept, 3), keep(kept, 5)
    kept.path(newer.number, "worker-1").write_bytes(b"")
    assert kept.last("worker-0") == (newer, [])
    found, wrongs = kept.last("worker-1")
    assert found == older
    assert "worker-1.part" in wrongs[0]


HARMS = ("truncate", "flip", "remove", "append")


@settings(max_examples=150, deadline=None)
@given(
    harms=st.lists(
        st.tuples(
            st.sampled_from(["worker-0.part", "worker-1.part", "manifest.json"]),
            st.sampled_from(HARMS),
            st.floats(0, 1, exclude_max=True),
            st.integers(0, 7),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_damage_is_found(
    tmp_path_factory: pytest.TempPathFactory, harms: list[tuple[str, str, float, int]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    kept = Checkpoints(folder, RUN)
    good, bad = keep(kept, 3), keep(kept, 5)
    whole = {path.name: path.read_bytes() for path in kept.path(bad.number, "x").parent.iterdir()}
    for name, what, where, bit in harms:
        path = kept.path(bad.number, "x").with_name(name)
        if not path.exists():
            continue
        content = bytearray(path.read_bytes())
        at = int(where * len(content))
        if what == "remove":
            path.unlink()
            continue
        if what == "truncate":
            del content[at:]
        elif what == "append":
            content += b"\0"
        elif content:
            content[at] ^= 1 << bit
        path.write_bytes(content)
    now = {path.name: path.read_bytes() for path in kept.path(bad.number, "x").parent.iterdir()}
    found, wrongs = kept.last()
    if found == bad:  # the harm was undone, or said the same in other bytes
        assert {k: v for k, v in now.items() if k != "manifest.json"} == {
            k: v for k, v in whole.items() if k != "manifest.json"
        }
        assert json.loads(now["manifest.json"]) == json.loads(whole["manifest.json"])
        return
    assert found == good
    if "manifest.json" in now:
        assert wrongs
        assert "00000002" in wrongs[0]


WRITING = """
import sys, numpy as np
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_store_checkpoints import keep
from paceline.store.checkpoints import Checkpoints
kept = Checkpoints(Path(sys.argv[1]), "a run")
for step in range(1, 100000):
    keep(kept, step)
    kept.prune(2)
    print(step, flush=True)
"""


@pytest.mark.parallel
@pytest.mark.parametrize("seconds", [0.0, 0.003, 0.01, 0.017])
def test_killed_while_writing_the_last_good_one_is_there(seconds: float, tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITING, tmp_path, Path(__file__).parent],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    steps = [int(writer.stdout.readline()) for _ in range(3)]
    time.sleep(seconds)  # the moment is what is tested
    os.kill(writer.pid, signal.SIGKILL)
    steps += [int(line) for line in writer.stdout.read().split()]
    writer.wait(10)
    writer.stdout.close()
    found, wrongs = Checkpoints(tmp_path, RUN).last()
    assert found is not None
    assert found.step >= steps[-1]
    assert not wrongs

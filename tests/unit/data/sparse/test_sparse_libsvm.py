"""LIBSVM text is read as its authors mean it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.hashing import feature
from paceline.data.sparse.libsvm import Libsvm
from paceline.data.sparse.text import Fault, Parsed

FEATURES = 1000


def parsed(text: str, *, hashed: bool = False, above: float | None = None) -> Parsed:
    read = Libsvm(FEATURES, hashed=hashed, above=above)
    return read(np.frombuffer(text.encode(), np.uint8))


def rows_of(found: Parsed) -> list[list[tuple[int, float]]]:
    assert found.offsets is not None
    assert found.values is not None
    pairs = list(zip(found.ids.tolist(), found.values.tolist(), strict=True))
    return [
        pairs[a:b]
        for a, b in zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True)
    ]


def test_a_small_file() -> None:
    found = parsed("+1 3:0.5 7:-2e1\t\n-1 qid:4 0:1 # said: 5:6\n0\n# nothing\n\n1 999:.25\r\n")
    assert found.labels.tolist() == [1, 0, 0, 1]
    assert rows_of(found) == [[(3, 0.5), (7, -20.0)], [(0, 1.0)], [], [(999, 0.25)]]
    assert found.bad == 0


numbers = st.floats(-1e6, 1e6, width=32, allow_subnormal=False)
entries = st.lists(st.tuples(st.integers(0, FEATURES - 1), numbers), max_size=5)


@given(st.lists(st.tuples(st.sampled_from(["-1", "+1", "0", "1"]), entries), max_size=5))
def test_any_rows(rows: list[tuple[str, list[tuple[int, float]]]]) -> None:
    lines = [" ".join([y, *(f"{i}:{float(v)!r}" for i, v in pairs)]) + "\n" for y, pairs in rows]
    found = parsed("".join(lines))
    assert found.labels.tolist() == [int(y in ("+1", "1")) for y, _ in rows]
    for row, (_, pairs) in zip(rows_of(found), rows, strict=True):
        assert [i for i, _ in row] == [i for i, _ in pairs]
        assert [v for _, v in row] == pytest.approx([v for _, v in pairs], rel=1e-6)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("x 1:2", Fault.NO_LABEL),
        ("1 1", Fault.NO_ENTRY),
        ("1 :1", Fault.NO_ENTRY),
        ("1 1:", Fault.NO_ENTRY),
        ("1 -1:1", Fault.NO_ENTRY),
        ("1 1:1:1", Fault.NO_ENTRY),
        ("1 1000:1", Fault.LARGE),
        ("1 1:1e39", Fault.NO_ENTRY),
        ("1 q5:1", Fault.NO_ENTRY),
        ("2 1:1", Fault.ODD_LABEL),
        ("0.5 1:1", Fault.ODD_LABEL),
    ],
)
def test_what_is_no_row_is_told(line: str, fault: Fault) -> None:
    found = parsed(f"1 1:1\n{line}\n0 2:2\n")
    assert found.labels.tolist() == [1, 0]
    assert rows_of(found) == [[(1, 1.0)], [(2, 2.0)]]
    assert [(f.line, f.fault) for f in found.faults] == [(1, fault)]


def test_hashed_indices_may_be_of_any_size() -> None:
    found = parsed("1 5:1 12345678901234567890:2\n", hashed=True)
    expected = [feature("index", "5", FEATURES)]
    expected += [feature("index", "12345678901234567890", FEATURES)]
    assert found.ids.tolist() == expected


def test_labels_of_other_kinds_need_a_border() -> None:
    found = parsed("1 1:1\n2 1:1\n9 1:1\n", above=1.5)
    assert found.labels.tolist() == [0, 1, 1]
    assert found.bad == 0


@given(st.binary(max_size=300), st.booleans())
def test_garbage_is_faults_and_nothing_else(garbage: bytes, hashed: bool) -> None:
    text = np.frombuffer(garbage + b"\n", np.uint8)
    found = Libsvm(FEATURES, hashed=hashed)(text)
    assert len(found.labels) + found.bad <= found.lines
    assert found.offsets is not None
    assert len(found.offsets) == len(found.labels) + 1
    assert ((found.ids >= 0) & (found.ids < FEATURES)).all()

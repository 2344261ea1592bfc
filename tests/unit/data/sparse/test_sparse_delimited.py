"""Delimited lines become the features that stand for what is in them; what is no row is told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.delimited import CRITEO, Columns, Delimited
from paceline.data.sparse.hashing import crossed, feature, hashed, mixed, number, rounded
from paceline.data.sparse.text import Fault, Parsed

FEATURES = 1 << 20
MIXED = Columns(
    ("y", "site", "age", "price", "note"),
    ("label", "category", "count", "number", "skip"),
    (("site", "age"),),
)


def parsed(
    text: str, columns: Columns = MIXED, delimiter: str = ",", quotes: bool = True
) -> Parsed:
    parse = Delimited(columns, delimiter, FEATURES, quotes=quotes)
    return parse(np.frombuffer(text.encode(), np.uint8))


def whole_hash(field: str, token: str) -> np.uint64:
    return np.uint64(mixed(np.uint64(hashed(field, token))))


def test_a_row_has_a_feature_for_each_field_and_cross() -> None:
    rows = parsed("1,paris,1000,2.5,whatever\n-1,,,,\n")
    assert rows.labels.tolist() == [1, 0]
    first, second = rows.ids.reshape(2, 4).tolist()
    assert first[:3] == [
        feature("site", "paris", FEATURES),
        feature("age", str(rounded(1000)), FEATURES),
        feature("price", "", FEATURES),
    ]
    pair = crossed(whole_hash("site", "paris"), whole_hash("age", "896"))
    assert first[3] == number(pair, np.uint64(FEATURES))
    assert second[:3] == [feature(name, "", FEATURES) for name in ("site", "age", "price")]
    assert rows.values is not None
    assert rows.values.reshape(2, 4).tolist() == [[1, 1, 2.5, 1], [1, 1, 0, 1]]
    assert rows.bad == 0


token = st.text(
    st.characters(blacklist_characters="\t\n\r", blacklist_categories=("Cs",)), max_size=20
)
count = st.one_of(st.none(), st.integers(-300, 300), st.integers(0, 10**17))


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.lists(count, min_size=13, max_size=13),
            st.lists(token, min_size=26, max_size=26),
        ),
        max_size=4,
    ),
    st.sampled_from(["\n", "\r\n"]),
)
def test_click_logs_of_any_content(
    rows: list[tuple[bool, list[int | None], list[str]]], end: str
) -> None:
    lines, expected = [], []
    for label, counts, fields in rows:
        shown = ["" if n is None else str(n) for n in counts]
        lines.append("\t".join([str(int(label)), *shown, *fields]) + end)
        kept = ["" if n is None else str(rounded(n) if n >= 0 else n) for n in counts]
        expected += [
            feature(name, text, FEATURES)
            for name, text in zip(CRITEO.fields, [*kept, *fields], strict=True)
        ]
    found = parsed("".join(lines), CRITEO, "\t", quotes=False)
    assert found.labels.tolist() == [int(label) for label, _, _ in rows]
    assert found.ids.tolist() == expected
    assert found.values is None
    assert found.bad == 0


def test_quotes_hold_delimiters_and_quotes() -> None:
    two = Columns(("y", "a"), ("label", "category"))
    found = parsed('1,"x,""y"""\r\n"0",plain\r\n', two)
    assert found.labels.tolist() == [1, 0]
    expected = [feature("a", 'x,"y"', FEATURES), feature("a", "plain", FEATURES)]
    assert found.ids.tolist() == expected


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("1,a,2,3", Fault.FEW),
        ("1,a,2,3,x,y", Fault.MANY),
        ("yes,a,2,3,x", Fault.NO_LABEL),
        (",a,2,3,x", Fault.NO_LABEL),
        ("1,a,2.5,3,x", Fault.NO_COUNT),
        ("1,a,2,x,x", Fault.NO_NUMBER),
        ("1,a,2,nan,x", Fault.NO_NUMBER),
        ("1,a,2,1e999,x", Fault.NO_NUMBER),
        ('1,"a,2,3,x', Fault.OPEN),
        ('1,"a"b,2,3,x', Fault.OPEN),
        ("3,a,2,3,x", Fault.ODD_LABEL),
        ("1,a,2,1e39,x", Fault.NO_NUMBER),
    ],
)
def test_what_is_no_row_is_told_and_left_out(line: str, fault: Fault) -> None:
    found = parsed(f"1,a,2,3,x\n{line}\n\n0,b,-2,3,x\n")
    assert found.labels.tolist() == [1, 0]
    assert (found.lines, found.bad) == (4, 1)
    assert [(f.line, f.fault, f.text) for f in found.faults] == [(1, fault, line)]
    good = parsed("1,a,2,3,x\n0,b,-2,3,x\n")
    assert found.ids.tolist() == good.ids.tolist()


def test_negative_counts_are_as_they_are() -> None:
    found = parsed("0,b,-2,3,x\n")
    assert found.ids[1] == feature("age", "-2", FEATURES)


@given(st.binary(max_size=300))
def test_garbage_is_faults_and_nothing_else(garbage: bytes) -> None:
    text = garbage + b"\n"
    found = Delimited(CRITEO, "\t", FEATURES, quotes=True)(np.frombuffer(text, np.uint8))
    blank = sum(line in (b"", b"\r") for line in text.split(b"\n")[:-1])
    assert len(found.labels) + found.bad + blank == text.count(b"\n")

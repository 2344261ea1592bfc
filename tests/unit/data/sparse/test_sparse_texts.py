"""Texts to words and pairs of words."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.data.sparse.hashing import feature
from paceline.data.sparse.text import Fault, Parsed
from paceline.data.sparse.texts import Fields, Texts

FEATURES = 1 << 20
FIELDS = Fields("body", "stars", 3.0, "split")


def parsed(*objects: Any, pairs: bool = False, fields: Fields = FIELDS) -> Parsed:
    text = "".join(json.dumps(one) + "\n" for one in objects)
    return Texts(fields, FEATURES, pairs=pairs)(np.frombuffer(text.encode(), np.uint8))


def words(*those: str) -> list[int]:
    return sorted({feature("word", word, FEATURES) for word in those})


def test_words_are_lower_case_and_count_once() -> None:
    one = {"body": "Don't panic, DON'T; panic 42 café", "stars": 5, "split": "train"}
    found = parsed(one)
    assert found.ids.tolist() == words("don't", "panic", "42", "café")
    assert found.labels.tolist() == [1]
    assert found.values is not None
    assert (found.values**2).sum() == pytest.approx(1, rel=1e-6)


def test_pairs_are_words_that_follow_each_other() -> None:
    one = {"body": "a b c a b", "stars": 1, "split": "test"}
    found = parsed(one, pairs=True)
    assert len(found.ids) == 3 + 3  # a b, b c, c a; and a b again
    assert set(words("a", "b", "c")) <= set(found.ids.tolist())
    other = parsed({**one, "body": "b a"}, pairs=True)
    assert len(set(other.ids.tolist()) - set(found.ids.tolist())) == 1  # in the other order
    assert found.test is not None
    assert found.test.tolist() == [True]


def test_a_text_without_words_is_a_row_without_entries() -> None:
    found = parsed(
        {"body": " ... ", "stars": 1, "split": ""}, {"body": "x", "stars": 9, "split": ""}
    )
    assert found.offsets is not None
    assert found.offsets.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("no json", Fault.NO_FIELDS),
        ("[1, 2]", Fault.NO_FIELDS),
        ('{"stars": 1, "split": "test"}', Fault.NO_FIELDS),
        ('{"body": 3, "stars": 1, "split": "test"}', Fault.NO_FIELDS),
        ('{"body": "x", "stars": "many", "split": "test"}', Fault.NO_LABEL),
        ('{"body": "x", "stars": NaN, "split": "test"}', Fault.NO_LABEL),
        ('{"body": "x", "stars": true, "split": "test"}', Fault.NO_LABEL),
        ("[" * 3000, Fault.NO_FIELDS),
        ('{"body": "x", "stars": 1' + "0" * 400 + ', "split": "test"}', Fault.NO_LABEL),
    ],
)
def test_what_is_no_row_is_told(line: str, fault: Fault) -> None:
    good = '{"body": "x", "stars": 1, "split": "test"}'
    text = np.frombuffer(f"{good}\n\n{line}\n{good}\n".encode(), np.uint8)
    found = Texts(FIELDS, FEATURES)(text)
    assert len(found.labels) == 2
    assert [(one.line, one.fault) for one in found.faults] == [(2, fault)]


@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_any_text_has_features_that_there_are(bodies: list[str]) -> None:
    found = parsed(*({"body": body, "stars": 1, "split": ""} for body in bodies), pairs=True)
    assert len(found.labels) == len(bodies)
    assert found.offsets is not None
    assert found.offsets[-1] == len(found.ids)
    assert ((found.ids >= 0) & (found.ids < FEATURES)).all()
    for begin, end in pairwise(found.offsets):
        assert (np.diff(found.ids[begin:end]) > 0).all()


def test_labels_of_other_kinds_need_a_border() -> None:
    fields = FIELDS._replace(above=None)
    found = parsed(*({"body": "x", "stars": n, "split": ""} for n in (-1, 0, 1, 4)), fields=fields)
    assert found.labels.tolist() == [0, 0, 1]
    assert [one.fault for one in found.faults] == [Fault.ODD_LABEL]

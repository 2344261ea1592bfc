"""Whoever has seen some version, and takes what is newer, has what there is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import StoreError
from paceline.web.topic import WRONG, Content, Topic

PARTS = st.dictionaries(st.sampled_from("abcd"), st.text(max_size=2).filter(bool))


@given(st.lists(st.tuples(PARTS, st.booleans()), min_size=1))
def test_a_client_however_slow_ends_with_all_there_is(
    course: list[tuple[dict[str, str], bool]],
) -> None:
    told: dict[str, str] = {}
    topic = Topic(lambda: told)
    page: dict[str, Content | None] = {}
    seen = 0
    for parts, listens in [*course, (course[-1][0], True)]:
        told = parts
        topic.refresh()
        if listens:
            seen, news = topic.since(seen)
            page |= news
            there = {name: what for name, what in page.items() if what is not None}
            assert there == topic.parts()[1] == {**parts, WRONG: ""}
    assert topic.since(seen) == (seen, {})


def test_what_stays_is_not_sent_again() -> None:
    told = {"a": "1", "b": "1"}
    topic = Topic(lambda: told)
    topic.refresh()
    version, _ = topic.since(0)
    told["b"] = "2"
    topic.refresh()
    assert topic.since(version)[1] == {"b": "2"}


def test_what_goes_wrong_is_told_beside_what_was_there() -> None:
    def source() -> dict[str, Content]:
        if broken:
            raise StoreError("'<b>' is gone.")
        return {"a": "1"}

    broken = True
    topic = Topic(source)
    with pytest.raises(StoreError):
        topic.refresh()
    broken = False
    topic.refresh()
    broken = True
    topic.refresh()
    assert topic.parts()[1] == {"a": "1", WRONG: "&#39;&lt;b&gt;&#39; is gone."}
    broken = False
    topic.refresh()
    assert topic.parts()[1][WRONG] == ""


def test_a_source_that_stumbles_over_a_foreign_file_is_told_in_a_sentence() -> None:
    topic = Topic(lambda: {}["spec"])
    with pytest.raises(StoreError, match="damaged, or another version"):
        topic.refresh()

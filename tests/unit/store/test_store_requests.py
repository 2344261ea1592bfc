"""Requests in a run's folder: each has a number of its own, and what is there is whole."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from paceline.errors import StoreError
from paceline.store.requests import FOLDER, Answer, Request, Requests


def test_they_are_numbered_and_read_back(tmp_path: Path) -> None:
    requests = Requests(tmp_path)
    assert requests.last() == 0
    assert not requests.there(1)
    asked = [Request(workers=3), Request(workers=1, servers=2)]
    assert [requests.leave(request) for request in asked] == [1, 2]
    assert requests.last() == 2
    assert [requests.read(number) for number in (1, 2)] == asked


def test_many_at_once_all_have_numbers_of_their_own(tmp_path: Path) -> None:
    numbers: list[int] = []

    def ask(workers: int) -> None:
        numbers.append(Requests(tmp_path).leave(Request(workers=workers)))

    threads = [threading.Thread(target=ask, args=(count,)) for count in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(numbers) == [*range(1, 9)]
    assert {Requests(tmp_path).read(n).workers for n in numbers} == set(range(1, 9))
    assert not list((tmp_path / FOLDER).glob(".*"))


def test_an_answer_may_change_until_it_is_final(tmp_path: Path) -> None:
    requests = Requests(tmp_path)
    number = requests.leave(Request(workers=2))
    assert requests.answered(number) is None
    for answer in (Answer(state="doing", said=("wait",)), Answer(state="done", said=("a", "b"))):
        requests.answer(number, answer)
        assert requests.answered(number) == answer
    assert answer.final
    assert requests.last() == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"workers": "2", "servers": null}'])
def test_what_is_no_request_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "1.json").write_text(text)
    with pytest.raises(StoreError, match=r"1\.json' is damaged"):
        Requests(tmp_path).read(1)

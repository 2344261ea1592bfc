"""The price book, and the published table that it prices again."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline import env
from paceline.errors import RequestError, UnknownName
from paceline.report.costs import as_object, price_published
from paceline.report.prices import price_book
from paceline.report.published_sentiment import machine_prices


def test_the_published_machines_are_in_it_at_their_prices() -> None:
    book = price_book()
    assert book.currency == "USD"
    assert {kind: book.machine(kind).price_an_hour for kind in machine_prices()} == machine_prices()
    with pytest.raises(UnknownName, match=r"did you mean 'p2.xlarge'"):
        book.machine("p2.xlage")


def test_ones_own_file_goes_on_top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "paceline" / "prices.toml"
    own.parent.mkdir()
    own.write_text('[machine."p2.xlarge"]\nprice_an_hour = 2\n[machine.box]\nprice_an_hour = 0.5\n')
    monkeypatch.delenv("PACELINE_PRICES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert env.prices_file() == own
    book = price_book(env.prices_file())
    assert (book.machine("p2.xlarge").price_an_hour, book.machine("box").price_an_hour) == (2, 0.5)
    assert book.machine("g3.4xlarge").price_an_hour == 1.14
    monkeypatch.setenv("PACELINE_PRICES", "elsewhere.toml")
    assert env.prices_file() == Path("elsewhere.toml")
    own.write_text('currency = "EUR"\n[machine.box]\nprice_an_hour = 0.5\n')
    assert list(price_book(own).machines) == ["box"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[machine.box]\ndevices = 1", "box: has no price_an_hour"),
        ("[machine.box]\nprice_an_hour = -1", "must be a number that is not below 0"),
        ("[machine.box]\nprice_an_hour = '1'", "must be a number"),
        ("[machine.box]\nprice = 1", "unknown field of a machine 'price'"),
        ("machine = 1", "machines are tables"),
        ("machines = 1", "did you mean 'machine'?"),
        ("x", "is not valid TOML"),
    ],
)
def test_a_wrong_book_is_told_in_a_sentence(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(text)
    with pytest.raises(RequestError) as told:
        price_book(tmp_path / "prices.toml")
    assert fault in str(told.value)


def test_the_published_prices_follow_from_hours_and_the_one_that_does_not_is_told() -> None:
    found = as_object(price_published(price_book()))
    apart = {
        choice["choice"]: (round(choice["run"]["money"], 2), choice["published"])
        for choice in found["choices"]
        if abs(choice["run"]["money"] - choice["published"]) > 0.011
    }
    assert apart == {"two g3.16xlarge with 2 GPUs each": (40.04, 20.02)}
    assert len(found["choices"]) == 11
    assert {choice["choice"] for choice in found["choices"] if choice["front"]} == {
        *("one g3.4xlarge", "two g3.4xlarge", "one g3.16xlarge", "two g3.16xlarge"),
    }
    assert "counts 1 g3.16xlarge where 2 ran" in found["sentences"][-1]
    assert "one p2.xlarge (beaten by one g3.4xlarge)" in found["sentences"][1]

"""What doctor shows fits the terminal, and what it prints for programs is JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from doctor_samples import a_laptop, a_large_host

from paceline.diagnose.doctor.facts import Facts
from paceline.report.doctor import as_object, report
from paceline.report.layout import render
from paceline.store.text import to_json


def told(facts: Facts, width: int = 80) -> str:
    return render(report(facts), width)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("facts", [a_laptop(), a_large_host(), Facts()])
def test_everything_fits(facts: Facts, width: int) -> None:
    text = told(facts, width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text  # nothing is cut off


def test_a_good_machine() -> None:
    text = told(a_laptop())
    assert text.startswith("desk · AMD EPYC (virtual) · 2 cores · 25.3 GB · no GPU · measured in")
    assert "memory, one core   13.7  GB/s copied" in text
    assert "use this                        2      8,996" in text
    assert "cores: equal: none is more than 5 % slower than the fastest." in text
    assert "no warnings" in text
    assert text.endswith("over TCP on this\nhost.")


def test_a_bad_one_tells_what_to_do() -> None:
    text = told(a_large_host(), 120)
    assert "a quota of 24, throttled 1,204 times" in text
    assert "core 95" in text
    assert "88 faster ones are not shown" in text
    assert "1,005 of 1,410" in text
    assert "4 NVLinks" in text
    assert "  · docker run --shm-size 2g" in text
    assert "not measured: threads: it took longer than 102 s" in text
    assert "no warnings" not in text


def test_links_of_many_gpus_are_listed_where_no_square_fits() -> None:
    assert "reach each other by" in told(a_large_host(), 48)


def test_an_interrupted_one_says_so() -> None:
    assert "interrupted after 26.4 s" in told(replace(a_laptop(), complete=False), 120)


def test_one_object_for_programs() -> None:
    found = json.loads(to_json(as_object(a_large_host())))
    assert found["cores"]["quota"] == 24.0
    assert found["threads"] is None
    assert found["unmeasured"] == [{"probe": "threads", "reason": "it took longer than 102 s"}]
    kinds = [warning["kind"] for warning in found["warnings"]]
    assert kinds[:3] == ["busy", "steal", "quota"]
    assert all(warning["advice"] for warning in found["warnings"])
    assert found["verdict"].startswith("Good for 4 workers on 4 GPUs.")
    assert found["gpus"]["links"][0] == {"a": 0, "b": 1, "way": "4 NVLinks", "nvlinks": 4}

"""The door: who may look, who may act, and what every answer says to a browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from web_client import TestClient

from paceline.errors import RequestError
from paceline.web.app import Dashboard
from paceline.web.guard import Door
from paceline.web.serve import PORT, listen

TOKEN = "a-token-of-some-length"


@pytest.fixture
def beyond(runs: Path) -> TestClient:
    door = Door(port=8765, token=TOKEN, loopback=False)
    return TestClient(Dashboard(runs, door).app, base_url="http://box.example:8765")


@pytest.mark.parametrize("path", ["/", "/at/nothing", "/static/live.js", "/nowhere"])
def test_every_answer_tells_browsers_to_stay_here(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'self'")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""]
)
def test_a_name_of_another_site_that_leads_here_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:1", "[::1]:8765"])
def test_the_loopback_by_any_of_its_names_is_welcome(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


def test_beyond_the_loopback_nothing_is_told_without_the_token(beyond: TestClient) -> None:
    for path in ("/", "/live", "/static/live.js", "/compare?with=a&with=b"):
        assert beyond.get(path).status_code == 403
    assert beyond.get("/?token=wrong").status_code == 403
    assert beyond.get("/?token=").status_code == 403
    assert beyond.get("/", headers={"cookie": "paceline-8765=wrong"}).status_code == 403


def test_the_token_moves_from_the_address_into_a_cookie(beyond: TestClient) -> None:
    answer = beyond.get(
        f"http://box.example:8765//evil.example/?token={TOKEN}&with=a", follow_redirects=False
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == "/evil.example/?with=a"  # not to another host
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert beyond.get("/").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost:8765"},
        {"origin": "http://evil.example", "x-paceline": "stop"},
        {"origin": "null", "x-paceline": "stop"},
    ],
)
def test_no_other_page_can_stop_a_run(client: TestClient, headers: dict[str, str]) -> None:
    assert client.post("/stop?of=x", headers=headers).status_code == 403


def test_a_page_of_ours_may_ask(client: TestClient) -> None:
    headers = {"origin": "http://localhost:8765", "x-paceline": "stop"}
    answer = client.post("/stop?of=x", headers=headers)
    assert answer.status_code == 409
    assert "no run or sweep 'x'" in answer.json()["said"]
    assert client.get("/stop?of=x", headers=headers).status_code == 405


def test_a_token_is_made_for_whatever_is_not_the_loopback() -> None:
    here, beyond = listen("127.0.0.1", 0, token=False), listen("0.0.0.0", 0, token=False)
    asked = listen("localhost", 0, token=True)
    try:
        assert here.door.token is None
        assert "token" not in here.address
        assert beyond.door.token
        assert beyond.address.endswith(f"?token={beyond.door.token}")
        assert not beyond.door.loopback
        assert asked.door.token
        assert asked.door.loopback
    finally:
        for each in (here, beyond, asked):
            each.socket.close()


def test_a_port_that_is_taken_is_passed_over_unless_it_was_asked_for() -> None:
    first = listen("127.0.0.1", None, token=False)
    second = listen("127.0.0.1", None, token=False)
    try:
        assert PORT <= first.door.port < second.door.port
        with pytest.raises(RequestError, match="choose others with --listen and --port"):
            listen("127.0.0.1", first.door.port, token=False)
    finally:
        first.socket.close()
        second.socket.close()


def test_an_address_is_an_address() -> None:
    with pytest.raises(RequestError, match="--listen takes an address"):
        listen("here", None, token=False)

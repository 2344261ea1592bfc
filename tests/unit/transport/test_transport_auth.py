"""Both ends prove the secret; neither a stranger nor an echo of our own words passes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.transport import auth

SECRET = bytes(range(32))


def test_the_right_secret_is_accepted_both_ways() -> None:
    nonce = auth.new_nonce()
    answer, expected = auth.answer(SECRET, nonce)
    assert len(answer) == auth.ANSWER_BYTES
    assert auth.accept(SECRET, nonce, answer) == expected


def test_a_wrong_secret_is_refused() -> None:
    nonce = auth.new_nonce()
    answer, _ = auth.answer(b"x" * 32, nonce)
    assert auth.accept(SECRET, nonce, answer) is None


@given(st.binary(min_size=auth.ANSWER_BYTES, max_size=auth.ANSWER_BYTES))
def test_guesses_are_refused(answer: bytes) -> None:
    assert auth.accept(SECRET, auth.new_nonce(), answer) is None


def test_an_answer_to_another_nonce_is_refused() -> None:
    """Whoever listened to one connection cannot open the next."""
    answer, _ = auth.answer(SECRET, auth.new_nonce())
    assert auth.accept(SECRET, auth.new_nonce(), answer) is None


def test_a_server_that_only_reflects_proves_nothing() -> None:
    nonce = auth.new_nonce()
    answer, expected = auth.answer(SECRET, nonce)
    assert answer[auth.NONCE_BYTES :] != expected


def test_a_servers_proof_is_no_answer_of_a_client() -> None:
    """Sending a server's own proof of one connection back to it in another."""
    nonce = auth.new_nonce()
    answer, _ = auth.answer(SECRET, nonce)
    proof = auth.accept(SECRET, nonce, answer)
    assert proof is not None
    assert auth.accept(SECRET, nonce, answer[: auth.NONCE_BYTES] + proof) is None


def test_secrets_and_nonces_are_new_each_time() -> None:
    assert len({auth.new_secret() for _ in range(10)} | {auth.new_nonce() for _ in range(10)}) == 20

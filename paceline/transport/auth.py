"""Both ends prove that they know the run's secret, and neither sends it.

    server ──► nonce
    client ──► nonce', HMAC(secret, "client" nonce nonce')
    server ──► HMAC(secret, "server" nonce nonce')

Every message has a fixed length, so nothing is read from a stranger beyond it.
"""

from __future__ import annotations

import hmac
import secrets

NONCE_BYTES = 32
PROOF_BYTES = 32
ANSWER_BYTES = NONCE_BYTES + PROOF_BYTES


def new_secret() -> bytes:
    return secrets.token_bytes(32)


def new_nonce() -> bytes:
    return secrets.token_bytes(NONCE_BYTES)


def prove(secret: bytes, who: str, theirs: bytes, ours: bytes) -> bytes:
    return hmac.digest(secret, who.encode() + theirs + ours, "sha256")


def answer(secret: bytes, nonce: bytes) -> tuple[bytes, bytes]:
    """What a client sends to a server's nonce, and the proof it must get back."""
    own = new_nonce()
    return own + prove(secret, "client", nonce, own), prove(secret, "server", nonce, own)


def accept(secret: bytes, nonce: bytes, answered: bytes) -> bytes | None:
    """The server's own proof if the client's answer is right, else None."""
    own, proof = answered[:NONCE_BYTES], answered[NONCE_BYTES:]
    if not hmac.compare_digest(proof, prove(secret, "client", nonce, own)):
        return None
    return prove(secret, "server", nonce, own)

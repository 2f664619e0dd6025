"""Take secrets out of what is kept or shown."""

import base64
import json
from collections.abc import Iterator, Sequence
from urllib.parse import quote, quote_plus

__all__ = ["scrub", "scrub_text"]

_SHOWN = "[secret]"
_LEAST_CHARS = 4  # a shorter one would tear texts apart, and is no secret


def scrub_text(text: str, secrets: Sequence[str]) -> str:
    """Return a text with each secret replaced, in whatever form of the web it stands.

    Example:
        >>> scrub_text("the key k3y+42 is unknown (k3y%2B42)", ["k3y+42"])
        'the key [secret] is unknown ([secret])'
    """
    for form in _forms(secrets):
        text = text.replace(form, _SHOWN)
    return text


def scrub(body: bytes, secrets: Sequence[str]) -> bytes:
    """Return a body with each secret replaced."""
    for form in _forms(secrets):
        body = body.replace(form.encode(), _SHOWN.encode())
    return body


def _forms(secrets: Sequence[str]) -> Iterator[str]:
    """Give each secret as it is, escaped for URLs and JSON, and in Base64; the longest first."""
    forms = set()
    for secret in secrets:
        if len(secret) >= _LEAST_CHARS:
            coded = base64.b64encode(secret.encode()).decode()
            forms |= {secret, quote(secret, ""), quote_plus(secret), json.dumps(secret)[1:-1]}
            forms |= {coded, coded.rstrip("=")}
    yield from sorted(forms, key=lambda form: (-len(form), form))

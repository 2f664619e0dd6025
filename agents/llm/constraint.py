"""Constrained decoding: a policy that can write nothing but a valid call."""

from collections.abc import Callable, Sequence

from ...envs.protocols import Blank, Form

__all__ = ["Guide"]


class Guide:
    """Leads one reply along the forms of a protocol.

    Where the forms leave no choice, their text is given (``forced``), so that it is no token of
    the policy; where they do, the policy draws from the tokens that fit (``allows``): which call,
    what stands in its blanks, and where a blank ends.

    Args:
        forms: The ways to write a call.
        texts: The text of each token of the vocabulary; empty for control tokens.
        encode: Gives the ids of a text.
        max_tokens: The longest a blank may become before it is closed.
    """

    def __init__(
        self,
        forms: Sequence[Form],
        texts: Sequence[str],
        encode: Callable[[str], list[int]],
        *,
        max_tokens: int,
    ) -> None:
        self._forms = list(forms)
        self._texts = texts
        self._encode = encode
        self._max_tokens = max_tokens
        self._part = 0
        self._written = ""  # of the part
        self._tokens = 0  # in the blank
        self.is_done = False

    def forced(self) -> list[int]:
        """Return the ids of what must come next, and take them as written; often none."""
        text = self._forced_text()
        return self._encode(text) if text else []

    def allows(self, token: int) -> bool:
        """Tell whether a token may come next."""
        text = self._texts[token]
        if not text:
            return False
        blank = self._blank
        if blank is None:
            return any(part.startswith(self._written + text) for part in self._literals)
        if blank.is_number:
            index = len(text) - len(text.lstrip("0123456789"))
        else:
            index = _first_of(text, blank.forbidden)
        if index == len(text):
            return True
        has_content = bool((self._written + text[:index]).strip())
        return has_content and blank.end.startswith(text[index:])

    def accept(self, token: int) -> None:
        """Take a token as written."""
        self._write(self._texts[token])
        self._tokens += 1

    @property
    def _blank(self) -> Blank | None:
        part = self._forms[0][self._part]
        return part if isinstance(part, Blank) else None

    @property
    def _literals(self) -> list[str]:
        return [part for form in self._forms if isinstance(part := form[self._part], str)]

    def _forced_text(self) -> str:
        forced = ""
        while not self.is_done:
            blank = self._blank
            if blank is None:
                rest = _common_prefix(self._literals)[len(self._written) :]
            elif self._tokens >= self._max_tokens:
                rest = blank.end[len(self._closing(blank)) :]
            else:
                closing = self._closing(blank)
                rest = blank.end[len(closing) :] if closing else ""
            if not rest:
                return forced
            forced += rest
            self._write(rest)
        return forced

    def _write(self, text: str) -> None:
        self._written += text
        blank = self._blank
        if blank is None:
            self._forms = [
                form for form in self._forms if str(form[self._part]).startswith(self._written)
            ]
            is_complete = len(self._forms) == 1 and self._forms[0][self._part] == self._written
        else:
            is_complete = self._closing(blank) == blank.end
        if is_complete:
            self._part += 1
            self._written = ""
            self._tokens = 0
            self.is_done = self._part == len(self._forms[0])

    def _closing(self, blank: Blank) -> str:
        """Return what of the blank's end is written already."""
        if blank.is_number:
            return self._written.lstrip("0123456789")
        return self._written[_first_of(self._written, blank.forbidden) :]


def _first_of(text: str, characters: str) -> int:
    """Return where the first of some characters stands, or the text's length."""
    return next((i for i, character in enumerate(text) if character in characters), len(text))


def _common_prefix(texts: Sequence[str]) -> str:
    """Return what all texts begin with."""
    shortest, longest = min(texts), max(texts)  # in the order of characters, so these two decide
    return shortest[: next((i for i, c in enumerate(shortest) if c != longest[i]), len(shortest))]

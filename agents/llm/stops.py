"""Find the token that completes a stop string."""

from collections.abc import Callable, Sequence

__all__ = ["StopWatch"]


class StopWatch:
    """Tells when a reply has reached one of its stop strings, to the token.

    A stop string may begin and end inside tokens. It can only be completed by a token that holds
    its last character, so that the reply is decoded for those tokens alone.

    Args:
        texts: The text of each token of the vocabulary.
        decode: Gives the text of some ids.
        stops: The stop strings.
    """

    def __init__(
        self, texts: Sequence[str], decode: Callable[[list[int]], str], stops: Sequence[str]
    ) -> None:
        self._decode = decode
        self._stops = tuple(stops)
        last = {stop[-1] for stop in stops}
        self._closing = frozenset(
            token for token, text in enumerate(texts) if not last.isdisjoint(text)
        )

    def end(self, reply: list[int]) -> str | None:
        """Return the reply's text up to the end of its first stop string, or None."""
        if not reply or reply[-1] not in self._closing:
            return None
        text = self._decode(reply)
        ends = [found + len(stop) for stop in self._stops if (found := text.find(stop)) >= 0]
        return text[: min(ends)] if ends else None

"""Read a pattern from left to right: what the readers of every syntax share."""

import re

from .literals import ANYTHING, EMPTY, Part, alternate, concatenate, from_character, repeat

__all__ = ["PatternReader", "Unsure"]

_MAX_DEPTH = 40  # of groups in groups
_MAX_CLASS = 8  # characters of a class that are written out
_COUNTED = re.compile(r"\{(\d{1,4})(,(\d{0,4}))?\}", re.ASCII)
# A class that is only characters, with no range, escape, class in class, or set operation.
_PLAIN_CLASS = re.compile(r"\[([A-Za-z0-9 _/\"'@%;!,.]+)\]")


class Unsure(Exception):
    """Say that a pattern holds something whose meaning is not certain here."""


class PatternReader:
    """Read a pattern from left to right: alternatives of sequences of repeated atoms."""

    either = "|"
    opening = "("
    closing = ")"

    def __init__(self, text: str, ignores_case: bool) -> None:
        self.text = text
        self.position = 0
        self.depth = 0
        self.ignores_case = ignores_case
        self.ever_ignored_case = ignores_case

    def read(self) -> Part:
        """Return what the whole pattern matches."""
        if "\n" in self.text or not self._is_encodable():
            raise Unsure
        part = self._alternatives()
        if self.position < len(self.text):
            raise Unsure
        return part

    def atom(self, *, is_first: bool) -> Part:
        """Read one atom: a character, a class, a group, an escape."""
        raise NotImplementedError

    def quantifier(self) -> tuple[int, int | None] | None:
        """Read a quantifier, if one stands here."""
        raise NotImplementedError

    def _is_encodable(self) -> bool:
        return not any(0xD800 <= ord(character) < 0xE000 for character in self.text)

    def _alternatives(self) -> Part:
        self.descend()
        branches = [self._sequence()]
        while self.accept(self.either):
            branches.append(self._sequence())
        self.depth -= 1
        return alternate(branches)

    def _sequence(self) -> Part:
        parts: list[Part] = []
        start = self.position
        while self.position < len(self.text) and not self._is_at_end_of_sequence():
            parts.append(self._repeated(start))
        return concatenate(parts)

    def _is_at_end_of_sequence(self) -> bool:
        return self.sees(self.either) or self.sees(self.closing)

    def _repeated(self, start: int) -> Part:
        before = self.position
        part = self.atom(is_first=before == start)
        is_wide = self.position == before + 1 and not self.text[before].isascii()
        while (counts := self.quantifier()) is not None:
            if part is EMPTY:
                raise Unsure
            if is_wide:  # without UTF-8, the quantifier is for the last byte alone
                part = concatenate([part, ANYTHING]) if counts[0] else ANYTHING
            else:
                part = repeat(part, *counts)
        return part

    def group(self) -> Part:
        """Read a group up to its end; a flag set in it ends with it."""
        ignored = self.ignores_case
        part = self._alternatives()
        self.expect(self.closing)
        self.ignores_case = ignored
        # An empty group may be quantified, an anchor may not.
        return Part(part.exact, part.clauses)

    def character(self) -> Part:
        """Read one character that stands for itself."""
        return from_character(self.take(), ignores_case=self.ignores_case)

    def descend(self) -> None:
        """Go one group or class deeper."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise Unsure

    def plain_class(self) -> Part | None:
        """Read a class of a few characters, if one stands here."""
        found = _PLAIN_CLASS.match(self.text, self.position)
        if found is None or len(set(found[1])) > _MAX_CLASS:
            return None
        self.position = found.end()
        return alternate([from_character(c, ignores_case=self.ignores_case) for c in found[1]])

    def counted(self, pattern: re.Pattern[str] = _COUNTED) -> tuple[int, int | None]:
        """Read ``{n}``, ``{n,}`` or ``{n,m}``."""
        found = self.match(pattern)
        least = int(found[1])
        if found[2] is None:
            return least, least
        return least, int(found[3]) if found[3] else None

    def match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Read what the pattern matches here, which must be something."""
        found = pattern.match(self.text, self.position)
        if found is None:
            raise Unsure
        self.position = found.end()
        return found

    def set_ignores_case(self, value: bool) -> None:
        """Follow a flag in the pattern."""
        self.ignores_case = value
        self.ever_ignored_case |= value

    def sees(self, text: str) -> bool:
        """Say whether the text stands here."""
        return self.text.startswith(text, self.position)

    def accept(self, text: str) -> bool:
        """Read the text if it stands here."""
        if not self.sees(text):
            return False
        self.position += len(text)
        return True

    def expect(self, text: str) -> None:
        """Read the text, which must stand here."""
        if not self.accept(text):
            raise Unsure

    def take(self) -> str:
        """Read one character."""
        if self.position >= len(self.text):
            raise Unsure
        self.position += 1
        return self.text[self.position - 1]

r"""Readers of the pattern syntaxes of rg and grep, as far as literals need.

One small reader for each syntax, over a shared core. A reader raises ``Unsure`` at anything that
it does not know for certain, and then the pattern has no required literal. That is always safe.

==========  ==========================================  =================================
dialect     read by                                     reference
==========  ==========================================  =================================
fixed       ``rg -F``, ``grep -F``                      the text itself
rust        ``rg``                                      the regex crate's syntax
perl        ``rg -P``, ``grep -P``                      PCRE2
basic       ``grep``, ``grep -G``                       POSIX BRE with GNU's additions
extended    ``grep -E``                                 POSIX ERE with GNU's additions
==========  ==========================================  =================================
"""

import re
from collections.abc import Callable
from typing import Literal

from .literals import (
    ANYTHING,
    EMPTY,
    NOTHING_REQUIRED,
    Part,
    Requirement,
    concatenate,
    from_character,
    required_by,
)
from .pattern_reader import PatternReader, Unsure

__all__ = ["Dialect", "required_literals"]

Dialect = Literal["fixed", "rust", "perl", "basic", "extended"]

_COUNTED_FROM_NONE = re.compile(r"\{,(\d{1,4})\}", re.ASCII)
_COUNTED_BASIC = re.compile(r"\{(\d{0,4})(,(\d{0,4}))?\\\}", re.ASCII)
_HEXADECIMAL = re.compile(r"\{[0-9A-Fa-f ]*\}|[0-9A-Fa-f]{0,2}")
_PROPERTY = re.compile(r"\{[^{}]*\}|[A-Za-z]")
_POSIX_CLASS = re.compile(r"\[([:.=])[^\[\]]*?\1\]")
_PERL_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")


def required_literals(pattern: str, dialect: Dialect, *, ignores_case: bool) -> Requirement:
    r"""Return the literals that every line that matches must contain.

    Example:
        >>> required_literals(r"(born|died) in \d+ at Oxford", "rust", ignores_case=False).clauses
        ((b' at oxford',), (b'born in ', b'died in '))
    """
    reader = _READERS[dialect](pattern, ignores_case)
    try:
        part = reader.read()
    except Unsure:
        return NOTHING_REQUIRED
    return required_by(part, ignores_case=reader.ever_ignored_case)


class _Fixed(PatternReader):
    def read(self) -> Part:
        """Return the text as one sequence."""
        if "\n" in self.text or not self._is_encodable():
            raise Unsure
        return concatenate(
            from_character(character, ignores_case=self.ignores_case) for character in self.text
        )


class _Modern(PatternReader):
    """Read what the syntaxes of Rust and Perl have in common."""

    group_start: re.Pattern[str]
    flags: re.Pattern[str]
    zero_width = ""
    several = "dDwWsS"
    lazy = "?"

    def atom(self, *, is_first: bool) -> Part:
        """Read one atom."""
        if self.accept("\\"):
            return self._escape()
        if self.accept("("):
            return self._group()
        if self.sees("["):
            return self.plain_class() or self._skip_class()
        if self.accept("."):
            return ANYTHING
        if self.accept("^") or self.accept("$"):
            return EMPTY
        if self.text[self.position] in "*+?{":
            raise Unsure
        return self.character()

    def quantifier(self) -> tuple[int, int | None] | None:
        """Read a quantifier with its mark for lazy or possessive."""
        counts: tuple[int, int | None]
        if self.sees("{"):
            counts = self.counted()
        elif self.position < len(self.text) and self.text[self.position] in "*+?":
            counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.take()]
        else:
            return None
        if self.position < len(self.text) and self.text[self.position] in self.lazy:
            self.position += 1
        return counts

    def _group(self) -> Part:
        if not self.sees("?") and not self.sees("*"):
            return self.group()
        found = self.flags.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
            return self._flag_group(found[1], found[2] == ":")
        is_zero_width = self.match(self.group_start)[0] in ("?=", "?!", "?<=", "?<!")
        part = self.group()
        return EMPTY if is_zero_width else part

    def _flag_group(self, flags: str, has_body: bool) -> Part:
        before = self.ignores_case
        on, _, off = flags.partition("-")
        if "i" in on or "i" in off:
            self.set_ignores_case("i" in on)
        if not has_body:
            return EMPTY
        part = self.group()
        self.ignores_case = before
        return part

    def _escape(self) -> Part:
        letter = self.take()
        if letter in self.zero_width:
            return EMPTY
        if letter in self.several:
            return ANYTHING
        if letter == "x":
            self.match(_HEXADECIMAL)
            return ANYTHING
        if letter in "pP":
            self.match(_PROPERTY)
            return ANYTHING
        if letter in "tnrfa":
            return from_character("\t", ignores_case=False) if letter == "t" else ANYTHING
        return self._other_escape(letter)

    def _other_escape(self, letter: str) -> Part:
        if letter.isalnum() or not letter.isascii() or letter in "<>":
            raise Unsure
        return from_character(letter, ignores_case=self.ignores_case)

    def _skip_class(self) -> Part:
        raise NotImplementedError


class _Rust(_Modern):
    group_start = re.compile(r"\?(P?<[A-Za-z_][A-Za-z0-9_]*>)")
    flags = re.compile(r"\?([imsuU]*(?:-[imsuU]+)?)([:)])")
    zero_width = "bBAz"

    def _skip_class(self) -> Part:
        """Skip a class, which may hold classes."""
        self.expect("[")
        self.accept("^")
        self.accept("]")
        while not self.accept("]"):
            if self.sees("["):
                self._nest()
            elif self.take() == "\\":
                self.take()
        return ANYTHING

    def _nest(self) -> None:
        self.descend()
        self._skip_class()
        self.depth -= 1

    def _escape(self) -> Part:
        part = super()._escape()
        if part is EMPTY and self.sees("{"):  # \b{start} of newer versions
            raise Unsure
        return part


class _Perl(_Modern):
    group_start = re.compile(
        r"\?(?:[:>|=!]|<[=!]|P?<[A-Za-z_][A-Za-z0-9_]*>|'[A-Za-z_][A-Za-z0-9_]*')"
    )
    flags = re.compile(r"\?([imsU]*(?:-[imsU]+)?)(\))|\?([imsU]*(?:-[imsU]+)?)(:)")
    zero_width = "bBAzZGK"
    several = "dDwWsShHvVRXC"
    lazy = "?+"

    def atom(self, *, is_first: bool) -> Part:
        """Read one atom; a comment is none."""
        if self.accept("(?#"):
            end = self.text.find(")", self.position)
            if end < 0:
                raise Unsure
            self.position = end + 1
            return EMPTY
        return super().atom(is_first=is_first)

    def _group(self) -> Part:
        found = self.flags.match(self.text, self.position)
        if found is None:
            return super()._group()
        self.position = found.end()
        return self._flag_group(found[1] or found[3] or "", found[4] == ":")

    def _other_escape(self, letter: str) -> Part:
        if letter in "123456789":  # a group again, or a character by its number
            while self.position < len(self.text) and self.text[self.position].isdigit():
                self.position += 1
            return ANYTHING
        if letter == "N" and not self.sees("{"):
            return ANYTHING
        return super()._other_escape(letter)

    def _skip_class(self) -> Part:
        r"""Skip a class; one with ``\Q`` or ``\E`` in it may end elsewhere."""
        self.expect("[")
        self.accept("^")
        self.accept("]")
        while not self.accept("]"):
            if self.sees("[:") or self.sees("[.") or self.sees("[="):
                self.match(_PERL_POSIX_CLASS)
            elif self.take() == "\\" and self.take() in "QEcx":
                raise Unsure
        return ANYTHING


class _Posix(PatternReader):
    """Read what the basic and the extended syntax have in common."""

    def atom(self, *, is_first: bool) -> Part:
        """Read one atom."""
        if self.accept(self.opening):
            return self.group()
        if self.sees("["):
            return self.plain_class() or self._skip_class()
        if self.accept("."):
            return ANYTHING
        if self.sees("^") or self.sees("$"):
            return self.anchor(is_first=is_first)
        if self.quantifier() is not None:
            raise Unsure
        if self.accept("\\"):
            return self._escape()
        return self.character()

    def anchor(self, *, is_first: bool) -> Part:
        """Read ``^`` or ``$``."""
        raise NotImplementedError

    def _escape(self) -> Part:
        letter = self.take()
        if letter in "bB<>`'":
            return EMPTY
        if letter.isalnum():
            return ANYTHING
        return from_character(letter, ignores_case=self.ignores_case)

    def _skip_class(self) -> Part:
        """Skip a class, in which a backslash means nothing special."""
        self.expect("[")
        self.accept("^")
        self.accept("]")
        while not self.accept("]"):
            if self.sees("[:") or self.sees("[.") or self.sees("[="):
                self.match(_POSIX_CLASS)
            else:
                self.take()
        return ANYTHING


class _Basic(_Posix):
    either, opening, closing = "\\|", "\\(", "\\)"

    def anchor(self, *, is_first: bool) -> Part:
        """Read ``^`` at the start or ``$`` at the end; elsewhere they may be characters."""
        is_caret = self.take() == "^"
        at_end = self.position == len(self.text) or self._is_at_end_of_sequence()
        return EMPTY if (is_first if is_caret else at_end) else ANYTHING

    def quantifier(self) -> tuple[int, int | None] | None:
        r"""Read ``*``, ``\+``, ``\?`` or a counted one."""
        if self.accept("*"):
            return 0, None
        if self.accept(r"\+"):
            return 1, None
        if self.accept(r"\?"):
            return 0, 1
        if not self.sees(r"\{"):
            return None
        self.position += 1
        found = self.match(_COUNTED_BASIC)
        least = int(found[1] or 0)
        return least, (least if found[2] is None else int(found[3]) if found[3] else None)


class _Extended(_Posix):
    def anchor(self, *, is_first: bool) -> Part:
        """Read ``^`` or ``$``, which are anchors anywhere."""
        self.take()
        return EMPTY

    def quantifier(self) -> tuple[int, int | None] | None:
        """Read ``*``, ``+``, ``?`` or a counted one."""
        if self.sees("{"):
            if (found := _COUNTED_FROM_NONE.match(self.text, self.position)) is not None:
                self.position = found.end()
                return 0, int(found[1])
            return self.counted()
        if self.position < len(self.text) and self.text[self.position] in "*+?":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.take()]
        return None


_READERS: dict[Dialect, Callable[[str, bool], PatternReader]] = {
    "fixed": _Fixed,
    "rust": _Rust,
    "perl": _Perl,
    "basic": _Basic,
    "extended": _Extended,
}

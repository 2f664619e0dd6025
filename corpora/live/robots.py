"""What a robots.txt lets a fetcher open (RFC 9309)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, unquote_to_bytes

__all__ = ["ALLOW_ALL", "Robots"]

_MAX_CHARS = 500 * 1024
_MAX_RULES = 5_000
_MAX_PATTERN_CHARS = 2_000


@dataclass(frozen=True)
class Robots:
    """The rules of one robots.txt for one fetcher.

    Attributes:
        rules: Each pattern of a path, and whether it may be opened.
    """

    rules: tuple[tuple[str, bool], ...] = ()

    @classmethod
    def of(cls, text: str, agent: str) -> "Robots":
        r"""Read the groups for an agent; those for ``*`` if there is none for it.

        Whatever the text is, it can be read: lines that mean nothing are passed over.

        Example:
            >>> robots = Robots.of("User-agent: *\nDisallow: /a\nAllow: /a/b", "seekgym")
            >>> robots.allows("/a/c"), robots.allows("/a/b")
            (False, True)
        """
        own: list[tuple[str, bool]] = []
        others: list[tuple[str, bool]] = []
        has_own = False
        agents: set[str] = set()
        is_in_rules = False
        for field, value in _fields(text):
            if field == "user-agent":
                agents = set() if is_in_rules else agents
                is_in_rules = False
                agents.add(_product(value))
                has_own = has_own or agent.lower() in agents
                continue
            is_in_rules = True
            for group, name in ((own, agent.lower()), (others, "*")):
                if name in agents and value and len(group) < _MAX_RULES:
                    group.append((_normal(value), field == "allow"))
        return cls(tuple(own if has_own else others))

    def allows(self, path: str) -> bool:
        """Tell whether a path, with its query, may be opened: the longest rule decides."""
        path = _normal(path)
        if path == "/robots.txt":
            return True
        best, is_allowed = -1, True
        for pattern, length, allowed in self._patterns:
            if length < best or (length == best and not allowed):
                continue
            if _fits(pattern, path):
                best, is_allowed = length, allowed
        return is_allowed

    @cached_property
    def _patterns(self) -> list[tuple[tuple[str, ...], int, bool]]:
        return [(tuple(rule.split("*")), len(rule), allowed) for rule, allowed in self.rules]


ALLOW_ALL = Robots()


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for line in re.split(r"\r\n|\r|\n", text[:_MAX_CHARS].removeprefix("\ufeff")):
        name, colon, value = line.split("#", 1)[0].partition(":")
        field = name.strip().lower()
        if colon and field in ("user-agent", "allow", "disallow"):
            yield field, value.strip()[:_MAX_PATTERN_CHARS]


def _product(value: str) -> str:
    """Return the product token of a user agent: letters, hyphens, underscores; or ``*``."""
    if value.startswith("*"):
        return "*"
    found = re.match(r"[a-zA-Z_-]+", value)
    return found[0].lower() if found else ""


def _normal(path: str) -> str:
    """Return a path as octets are compared: escaped where they are not plain, and only there."""
    return quote(unquote_to_bytes(path.replace("%2F", "%252F").replace("%2f", "%252F")), "/*$?&=%")


def _fits(parts: tuple[str, ...], path: str) -> bool:
    """Tell whether a pattern, split at its stars, fits the beginning of a path."""
    ends = parts[-1].endswith("$")
    last = parts[-1].removesuffix("$") if ends else parts[-1]
    if len(parts) == 1:
        return path == last if ends else path.startswith(last)
    if not path.startswith(parts[0]):
        return False
    at = len(parts[0])
    for part in parts[1:-1]:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if ends:
        return len(path) - len(last) >= at and path.endswith(last)
    return path.find(last, at) >= 0

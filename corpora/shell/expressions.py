"""What of find is allowed: tests of names, kinds and sizes, and printing."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import CommandError
from .paths import check_path

__all__ = ["check_find"]

_PLAIN = frozenset(
    "! ( ) -not -a -and -o -or -true -false -empty -print -print0 -prune -quit -depth".split()
)
_VALUED = {
    "-name": r".*",
    "-iname": r".*",
    "-path": r".*",
    "-ipath": r".*",
    "-wholename": r".*",
    "-regex": r".*",
    "-iregex": r".*",
    "-regextype": r"[a-z-]+",
    "-type": r"[fd]",
    "-size": r"[+-]?\d{1,12}[bckMG]?",
    "-maxdepth": r"\d{1,4}",
    "-mindepth": r"\d{1,4}",
}


def check_find(words: Sequence[str], root: Path) -> list[str]:
    """Return the words of a find command that only looks.

    Raises:
        CommandError: A test or an action is not allowed, or a path leaves the folder.
    """
    paths = 0
    while paths < len(words) and not re.match(r"[-!()]", words[paths]):
        check_path(words[paths], root, "find")
        paths += 1
    rest = list(words[paths:])
    while rest:
        word = rest.pop(0)
        if word in _PLAIN:
            continue
        pattern = _VALUED.get(word)
        if pattern is None:
            known = " ".join(sorted(_PLAIN | _VALUED.keys()))
            raise CommandError("option", f"find: {word[:40]!r} is not allowed; allowed are {known}")
        if not rest or not re.fullmatch(pattern, rest[0], re.ASCII):
            raise CommandError("option", f"find: {word} needs another value, see its manual")
        rest.pop(0)
    return list(words)

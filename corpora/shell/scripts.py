"""The small languages inside arguments: what of sed, awk and jq is allowed.

``sed --sandbox`` and ``gawk --sandbox`` refuse to run programs and to open files by themselves;
what is said here is refused before they are started.
"""

import re
from typing import NoReturn

from ..errors import CommandError

__all__ = ["check_awk", "check_jq", "check_sed"]

_SED_HELP = (
    "sed takes addresses (5, $, 1,9, /pattern/, !) and the commands s/// (flags g p i m and a "
    "number), y///, p d q Q = n N D P g G h H x l z and { }"
)
_SED_PLAIN = "pd=nNDPgGhHxz"
_SED_NUMBERED = "qQl"  # may be followed by a number
_ADDRESS = re.compile(r"\d+(~\d+)?|\$|[+~]\d+")

_AWK_INDIRECT = re.compile(r"@\s*[A-Za-z_\\#]")  # @include, @load, and calls by a name
_AWK_WORDS = re.compile(
    r"\b(systime|strftime|mktime|srand|system|getline|PROCINFO|ENVIRON|SYMTAB|FUNCTAB|ARGV|ARGC)\b"
)
_JQ_TEXT = re.compile(r'"(?:[^"\\]|\\[^(])*"')
_JQ_WORDS = re.compile(
    r"\b(import|include|modulemeta|get_search_list|now|localtime|strflocaltime|mktime|env)\b|\$ENV"
)


def check_awk(program: str) -> None:
    """Refuse an awk program that includes files, runs programs, or differs from run to run."""
    if found := _AWK_INDIRECT.search(program):
        raise CommandError(
            "script", f"awk: {found[0]!r} is not allowed: no other files, no calls by a name"
        )
    if found := _AWK_WORDS.search(program):
        raise CommandError(
            "script",
            f"awk: {found[0]!r} is not allowed: no programs, no files, and the same result in "
            "every run",
        )


def check_jq(program: str) -> None:
    """Refuse a jq filter that reads modules or the environment, or tells the time."""
    outside = _JQ_TEXT.sub('""', program)
    if found := _JQ_WORDS.search(outside):
        raise CommandError(
            "script",
            f"jq: {found[0]!r} is not allowed: no modules, no environment, no time",
        )


def check_sed(script: str) -> None:
    """Refuse a sed script with anything but the commands that only print and edit lines.

    Raises:
        CommandError: The script is not of the grammar; the message says what is.
    """
    _SedReader(script).check()


class _SedReader:
    """Read a sed script once, from left to right."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.position = 0
        self.depth = 0

    def check(self) -> None:
        """Read commands up to the end."""
        while self.position < len(self.script):
            if self._take("; \t"):
                continue
            self._command()
        if self.depth:
            self._refuse("a '{' is not closed")

    def _command(self) -> None:
        self._addresses()
        command = self._next()
        if command == "{":
            self.depth += 1
            return
        if command == "}":
            self.depth -= 1
            if self.depth < 0:
                self._refuse("a '}' closes nothing")
        elif command == "s":
            self._substitution()
        elif command == "y":
            delimiter = self._delimiter()
            self._until(delimiter, brackets=False)
            self._until(delimiter, brackets=False)
        elif command in _SED_NUMBERED:
            self._skip_blanks()
            self._match(r"\d*")
        elif command not in _SED_PLAIN:
            self._refuse(f"the command {command!r} is not allowed")
        self._end_of_command()

    def _addresses(self) -> None:
        self._skip_blanks()
        if self._address():
            self._skip_blanks()
            if self._take(","):
                self._skip_blanks()
                if not self._address():
                    self._refuse("an address is missing after ','")
        self._skip_blanks()
        while self._take("! \t"):
            pass

    def _address(self) -> bool:
        if self._match(_ADDRESS.pattern):
            return True
        if self._take("/"):
            self._until("/", brackets=True)
        elif self._take("\\"):
            self._until(self._delimiter(), brackets=True)
        else:
            return False
        self._match("[IM]*")
        return True

    def _substitution(self) -> None:
        delimiter = self._delimiter()
        self._until(delimiter, brackets=True)
        self._until(delimiter, brackets=False)
        self._match(r"[gpiImM\d]*")

    def _delimiter(self) -> str:
        delimiter = self._next()
        if delimiter in "\\;{} \t" or delimiter.isalnum():
            self._refuse(f"{delimiter!r} cannot stand around a pattern here; use /")
        return delimiter

    def _until(self, delimiter: str, *, brackets: bool) -> None:
        """Skip to behind the next delimiter that is not escaped or in a bracket expression."""
        while (character := self._next()) != delimiter:
            if character == "\\":
                self._next()
            elif character == "[" and brackets:
                self._match(r"\^?\]?(\[[:.=][^\]]*[:.=]\]|[^\]])*\]")

    def _end_of_command(self) -> None:
        self._skip_blanks()
        if self.position < len(self.script) and self.script[self.position] not in ";}":
            self._refuse(f"{self.script[self.position :][:20]!r} is not allowed here")

    def _next(self) -> str:
        if self.position == len(self.script):
            self._refuse("the script ends too early")
        self.position += 1
        return self.script[self.position - 1]

    def _take(self, characters: str) -> bool:
        is_there = self.position < len(self.script) and self.script[self.position] in characters
        self.position += is_there
        return is_there

    def _match(self, pattern: str) -> bool:
        found = re.compile(pattern, re.ASCII).match(self.script, self.position)
        self.position = found.end() if found else self.position
        return bool(found)

    def _skip_blanks(self) -> None:
        self._match(r"[ \t]*")

    def _refuse(self, reason: str) -> NoReturn:
        raise CommandError("script", f"sed: {reason}; {_SED_HELP}")

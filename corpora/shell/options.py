"""Read a program's arguments by a table of the options it may be given, and write them anew.

A table has one option a line: its names, and the kind of its value if it takes one::

    -i --ignore-case
    -m --max-count NUMBER
    --binary-files text|without-match

What is not in the table is refused. What is read is written anew in one fixed form (each value
joined to its option, then ``--``, then the operands), so a program cannot read the words in
another way than they were read here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..errors import CommandError

__all__ = ["Arguments", "Option", "Reader", "option_table"]

_KINDS = {  # what a value looks like, and how that is said
    "NUMBER": (r"\d{1,9}", "a number"),
    "COUNT": (r"[+-]?\d{1,12}", "a number, perhaps with a sign"),
    "LIST": (r"\d[\d, -]*|-\d[\d, -]*", "a list like 1,3-5"),
    "KEY": (r"\d+(\.\d+)?[bdfghiMnrV]*(,\d+(\.\d+)?[bdfghiMnrV]*)?", "a key like 2,2n"),
    "GLOB": (r"(?!(.*/)?\.\.(/|$)).*", "a pattern of file names without '..'"),
    "WORD": (r"[\w.+-]+", "one word"),
    "ASSIGNMENT": (r"[A-Za-z_]\w*=[^\\]*", "name=value without a backslash"),
    "TEXT": (r".*", "a text"),
}


@dataclass(frozen=True, slots=True)
class Option:
    """Hold one option: its names, and what its value looks like if it takes one."""

    short: str
    long: str
    kind: str

    @property
    def takes_value(self) -> bool:
        """Tell whether a value belongs to it."""
        return bool(self.kind)

    @property
    def name(self) -> str:
        """The name that stands for it in ``Arguments``."""
        return self.long or self.short

    def words(self, value: str | None) -> tuple[str, ...]:
        """Return the option as a program is given it."""
        if value is None:
            return (self.name,)
        return (f"{self.long}={value}",) if self.long else (self.short, value)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Hold what a program is asked: options in their order, then operands."""

    options: tuple[tuple[Option, str | None], ...]
    operands: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Tell whether an option is set, by its long name if it has one."""
        return any(option.name == name for option, _ in self.options)

    def values(self, name: str) -> list[str]:
        """Return every value of an option, in order."""
        return [value or "" for option, value in self.options if option.name == name]

    def words(self) -> list[str]:
        """Return the options as words, without the operands."""
        return [word for option, value in self.options for word in option.words(value)]


def option_table(text: str) -> Mapping[str, Option]:
    """Return the options of a table, by each of their names."""
    table: dict[str, Option] = {}
    for line in text.strip().splitlines():
        words = line.split()
        kind = "" if words[-1].startswith("-") else words.pop()
        short = next((word for word in words if not word.startswith("--")), "")
        long = next((word for word in words if word.startswith("--")), "")
        option = Option(short, long, kind)
        table.update(dict.fromkeys(words, option))
    return table


class Reader:
    """Read the words after a program's name.

    Args:
        program: Its name, for messages.
        table: The options it may be given.
        number_option: The option that an old form like ``-5`` stands for, if any.
        stops_at_operand: Whether everything after the first operand is an operand.
    """

    def __init__(
        self,
        program: str,
        table: Mapping[str, Option],
        *,
        number_option: str = "",
        stops_at_operand: bool = False,
    ) -> None:
        self._program = program
        self._table = table
        self._number_option = number_option
        self._stops_at_operand = stops_at_operand

    def read(self, words: Sequence[str]) -> Arguments:
        """Return options and operands.

        Raises:
            CommandError: An option is not in the table, lacks its value, or has a wrong one.
        """
        options: list[tuple[Option, str | None]] = []
        operands: list[str] = []
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if word == "--":
                operands += rest
                break
            if not word.startswith("-") or word == "-":
                operands.append(word)
                if self._stops_at_operand:
                    operands += rest
                    break
                continue
            options += self._options(word, rest)
        return Arguments(tuple(options), tuple(operands))

    def _options(self, word: str, rest: list[str]) -> list[tuple[Option, str | None]]:
        """Read the options of one word; a value may be the word after it."""
        if self._number_option and re.fullmatch(r"-\d{1,9}", word):
            return [(self._table[self._number_option], word[1:])]
        if word.startswith("--"):
            return [self._long(word, rest)]
        return self._bundle(word, rest)

    def _long(self, word: str, rest: list[str]) -> tuple[Option, str | None]:
        name, equals, value = word.partition("=")
        option = self._table.get(name)
        if option is None:
            self._refuse(name)
        if not option.takes_value:
            if equals:
                self._fail(f"{name} takes no value")
            return option, None
        return option, self._value(option, value if equals else None, rest)

    def _bundle(self, word: str, rest: list[str]) -> list[tuple[Option, str | None]]:
        """Read short options that share one dash, as in ``-inm5``."""
        found: list[tuple[Option, str | None]] = []
        for place in range(1, len(word)):
            option = self._table.get(f"-{word[place]}")
            if option is None:
                self._refuse(f"-{word[place]}")
            if option.takes_value:
                value = word[place + 1 :] or None
                return [*found, (option, self._value(option, value, rest))]
            found.append((option, None))
        return found

    def _value(self, option: Option, value: str | None, rest: list[str]) -> str:
        if value is None:
            if not rest:
                self._fail(f"{option.name} needs a value")
            value = rest.pop(0)
        pattern, said = _KINDS.get(option.kind, (option.kind, f"one of {option.kind}"))
        if not re.fullmatch(pattern, value, re.DOTALL | re.ASCII):
            self._fail(f"{option.name} needs {said}, not {value[:60]!r}")
        return value

    def _refuse(self, name: str) -> NoReturn:
        known = sorted({option.name for option in self._table.values()})
        self._fail(
            f"the option {name[:40]!r} is not allowed; allowed are {' '.join(known)}. A pattern "
            f"that begins with '-' goes after '-e', or after '--' where {self._program} has it"
        )

    def _fail(self, reason: str) -> NoReturn:
        raise CommandError("option", f"{self._program}: {reason}")

r"""Read a shell command by a grammar of words, quotes and ``|``, and nothing else.

What is accepted means here what it means in a POSIX shell, so a command that an agent learns here
can be pasted into a terminal. What a shell would expand or run (``$x``, ``*``, ``;``, ``>``) is
refused with a sentence that says how to write it instead::

    pipeline = stage *( "|" stage )
    stage    = word *( blank word )
    word     = 1*( plain / "\" any / "'" *any "'" / '"' *( any / "\" any ) '"' )

No shell is ever started, so nothing here has to be escaped again: a word reaches its program as it
stands, in an array of arguments.
"""

from dataclasses import dataclass
from typing import NoReturn

from ..errors import CommandError

__all__ = ["MAX_COMMAND_CHARS", "MAX_STAGES", "Pipeline", "Stage", "parse"]

# The budget of GrepSeek (arXiv:2605.29307).
MAX_COMMAND_CHARS = 2000
MAX_STAGES = 16

_BLANKS = " \t"
# What a backslash takes the meaning from inside double quotes (POSIX, Shell Command Language 2.2).
_ESCAPED_IN_DOUBLE = '$`"\\'
# What may follow a $ that a shell would expand: a name, a number, a special parameter, ${ or $(.
_AFTER_DOLLAR = "_@*#?-!${("

_ALLOWED = "allowed are programs and their arguments, quotes, and | between programs"
_QUOTE_IT = "to search for it, put the pattern in single quotes"

# Characters that mean something to a shell outside quotes: code, and what is not allowed.
_REFUSED = {
    ";": ("operator", "';' is not allowed: one pipeline a command"),
    "&": ("operator", "'&' is not allowed: no '&&', no background jobs"),
    "<": ("redirection", "'<' is not allowed: name the file as an argument"),
    ">": ("redirection", "'>' is not allowed: nothing can be written, and errors are shown anyway"),
    "(": ("operator", "'(' is not allowed outside quotes: no subshells"),
    ")": ("operator", "')' is not allowed outside quotes: no subshells"),
    "`": ("substitution", "'`' is not allowed: no command substitution"),
    "{": ("expansion", "'{' is not allowed outside quotes: no brace expansion"),
    "}": ("expansion", "'}' is not allowed outside quotes: no brace expansion"),
    "*": ("glob", "'*' is not allowed outside quotes: name the file, or search the folder '.'"),
    "?": ("glob", "'?' is not allowed outside quotes: name the file, or search the folder '.'"),
    "[": ("glob", "'[' is not allowed outside quotes: name the file, or search the folder '.'"),
}
# Refused only as the first character of a word.
_REFUSED_AT_START = {
    "#": ("comment", "a word cannot begin with '#' outside quotes: no comments"),
    "~": ("expansion", "a word cannot begin with '~' outside quotes: no home folders"),
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Hold one program of a pipeline and its arguments, quotes already taken off."""

    program: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Hold the programs of a command, each reading what the one before it writes."""

    stages: tuple[Stage, ...]


def parse(command: str) -> Pipeline:
    """Return the pipeline that a command says.

    Raises:
        CommandError: the command is empty, too long, or more than words, quotes and ``|``.

    Example:
        >>> parse("rg -i 'born in' corpus.jsonl | head -n 5").stages[1]
        Stage(program='head', arguments=('-n', '5'))
    """
    _check_text(command)
    stages = _Reader(command).stages()
    if len(stages) > MAX_STAGES:
        raise CommandError(
            "too_many_stages",
            f"a command may have at most {MAX_STAGES} programs between '|', got {len(stages)}",
        )
    return Pipeline(tuple(stages))


def _check_text(command: str) -> None:
    """Refuse text that cannot be a command whatever its words are."""
    if len(command) > MAX_COMMAND_CHARS:
        raise CommandError(
            "too_long",
            f"a command may have at most {MAX_COMMAND_CHARS} characters, got {len(command)}",
        )
    if "\n" in command or "\r" in command:
        raise CommandError("newline", f"a line break is not allowed in a command; {_ALLOWED}")
    for character in command:
        code = ord(character)
        if (code < 32 and character != "\t") or code == 127 or 0xD800 <= code < 0xE000:
            raise CommandError(
                "character",
                f"the character U+{code:04X} is not allowed in a command; {_ALLOWED}",
            )


class _Reader:
    """Read a command once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def stages(self) -> list[Stage]:
        """Read stages up to the end of the command."""
        stages = [self._stage()]
        while self.position < len(self.text):
            self.position += 1
            stages.append(self._stage())
        return stages

    def _stage(self) -> Stage:
        """Read words up to a ``|`` or the end."""
        words: list[str] = []
        while True:
            self._skip_blanks()
            if self._peek() in ("", "|"):
                break
            words.append(self._word())
        if not words:
            self._refuse_empty()
        return Stage(words[0], tuple(words[1:]))

    def _refuse_empty(self) -> NoReturn:
        if not self.text.strip(_BLANKS):
            raise CommandError("empty", f"the command is empty; {_ALLOWED}")
        if "||" in self.text:
            raise CommandError("operator", f"'||' is not allowed; {_ALLOWED}")
        raise CommandError("empty_stage", f"a program is missing beside '|'; {_ALLOWED}")

    def _word(self) -> str:
        """Read one word: plain characters, escapes and quoted parts without a blank between."""
        character = self._peek()
        if character in _REFUSED_AT_START:
            self._refuse(*_REFUSED_AT_START[character])
        parts: list[str] = []
        while (character := self._peek()) and character not in _BLANKS and character != "|":
            parts.append(self._part(character))
        return "".join(parts)

    def _part(self, character: str) -> str:
        """Read one quoted part, one escape, or one plain character."""
        if character == "'":
            return self._single_quoted()
        if character == '"':
            return self._double_quoted()
        if character == "\\":
            return self._escape()
        if character == "$":
            self._check_dollar("'\"")
        if character in _REFUSED:
            self._refuse(*_REFUSED[character])
        self.position += 1
        return character

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise CommandError("quote", "a single quote is opened and not closed")
        part = self.text[self.position + 1 : end]
        self.position = end + 1
        return part

    def _double_quoted(self) -> str:
        self.position += 1
        parts: list[str] = []
        while (character := self._peek()) != '"':
            if not character:
                raise CommandError("quote", "a double quote is opened and not closed")
            if character == "`":
                self._refuse("substitution", "'`' is not allowed in double quotes")
            if character == "$":
                self._check_dollar("")
            if character == "\\" and self._peek(1) and self._peek(1) in _ESCAPED_IN_DOUBLE:
                self.position += 1
                character = self._peek()
            parts.append(character)
            self.position += 1
        self.position += 1
        return "".join(parts)

    def _escape(self) -> str:
        character = self._peek(1)
        if not character:
            raise CommandError("escape", "the command ends in a backslash with nothing after it")
        self.position += 2
        return character

    def _check_dollar(self, also: str) -> None:
        """Refuse a ``$`` that a shell would expand; at the end of a pattern it is plain."""
        after = self._peek(1)
        if after and (after.isalnum() or after in _AFTER_DOLLAR or after in also):
            code = "substitution" if after == "(" else "variable"
            self._refuse(code, f"'${after}' is not allowed: no variables, no substitution")

    def _skip_blanks(self) -> None:
        while self._peek() and self._peek() in _BLANKS:
            self.position += 1

    def _peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.text[index] if index < len(self.text) else ""

    def _refuse(self, code: str, reason: str) -> NoReturn:
        raise CommandError(code, f"{reason}; {_QUOTE_IT}")

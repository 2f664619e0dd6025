"""The tool ``shell``: runs a command over the raw text, and shows what fits."""

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ..corpora.errors import BackendError, CommandError, ConfigurationError
from ..corpora.retrieval import Hit
from ..corpora.shell import Pipeline, PipelineRunner, ShellResult, parse
from ..corpora.shell.programs import read_arguments
from ..corpora.shell.raw import CORPUS_FILE, CorpusRunner, shown_documents
from .actions import Parameter, ToolSignature
from .tools import Tool, ToolResult

__all__ = ["BrokenRunner", "ObservationForm", "ShellTool", "preview"]

ObservationForm = Literal["json", "text"]

_REFUSED_CODE = -2  # as GrepSeek (arXiv:2605.29307) says that a command was not run
_RESERVED_CHARS = 320  # for what the environment adds after a result
_MAX_COMMAND_CHARS = 400
_MAX_ERROR_CHARS = 1_000
_LEAST_LINE_CHARS = 100
_HEAD = re.compile(r'^.{0,20}?\{"id": "[^"]*", "title": "[^"]{0,80}", "text": "')


class ShellTool(Tool):
    """Runs a pipeline of allowed programs over the corpus.

    Args:
        source: The corpus as raw text.
        max_chars: The longest observation, in characters.
        max_line_chars: The longest line of output that is shown whole.
        form: ``"json"``, one line with an object, or ``"text"``.
        runner: Runs the pipelines; the source itself if left out.
    """

    def __init__(
        self,
        source: CorpusRunner,
        *,
        max_chars: int,
        max_line_chars: int,
        form: ObservationForm,
        runner: PipelineRunner | None = None,
    ) -> None:
        if form not in ("json", "text"):
            raise ConfigurationError(f"observation must be 'json' or 'text', got {form!r}")
        if max_line_chars < _LEAST_LINE_CHARS:
            raise ConfigurationError(
                f"max_line_chars must be at least {_LEAST_LINE_CHARS}, got {max_line_chars}"
            )
        self._source = source
        self._runner: PipelineRunner = source if runner is None else runner
        self._max_chars = max_chars - _RESERVED_CHARS
        self._max_line_chars = min(max_line_chars, self._max_chars // 2)
        self._form = form
        self.signature = ToolSignature(
            "shell",
            f"Run rg, grep, sed, sort, head and the like on {CORPUS_FILE}, one JSON line a "
            "document, with | between programs.",
            (
                Parameter(
                    "command",
                    f"For example: rg -i 'born in .* 1943' {CORPUS_FILE} | head -n 5",
                    examples=_examples(source),
                ),
            ),
        )

    def over(self, runner: PipelineRunner) -> "ShellTool":
        """Return the same tool over another runner."""
        other = copy.copy(self)
        other._runner = runner
        return other

    def run(self, arguments: Mapping[str, Any], rankings: Sequence[Sequence[Hit]]) -> ToolResult:
        """Run the command and show what it wrote."""
        command = arguments["command"]
        try:
            pipeline = parse(command)
            result = self._runner.run(pipeline)
        except CommandError as error:
            refused = ShellResult(b"", error.reason.encode(), _REFUSED_CODE)
            return ToolResult(self._show(command, refused, ())[0], error=error.code)
        observation, lines = self._show(command, result, _needles(pipeline))
        return ToolResult(observation, shown_documents(lines, self._source))

    def _show(
        self, command: str, result: ShellResult, needles: Sequence[str]
    ) -> tuple[str, Sequence[str]]:
        """Return the observation, and the lines of output that it shows."""
        record: dict[str, Any] = {
            "command": _cut(command, min(_MAX_COMMAND_CHARS, self._max_chars // 4)),
            "stdout": "",
            "stderr": _cut(_text(result.stderr), min(_MAX_ERROR_CHARS, self._max_chars // 3)),
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "truncated": True,
        }
        written = _text(result.stdout)
        room = self._max_chars - len(self._form_of(record)) - 80
        whole = written.split("\n")
        lines = [preview(line, needles, self._max_line_chars) for line in whole]
        shown, left_out = self._fit(lines, room)
        is_cut = result.truncated or left_out > 0 or lines != whole
        record["truncated"] = is_cut
        if left_out or result.truncated:
            more = "at least " if result.truncated else ""
            shown.append(f"[{more}{left_out} characters of output left out]")
        record["stdout"] = "\n".join(shown)
        return self._form_of(record), shown

    def _fit(self, lines: Sequence[str], room: int) -> tuple[list[str], int]:
        """Return the lines that there is room for, and how many characters are left out."""
        shown: list[str] = []
        for number, line in enumerate(lines):
            cost = self._cost(line)
            if cost > room:
                left = sum(map(len, lines[number:])) + len(lines) - number - 1
                if not shown:
                    while self._cost(line) > room:
                        line = line[: len(line) // 2]
                    shown.append(line)
                    left -= len(line)
                return shown, left
            shown.append(line)
            room -= cost
        return shown, 0

    def _cost(self, line: str) -> int:
        """Return how many characters a line with its break takes in the observation."""
        if self._form == "text":
            return len(line) + 1
        return len(json.dumps(line, ensure_ascii=False))

    def _form_of(self, record: Mapping[str, Any]) -> str:
        if self._form == "json":
            return json.dumps(record, ensure_ascii=False)
        notes = [f"exit code {record['exit_code']}"]
        notes += [name.replace("_", " ") for name in ("timed_out", "truncated") if record[name]]
        parts = [record["stdout"].removesuffix("\n"), record["stderr"].removesuffix("\n")]
        return "\n".join([*filter(None, parts), f"[{', '.join(notes)}]"])


class BrokenRunner:
    """Fails whatever it is asked, as a fence that broke would."""

    def run(self, pipeline: Pipeline) -> ShellResult:
        """Raise a BackendError."""
        raise BackendError("this fence is broken on purpose")


def preview(line: str, needles: Sequence[str], limit_chars: int) -> str:
    """Return a line, or of a longer one what stands around the first needle in it.

    The head of a document's line, with its id and title, is kept.

    Example:
        >>> preview("x" * 500 + " born here " + "y" * 500, ["born"], 60)
        '… xxxxxxx born here yyyyyy … [line cut, 1011 characters]'
    """
    if len(line) <= limit_chars:
        return line
    found = _HEAD.match(line)
    head = found[0] if found and found.end() < limit_chars // 2 else ""
    end = f" … [line cut, {len(line)} characters]"
    room = max(limit_chars - len(head) - len(end) - 6, 20)
    place = _place(line, needles, len(head))
    start = max(len(head), min(place - room // 3, len(line) - room))
    before = "… " if start > len(head) else ""
    return f"{head}{' ' if head and before else ''}{before}{line[start : start + room]}{end}"


def _place(line: str, needles: Sequence[str], start: int) -> int:
    lowered = line.lower()
    for needle in needles:
        place = lowered.find(needle.lower(), start)
        if place >= 0:
            return place
    return start


def _needles(pipeline: Pipeline) -> list[str]:
    """Return literal parts of what is searched for, the longest of each pattern first.

    Only literals: a pattern of the agent is never run outside the fence.
    """
    needles: list[str] = []
    for stage in pipeline.stages:
        if stage.program not in ("rg", "grep"):
            continue
        arguments = read_arguments(stage)
        for pattern in arguments.values("--regexp") or arguments.operands[:1]:
            if arguments.has("--fixed-strings"):
                needles.append(pattern)
                continue
            parts = re.split(r"\\.|[^\w\s',:\"-]+", pattern)
            needles += sorted(filter(None, parts), key=len, reverse=True)
    return needles


def _text(raw: bytes) -> str:
    """Return output as text: invalid bytes replaced, no carriage returns."""
    return raw.decode("utf-8", "replace").replace("\r", "")


def _cut(text: str, limit_chars: int) -> str:
    return text if len(text) <= limit_chars else text[: limit_chars - 2] + " …"


def _examples(source: CorpusRunner) -> tuple[str, ...]:
    """Return commands that a sample may give."""

    def commands() -> Iterator[str]:
        for document in source.corpus[:32]:
            title = re.sub(r"[^\w ]", "", document.title)[:40].strip()
            if title:
                yield f"rg -i '{title}' {CORPUS_FILE} | head -n 3"
                yield f"grep -c '{title}' {CORPUS_FILE}"

    return tuple(commands()) or (f"head -n 3 {CORPUS_FILE}",)

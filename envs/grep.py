"""Questions answered by shell commands over the raw text."""

import ast
import os
import shlex
from collections.abc import Sequence
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from ..corpora.documents import Corpus
from ..corpora.errors import ConfigurationError
from ..corpora.retrieval import Hit, Retriever
from ..corpora.shell import Limits, parse
from ..corpora.shell.raw import CORPUS_FILE, default_runner, raw_line
from ..corpora.shipped import load_corpus, load_tasks, tasks_beside
from ..corpora.tasks import Split, TaskSet
from .actions import ToolCall
from .base import SearchEnv
from .knowledge_graph import KnowledgeGraphEnv
from .menu_tools import ShellMenu
from .phantom import PhantomEnv, refuse_other_worlds
from .rules import RuleOptions, Rules
from .shell import BrokenRunner, ObservationForm, ShellTool
from .tools import Answer
from .vector import SearchVectorEnv

__all__ = ["GrepEnv", "make_vector"]

_CHARS_PER_TOKEN = 4
_DEFAULTS: RuleOptions = {  # GrepSeek: 2,048 tokens an observation, 5 commands and an answer
    "max_observation_chars": 2_048 * _CHARS_PER_TOKEN,
    "rewards": "format-f1",
}
_MAX_TURNS = 6
_WORLDS = {"phantom": PhantomEnv, "knowledge": KnowledgeGraphEnv}
_PAGE_LINES = 3


class GrepEnv(SearchEnv):
    """Answer a question with shell commands over the raw text of the corpus.

    Task: the questions of another environment, so that agents that grep and agents that search
    compare on equal questions. The corpus is the file ``corpus.jsonl``, one line a document:
    ``{"id", "title", "text"}``. Nothing else can be read: not the tasks, not the system. After
    GrepSeek (arXiv:2605.29307).

    Observation: the question; then one line with a JSON object ``command, stdout, stderr,
    exit_code, timed_out, truncated``, or plain text. At most 2,048 tokens' worth, counted as
    four characters each; a line that is too long is shown around the match.

    Actions: ``shell(command)``, ``answer(text)``. A command is words, quotes and ``|``, at most
    2,000 characters; no shell is started. Each program has a list of options that are allowed.

    Reward: ``format-f1``, the F1 of the answer if no call was invalid or ill-formed, else 0.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every task.

    Arguments:
        corpus: A shipped data set, a JSONL file, a folder of text files, a Corpus, or a world:
            ``"phantom:people=50"``, ``"knowledge:entities=600"``, with the arguments of
            PhantomEnv or KnowledgeGraphEnv.
        tasks: As in QAEnv; a world has its own.
        observation: ``"json"`` or ``"text"``.
        max_line_chars: The longest line of output that is shown whole.
        limits: What a command may use: time, memory, output; see ``corpora.shell.Limits``.
        index_dir: A folder to keep the text in; a private, temporary one if left out.
        split: ``"all"``, ``"train"`` or ``"test"``; a world's is part of its name.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=6, or what the longest proof takes if that is more;
            max_observation_chars=8192, rewards="format-f1", the others as in ``Rules``.

    Versions: v0, the first.
    """

    menu_tools = ShellMenu()

    def __init__(
        self,
        corpus: str | os.PathLike[str] | Corpus = "hotpotqa-100",
        tasks: str | os.PathLike[str] | TaskSet | None = None,
        *,
        observation: ObservationForm = "json",
        max_line_chars: int = 2_000,
        limits: Limits | None = None,
        index_dir: str | None = None,
        split: Split = "all",
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        world = _world(corpus)
        if world is not None and tasks is not None:
            raise ConfigurationError(f"tasks: {corpus} has its own; leave tasks out")
        found, drawn, retriever = world or _given(corpus, tasks)
        longest = max(len(task.proof) for task in drawn)
        made_rules = Rules.of({**_DEFAULTS, "max_turns": max(_MAX_TURNS, longest + 1), **rules})
        self.source = default_runner(found, index_dir, limits)
        super().__init__(
            corpus=found,
            tasks=drawn,
            retriever=retriever,
            tools=(
                ShellTool(
                    self.source,
                    max_chars=made_rules.max_observation_chars,
                    max_line_chars=max_line_chars,
                    form=observation,
                ),
                Answer(),
            ),
            k=1,
            rules=made_rules,
            split=split,
            render_mode=render_mode,
        )
        self._is_world = world is not None
        self._form = (observation, max_line_chars)

    def reading_call(self, document_id: str) -> ToolCall:
        """Return the command that shows the line of a document."""
        head = raw_line(self.corpus[document_id]).partition(', "title"')[0]
        return _shell(f"grep -F {shlex.quote(head)} {CORPUS_FILE}")

    def search_call(self, query: str) -> ToolCall:
        """Return a command that shows the first lines with the longest word of a query."""
        word = max(query.split(), key=len, default="")
        return _shell(f"grep -i -F {shlex.quote(word)} {CORPUS_FILE} | head -n {_PAGE_LINES}")

    def finding_call(self, query: str, document_id: str) -> ToolCall:
        """Return a command of words of the query that brings a document into view."""
        line = raw_line(self.corpus[document_id])
        title = f'"title": "{self.corpus[document_id].title}"'
        parts = [title] if title[10:-1] in query and title in line else _shared(query, line)
        if not parts:
            parts = [query]
        filters = [f"grep -F {shlex.quote(parts[0])} {CORPUS_FILE}"]
        filters += [f"grep -F {shlex.quote(part)}" for part in parts[1:8]]
        command = " | ".join(filters)
        rows = self.source.run(parse(command)).stdout.decode().split("\n")
        place = rows.index(line) + 1 if line in rows else 1
        if place > _PAGE_LINES:
            return _shell(f"{command} | sed -n '{place},{place + _PAGE_LINES - 1}p'")
        return _shell(f"{command} | head -n {_PAGE_LINES}")

    def break_backend(self) -> ToolCall:
        """Put a fence in place that fails, and return a call that needs it."""
        tool = self.tools["shell"]
        assert isinstance(tool, ShellTool)
        self.tools["shell"] = tool.over(BrokenRunner())
        return _shell(f"head -n 1 {CORPUS_FILE}")

    def _identity(self) -> dict[str, Any]:
        return super()._identity() | {"observation": self._form}

    def _select(self, options: dict[str, Any]) -> TaskSet:
        if self._is_world:
            refuse_other_worlds(options)
        return super()._select(options)


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector of GrepEnv over one text; the arguments are those of GrepEnv."""
    return SearchVectorEnv(GrepEnv(**arguments), num_envs, autoreset_mode=autoreset_mode)


class _NoRetriever:
    """Stands where other environments have a retriever: no tool asks it."""

    name = "none"

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [[] for _ in queries]


_Source = tuple[Corpus, TaskSet, Retriever]


def _world(corpus: object) -> _Source | None:
    """Return corpus and tasks of a world that is named like a call, or None."""
    if not isinstance(corpus, str):
        return None
    name, colon, text = corpus.partition(":")
    if name not in _WORLDS or (not colon and os.path.exists(corpus)):
        return None
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args:
            raise ValueError
        arguments = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (ValueError, SyntaxError, AssertionError):
        raise ConfigurationError(
            f"corpus {corpus!r}: after '{name}:' come arguments like people=50,world_seed=7"
        ) from None
    try:
        env: SearchEnv = _WORLDS[name](**arguments)
    except TypeError as error:
        raise ConfigurationError(f"corpus {corpus!r}: {error}") from None
    return env.corpus, env.all_tasks, env.retriever


def _given(
    corpus: str | os.PathLike[str] | Corpus, tasks: str | os.PathLike[str] | TaskSet | None
) -> _Source:
    """Return the corpus and the tasks that were given or lie beside it."""
    found = corpus if isinstance(corpus, Corpus) else load_corpus(corpus)
    if tasks is None:
        if isinstance(corpus, Corpus):
            raise ConfigurationError("tasks is missing: a Corpus object comes without tasks")
        tasks = tasks_beside(corpus)
    if not isinstance(tasks, TaskSet):
        tasks = load_tasks(tasks, found)
    return found, tasks, _NoRetriever()


def _shell(command: str) -> ToolCall:
    return {"name": "shell", "arguments": {"command": command}}


def _shared(query: str, line: str) -> list[str]:
    """Return the longest runs of words of a query that stand in a line, longest first."""
    words, runs, start = query.replace(",", " ").split(), [], 0
    while start < len(words):
        end = len(words)
        while end > start and " ".join(words[start:end]) not in line:
            end -= 1
        if end > start:
            runs.append(" ".join(words[start:end]))
        start = max(end, start + 1)
    return sorted(dict.fromkeys(runs), key=lambda run: (-len(run), run))

"""SearchEnv: what every search environment shares."""

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import Any, ClassVar

from gymnasium.error import ResetNeeded

from ..corpora.documents import Corpus
from ..corpora.errors import BackendError, ConfigurationError, raise_unknown
from ..corpora.retrieval import Retriever
from ..corpora.tasks import Split, Task, TaskSet
from ..corpora.text import cut_text, replace_surrogates
from . import transcript
from .actions import Action, ProtocolError, ToolCall
from .backend import BrokenRetriever, Rankings, retrieve
from .calls import read_call
from .episode import Call, Episode, Message, Pending, Snapshot
from .findings import Finding
from .game import Game
from .menu_tools import MenuTools
from .outcome import Outcome
from .rewards import best_return, reward_range
from .rules import Rules, check_at_least
from .spaces import FreeText, ToolCalls
from .tools import Tool, ToolResult

__all__ = ["SearchEnv", "Step"]

_FAILURE = "The search backend failed, so this episode does not count."
_LAST_TURN = "\n\nThis is your last turn, and it takes nothing but your answer."
_SPENT = "\n\nThe turn budget is spent; the episode is over."

Step = tuple[str, float, bool, bool, dict[str, Any]]


class SearchEnv(Game[str, Action]):
    """An environment in which an agent searches a corpus to answer a question.

    Observation: a text. The first is the question; then each is what the tool gave.

    Actions: a tool call, ``{"name": str, "arguments": dict}``. A wrong call never raises: it
    costs a turn, the observation says what was wrong, and ``info["error"]`` has a stable code.

    Reward: the sum of named terms; ``info["reward_terms"]`` holds each.

    Ends: ``terminated`` by an answer (or by an invalid call, if the rules say so), ``truncated``
    by the turn budget. A backend that fails truncates the episode with
    ``info["failure"] = "infrastructure"`` and ``info["valid"] = False``: drop such an episode.

    Options at reset: ``task`` (an id), or any of ``split``, ``kind``, ``hops``, ``level``, which
    narrow the draw.

    Args:
        corpus: What there is to find.
        tasks: What may be asked.
        retriever: Ranks the corpus.
        tools: What the agent may do.
        k: How many hits a search asks for.
        rules: Budget, reward and manners.
        split: The share of the tasks that is drawn from.
        render_mode: None, ``"ansi"`` or ``"html"``.
    """

    score_keys = ("answer", "exact_match", "f1", "cover_exact_match", "evidence_recall")
    tasks_argument: ClassVar[str | None] = None  # the argument that says how many tasks there are
    menu_tools: ClassVar[MenuTools | None] = None  # how wrappers.Menu speaks its tools
    metadata: dict[str, Any] = {"render_modes": ["ansi", "html"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        *,
        corpus: Corpus,
        tasks: TaskSet,
        retriever: Retriever,
        tools: Sequence[Tool],
        k: int,
        rules: Rules,
        split: Split = "all",
        render_mode: str | None = None,
    ) -> None:
        check_at_least("k", k, 1)
        if not isinstance(retriever, Retriever):
            raise ConfigurationError(
                "retriever must have a name and a method search(queries, k), "
                f"got {type(retriever).__name__}"
            )
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise_unknown("render_mode", render_mode, self.metadata["render_modes"])
        self.corpus = corpus
        self.all_tasks = tasks
        self.tasks = tasks.split(split)
        self.retriever = retriever
        self.k = k
        self.rules = rules
        self.render_mode = render_mode
        self.tools = {tool.signature.name: tool for tool in tools}
        self.action_space = ToolCalls([tool.signature for tool in tools])
        self.observation_space = FreeText(rules.max_observation_chars)
        self.reward_range = reward_range(rules.terms)
        self.best_return = best_return(rules.terms)
        self.is_best_reachable = all(term.low >= 0 for term in rules.terms)
        self._episode: Episode | None = None
        self._env_hash: str | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Draw a task, or take the one asked for, and return its question.

        Raises:
            ConfigurationError: An option is unknown, or no task fits.
        """
        super().reset(seed=seed)
        task = self._draw(dict(options or {}))
        question = self._fit(task.question)
        self._episode = Episode(task, messages=[Message("environment", question)])
        return question, self._info(self._episode)

    def step(self, action: Action) -> Step:
        """Run one tool call.

        Raises:
            ResetNeeded: There is no running episode.
        """
        pending = self.begin(action)
        return self.finish(pending, retrieve(self.retriever, [pending.queries], self.k)[0])

    def begin(self, action: Action) -> Pending:
        """Check an action and say what it asks the retriever: the first half of ``step``.

        A vector of environments begins them all, asks the retriever once, and finishes them.
        """
        episode = self._running()
        wanted = "answer" if self.rules.is_answer_turn(episode.turn + 1) else None
        pending = read_call(action, self.tools, last_turn_tool=wanted)
        if pending.tool is None:
            episode.messages.append(Message("agent", transcript.describe_action(action)))
        else:
            episode.messages.append(Call(pending.tool.signature.name, pending.arguments))
        return pending

    def finish(self, pending: Pending, rankings: Rankings | BackendError) -> Step:
        """Run the tool with what the retriever gave: the second half of ``step``."""
        episode = self._running()
        try:
            result = self._run(pending, rankings)
        except BackendError:
            return self._fail(episode)
        outcome = episode.advance(pending, result, self.rules)
        observation = self._observe(result.observation, outcome, pending.note)
        episode.messages.append(Message("environment", observation))
        terms = {term.name: term.weight * term.value(outcome) for term in self.rules.terms}
        info = self._info(episode, outcome) | {"reward_terms": terms}
        if episode.is_over:
            info |= _final_info(self.corpus, episode, outcome)
        return (
            observation,
            float(sum(terms.values())),
            outcome.is_terminated,
            outcome.is_truncated,
            info,
        )

    def render(self) -> str | None:
        """Return the transcript so far, as text or as a page; None without a render mode."""
        if self.render_mode is None:
            return None
        if self.render_mode == "html":
            return transcript.to_html(self.transcript)
        return transcript.to_text(self.transcript)

    @property
    def transcript(self) -> tuple[Message, ...]:
        """Every message of the episode so far, each with its source."""
        if self._episode is None:
            return ()
        return tuple(
            Message("agent", transcript.describe_call(*message))
            if isinstance(message, Call)
            else message
            for message in self._episode.messages
        )

    @property
    def has_episode(self) -> bool:
        """Whether there was a reset."""
        return self._episode is not None

    @property
    def episode(self) -> Episode:
        """The running or last episode, gold answers included: privileged.

        Raises:
            ResetNeeded: There was no reset yet.
        """
        return self._begun()

    @property
    def task(self) -> Task:
        """The task of the running or last episode, gold answers included: privileged.

        Raises:
            ResetNeeded: There was no reset yet.
        """
        return self._begun().task

    def snapshot(self) -> Snapshot:
        """Return the state of the episode and of the generator, to come back to.

        Raises:
            ResetNeeded: There was no reset yet.
        """
        generator_state = copy.deepcopy(self.np_random.bit_generator.state)
        return Snapshot(self.env_hash, self._begun().copy(), generator_state)

    def restore(self, state: Snapshot) -> None:
        """Go back to a snapshot, of this environment or of an equal one.

        An environment of ``gym.make`` has it as ``env.unwrapped.restore``; call ``env.reset()``
        once before, as its wrappers ask for.

        Raises:
            ConfigurationError: The snapshot is of an environment with other arguments or data.
        """
        if state.env_hash != self.env_hash:
            raise ConfigurationError(
                f"the snapshot is of an environment with hash {state.env_hash}, this one has "
                f"{self.env_hash}: id, arguments or data differ"
            )
        self._episode = state.episode.copy()
        self.np_random.bit_generator.state = copy.deepcopy(state.generator_state)

    def search_call(self, query: str) -> ToolCall:
        """Return the call that searches for a query."""
        return {"name": "search", "arguments": {"query": query}}

    def reading_call(self, document_id: str) -> ToolCall:
        """Return the call that shows a whole document."""
        return {"name": "read", "arguments": {"document_id": document_id}}

    def finding_call(self, query: str, document_id: str) -> ToolCall:
        """Return the call that brings a document by a query of its proof."""
        return self.search_call(query)

    def answer_call(self, text: str) -> ToolCall:
        """Return the call that answers, with what was seen of the evidence where it is asked."""
        return {"name": "answer", "arguments": {"text": text}}

    def opening_action(self) -> ToolCall:
        """Return a call that may begin an episode and does not end it: for the kit."""
        return self.search_call("first")

    def break_backend(self) -> ToolCall:
        """Put a backend in place that fails, and return a call that asks it: for the kit."""
        self.retriever = BrokenRetriever()
        return self.search_call("anything")

    def chance(self, task: Task) -> float | None:
        """Return what a guess is right by, in [0, 1]; None where answers may be known by heart."""
        return None

    def findings(self) -> list[Finding]:
        """Return what the environment says of its own tasks, for a certificate."""
        return []

    @property
    def max_turns(self) -> int:
        """How many turns an episode has at most."""
        return self.rules.max_turns

    @property
    def env_hash(self) -> str:
        """A short hash of the environment's id, its arguments and its data."""
        if self._env_hash is None:
            text = json.dumps(self._identity(), sort_keys=True)
            self._env_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self._env_hash

    def _identity(self) -> dict[str, Any]:
        """Return all that decides what an episode looks like."""
        rules = self.rules
        return {
            "id": self.spec.id if self.spec else type(self).__name__,
            "corpus": self.corpus.fingerprint,
            "tasks": self.tasks.fingerprint,
            "retriever": self.retriever.name,
            "k": self.k,
            "tools": [repr(tool.signature) for tool in self.tools.values()],
            "rewards": [term.identity for term in rules.terms],
            "budget": [rules.max_turns, rules.max_observation_chars],
            "manners": [rules.on_invalid, rules.last_turn, rules.convention],
        }

    def _draw(self, options: dict[str, Any]) -> Task:
        task_id = options.pop("task", None)
        if task_id is None:
            tasks = self._select(options)
            return tasks[int(self.np_random.integers(len(tasks)))]
        if options:
            raise ConfigurationError(f"options: 'task' decides, so leave out {sorted(options)}")
        if task_id not in self.all_tasks:
            raise ConfigurationError(
                f"options['task']: {self.all_tasks.name!r} has no task {task_id!r}; "
                f"it has {len(self.all_tasks)}, the first is {self.all_tasks[0].id!r}"
            )
        return self.all_tasks[str(task_id)]

    def _select(self, options: dict[str, Any]) -> TaskSet:
        """Return the tasks that fit the options; nothing is drawn here."""
        tasks = self.all_tasks.split(options.pop("split")) if "split" in options else self.tasks
        return tasks.select(**options) if options else tasks

    def _begun(self) -> Episode:
        if self._episode is None:
            raise ResetNeeded("no episode was begun; call reset() first")
        return self._episode

    def _running(self) -> Episode:
        if self._episode is None or self._episode.is_over:
            raise ResetNeeded("the episode is over or was never begun; call reset() before step()")
        return self._episode

    def _run(self, pending: Pending, rankings: Rankings | BackendError) -> ToolResult:
        if pending.error is not None or pending.tool is None:
            error = pending.error or ProtocolError("malformed", "This is no tool call.")
            return ToolResult(error.reason, error=error.code)
        if isinstance(rankings, BackendError):
            raise rankings
        return pending.tool.run(pending.arguments, rankings)

    def _observe(self, text: str, outcome: Outcome, note: str) -> str:
        ending = f"\n\n({note})" if note else ""
        if outcome.is_truncated:
            ending += _SPENT
        elif not outcome.is_terminated and self.rules.is_answer_turn(outcome.turn + 1):
            ending += _LAST_TURN
        return self._fit(text, ending)

    def _fit(self, text: str, ending: str = "") -> str:
        limit = self.rules.max_observation_chars - len(ending)
        return cut_text(replace_surrogates(text), limit) + ending

    def _fail(self, episode: Episode) -> Step:
        """End an episode that the backend failed: it is nobody's score."""
        episode.turn += 1
        episode.is_over = True
        episode.messages.append(Message("environment", _FAILURE))
        info = self._info(episode) | _final_info(self.corpus, episode, None)
        info |= {
            "failure": "infrastructure",
            "valid": False,
            "reward_terms": {term.name: 0.0 for term in self.rules.terms},
        }
        return _FAILURE, 0.0, False, True, info

    def _info(self, episode: Episode, outcome: Outcome | None = None) -> dict[str, Any]:
        """Return what every step tells, gold never included."""
        shown = outcome.documents if outcome else ()
        new = outcome.new_documents if outcome else ()
        return {
            "task_id": episode.task.id,
            "env_hash": self.env_hash,
            "turn": episode.turn,
            "turns_left": self.rules.max_turns - episode.turn,
            "documents": shown,
            "new_documents": len(new) / len(shown) if shown else 0.0,
            "error": outcome.error if outcome else None,
            "failure": None,
            "valid": True,
            "searches": episode.calls.get("search", 0),
            "valid_calls": episode.valid_calls,
            "invalid_calls": episode.invalid_calls,
        }


def _final_info(corpus: Corpus, episode: Episode, outcome: Outcome | None) -> dict[str, Any]:
    """Return what only the end of an episode tells; scores are None if the backend failed."""
    scores = outcome.scores if outcome else None
    unanswered = 0.0 if outcome else None
    return {
        "answer": outcome.answer if outcome else None,
        "exact_match": scores.exact_match if scores else unanswered,
        "f1": scores.f1 if scores else unanswered,
        "cover_exact_match": scores.cover_exact_match if scores else unanswered,
        "evidence_recall": episode.evidence_recall if outcome else None,
        "calls": episode.calls.copy(),
        "gold_answers": episode.task.answers,
        "evidence": episode.task.evidence,
        "entities": _titles(corpus, episode.task.evidence),
        "hops": episode.task.hops,
    }


def _titles(corpus: Corpus, ids: Sequence[str]) -> tuple[str, ...]:
    """Return the titles of those documents that the corpus has."""
    known = (each for each in ids if each in corpus)  # type: ignore[comparison-overlap]
    return tuple(corpus[each].title for each in known)

"""Questions about an invented encyclopedia, whose pages are searched and then opened."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from ..corpora.errors import ConfigurationError
from ..corpora.knowledge import (
    KnowledgeTasks,
    KnowledgeWorld,
    QuestionSettings,
    Reader,
    one_query_table,
    solve,
)
from ..corpora.knowledge.edges import Coverage
from ..corpora.knowledge.names import WorldSplit
from ..corpora.knowledge.terms import Kind
from ..corpora.retrieval import Retriever, default_retriever
from ..corpora.tasks import Task, TaskSet
from .actions import ToolCall
from .base import SearchEnv
from .browsing import Access, SnippetSearch
from .findings import Finding
from .menu_tools import AccessMenu
from .phantom import refuse_other_worlds
from .rules import RuleOptions, Rules, check_at_least
from .tools import Answer
from .vector import SearchVectorEnv

__all__ = ["KnowledgeGraphEnv", "make_vector"]

_MAX_TURNS = 32
_CHANCES = {  # of a guess that knows the kind
    "comparison": 0.5,
    "superlative": 0.5,  # two choices or more
    "count": 0.34,  # the most that one number is the answer
    "unanswerable": 1.0,  # the answer is always the same
}
_MOST_GIVEN_AWAY = 0.2  # of the tasks of a kind, by one query


class KnowledgeGraphEnv(SearchEnv):
    """Answer questions about an invented encyclopedia by searching it and opening its pages.

    Task: a question over a knowledge graph of people, places, works and more (SearchGym,
    arXiv:2601.14615), whose every edge is stated by articles that rules wrote, so that text and
    graph agree. Every task carries a proof whose every query brings its page into the top k; none
    has one of the four shortcuts of FORT-Searcher (arXiv:2606.12087).

    Observation: the question; then what the tool gave: hits with title, address and a snippet,
    or a page, at most ``max_observation_chars`` characters.

    Actions: ``search(query)``, ``access(url, page=)``, ``answer(text)``.

    Reward: exact match of the answer, 0 or 1; see ``rewards``. A list is a comma-separated
    answer and is scored as a set.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every task.

    Arguments:
        entities: How many entities the world has.
        world_seed: Where the world and its questions come from.
        split: ``"train"`` or ``"test"``: two worlds that share no invented word.
        kinds: Which kinds of questions; see ``QuestionSettings``.
        hops: The fewest and the most facts of a chain, 2 to 6.
        constraints: The fewest and the most clues of a conjunction, 2 to 4.
        obfuscation: The chance that a mention is replaced by a description, 0 to 1.
        questions: How many tasks are drawn.
        coverage: Which article states an edge: that of ``"either"`` end, by a coin, of
            ``"both"``, of the ``"subject"`` or of the ``"object"``. With both, most short
            chains have all their evidence in one article, and are rejected for that.
        noise: The share of entities with an outdated side document.
        schema: The path of a schema in JSON or YAML; an encyclopedia's if left out.
        source: A folder with a real graph instead of an invented one; see ``corpora.knowledge``.
        retriever: Ranks the pages; BM25 if left out.
        index_dir: A folder to keep the BM25 index in; in memory if left out.
        k: How many hits a search shows.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=32, the others as in ``Rules``.

    Versions: v0, the first.
    """

    tasks_argument = "questions"
    menu_tools = AccessMenu()

    def __init__(
        self,
        entities: int = 3_600,
        world_seed: int = 0,
        *,
        split: WorldSplit = "train",
        kinds: tuple[Kind, ...] = ("chain", "conjunction"),
        hops: tuple[int, int] = (2, 4),
        constraints: tuple[int, int] = (2, 3),
        obfuscation: float = 0.0,
        questions: int = 500,
        coverage: Coverage = "either",
        noise: float = 0.0,
        schema: str | None = None,
        source: str | None = None,
        retriever: Retriever | None = None,
        index_dir: str | None = None,
        k: int = 5,
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        made_rules = Rules.of({"max_turns": _MAX_TURNS, **rules})
        check_at_least("k", k, 1)
        check_at_least("questions", questions, 1)
        settings = QuestionSettings(kinds, hops, constraints, obfuscation)
        world = _world(entities, world_seed, split, coverage, noise, schema, source)
        if retriever is None:
            retriever = default_retriever(world.corpus, index_dir)
            tasks = _tasks(world, index_dir, settings, questions, world_seed, k)
        else:
            tasks = world.tasks(
                questions, seed=world_seed, settings=settings, retriever=retriever, top_k=k
            )
        longest = max(len(task.proof) for task in tasks)
        if made_rules.max_turns <= 2 * longest:
            raise ConfigurationError(
                f"max_turns must be at least {2 * longest + 1}, got {made_rules.max_turns}: the "
                f"longest proof takes {longest} pages, each searched for and opened"
            )
        max_chars = made_rules.max_observation_chars
        super().__init__(
            corpus=world.corpus,
            tasks=tasks,
            retriever=retriever,
            tools=(
                SnippetSearch(world.corpus, max_chars=max_chars, k=k),
                Access(world.corpus, ids=_ids_by_url(world), max_chars=max_chars),
                Answer(),
            ),
            k=k,
            rules=made_rules,
            render_mode=render_mode,
        )
        self.world = world
        self.drawn = tasks

    def reading_call(self, document_id: str) -> ToolCall:
        """Return the call that opens a page."""
        return {"name": "access", "arguments": {"url": self.corpus[document_id].url}}

    def chance(self, task: Task) -> float:
        """Return the chance of a guess among the answers that the question itself offers."""
        return _CHANCES.get(task.kind, 0.0)

    def findings(self) -> list[Finding]:
        """Say whether solver and reader agree, and what shortcuts were rejected or remain."""
        report = self.drawn.report
        graph = self.world.graph()
        solved = sum(
            solve(graph, self.drawn.question(task).to_dict()) == sorted(task.answers)
            for task in self.drawn
        )
        exposed = sum(
            answer.lower() in task.question.lower()
            for task in self.drawn
            for answer in task.answers
        )
        shares = ", ".join(f"{name} {share:.3f}" for name, share in report.shortcut_shares.items())
        read = sum(self._is_read(task) for task in self.drawn) if self.world.has_prose else None
        return [
            Finding("graph solver", _of(solved, self.drawn, "agree"), solved == len(self.drawn)),
            Finding(
                "reader",
                "the articles are not of the world's own making"
                if read is None
                else _of(read, self.drawn, "have all their facts read from the pages"),
                None if read is None else read == len(self.drawn),
            ),
            Finding("answers", f"{exposed} stand in their question", exposed == 0),
            Finding("edges", f"{report.retrieved_share:.3f} of the steps drawn were retrievable"),
            Finding("rejected", f"for shortcuts, of all drawn: {shares}"),
            *self._given_away(),
        ]

    def _is_read(self, task: Task) -> bool:
        """Tell whether an independent reader finds every fact of a task in its evidence."""
        reader, name = _reader(self.world), self.world.entities.name
        found = {triple for place in task.evidence for triple in reader.read(self.corpus[place])}
        return all(
            entity < 0 or (name(subject), predicate, name(entity)) in found
            for subject, predicate, entity in self.drawn.proofs[task.id].facts
        )

    def _given_away(self) -> list[Finding]:
        """Say of each kind how many tasks the question itself, as one query, gives away."""
        totals: dict[str, list[int]] = {}
        for (kind, _), (found, number) in one_query_table(self.drawn, self.retriever).items():
            entry = totals.setdefault(kind, [0, 0])
            entry[0] += found
            entry[1] += number
        return [
            Finding(
                f"one query, {kind}",
                f"finds all evidence of {found} of {number}",
                None if kind == "simple" else found < _MOST_GIVEN_AWAY * number,
            )
            for kind, (found, number) in totals.items()
        ]

    def _select(self, options: dict[str, Any]) -> TaskSet:
        refuse_other_worlds(options)
        return super()._select(options)


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector over one world; the arguments are those of KnowledgeGraphEnv."""
    env = KnowledgeGraphEnv(**arguments)
    return SearchVectorEnv(env, num_envs, autoreset_mode=autoreset_mode)


def _of(number: int, tasks: TaskSet, what: str) -> str:
    return f"{number} of {len(tasks)} {what}"


@lru_cache(maxsize=8)
def _world(
    entities: int,
    world_seed: int,
    split: WorldSplit,
    coverage: Coverage,
    noise: float,
    schema: str | None,
    source: str | None,
) -> KnowledgeWorld:
    """Return a world; the latest are kept, so that environments share them."""
    if source is not None:
        return KnowledgeWorld.from_folder(source, coverage=coverage)
    return KnowledgeWorld(
        entities, world_seed, split=split, coverage=coverage, noise=noise, schema=schema
    )


@lru_cache(maxsize=32)
def _tasks(
    world: KnowledgeWorld,
    index_dir: str | None,
    settings: QuestionSettings,
    questions: int,
    seed: int,
    k: int,
) -> KnowledgeTasks:
    """Return tasks whose proofs the retriever plays, and that have no shortcut."""
    retriever = default_retriever(world.corpus, index_dir)
    return world.tasks(questions, seed=seed, settings=settings, retriever=retriever, top_k=k)


@lru_cache(maxsize=8)
def _ids_by_url(world: KnowledgeWorld) -> Mapping[str, str]:
    return world.corpus.ids_by_url()


@lru_cache(maxsize=8)
def _reader(world: KnowledgeWorld) -> Reader:
    return Reader(world.entities.schema, {document.title for document in world.corpus})

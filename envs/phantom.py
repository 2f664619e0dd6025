"""Questions about invented people, in worlds of any size."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, Unpack

from gymnasium.vector import AutoresetMode

from ..corpora.errors import ConfigurationError
from ..corpora.phantom import PhantomWorld, QuestionSettings, is_definite, leak_table
from ..corpora.phantom.articles import ArticleStyle
from ..corpora.phantom.grammar import QuestionKind, Semantics
from ..corpora.phantom.names import WorldSplit
from ..corpora.retrieval import Retriever, default_retriever
from ..corpora.tasks import Task, TaskSet
from .base import SearchEnv
from .findings import Finding
from .menu_tools import ReadMenu
from .rules import RuleOptions, Rules, check_at_least
from .tools import Answer, Read, Search
from .vector import SearchVectorEnv

__all__ = ["PhantomEnv", "make_vector", "refuse_other_worlds"]

_MAX_TURNS = 12
_MOST_LEAKS = 0.1  # of the questions of a cell
_CHANCES = {  # of a guess that knows the kind
    "yes_no": 0.5,
    "comparison": 0.5,
    "superlative": 0.5,  # two choices or more
    "unanswerable": 1.0,  # the answer is always the same
}


class PhantomEnv(SearchEnv):
    """Answer questions about a fictional universe that no model can know by heart.

    Task: a question whose answer takes one to many facts about invented people (PhantomWiki,
    arXiv:2502.20377; PhantomEnvironments, arXiv:2609.40221): "Who is the mother of the friend
    of ...?". Articles state base facts only, so a cousin must be reasoned. Every task carries a
    proof: the retriever brings each of its articles into the top k for the proof's query, and
    it fits the turn budget. No question of two hops and more brings its last article when it is
    searched word for word.

    Observation: the question; then what the tool gave: articles under a heading ``rank. [id]
    name``, at most ``max_observation_chars`` characters.

    Actions: ``search(query)``, ``read(document_id, page=)``, ``answer(text)``.

    Reward: exact match of the answer, 0 or 1; see ``rewards``. Where every answer is asked for
    (``semantics="set"``), the answer is a comma-separated list and is scored as a set.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every task.

    Arguments:
        people: How many people the world has.
        world_seed: Where the world and its questions come from.
        split: ``"train"`` or ``"test"``: two universes that share no name.
        hops: The fewest and the most facts to join.
        constraints: The fewest and the most attribute filters in a question.
        comparisons: Whether to ask also which of two people was born first.
        kinds: Which kinds of questions; see ``QuestionSettings``.
        relations: ``"all"``, ``"easy"``, or the names of relations.
        semantics: ``"definite"``, one answer, or ``"set"``, all who fit.
        questions: How many tasks are drawn.
        style: How articles are written: ``"wiki"`` or ``"prose"``.
        friends: How many friends a person has on average.
        family: The most people, generations and children of a family.
        retriever: Ranks the articles; BM25 if left out.
        index_dir: A folder to keep the BM25 index in; in memory if left out.
        k: How many articles a search shows.
        hit_sentences: How many sentences of each are shown, those that fit the query best; 0 for
            the text from its beginning.
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=12, the others as in ``Rules``.

    Versions: v0, the first.
    """

    tasks_argument = "questions"
    menu_tools = ReadMenu()

    def __init__(
        self,
        people: int = 5_000,
        world_seed: int = 0,
        *,
        split: WorldSplit = "train",
        hops: tuple[int, int] = (1, 6),
        constraints: tuple[int, int] = (0, 0),
        comparisons: bool = False,
        kinds: tuple[QuestionKind, ...] = ("chain", "attribute"),
        relations: Literal["easy", "all"] | tuple[str, ...] = "all",
        semantics: Semantics = "definite",
        questions: int = 500,
        style: ArticleStyle = "wiki",
        friends: float = 3.0,
        family: tuple[int, int, int] = (25, 5, 5),
        retriever: Retriever | None = None,
        index_dir: str | None = None,
        k: int = 3,
        hit_sentences: int = 0,
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        made_rules = Rules.of({"max_turns": _MAX_TURNS, **rules})
        check_at_least("k", k, 1)
        check_at_least("hit_sentences", hit_sentences, 0)
        if comparisons and "comparison" not in kinds:
            kinds = (*kinds, "comparison")
        settings = QuestionSettings(
            hops, constraints, kinds, relations, semantics, documents=made_rules.max_turns - 1
        )
        world = _world(people, world_seed, split, style, friends, family)
        if retriever is None:
            retriever = default_retriever(world.corpus, index_dir)
            tasks = _tasks(world, index_dir, settings, questions, world_seed, k)
        else:
            tasks = world.tasks(
                questions, seed=world_seed, settings=settings, retriever=retriever, top_k=k
            )
        max_chars = made_rules.max_observation_chars
        super().__init__(
            corpus=world.corpus,
            tasks=tasks,
            retriever=retriever,
            tools=(
                Search(world.corpus, max_chars=max_chars, k=k, sentences=hit_sentences),
                Read(world.corpus, max_chars=max_chars),
                Answer(),
            ),
            k=k,
            rules=made_rules,
            render_mode=render_mode,
        )
        self.world = world
        self._questions, self._world_seed = settings, world_seed

    def chance(self, task: Task) -> float:
        """Return the chance of a guess among the answers that the question itself offers."""
        return _CHANCES.get(task.kind, 0.0)

    def findings(self) -> list[Finding]:
        """Say whether every description fits one person, and how many questions leak.

        A cell of the leak table is a kind, so many hops (h) and so many constraints (c).
        """
        found = []
        if self._questions.semantics == "definite":
            drawn = self.world.questions(
                len(self.all_tasks),
                seed=self._world_seed,
                settings=self._questions,
                retriever=self.retriever,
                top_k=self.k,
            )
            vague = sum(not is_definite(self.world.people, question) for question, _ in drawn)
            figure = f"{vague} of {len(drawn)} questions fit more or fewer than one person"
            found.append(Finding("descriptions", figure, vague == 0))
        table = leak_table(self.all_tasks, self.retriever, self.k)
        for (kind, hops, constraints), (leaks, number) in table.items():
            name = f"leak, {kind}, {hops}h {constraints}c"
            is_met = leaks < _MOST_LEAKS * number if hops >= 2 else None
            found.append(Finding(name, f"{leaks} of {number}", is_met))
        return found

    def _select(self, options: dict[str, Any]) -> TaskSet:
        refuse_other_worlds(options)
        return super()._select(options)


def refuse_other_worlds(options: Mapping[str, Any]) -> None:
    """Raise a ConfigurationError if reset options ask for another world than the one made."""
    for name in ("split", "world_seed"):
        if name in options:
            raise ConfigurationError(
                f"options[{name!r}]: a world stays the same in an environment; make another "
                f"one with {name}={options[name]!r}"
            )


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector of PhantomEnv over one world; the arguments are those of PhantomEnv."""
    return SearchVectorEnv(PhantomEnv(**arguments), num_envs, autoreset_mode=autoreset_mode)


@lru_cache(maxsize=8)
def _world(
    people: int,
    world_seed: int,
    split: WorldSplit,
    style: ArticleStyle,
    friends: float,
    family: tuple[int, int, int],
) -> PhantomWorld:
    """Return a world; the latest are kept, so that environments share them."""
    return PhantomWorld(
        people, world_seed, split=split, style=style, friends=friends, family=family
    )


@lru_cache(maxsize=32)
def _tasks(
    world: PhantomWorld,
    index_dir: str | None,
    settings: QuestionSettings,
    questions: int,
    seed: int,
    k: int,
) -> TaskSet:
    """Return tasks whose proofs the retriever plays, and that do not leak."""
    retriever = default_retriever(world.corpus, index_dir)
    return world.tasks(questions, seed=seed, settings=settings, retriever=retriever, top_k=k)

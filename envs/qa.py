"""Question answering over any corpus with questions."""

import os
from typing import Any, Unpack

from gymnasium.vector import AutoresetMode

from ..corpora.documents import Corpus
from ..corpora.errors import ConfigurationError
from ..corpora.retrieval import Retriever, default_retriever
from ..corpora.shipped import load_corpus, load_tasks, tasks_beside
from ..corpora.tasks import Split, TaskSet
from .base import SearchEnv
from .menu_tools import ProseMenu
from .rules import RuleOptions, Rules, check_at_least
from .tools import Answer, Read, Search
from .vector import SearchVectorEnv

__all__ = ["QAEnv", "make_vector"]


class QAEnv(SearchEnv):
    """Answer a question by searching the passages that state the answer.

    Task: a question whose answer takes one or more passages. The shipped set, hotpotqa-100,
    has 100 real multi-hop questions and 994 Wikipedia passages (HotpotQA, arXiv:1809.09600).

    Observation: the question; then what the tool gave: passages under a heading ``rank. [id]
    title``, at most ``max_observation_chars`` characters.

    Actions: ``search(query)``, ``read(document_id, page=)``, ``answer(text)``.

    Reward: exact match of the answer, 0 or 1; see ``rewards``.

    Ends: terminated by ``answer``; truncated after ``max_turns`` turns.

    Optimum: a return of 1. The oracle reaches it on every shipped question.

    Arguments:
        corpus: A shipped data set, a JSONL file, a folder, or a Corpus.
        tasks: A shipped data set, a JSONL file, a folder that holds ``tasks.jsonl``, or a
            TaskSet. If left out: those that lie beside the corpus.
        retriever: Ranks the corpus; BM25 if left out.
        k: How many passages a search shows.
        hit_sentences: How many sentences of each are shown, those that fit the query best; 0 for
            the text from its beginning.
        split: ``"all"``, ``"train"`` or ``"test"`` (80 to 20, no evidence shared).
        render_mode: None, ``"ansi"`` or ``"html"``.
        rules: max_turns=8, max_observation_chars=8000, rewards="exact-match",
            on_invalid="remind", last_turn="any", convention="seekgym"; see ``Rules``.

    Versions: v0, the first.
    """

    menu_tools = ProseMenu()

    def __init__(
        self,
        corpus: str | os.PathLike[str] | Corpus = "hotpotqa-100",
        tasks: str | os.PathLike[str] | TaskSet | None = None,
        *,
        retriever: Retriever | None = None,
        k: int = 3,
        hit_sentences: int = 0,
        split: Split = "all",
        render_mode: str | None = None,
        **rules: Unpack[RuleOptions],
    ) -> None:
        made_rules = Rules.of(rules)
        check_at_least("k", k, 1)
        check_at_least("hit_sentences", hit_sentences, 0)
        found = corpus if isinstance(corpus, Corpus) else load_corpus(_named("corpus", corpus))
        if tasks is None:
            if isinstance(corpus, Corpus):
                raise ConfigurationError("tasks is missing: a Corpus object comes without tasks")
            tasks = tasks_beside(corpus)
        if not isinstance(tasks, TaskSet):
            tasks = load_tasks(_named("tasks", tasks), found)
        max_chars = made_rules.max_observation_chars
        super().__init__(
            corpus=found,
            tasks=tasks,
            retriever=default_retriever(found) if retriever is None else retriever,
            tools=(
                Search(found, max_chars=max_chars, k=k, sentences=hit_sentences),
                Read(found, max_chars=max_chars),
                Answer(),
            ),
            k=k,
            rules=made_rules,
            split=split,
            render_mode=render_mode,
        )


def _named(argument: str, value: object) -> str | os.PathLike[str]:
    """Return a name or a path; a ConfigurationError says what else would do."""
    if isinstance(value, (str, os.PathLike)):
        return value
    raise ConfigurationError(
        f"{argument} must be a name, a path, or a {'Corpus' if argument == 'corpus' else 'TaskSet'}"
        f", got {type(value).__name__}"
    )


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SearchVectorEnv:
    """Return a vector of QAEnv over one index; the arguments are those of QAEnv."""
    return SearchVectorEnv(QAEnv(**arguments), num_envs, autoreset_mode=autoreset_mode)

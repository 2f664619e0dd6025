"""Refine a query step by step, by the productions of a grammar."""

import copy
import hashlib
import json
import operator
from typing import Any, Literal

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ..corpora.errors import BackendError, ConfigurationError, raise_unknown
from ..corpora.retrieval import Clause, FieldedQuery, FieldedRetriever, fielded_retriever
from ..corpora.tasks import Task
from . import transcript
from .backend import BrokenRetriever
from .episode import Message
from .game import Game
from .query_episode import QueryEpisode, QuerySnapshot, Request
from .query_features import QueryFeatures
from .query_grammar import STOP, Grammar, TermReader
from .rules import check_at_least
from .scoring import ndcg
from .team.source import World, open_world

__all__ = ["QueryRefinementEnv", "make_vector"]

Step = tuple[np.ndarray, float, bool, bool, dict[str, Any]]
_FAILURE = "The search backend failed, so this episode does not count."
_PENALTY = -1.0
_NEXT = {
    "Q": "stop, or begin a clause with add, require or forbid",
    "F": "choose title or contents",
    "W": "choose a term that is on offer",
}


class QueryRefinementEnv(Game[np.ndarray, int]):
    """Refine a query, clause by clause, until the evidence stands at the top of its results.

    Task: a question of the world, whose evidence documents are relevant. The query begins with
    the question and grows by clauses: a term added, or one required or forbidden in title or
    contents. Each complete clause is a request, and its results are those of the whole query;
    results of earlier requests are not mixed in, since ranking several lists as one takes a
    reader. This is the setting of "Boosting Search Engines with Interactive Agents" (Adolphs et
    al., TMLR 2022) and HARE (arXiv:2209.15469).

    Observation: a fixed row of numbers in [0, 1] (``features.names``) about the query, its
    results and each term on offer. ``info["query"]``, ``info["results"]`` and ``info["terms"]``
    say it in words, and so do ``info["text"]`` and ``render()``.

    Actions: a production of the grammar in ``query_grammar``, the left-most symbol first: stop,
    add, require or forbid; title or contents; a term. Terms come from the question, from titles
    and from contents seen so far, of each the ``terms`` of the largest tf-idf; a used one is
    not offered again. ``info["action_mask"]`` and ``action_masks()`` say what is legal,
    ``labels()`` what each place stands for. An illegal action costs a turn.

    Reward: ``ndcg``, the change of nDCG@k by a request; ``inaction``, -1 for ending without a
    clause, by stop or by a spent budget; ``empty``, -1 for a request without results, which
    leaves the results as they were. The changes add up to the final nDCG minus the first:
    nothing is counted twice. (The published code pays that difference once more on stop, and
    divides by the gain of k relevant documents; here the best ranking has as many as there are.)

    Ends: terminated by stop and by a request without results; truncated after ``requests``
    requests, that of the question included, and after ``max_turns`` productions.

    Optimum: at most 1 minus the first nDCG, which the grammar cannot always reach:
    ``agents.refinement.RefinementOracle`` finds the best by beam search.

    Arguments:
        world: What is searched, for example ``"qa:hotpotqa-100"``, ``"phantom:people=1000"`` or
            ``"knowledge:entities=600"``; see ``team.source.open_world``. Tasks without evidence
            are left out.
        split: ``"train"`` or ``"test"``, as the world has it; its default if left out.
        k: How many results a request brings, and the k of nDCG.
        requests: How many requests an episode has at most.
        terms: How many terms of each source are offered at most.
        max_turns: How many productions an episode has at most.
        render_mode: None, ``"ansi"`` or ``"html"``.

    Versions: v0, the first.
    """

    score_keys = ("ndcg", "first_ndcg", "evidence_recall")
    metadata: dict[str, Any] = {"render_modes": ["ansi", "html"], "render_fps": 1}  # noqa: RUF012
    reward_range = (-1.0, 1.0)
    best_return = 1.0
    is_best_reachable = False  # the question's own results may have had some evidence

    def __init__(
        self,
        world: World = "qa:hotpotqa-100",
        *,
        split: Literal["train", "test"] | None = None,
        k: int = 5,
        requests: int = 5,
        terms: int = 8,
        max_turns: int = 100,
        render_mode: str | None = None,
    ) -> None:
        for name, value, least in (
            ("k", k, 1),
            ("requests", requests, 2),
            ("terms", terms, 1),
            ("max_turns", max_turns, 2),
        ):
            check_at_least(name, value, least)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise_unknown("render_mode", render_mode, self.metadata["render_modes"])
        self.source = open_world(world, **({} if split is None else {"split": split}))
        self.source.all_tasks = self.source.all_tasks.with_evidence()
        self.source.tasks = self.source.tasks.with_evidence()
        self.corpus, self.tasks = self.source.corpus, self.source.tasks
        fielded = fielded_retriever(self.corpus)
        self.retriever: FieldedRetriever | BrokenRetriever = fielded
        self.k, self.requests, self._max_turns = k, requests, max_turns
        self.render_mode = render_mode
        self.grammar = Grammar(terms)
        self._reader = TermReader(self.corpus, fielded)
        self.features = QueryFeatures(self._reader, self.grammar, k)
        self.action_space = Discrete(self.grammar.size)  # type: ignore[assignment]
        self.observation_space = Box(0.0, 1.0, (self.features.size,), np.float32)
        identity = [type(self).__name__, self.corpus.fingerprint, self.tasks.fingerprint]
        numbers = [fielded.name, k, requests, terms, max_turns]
        text = json.dumps([*identity, *numbers])
        self._env_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._episode: QueryEpisode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Draw a task, or take the one asked for, and request the question itself.

        Raises:
            ConfigurationError: An option is unknown, or no task fits.
            BackendError: The index cannot be read.
        """
        super().reset(seed=seed)
        self.source.np_random = self.np_random  # one stream of draws
        self.source.reset(options=options)
        episode = self._episode = QueryEpisode(self.source.task)
        self._request(episode)
        episode.first_ndcg = episode.ndcg
        return self._observe(episode), self._info(episode, episode.documents, len(episode.seen))

    def step(self, action: int) -> Step:
        """Choose a production.

        Raises:
            ResetNeeded: There is no running episode.
        """
        episode = self._episode
        if episode is None or episode.is_over:
            raise ResetNeeded("the episode is over or was never begun; call reset() before step()")
        place, error = self._read(action, episode)
        terms = {"ndcg": 0.0, "inaction": 0.0, "empty": 0.0}
        documents: tuple[str, ...] = ()
        before, known = episode.ndcg, len(episode.seen)
        episode.turn += 1
        is_ended = False
        if error is not None:
            episode.refused += 1
        elif place == STOP:
            episode.messages += (Message("agent", "stop"),)
            is_ended = True
        else:
            episode.messages += (Message("agent", self.labels()[place]),)
            episode.query = self.grammar.expand(episode.query, place, episode.menu)
            if episode.query.symbol == "Q":
                try:
                    is_found = self._request(episode)
                except BackendError:
                    return self._fail(episode)
                terms["ndcg"] = episode.ndcg - before
                terms["empty"] = 0.0 if is_found else _PENALTY
                documents = episode.documents if is_found else ()
                is_ended = not is_found
        is_spent = episode.requests >= self.requests or episode.turn >= self._max_turns
        episode.is_over = is_ended or is_spent
        if episode.is_over and not episode.query.clauses:
            terms["inaction"] = _PENALTY
        info = self._info(episode, documents, len(episode.seen) - known)
        info |= {"error": error, "reward_terms": terms}
        if episode.is_over:
            info |= self._final_info(episode)
        return (
            self._observe(episode),
            float(sum(terms.values())),
            is_ended,
            episode.is_over and not is_ended,
            info,
        )

    def action_masks(self) -> np.ndarray:
        """Return which productions are legal: bool, shape (n,). The name is sb3-contrib's."""
        episode = self._begun()
        return self.grammar.mask(episode.query, episode.menu)

    def labels(self) -> tuple[str, ...]:
        """Return what each production stands for now; "" where there is no term."""
        return self.grammar.labels(self._begun().menu)

    @property
    def env_hash(self) -> str:
        """A short hash of the arguments and the data."""
        return self._env_hash

    @property
    def max_turns(self) -> int:
        """How many productions an episode has at most."""
        return self._max_turns

    def opening_action(self) -> int:
        """Return the production that begins a clause: for the kit."""
        return next(iter(self.clauses()))[0]

    def break_backend(self) -> int:
        """Begin a clause over an index that fails, and return what completes it: for the kit."""
        *begun, last = next(iter(self.clauses()))
        for place in begun:
            self.step(place)
        self.retriever = BrokenRetriever()
        return last

    def clauses(self) -> dict[tuple[int, ...], Clause]:
        """Return each clause that can be begun and completed now, by its productions."""
        episode = self._begun()
        return self.grammar.clauses(episode.query, episode.menu)

    def term_weights(self, document_id: str) -> dict[str, float]:
        """Return the tf-idf of each term of a document."""
        return self._reader.weights(document_id)

    def render(self) -> str | None:
        """Return the transcript so far, as text or as a page; None without a render mode."""
        if self.render_mode is None:
            return None
        messages = self._begun().transcript()
        if self.render_mode == "html":
            return transcript.to_html(messages)
        return transcript.to_text(messages)

    @property
    def task(self) -> Task:
        """The task of the running or last episode, gold answers included: privileged."""
        return self._begun().task

    @property
    def results(self) -> tuple[str, ...]:
        """Ids of the results of the latest request that had any, best first."""
        return self._begun().documents

    @property
    def query(self) -> FieldedQuery:
        """The question with the clauses that are complete."""
        episode = self._begun()
        return FieldedQuery(episode.task.question, episode.query.clauses)

    def snapshot(self) -> QuerySnapshot:
        """Return the state of the episode and of the generator, to come back to."""
        generator_state = copy.deepcopy(self.np_random.bit_generator.state)
        return QuerySnapshot(self.env_hash, self._begun().copy(), generator_state)

    def restore(self, state: QuerySnapshot) -> None:
        """Go back to a snapshot, of this environment or of an equal one.

        Raises:
            ConfigurationError: The snapshot is of an environment with other arguments or data.
        """
        if state.env_hash != self.env_hash:
            raise ConfigurationError(
                f"the snapshot is of an environment with hash {state.env_hash}, this one has "
                f"{self.env_hash}: arguments or data differ"
            )
        self._episode = state.episode.copy()
        self.np_random.bit_generator.state = copy.deepcopy(dict(state.generator_state))

    def _begun(self) -> QueryEpisode:
        if self._episode is None:
            raise ResetNeeded("no episode was begun; call reset() first")
        return self._episode

    def _request(self, episode: QueryEpisode) -> bool:
        """Search for the query as it stands; tell whether there were results."""
        query = FieldedQuery(episode.task.question, episode.query.clauses)
        hits = tuple(self.retriever.rank([query], self.k)[0])
        episode.requests += 1
        if hits:
            episode.hits = hits
            episode.ndcg = ndcg(episode.documents, episode.task.evidence, self.k)
        new = [hit.document_id for hit in hits if hit.document_id not in episode.seen]
        episode.seen += tuple(new)
        question = episode.task.question
        terms = self._reader.offer(question, episode.seen, self.grammar.terms)
        episode.menu = self.grammar.menu(terms)
        episode.words = {**episode.words, **{term.text: term.word for term in terms}}
        episode.shown = self.features.shown(question, episode.hits, new, episode.menu)
        titles = tuple((hit.document_id, self.corpus[hit.document_id].title) for hit in hits)
        request = Request(question, episode.query_text, titles, terms)
        episode.messages += (request,)
        return bool(hits)

    def _read(self, action: object, episode: QueryEpisode) -> tuple[int, str | None]:
        """Return a legal production, or the code of what is wrong; that is told in a message."""
        code, said = "masked", ""
        try:
            place = operator.index(action)  # type: ignore[arg-type]
            said = self.labels()[place] if 0 <= place < self.grammar.size else ""
        except Exception:  # an agent may send any object, and looking at it may fail
            place = -1
        if not 0 <= place < self.grammar.size:
            code = "malformed"
        elif self.action_masks()[place]:
            return place, None
        what = f"{place} ({said or 'no term'})" if code == "masked" else "That"
        fault = (
            "is not legal now" if code == "masked" else f"is none of 0 to {self.grammar.size - 1}"
        )
        reason = f"{what} {fault}: {_NEXT[episode.query.symbol]}."
        episode.messages += (
            Message("agent", transcript.describe_action(action)),
            Message("environment", reason),
        )
        return -1, code

    def _fail(self, episode: QueryEpisode) -> Step:
        """End an episode that the backend failed: it is nobody's score."""
        episode.is_over = True
        episode.messages += (Message("environment", _FAILURE),)
        info = self._info(episode, (), 0) | self._final_info(episode)
        unscored = dict.fromkeys(self.score_keys)
        terms = {"ndcg": 0.0, "inaction": 0.0, "empty": 0.0}
        info |= unscored | {"failure": "infrastructure", "valid": False, "reward_terms": terms}
        return self._observe(episode), 0.0, False, True, info

    def _observe(self, episode: QueryEpisode) -> np.ndarray:
        shares = (
            episode.requests / self.requests,
            episode.turn / self._max_turns,
            len(episode.hits) / self.k,
        )
        return self.features.observe(
            episode.query, shares, self.requests - 1, episode.shown, episode.menu
        )

    def _info(self, episode: QueryEpisode, documents: tuple[str, ...], new: int) -> dict[str, Any]:
        """Return what every step tells, gold never included."""
        mask = self.action_masks()
        return {
            "task_id": episode.task.id,
            "env_hash": self.env_hash,
            "turn": episode.turn,
            "turns_left": self._max_turns - episode.turn,
            "documents": documents,
            "new_documents": new / len(documents) if documents else 0.0,
            "error": None,
            "failure": None,
            "valid": True,
            "searches": episode.requests,
            "valid_calls": episode.turn - episode.refused,
            "invalid_calls": episode.refused,
            "action_mask": mask.astype(np.int8),
            "text": self._text(episode, mask),
            "query": episode.query_text,
            "results": tuple(self.corpus[hit.document_id].title for hit in episode.hits),
            "terms": tuple(f"{term.source}: {term.word}" for term in episode.menu.values()),
        }

    def _text(self, episode: QueryEpisode, mask: np.ndarray) -> str:
        """Return what was said last, and what may be chosen now."""
        if episode.is_over:
            return episode.said
        labels = self.labels()
        choices = ", ".join(labels[place] for place in np.flatnonzero(mask))
        return f"{episode.said}\nChoices: {choices}"

    def _final_info(self, episode: QueryEpisode) -> dict[str, Any]:
        """Return what only the end of an episode tells."""
        evidence = set(episode.task.evidence)
        return {
            "ndcg": episode.ndcg,
            "first_ndcg": episode.first_ndcg,
            "evidence_recall": len(evidence & set(episode.seen)) / len(evidence),
            "calls": {"search": episode.requests},
            "gold_answers": episode.task.answers,
            "evidence": episode.task.evidence,
            "entities": tuple(self.corpus[each].title for each in episode.task.evidence),
            "hops": episode.task.hops,
        }


def make_vector(
    num_envs: int = 1,
    *,
    autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    **arguments: Any,
) -> SyncVectorEnv:
    """Return a vector of QueryRefinementEnv over one index; the arguments are those of it."""
    check_at_least("num_envs", num_envs, 1)
    env = QueryRefinementEnv(**arguments)
    return SyncVectorEnv(
        [lambda: copy.deepcopy(env) for _ in range(num_envs)], autoreset_mode=autoreset_mode
    )
